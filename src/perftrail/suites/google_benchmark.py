"""Programs that use Google Benchmark."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import Node, parse
from perftrail.formats.google_benchmark import read, run_name
from perftrail.model.benchmark import Point
from perftrail.model.suite import SuiteItem
from perftrail.suites.shell import by_program, for_each_program, in_directory, word, words

if TYPE_CHECKING:
    from perftrail.model.benchmark import Value
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "google-benchmark"

_LISTING_SECONDS = 0.01
"""Time of each benchmark in a listing: enough to choose the number of iterations."""

_MOST_ITERATIONS = 1_000_000_000
_OWN_CLOCK = re.compile(r"/(?:real_time|manual_time|threads:\d+)\b")
"""Benchmarks whose wall time counts; the tool judges all others by CPU time."""


def listing(suite: Suite) -> str:
    """Run each benchmark for a moment."""
    options = f"--benchmark_min_time={_LISTING_SECONDS} --benchmark_format=json{words(suite.arguments)}"
    return for_each_program(
        suite, f'({in_directory(suite.path)} && exec {{build}}/"$program" {options}) || true'
    )


def read_listing(output: str, suite: Suite) -> tuple[SuiteItem, ...]:
    """Return every benchmark of every program; with several programs, names begin with that of the program."""
    programs = tuple(by_program(output))
    items: dict[tuple[str, Point], SuiteItem] = {}
    wrong: list[str] = []
    for program, printed in programs:
        if not printed.strip():
            continue
        try:
            document = parse(printed.encode())
        except FormatError as error:
            wrong.append(f"{program}: {error}")  # a program of another kind, whose name matches
            continue
        context = document.get("context")
        takes_iterations = context is not None and context.get("library_version") is not None
        prefix = f"{program.rpartition('/')[2]}/" if len(programs) > 1 else ""
        for entry in document["benchmarks"].elements():
            item = _item(entry, suite, program=program, prefix=prefix, takes_iterations=takes_iterations)
            items.setdefault((item.name, item.point), item)
    if wrong and not items:
        raise FormatError(wrong[0])
    return tuple(items.values())


def unlisted(output: str, suite: Suite) -> tuple[str, ...]:
    """Return each program that the suite names and that listed nothing, with a likely reason."""
    return tuple(
        f"{program}: it printed no JSON; if it needs arguments, set them as arguments of the suite"
        for program, printed in by_program(output)
        if program in suite.program and not _is_json(printed)
    )


def _is_json(printed: str) -> bool:
    try:
        parse(printed.encode())
    except FormatError:
        return False
    return True


def command(suite: Suite, item: SuiteItem) -> str:
    """Run one benchmark, for its number of iterations if this version of the library accepts one."""
    program, _, name = item.selector.partition("\t")
    time = f"{item.iterations}x" if item.iterations else f"{suite.seconds:g}"
    return (
        f'{in_directory(suite.path)} && program={{build}}/{word(program)} && if [ -x "$program" ]; then '
        f'exec "$program" --benchmark_filter={word(f"^{_escaped(name)}$")} --benchmark_min_time={time} '
        f"--benchmark_format=json{words(suite.arguments)}; fi"
    )


def server(_suite: Suite, _item: SuiteItem) -> str:
    """There is none: such a program starts quickly."""
    return ""


def request(_suite: Suite, _item: SuiteItem) -> str:
    """There is none."""
    return ""


def _item(entry: Node, suite: Suite, *, program: str, prefix: str, takes_iterations: bool) -> SuiteItem:
    name = run_name(entry)
    series = read(json.dumps({"benchmarks": [entry.value]}).encode())
    printed = "wall" if _OWN_CLOCK.search(name) else "cpu"
    found = next((each for each in series if each.metric == printed), None)
    count = entry.get("iterations")
    iterations = 0
    if found is not None and takes_iterations and count is not None and "/iterations:" not in name:
        each = found.values[0]
        iterations = max(1, min(_MOST_ITERATIONS, round(suite.seconds / max(each, 1e-12))))
    benchmark, point = (found.benchmark, found.point) if found else (name, ())
    return SuiteItem(
        name=f"{prefix}{benchmark}",
        point=Point(tuple((key, _value(text)) for key, text in point)),
        selector=f"{program}\t{name}",
        iterations=iterations,
        printed=printed,
    )


def _value(text: str) -> Value:
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else text


def _escaped(name: str) -> str:
    r"""Return a name as a regular expression that both POSIX and std::regex understand.

    >>> _escaped("BM_Sort<int>/64")
    'BM_Sort<int>/64'
    >>> _escaped("f(x)")
    'f\\(x\\)'
    """
    return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name)
