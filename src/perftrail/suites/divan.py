"""Programs that use divan, in any version since 0.1: copies of what ``cargo bench --no-run`` built.

A program runs in the directory of its package, as `cargo bench` runs it. An invocation has the sample count and the
sample size of the listing, so that all builds run equally many iterations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.divan import read
from perftrail.model.benchmark import Point
from perftrail.model.suite import SuiteItem
from perftrail.suites.rust import as_value, at_package, listing_of, unique_names
from perftrail.suites.shell import by_program, word, words

if TYPE_CHECKING:
    from perftrail.model.benchmark import Value
    from perftrail.model.exchange import Series
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "divan"

_MARK = "DIVAN_"
"""Text in each program that uses divan: its environment variables."""

_LISTING_SECONDS = 0.01
"""Time of each benchmark in a listing: enough to choose the number of iterations."""

_SAMPLE_SECONDS = 2e-6
_LARGEST_SAMPLE = 1024
"""Iterations of a sample: divan keeps the results of a sample until its end, and many of them leave the cache."""

_MOST_SAMPLES = 10_000
"""Samples of an invocation: each costs time between samples, with several threads 50 µs."""

_BRANCH = re.compile(r"((?:│  |   )*)(?:├─|╰─) (.*?)(?:  \(ignored\))?$")


def listing(suite: Suite) -> str:
    """Print the tree, which shows what is an argument, and run each benchmark for a moment."""
    run = f"--bench --color never --min-time 0 --max-time {_LISTING_SECONDS}{words(suite.arguments)}"
    return listing_of(suite, mark=_MARK, line=f'sh -c \'"$0" --list "$@" && exec "$0" "$@"\' "$at" {run}')


def read_listing(output: str, suite: Suite) -> tuple[SuiteItem, ...]:
    """Return every benchmark with each of its arguments and numbers of threads.

    Ignored benchmarks and those that print nothing are left out.
    """
    found: list[tuple[str, str, Series]] = []
    leaves: set[tuple[str, str]] = set()
    for program, printed in by_program(output):
        leaves.update((program, leaf) for leaf in _leaves(printed))
        try:
            series = read(printed.encode())
        except FormatError as error:
            raise FormatError(f"{program}: {error}") from error
        for each in series:
            if each.metric == "wall":
                found.append((program, _path(each), each))
    names = dict(
        zip(
            dict.fromkeys((program, path) for program, path, _ in found),
            unique_names((program, path) for program, path, _ in found),
            strict=True,
        )
    )
    items: dict[tuple[str, Point], SuiteItem] = {}
    for program, path, each in found:
        prefix = names[program, path].removesuffix(path)
        name, point = _split(path, each, {leaf for at, leaf in leaves if at == program})
        seconds = max(each.values[0], 1e-12)
        size = max(1, min(_LARGEST_SAMPLE, round(_SAMPLE_SECONDS / seconds)))
        count = max(1, min(_MOST_SAMPLES, round(suite.seconds / (size * seconds))))
        item = SuiteItem(
            name=f"{prefix}{name}",
            point=point,
            selector=f"{size}\t{program}\t{path}",
            iterations=size * count,
        )
        items.setdefault((item.name, item.point), item)
    return tuple(items.values())


def command(suite: Suite, item: SuiteItem) -> str:
    """Run one benchmark with one argument and one number of threads; a missing program prints nothing."""
    size, program, path = item.selector.split("\t", 2)
    count = max(1, item.iterations // int(size))
    threads = item.point.as_dict().get("threads")
    several = f" --threads {threads}" if isinstance(threads, int) else ""
    return (
        f'{at_package(suite, program)} && if [ -x "$at" ]; then exec "$at" --bench --color never --min-time 0 '
        f"--max-time {suite.timeout_seconds:g} --sample-count {count} --sample-size {size}"
        f"{several}{words(suite.arguments)} --exact {word(path)}; fi"
    )


def server(_suite: Suite, _item: SuiteItem) -> str:
    """There is none: such a program starts quickly."""
    return ""


def request(_suite: Suite, _item: SuiteItem) -> str:
    """There is none."""
    return ""


def _path(series: Series) -> str:
    """Return the path with which divan selects a row; it does not contain the number of threads."""
    return "::".join([series.benchmark, *(value for name, value in series.point if name != "threads")])


def _split(path: str, series: Series, leaves: set[str]) -> tuple[str, Point]:
    """Split a path into a benchmark and its parameters.

    What follows a leaf of the list is an argument. Numbers at the end of a leaf are constants of a generic function.
    """
    parameters: list[tuple[str, Value]] = []
    leaf = max((each for each in leaves if f"{path}::".startswith(f"{each}::")), key=len, default=path)
    name, separator, last = leaf.rpartition("::")
    if separator and isinstance(as_value(last), int):
        parameters.append(("const", as_value(last)))
    else:
        name = leaf
    if leaf != path:
        parameters.append(("arg", as_value(path.removeprefix(f"{leaf}::"))))
    parameters += [(key, as_value(value)) for key, value in series.point if key == "threads"]
    return name, Point(tuple(parameters))


def _leaves(printed: str) -> list[str]:
    r"""Return the paths of the tree that ``--list`` prints; it ends where the table begins.

    >>> _leaves("sums\n├─ plain\n╰─ fill\n   ╰─ Vec<u8>\n")
    ['sums::plain', 'sums::fill::Vec<u8>']
    """
    leaves: list[str] = []
    path: list[str] = []
    for line in printed.splitlines():
        if "│ slowest" in line:
            break
        found = _BRANCH.fullmatch(line)
        if found is None:
            path = [line.strip()] if line.strip() and not path else path
            continue
        path = [*path[: len(found[1]) // 3 + 1], found[2].strip()]
        if leaves and "::".join(path).startswith(f"{leaves[-1]}::"):
            leaves.pop()
        leaves.append("::".join(path))
    return leaves
