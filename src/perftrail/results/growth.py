"""Fit the growth of metrics along numeric parameters, and find which variant is lower at which values.

`GrowthSeries` is one curve; `as_json` returns it as plain data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.model.benchmark import Point
from perftrail.results.rows import ValueWithIntervalJson, interval_json, rows
from perftrail.results.scaling import THREAD_AXES
from perftrail.stats.curves import Bound, crossings, curve_of
from perftrail.stats.growth import Order, growth
from perftrail.stats.memory import Leak, over_time, per_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.subject import Revision, Subject
    from perftrail.results.measured import MeasuredHere
    from perftrail.results.rows import Row
    from perftrail.stats.curves import Curve, CurveComparison
    from perftrail.stats.growth import Growth
    from perftrail.stats.memory import OverTime, PerUnit


class OrderBreakJson(ValueWithIntervalJson):
    """The value of the axis at which the exponent changes."""

    exponent_before: float
    exponent_after: float


_WithBreak = TypedDict("_WithBreak", {"break": "OrderBreakJson | None"})


class GrowthJson(_WithBreak):
    """How a metric grows along an axis."""

    order: Annotated[Order | None, "null: several orders fit, or none"]
    candidates: Annotated[dict[str, float], "probability of each order that fits"]
    exponent: ValueWithIntervalJson
    start: Annotated[float | None, "constant cost, in the metric's unit"]
    misfit: Annotated[float, "relative distance of the points from the fit"]
    systematic: Annotated[bool, "whether the distance is larger than the noise of the samples"]


class QuantumJson(TypedDict):
    """Step of a heap: a chunk in the metric's unit, or a factor."""

    chunk: float | None
    factor: float | None


class PerUnitJson(ValueWithIntervalJson):
    """Memory of one more unit of the axis."""

    base: Annotated[float, "memory without any unit"]
    linear: Annotated[bool, "whether each unit costs the same"]
    quantum: QuantumJson | None


class OverTimeJson(TypedDict):
    """Whether memory grows with the running time."""

    verdict: Leak
    slope: ValueWithIntervalJson
    p_value: float


class GivenUpJson(TypedDict):
    """A value of the axis that failed, and the limit in seconds or bytes."""

    value: float
    stage: str
    limit: float


class GrowthSeriesJson(TypedDict):
    """One metric along one axis."""

    axis: str
    metric: str
    unit: str
    values: Annotated[list[float], "measured values of the axis"]
    fit: GrowthJson | None
    work: Annotated[GrowthJson | None, "the growth of the instructions of the same command"]
    per_unit: PerUnitJson | None
    over_time: OverTimeJson | None
    given_up: list[GivenUpJson]
    not_started: Annotated[list[float], "values that were not started after smaller ones failed"]


class LowerPartJson(TypedDict):
    """A part of the axis, and the variant whose metric is lower there."""

    first: float
    last: float
    lower: Annotated[str | None, "null: unclear"]
    ratio: float


class CrossingJson(ValueWithIntervalJson):
    """A value of the axis at which two curves cross."""

    lower: Annotated[str, "the variant that is lower beyond it"]


class ComparedVariantsJson(TypedDict):
    """A comparison with the curve of another variant."""

    variant: str
    ranges: list[LowerPartJson]
    crossings: list[CrossingJson]


class GrowthAtRowJson(GrowthSeriesJson):
    """One metric along one axis, compared with other variants."""

    against: list[ComparedVariantsJson]


def as_json(along: GrowthSeries) -> GrowthSeriesJson:
    """Return a curve as `show --json` prints it; unknown values are null."""
    return {
        "axis": along.axis,
        "metric": along.metric,
        "unit": along.unit,
        "values": along.curve.xs.tolist(),
        "fit": _growth(along.growth) if along.growth else None,
        "work": _growth(along.work) if along.work else None,
        "per_unit": _per_unit(along.unit_cost) if along.unit_cost else None,
        "over_time": _over_time(along.leak) if along.leak else None,
        "given_up": [{"value": each.x, "stage": each.stage, "limit": each.limit} for each in along.refused],
        "not_started": list(along.skipped),
    }


def _growth(found: Growth) -> GrowthJson:
    exponent, bend = found.exponent, found.bend
    return {
        "order": found.order,
        "candidates": {str(order): weight for order, weight in found.orders.items()},
        "exponent": interval_json(exponent.value, exponent.low, exponent.high),
        "start": found.start,
        "misfit": found.misfit,
        "systematic": found.systematic,
        "break": None
        if bend is None
        else {
            **interval_json(bend.x, bend.low, bend.high),
            "exponent_before": bend.before,
            "exponent_after": bend.after,
        },
    }


def _per_unit(found: PerUnit) -> PerUnitJson:
    quantum = found.quantum
    return {
        **interval_json(found.value, found.low, found.high),
        "base": found.base,
        "linear": not found.bent,
        "quantum": None if quantum is None else {"chunk": quantum.chunk, "factor": quantum.factor},
    }


def _over_time(found: OverTime) -> OverTimeJson:
    return {
        "verdict": found.verdict,
        "slope": interval_json(found.slope, found.low, found.high),
        "p_value": found.p_value,
    }


def compared_variants_json(variants: ComparedVariants) -> ComparedVariantsJson:
    """Return the ranges in which each curve is lower, and the crossings, as `show --json` prints them."""
    names = [each.subject.variant for each in (variants.first, variants.second)]
    return {
        "variant": names[1],
        "ranges": [
            {
                "first": each.first,
                "last": each.last,
                "lower": None if each.lower is None else names[each.lower],
                "ratio": each.ratio,
            }
            for each in variants.comparison.ranges
        ],
        "crossings": [
            {**interval_json(each.x, each.low, each.high), "lower": names[each.lower]}
            for each in variants.comparison.crossings
        ],
    }


LEAST_VALUES = 4
"""An axis needs at least this number of values to show growth."""

DURATIONS = ("seconds", "minutes", "duration", "iterations", "rounds", "repetitions", "repeats")
"""Axes that only make a program run longer: memory that grows along them is a leak."""

MEMORY = "peak_memory"
INSTRUCTIONS = "instructions"
RESOLUTION_BYTES = 131072.0
"""The kernel counts a process's pages in batches for each CPU, so its value has this resolution."""

MOST_COMPARED = 6
"""Maximum number of curves that are compared with each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedValue:
    """A value of the axis that failed: the stage, and the limit in seconds or bytes."""

    x: float
    stage: str
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSeries:
    """One metric of one subject along one axis, all other parameters fixed.

    `largest` is the row of the largest value measured. `skipped` values were not started after smaller ones
    failed. `work` is the growth of the same command's instructions, for a time whose study counts them.
    """

    largest: Row
    axis: str
    fixed: Point
    metric: str
    unit: str
    curve: Curve
    growth: Growth | None
    unit_cost: PerUnit | None
    leak: OverTime | None
    refused: tuple[FailedValue, ...]
    skipped: tuple[float, ...]
    work: Growth | None = None

    @property
    def subject(self) -> Subject:
        """The subject of the samples."""
        return self.largest.subject

    def as_json(self) -> GrowthSeriesJson:
        """Return the curve as `show --json` prints it with its row."""
        return as_json(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVariants:
    """Two curves of one metric along one axis, and the parts of the axis in which each is lower."""

    first: GrowthSeries
    second: GrowthSeries
    comparison: CurveComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Growths:
    """The curves of `described` revisions among all `measured` ones, and comparisons of the last revision's curves."""

    curves: tuple[GrowthSeries, ...] = ()
    variants: tuple[ComparedVariants, ...] = ()
    described: tuple[Revision, ...] = ()
    measured: tuple[Revision, ...] = ()

    def at(self, row: Row) -> tuple[GrowthSeries, ...]:
        """Return the curves that end at a row."""
        return tuple(each for each in self.curves if each.largest is row)

    def as_json(self, row: Row) -> list[GrowthAtRowJson]:
        """Return the curves that end at a row as `show --json` prints them, each with its comparisons."""
        return [
            {
                **each.as_json(),
                "against": [
                    compared_variants_json(variants) for variants in self.variants if variants.first is each
                ],
            }
            for each in self.at(row)
        ]


def growth_along(
    view: View,
    found: Sequence[Row],
    *,
    metrics: Sequence[str] | None = None,
    measured: MeasuredHere | None = None,
    choose: Callable[[Sequence[Revision]], Sequence[Revision]] = tuple,
) -> Growths:
    """Analyse every numeric axis with at least four values; memory too, unless `metrics` selects.

    `measured` contains the samples that were already read. `choose` selects the revisions to analyse from
    those with such an axis, in the order of history.
    """
    axes = {name: _axes(benchmark) for name, benchmark in view.study.benchmarks.items()}
    if not any(axes.values()):
        return Growths()
    more = () if metrics else rows(view, metrics=(MEMORY,), measured=measured)
    known = {(row.subject, row.benchmark, row.point, row.metric) for row in found}
    extra = [row for row in more if (row.subject, row.benchmark, row.point, row.metric) not in known]
    largest_rows = {(row.subject, row.benchmark, row.point): row for row in reversed(found)}
    groups = [
        (axis, group)
        for name, benchmark_axes in axes.items()
        for axis in benchmark_axes
        for group in _groups([row for row in (*found, *extra) if row.benchmark == name], axis)
        if _is_curve(axis, group)
    ]
    grown = {group[0].subject.revision for _, group in groups}
    revisions = [each for each in dict.fromkeys(row.subject.revision for row in found) if each in grown]
    parts = tuple(choose(revisions))
    ids, lasts = (
        {each.id for each in parts},
        {_curve_key(*each): each[1][0].subject.revision for each in groups},
    )
    curves = [
        _growth_series(view.study.benchmarks[group[0].benchmark], axis, group, largest_rows)
        for axis, group in groups
        if group[0].subject.revision.id in ids or group[0].subject.revision == lasts[_curve_key(axis, group)]
    ]
    return Growths(
        curves=tuple(_with_work(view, curves, each) for each in curves if each.subject.revision.id in ids),
        variants=tuple(_compared_variants(curves)),
        described=parts,
        measured=tuple(revisions),
    )


def grown(benchmark: Benchmark, found: Iterable[Row], axis: str) -> tuple[tuple[Curve, Growth], ...]:
    """Return the growth of one benchmark's rows along a requested axis, which may count threads."""
    curves = (
        _curve(benchmark, {float(row.point[axis]): row for row in group}) for group in _groups(found, axis)
    )
    return tuple((curve, known) for curve in curves if (known := growth(curve)) is not None)


def _with_work(view: View, curves: Sequence[GrowthSeries], along: GrowthSeries) -> GrowthSeries:
    """Add the growth of the instructions to a curve of time, if another benchmark counts the same command's."""
    if along.unit != "s":
        return along
    command = view.study.benchmarks[along.largest.benchmark].command
    key = (along.subject, along.axis, along.fixed)
    for each in curves:
        same = (each.subject, each.axis, each.fixed) == key
        if (
            same
            and each.metric == INSTRUCTIONS
            and view.study.benchmarks[each.largest.benchmark].command == command
        ):
            return replace(along, work=each.growth)
    return along


def _axes(benchmark: Benchmark) -> list[str]:
    return [
        name
        for name, values in benchmark.parameters.items()
        if len({value for value in values if isinstance(value, int | float)}) >= LEAST_VALUES
    ]


def _groups(found: Iterable[Row], axis: str) -> list[list[Row]]:
    """Group rows that differ only in the axis."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in found:
        if axis in row.point.names and not isinstance(row.point[axis], str):
            groups.setdefault((row.subject, row.point.without((axis,)), row.metric), []).append(row)
    return list(groups.values())


def _curve_key(axis: str, group: Sequence[Row]) -> tuple[str, str, Point, str]:
    """Return the identity of a curve without its subject."""
    first = group[0]
    return first.benchmark, axis, first.point.without((axis,)), first.metric


def _is_curve(axis: str, group: Sequence[Row]) -> bool:
    """Whether rows that differ only in an axis form a curve. Along threads, only memory does (see `scaling`)."""
    measured = {float(row.point[axis]) for row in group if row.values}
    return len(measured) > 1 and (axis not in THREAD_AXES or group[0].unit == "B")


def _growth_series(
    benchmark: Benchmark,
    axis: str,
    group: Sequence[Row],
    largest_rows: Mapping[tuple[Subject, str, Point], Row],
) -> GrowthSeries:
    by_x = {float(row.point[axis]): row for row in group}
    measured = {x: row.values for x, row in sorted(by_x.items()) if row.values}
    first = group[0]
    memory = first.unit == "B"
    refused = tuple(_refused(benchmark, by_x))
    resolution = _resolution(first.metric)
    curve = _curve(benchmark, by_x)
    lasting = memory and axis in DURATIONS
    fixed = first.point.without((axis,))
    top = by_x[max(measured)]
    wanted = {
        float(point[axis])
        for point in benchmark.points(first.subject.variant)
        if point.without((axis,)) == fixed and not isinstance(point[axis], str)
    }
    limit = min((each.x for each in refused), default=float("inf"))
    return GrowthSeries(
        largest=largest_rows[top.subject, top.benchmark, top.point],
        axis=axis,
        fixed=fixed,
        metric=first.metric,
        unit=first.unit,
        curve=curve,
        growth=growth(curve) if axis not in THREAD_AXES else None,
        unit_cost=per_unit(curve, resolution=resolution) if memory and not lasting else None,
        leak=over_time(
            [(x, value) for x, values in measured.items() for value in values], resolution=resolution
        )
        if lasting
        else None,
        refused=refused,
        skipped=tuple(sorted(x for x in wanted - by_x.keys() if x > limit)),
    )


def _curve(benchmark: Benchmark, by_x: Mapping[float, Row]) -> Curve:
    """Return the levels of rows that differ only in an axis, and a limit beyond them if it bounds the metric."""
    metric = next(iter(by_x.values())).metric
    limits = (each for each in _refused(benchmark, by_x) if _bounds(each, metric))
    return curve_of(
        [(x, row.values) for x, row in sorted(by_x.items()) if row.values],
        resolution=_resolution(metric),
        beyond=next((Bound(x=each.x, least=each.limit) for each in limits), None),
    )


def _resolution(metric: str) -> float:
    return RESOLUTION_BYTES if metric.startswith(MEMORY) else 0.0


def _refused(benchmark: Benchmark, by_x: Mapping[float, Row]) -> Iterable[FailedValue]:
    for x, row in sorted(by_x.items()):
        if row.values:
            continue
        if "timeout" in row.stages:
            yield FailedValue(x=x, stage="timeout", limit=benchmark.timeout_seconds)
        elif "memory" in row.stages and benchmark.memory_limit_bytes is not None:
            yield FailedValue(x=x, stage="memory", limit=float(benchmark.memory_limit_bytes))


def _bounds(refused: FailedValue, metric: str) -> bool:
    """Whether a limit bounds a metric: a timeout bounds wall time, a memory limit the tree's memory."""
    return (refused.stage, metric) in {("timeout", "wall"), ("memory", "peak_memory_tree")}


def _compared_variants(curves: Sequence[GrowthSeries]) -> Iterable[ComparedVariants]:
    """Compare the variants of the last revision with curves."""
    by_key: dict[tuple[str, str, Point, str], list[GrowthSeries]] = {}
    for each in curves:
        by_key.setdefault((each.largest.benchmark, each.axis, each.fixed, each.metric), []).append(each)
    for group in by_key.values():
        last = group[-1].subject.revision
        of_last_revision = [each for each in group if each.subject.revision == last][:MOST_COMPARED]
        for first, second in combinations(of_last_revision, 2):
            comparison = crossings(first.curve, second.curve)
            if comparison is not None:
                yield ComparedVariants(first=first, second=second, comparison=comparison)
