"""BenchmarkDotNet's JSON (``--exporters json``), full or brief, in nanoseconds and bytes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.formats.document import FileContext, Node

_TIME = unit("ns")
_ALLOCATED = "Allocated Memory"
_JOB = re.compile(r".*?: (?P<id>[^\[(]*?)(?:\((?P<settings>.*)\))?(?: \[.*\])?")
_PARAMETERS = re.compile(r"(?:&|, )(?=\w+=)")
_STARTED = re.compile(r"-(\d{8})-(\d{6})$")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether BenchmarkDotNet wrote this."""
    return begins_with(head, rb'\{\s*"Title"\s*:') and b'"HostEnvironmentInfo"' in head


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every benchmark's time of one operation in each iteration, and its other metrics.

    A full report contains the metrics of diagnosers, a brief one only the allocated memory. With several jobs, the job
    is a parameter. Benchmarks without a result are left out.
    """
    document = parse(content)
    entries = document["Benchmarks"].elements()
    several = len({_job(entry) for entry in entries}) > 1
    when = _started(document)
    return tuple(series for entry in entries for series in _benchmark(entry, with_job=several, when=when))


def _benchmark(entry: Node, *, with_job: bool, when: datetime | None) -> Iterator[Series]:
    statistics = entry.get("Statistics")
    if statistics is None:
        return
    values, note = _times(entry, statistics)
    name, point = _name(entry), _point(entry)
    if with_job:
        point = (*point, ("job", _job(entry)))
    yield Series(
        benchmark=name,
        point=point,
        metric="wall",
        unit=_TIME.name,
        values=_TIME.scaled(values),
        when=when,
        summary=note is not None,
        note=note,
    )
    memory = entry.get("Memory")
    allocated = None if memory is None else memory.get("BytesAllocatedPerOperation")
    if allocated is not None:
        yield Series(
            benchmark=name,
            point=point,
            metric="Allocated",
            unit="B",
            values=(allocated.number(),),
            when=when,
            summary=True,
            note="mean",
        )
    metrics = entry.get("Metrics")
    for each in () if metrics is None else metrics.elements():
        descriptor, value = each["Descriptor"], each.get("Value")
        if value is None or (descriptor["Id"].text() == _ALLOCATED and allocated is not None):
            continue
        known = unit("" if (text := descriptor.get("Unit")) is None else text.text())
        greater = descriptor.get("TheGreaterTheBetter")
        yield Series(
            benchmark=name,
            point=point,
            metric=descriptor["DisplayName"].text(),
            unit=known.name,
            better="higher" if greater is not None and greater.value is True else "lower",
            values=known.scaled((value.number(),)),
            when=when,
            summary=True,
            note="mean",
        )


def _times(entry: Node, statistics: Node) -> tuple[tuple[float, ...], str | None]:
    """Return the time of an operation in each iteration, or else the median or mean and its name."""
    values = statistics.get("OriginalValues")
    if values is not None and values.elements():
        return values.numbers(), None
    measurements = entry.get("Measurements")
    results = tuple(
        each
        for each in (() if measurements is None else measurements.elements())
        if (each["IterationMode"].text(), each["IterationStage"].text()) == ("Workload", "Result")
    )
    if results:
        return tuple(map(_time_per_operation, results)), None
    note = "mean" if statistics.get("Median") is None else "median"
    return (statistics[note.capitalize()].number(),), note


def _time_per_operation(measurement: Node) -> float:
    operations = measurement["Operations"].number()
    if operations <= 0:
        raise measurement["Operations"].error("must be above 0")
    return measurement["Nanoseconds"].number() / operations


def _name(entry: Node) -> str:
    namespace = entry.get("Namespace")
    words = [] if namespace is None or not namespace.text() else [namespace.text()]
    return ".".join([*words, entry["Type"].text(), entry["Method"].text()])


def _point(entry: Node) -> tuple[tuple[str, str], ...]:
    text = entry.get("Parameters")
    if text is None or not text.text():
        return ()
    parts = (part.partition("=") for part in _PARAMETERS.split(text.text()))
    return tuple(
        (name if equals else "parameter", value if equals else name) for name, equals, value in parts
    )


def _job(entry: Node) -> str:
    """Return a job by its settings, because the ids of jobs are random: ``Runtime=.NET 8.0``."""
    text = entry.get("DisplayInfo")
    found = None if text is None else _JOB.fullmatch(text.text())
    return "" if found is None else found["settings"] or found["id"].strip()


def _started(document: Node) -> datetime | None:
    """Return the start that BenchmarkDotNet adds to the title: ``Demo.Sums-20260131-120000``."""
    title = document.get("Title")
    found = None if title is None else _STARTED.search(title.text())
    try:
        return None if found is None else datetime.strptime(f"{found[1]}{found[2]}", "%Y%m%d%H%M%S")
    except ValueError:
        return None
