"""Suites of other benchmark tools: how each lists its benchmarks, starts one of them, and what it prints.

Each tool has a module with the functions of `SuiteTool`; they only write shell lines and read output. `expanded` adds
the listed benchmarks to a study.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from perftrail.errors import FormatError
from perftrail.model.benchmark import MOST_POINTS, Point, every_point
from perftrail.model.metrics import Metric
from perftrail.model.suite import SuiteBenchmark, SuiteItem, axes_of
from perftrail.model.wording import escaped, quoted
from perftrail.suites import google_benchmark, python

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.metrics import Printed
    from perftrail.model.store_records import ListingRecord
    from perftrail.model.study import Study
    from perftrail.model.suite import Suite, SuiteKind

_MODULES: Mapping[SuiteKind, str] = {"criterion": "criterion", "pytest-benchmark": "python", "asv": "python"}
"""Modules of tools that have another name."""


MOST_POINTS_FOR_EACH = 4
"""Largest number of points for each listed one: benchmarks with fewer of all combinations get a name for each."""


class SuiteTool(Protocol):
    """Functions of a tool's module. Shell lines have open placeholders, as those of a study."""

    READS: Printed
    """Format of the output of one benchmark."""

    def listing(self, suite: Suite, /) -> str:
        """Return the shell line that prints what `read_listing` reads; it may run each benchmark for a moment."""

    def read_listing(self, output: str, suite: Suite, /) -> tuple[SuiteItem, ...]:
        """Return the benchmarks of a listing. Raises `FormatError`."""

    def command(self, suite: Suite, item: SuiteItem, /) -> str:
        """Return the shell line that measures one benchmark; it prints nothing if there is no such benchmark."""

    def server(self, suite: Suite, item: SuiteItem, /) -> str:
        """Return the shell line of a resident process for a benchmark; empty if there is none."""

    def request(self, suite: Suite, item: SuiteItem, /) -> str:
        """Return the line with which a resident process measures one benchmark."""


def tool(kind: SuiteKind) -> SuiteTool:
    """Return the module of a tool."""
    module = _MODULES.get(kind, kind.replace("-", "_"))
    return cast("SuiteTool", import_module(f"{__name__}.{module}"))


def listed(suite: Suite, output: str) -> tuple[SuiteItem, ...]:
    """Return the benchmarks of a listing, whose text is untrusted: control characters in names are escaped.

    Raises `FormatError`, also for a benchmark that no command line can name.
    """
    try:
        items = tool(suite.kind).read_listing(output, suite)
        for each in items:
            if b"\0" in os.fsencode(each.selector):
                raise ValueError(f"{quoted(each.name)} contains a NUL character")
            if not all(math.isfinite(value) for _, value in each.point.values if isinstance(value, float)):
                raise ValueError(f"{quoted(each.name)} has a parameter that is not a finite number")
    except (ValueError, ArithmeticError) as error:
        raise FormatError(f"it is not valid: {error}") from error
    return tuple(
        replace(
            each,
            name=_escaped(each.name),
            point=Point(
                tuple(
                    (_escaped(name), _escaped(value) if isinstance(value, str) else value)
                    for name, value in each.point.values
                )
            ),
            metric=_escaped(each.metric),
            unit=_escaped(each.unit),
        )
        for each in items
    )


def _escaped(text: str) -> str:
    return escaped(text, longest=None)


def unlisted(suite: Suite, output: str) -> tuple[str, ...]:
    """Return each file or program whose benchmarks a listing could not name, with the reason.

    Raises `FormatError`.
    """
    match suite.kind:
        case "asv" | "pytest-benchmark":
            return python.unlisted(output)
        case "google-benchmark":
            return google_benchmark.unlisted(output, suite)
        case _:
            return ()


def chosen_items(study: Study, name: str, items: Iterable[SuiteItem]) -> tuple[SuiteItem, ...]:
    """Return the benchmarks of a suite that may be measured: those that `select` and --bench match."""
    select, bench = re.compile(study.suites[name].select), re.compile(study.selected)
    return tuple(
        each
        for each in items
        if select.search(each.name)
        and any(bench.search(f"{start}{shown}") for start in ("", f"{name}/") for shown in _shown_names(each))
    )


def _shown_names(item: SuiteItem) -> tuple[str, ...]:
    return (item.name, f"{item.name}[{item.point}]") if item.point.values else (item.name,)


def expanded(study: Study, listings: Iterable[ListingRecord]) -> Study:
    """Return a study with every benchmark that listings of its suites have, the earliest listing first.

    Listings of other suites are ignored. A study that is expanded again gets the benchmarks of all listings.
    """
    records = list(listings)
    own = {name: each for name, each in study.benchmarks.items() if not isinstance(each, SuiteBenchmark)}
    found = [
        (name, benchmark)
        for suite in study.suites
        for name, benchmark in _benchmarks(suite, study.suites[suite], records).items()
    ]
    taken = Counter([*own, *(name for name, _ in found)])
    chosen = re.compile(study.selected)
    added = {name if taken[name] == 1 else f"{each.suite}/{name}": each for name, each in found}
    return replace(
        study, benchmarks={**own, **{name: each for name, each in added.items() if chosen.search(name)}}
    )


def listed_items(suite: Suite, listings: Sequence[ListingRecord]) -> dict[tuple[str, Point], SuiteItem]:
    """Return the benchmarks of a suite in listings, each as the earliest listing has it that knows its iterations."""
    items: dict[tuple[str, Point], SuiteItem] = {}
    for record in listings:
        if record.suite == suite.content:
            for each in items_of(record):
                earlier = items.setdefault((each.name, each.point), each)
                if each.is_calibrated and not earlier.is_calibrated:
                    items[each.name, each.point] = each
    return items


def items_of(record: ListingRecord) -> tuple[SuiteItem, ...]:
    """Return the benchmarks of a stored listing."""
    listed = record.result.get("benchmarks")
    return tuple(
        SuiteItem.from_json(each)
        for each in (listed if isinstance(listed, list) else [])
        if isinstance(each, dict)
    )


def unlisted_of(record: ListingRecord) -> tuple[str, ...]:
    """Return the files whose benchmarks a stored listing does not have, each with the reason."""
    found = record.result.get("unlisted")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _benchmarks(name: str, suite: Suite, listings: Sequence[ListingRecord]) -> dict[str, SuiteBenchmark]:
    wanted = re.compile(suite.select)
    groups: dict[str, list[SuiteItem]] = {}
    for item in listed_items(suite, listings).values():
        if wanted.search(item.name):
            groups.setdefault(item.name, []).append(item)
    found = {}
    for benchmark, items in groups.items():
        kinds = {(each.point.names, each.metric, each.unit, each.printed) for each in items}
        axes = axes_of(tuple(each.point for each in items))
        size = math.prod(map(len, axes.values()))
        if len(kinds) == 1 and size <= min(MOST_POINTS, MOST_POINTS_FOR_EACH * len(items)):
            found[benchmark] = _benchmark(name, suite, items)
        else:
            for each in items:
                found[_shown_names(each)[-1]] = _benchmark(name, suite, [replace(each, point=Point())])
    return found


def _benchmark(name: str, suite: Suite, items: Sequence[SuiteItem]) -> SuiteBenchmark:
    """Return the benchmark of items with the same parameters; points without an item are excluded."""
    how = tool(suite.kind)
    by_point = {each.point: each for each in items}
    axes = axes_of(tuple(by_point))
    server = how.server(suite, items[0]) if suite.resident is not False else ""
    first = items[0]
    commands = {point: how.command(suite, each) for point, each in by_point.items()}
    return SuiteBenchmark(  # noqa: S604 - shell is a key of the study, not a process
        suite=name,
        command=commands[first.point],
        commands=commands,
        server=server,
        requests={point: how.request(suite, each) for point, each in by_point.items()} if server else {},
        shell=True,
        parameters=axes,
        exclude=tuple(point.as_dict() for point in every_point(axes) if point not in by_point),
        env=suite.env,
        timeout_seconds=suite.timeout_seconds,
        memory_limit_bytes=suite.memory_limit_bytes,
        metrics={
            first.metric: Metric(reads=how.READS, item_metric=first.printed, unit=first.unit, pick="median")
        },
    )
