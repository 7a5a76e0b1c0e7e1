"""Benchmarks of Go packages: test programs that ``go test -c`` built, each in a directory named like its package.

A program runs in the directory of its package, as `go test` runs it, because benchmarks read files there.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.model.benchmark import Point
from perftrail.model.suite import SuiteItem
from perftrail.suites.shell import by_program, for_each_program, in_directory, word, words

if TYPE_CHECKING:
    from perftrail.model.benchmark import Value
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "go"

PROGRAMS = "perftrail-bench"
"""Directory of the test programs in the build; below it, each is in the directory of its package."""

_LISTING_TIME = "10ms"
"""Time of each benchmark in a listing: enough to choose the number of iterations."""

_LINE = re.compile(r"^Benchmark(\S*)\s+\d+\s+(\d+(?:\.\d+)?(?:e[+-]?\d+)?) ns/op", re.MULTILINE)
_CPUS = re.compile(r"-\d+$")
_PARAMETER = re.compile(r"([A-Za-z_]\w*)=(.+)")
_MOST_ITERATIONS = 1_000_000_000


def listing(suite: Suite) -> str:
    """Run each benchmark for a moment: only a run shows sub-benchmarks."""
    options = f"-test.run '^$' -test.bench . -test.benchtime {_LISTING_TIME}{words(suite.arguments)}"
    package = f"${{program#{PROGRAMS}/}}"
    return for_each_program(
        suite,
        f'(at={{build}}/"$program"; directory="{package}"; directory="${{directory%/*}}"; '
        f'case "{package}" in */*) cd "$directory";; esac; exec "$at" {options})',
    )


def read_listing(output: str, suite: Suite) -> tuple[SuiteItem, ...]:
    """Return every benchmark that printed a result; its name begins with its package, except that of the root."""
    items = []
    for program, printed in by_program(output):
        found = _LINE.findall(printed)
        cpus = {cut[0] if (cut := _CPUS.search(name)) else "" for name, _ in found}
        suffix = cpus.pop() if len(cpus) == 1 else ""
        for full, nanoseconds in found:
            name = full.removesuffix(suffix)
            package = _package(program)
            plain, point = _split(name)
            each = float(nanoseconds) * 1e-9
            items.append(
                SuiteItem(
                    name=f"{package}.{plain}" if package else plain,
                    point=point,
                    selector=f"{program}\t{name}",
                    iterations=max(1, min(_MOST_ITERATIONS, round(suite.seconds / max(each, 1e-12)))),
                )
            )
    return tuple({(each.name, each.point): each for each in items}.values())


def command(suite: Suite, item: SuiteItem) -> str:
    """Run one benchmark for its number of iterations; a missing program prints nothing."""
    program, _, name = item.selector.partition("\t")
    pattern = "/".join(f"^{re.escape(part)}$" for part in f"Benchmark{name}".split("/"))
    return (
        f"{in_directory(_package(program))} && program={{build}}/{word(program)} && "
        f'if [ -x "$program" ]; then exec "$program" -test.run \'^$\' -test.bench {word(pattern)} '
        f"-test.benchtime {item.iterations}x{words(suite.arguments)}; fi"
    )


def server(_suite: Suite, _item: SuiteItem) -> str:
    """There is none: a test program starts quickly."""
    return ""


def request(_suite: Suite, _item: SuiteItem) -> str:
    """There is none."""
    return ""


def _package(program: str) -> str:
    """Return the directory of the program's package.

    >>> _package("perftrail-bench/internal/parse/parse.test"), _package("perftrail-bench/root.test")
    ('internal/parse', '')
    """
    parts = PurePosixPath(program).parts
    inside = parts[1:-1] if parts and parts[0] == PROGRAMS else parts[:-1]
    return "/".join(inside)


def _split(name: str) -> tuple[str, Point]:
    """Split a name into benchmark and parameters, by Go's convention ``key=value``.

    >>> _split("Sort/size=10/reverse")[0], str(_split("Sort/size=10/reverse")[1])
    ('Sort/reverse', 'size=10')
    """
    plain: list[str] = []
    point: dict[str, Value] = {}
    for part in name.split("/"):
        found = _PARAMETER.fullmatch(part) if plain else None
        if found and found[1] not in point:
            point[found[1]] = int(found[2]) if re.fullmatch(r"-?\d{1,15}", found[2]) else found[2]
        else:
            plain.append(part)
    return "/".join(plain), Point(tuple(point.items()))
