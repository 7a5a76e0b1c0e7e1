"""JMH's JSON (``-rf json``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.formats.document import FileContext, Node
    from perftrail.model.metrics import Better

_PERCENTILE = re.compile(r"(.*:)?·?p[01]\.\d+")

MOST_VALUES = 1_000_000
"""Maximum number of values from a histogram; for larger ones, the mean is read."""


def recognises(head: bytes, _name: str) -> bool:
    """Return whether JMH wrote this."""
    return begins_with(head, rb"\[\s*\{") and b'"primaryMetric"' in head and b'"mode"' in head


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every benchmark's scores, of all forks together, and the metrics of its profilers.

    Percentiles are left out, because the scores contain them.

    The mode is a parameter if there are several; so is the number of threads unless it is always 1.
    """
    entries = parse(content).elements()
    modes = {entry["mode"].text() for entry in entries}
    threads = {_threads(entry) for entry in entries}
    return tuple(
        series
        for entry in entries
        for series in _benchmark(entry, with_mode=len(modes) > 1, with_threads=threads != {"1"})
    )


def _benchmark(entry: Node, *, with_mode: bool, with_threads: bool) -> Iterator[Series]:
    parameters = entry.get("params")
    point = [] if parameters is None else [(name, each.scalar()) for name, each in parameters.members()]
    if with_threads:
        point.append(("threads", _threads(entry)))
    if with_mode:
        point.append(("mode", entry["mode"].text()))
    benchmark = entry["benchmark"].text()
    yield _series(benchmark, tuple(point), "", entry["primaryMetric"])
    others = entry.get("secondaryMetrics")
    for name, each in () if others is None else others.members():
        if _PERCENTILE.fullmatch(name):
            continue
        yield _series(benchmark, tuple(point), name.removeprefix("·"), each)


def _threads(entry: Node) -> str:
    threads = entry.get("threads")
    return "1" if threads is None else threads.scalar()


def _series(benchmark: str, point: tuple[tuple[str, str], ...], name: str, metric: Node) -> Series:
    """Return a score; without a name it is time per operation, or operations per time."""
    score_unit = metric["scoreUnit"].text()
    numerator, _, denominator = score_unit.partition("/")
    values = _values(metric)
    summary = values is None
    values = (metric["score"].number(),) if values is None else values
    better: Better = "lower"
    unit_name: str | None = score_unit
    if numerator == "ops":
        better = "higher"
        seconds = unit(denominator)
        if seconds.name == "s":
            unit_name, values = "1/s", tuple(value * seconds.per for value in values)
        name = name or "throughput"
    elif denominator == "op" and unit(numerator).name in ("s", "B"):
        known = unit(numerator)
        unit_name, values = known.name, known.scaled(values)
    return Series(
        benchmark=benchmark,
        point=point,
        metric=name or "wall",
        unit=unit_name,
        better=better,
        values=values,
        summary=summary,
        note="mean" if summary else None,
    )


def _values(metric: Node) -> tuple[float, ...] | None:
    """Return every value of every fork; `None` if they are too many, or missing."""
    raw = metric.get("rawData")
    if raw is not None:
        return tuple(value for fork in raw.elements() for value in fork.numbers()) or None
    histogram = metric.get("rawDataHistogram")
    if histogram is None:
        return None
    values: list[float] = []
    for fork in histogram.elements():
        for iteration in fork.elements():
            for pair in iteration.elements():
                numbers = pair.numbers()
                if len(numbers) != 2 or numbers[1] < 0:
                    raise pair.error("must be a value and its count")
                if len(values) + numbers[1] > MOST_VALUES:
                    return None
                values.extend([numbers[0]] * int(numbers[1]))
    return tuple(values) or None
