"""From what other tools wrote to what a study has: revisions, variants, benchmarks, points, samples. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.benchmark import Benchmark, Point
from perftrail.model.build import content_key
from perftrail.model.exchange import SUMMARY
from perftrail.model.metrics import MEASURED, Metric
from perftrail.model.plan import Cell
from perftrail.model.recipe import PLAIN
from perftrail.model.subject import Revision, Subject
from perftrail.model.wording import quoted
from perftrail.workflows.importing.names import named, typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Value
    from perftrail.model.exchange import Series

MOST_POINTS = 100_000
"""So many combinations the values of a benchmark's parameters may have, as in a study file."""

MACHINE = "imported machine"
"""The fact of an imported machine that says its name as the files have it."""

UNKNOWN = "unknown"
"""The machine of files that name none, where others name theirs."""


OF_COMMANDS = frozenset({"hyperfine"})
"""Formats whose subjects are commands: alternatives beside each other at one point of time, the file's."""

TABLES = frozenset({"csv", "jsonl", "parquet"})
"""Formats that perftrail's own samples come in, whose subjects are written as revision and variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFile:
    """A file of another tool: its name, unlike that of others, its format, and what it holds."""

    name: str
    format: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Values of one file that were taken side by side, metric by metric; `methods` say where each is from.

    The first ones of all metrics are of one invocation, and so on; a metric may have fewer than others.
    """

    started: str
    values: Mapping[str, Sequence[float]]
    methods: Mapping[str, str]
    flags: tuple[str, ...] = ()

    def __len__(self) -> int:
        return max(map(len, self.values.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """All that files of other tools hold, as a study has it; `machines` are those that the files name."""

    revisions: tuple[Revision, ...]
    variants: tuple[str, ...]
    benchmarks: Mapping[str, Benchmark]
    taken: Mapping[Cell, tuple[Taken, ...]]
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A series where it belongs."""

    file: SampleFile
    series: Series
    revision: str
    variant: str
    machine: str
    benchmark: str
    parameters: Mapping[str, str]
    metric: str


@dataclass(slots=True)
class _Axes:
    """The parameters of a benchmark with their values, and its metrics, as they come."""

    values: dict[str, dict[Value, None]] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)


def arrange(files: Sequence[SampleFile]) -> Arranged:
    """Put together what files hold: of one subject, benchmark, point and machine it is one sample, in their order.

    A revision is a subject as the files name it, or a file where it names none, in the order of time, or of the files'
    names where not all tell the time. Commands are variants, and so are machines where there are several, so that
    nothing is pooled between them. Raises `SourceError` for files that hold nothing.
    """
    labels = _labels(files)
    placed = [_place(file, series, labels[file.name]) for file in files for series in file.series]
    if not placed:
        raise SourceError("no file holds a sample; are these the results, and not their settings?")
    axes = _axes(placed)
    revisions = _revisions(placed)
    machines = tuple(dict.fromkeys(each.machine for each in placed))
    by_cell: dict[Cell, dict[str, list[_Placed]]] = {}
    for each in placed:
        subject = Subject(
            revision=revisions[each.revision], variant=_variant(each, several=len(machines) > 1)
        )
        cell = Cell(
            subject=subject,
            benchmark=each.benchmark,
            point=_point(axes[each.benchmark], each.parameters),
        )
        by_cell.setdefault(cell, {}).setdefault(each.file.name, []).append(each)
    return Arranged(
        revisions=tuple(revisions.values()),
        variants=tuple(dict.fromkeys(cell.subject.variant for cell in by_cell)),
        benchmarks={name: _benchmark(name, known) for name, known in axes.items()},
        taken={
            cell: tuple(each for group in by_file.values() for each in _taken(group))
            for cell, by_file in by_cell.items()
        },
        machines=machines,
    )


def _labels(files: Sequence[SampleFile]) -> dict[str, str]:
    """Name each file in short: without directory and ending, where that still tells all of them apart."""
    names = [file.name for file in files]
    short = [PurePath(name).name.partition(".")[0] or name for name in names]
    return dict(zip(names, short if len(set(short)) == len(short) else names, strict=True))


def _place(file: SampleFile, series: Series, label: str) -> _Placed:
    subject, variant = series.subject or label, ""
    if file.format in OF_COMMANDS:
        subject, variant = label, series.subject or ""
    elif file.format in TABLES and (found := re.fullmatch(r"(.+) \((.+)\)", subject)):
        subject, variant = found[1], found[2]
    return _Placed(
        file=file,
        series=series,
        revision=named(subject),
        variant=named(variant) if variant else "",
        machine=named(series.machine or UNKNOWN),
        benchmark=named(series.benchmark),
        parameters={named(name): value for name, value in series.point},
        metric=named(series.metric),
    )


def _variant(placed: _Placed, *, several: bool) -> str:
    """Name a variant; with its machine, where there are `several`."""
    return " on ".join(part for part in (placed.variant, placed.machine if several else "") if part) or PLAIN


def _axes(placed: Iterable[_Placed]) -> dict[str, _Axes]:
    """Collect each benchmark's parameters and metrics. A parameter that a point lacks is empty there."""
    found: dict[str, _Axes] = {}
    lists = list(placed)
    for each in lists:
        known = found.setdefault(each.benchmark, _Axes())
        for name in each.parameters:
            known.values.setdefault(name, {})
        unit = each.series.unit or ""
        if each.metric not in known.metrics:
            known.metrics[each.metric] = Metric(pattern="", unit=unit, better=each.series.better)
        if known.metrics[each.metric].unit != unit:
            units = f"{known.metrics[each.metric].unit!r} and {unit!r}"
            raise SourceError(
                f"{each.file.name}: {quoted(each.benchmark)} has {each.metric} in two units, {units}; "
                "import such files apart"
            )
    for each in lists:
        for name, values in found[each.benchmark].values.items():
            values.setdefault(typed(each.parameters.get(name, "")))
    for benchmark, known in found.items():
        if math.prod(len(values) for values in known.values.values()) > MOST_POINTS:
            raise SourceError(
                f"{quoted(benchmark)}: its {len(known.values)} parameters have more than {MOST_POINTS} "
                "combinations; import files apart"
            )
    return found


def _point(axes: _Axes, parameters: Mapping[str, str]) -> Point:
    return Point(tuple((name, typed(parameters.get(name, ""))) for name in axes.values))


def _benchmark(name: str, known: _Axes) -> Benchmark:
    """Make the benchmark that the metrics are of. Its command is never run, only part of what names its samples."""
    return Benchmark(
        command=content_key(name),
        parameters={axis: _ascending(values) for axis, values in known.values.items()},
        metrics=_declared(known.metrics),
    )


def _declared(metrics: Mapping[str, Metric]) -> Mapping[str, Metric]:
    """Leave out what perftrail knows beside the time, memory say, for it is told when it is asked for."""
    own = {
        name for name, metric in metrics.items() if name in MEASURED and metric.unit == MEASURED[name].unit
    }
    beside = own - {"wall"}
    leading = {name: metric for name, metric in metrics.items() if name not in beside}
    return leading or metrics


def _ascending(values: Iterable[Value]) -> tuple[Value, ...]:
    """Order numbers; texts stay as they come."""
    listed = tuple(values)
    numbers = [value for value in listed if not isinstance(value, str)]
    return tuple(sorted(numbers)) if len(numbers) == len(listed) else listed


def _revisions(placed: Sequence[_Placed]) -> dict[str, Revision]:
    """Give the revisions by name: in the order of time where every one has one, else in that of the files."""
    times: dict[str, list[datetime]] = {}
    files: dict[str, dict[str, None]] = {}
    for each in placed:
        known = times.setdefault(each.revision, [])
        if each.series.when is not None:
            known.append(each.series.when)
        files.setdefault(each.revision, {}).setdefault(each.file.name)
    firsts = {name: min(known, key=datetime.timestamp) for name, known in times.items() if known}
    listed = list(times)
    if len(firsts) == len(listed):
        listed.sort(key=lambda name: firsts[name].timestamp())
    return {
        name: Revision(
            id=name,
            time=firsts[name].isoformat() if name in firsts else "",
            parents=(listed[place - 1],) if place else (),
            summary=f"imported from {', '.join(map(named, list(files[name])[:3]))}",
        )
        for place, name in enumerate(listed)
    }


def _taken(group: Sequence[_Placed]) -> Iterator[Taken]:
    """Put values of one file side by side that were taken together: those of one length, in their order."""
    for summary in (False, True):
        alike = [each for each in group if each.series.summary == summary]
        if alike:
            yield _beside(alike, (SUMMARY,) if summary else ())


def _beside(group: Sequence[_Placed], flags: tuple[str, ...]) -> Taken:
    values: dict[str, list[float]] = {}
    methods: dict[str, str] = {}
    for each in group:
        values.setdefault(each.metric, []).extend(each.series.values)
        told = f" ({named(each.series.note)})" if each.series.note else ""
        methods[each.metric] = f"imported from {named(each.file.name)}, {each.file.format}{told}"
    return Taken(
        started=min((each.series.when.isoformat() for each in group if each.series.when), default=""),
        values=values,
        methods=methods,
        flags=flags,
    )
