"""Analyse how benchmarks scale with threads, from stored samples."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict, cast

from perftrail.model.noisy_samples import enough_quiet, weight
from perftrail.results.measured import MeasuredHere
from perftrail.stats.contention import Contention, contention
from perftrail.stats.scaling import Best, Law, Processors, ScalingPoint, ThreadSamples, scaling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from perftrail.measure.session import View
    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import Machine, Samples
    from perftrail.model.subject import Revision, Subject
    from perftrail.stats.scaling import Scaling

THREAD_AXES = ("threads", "n_threads", "jobs", "workers")
"""Parameters that count the threads or processes that share the work."""


class FittedNumberJson(TypedDict):
    """A fitted number with its 95 % interval; null: the points do not bound it."""

    value: float
    low: float | None
    high: float | None


class ScalingFitJson(TypedDict):
    """A law fitted to the times at several thread counts."""

    law: Law
    single_thread_time: Annotated[float, "time with one thread"]
    contention: Annotated[FittedNumberJson, "serial share"]
    coherency: FittedNumberJson | None
    peak: Annotated[FittedNumberJson | None, "thread count of the highest throughput"]
    misses: Annotated[float, "largest relative distance of a point from the curve"]
    lack_of_fit_p_value: Annotated[float, "p-value of the hypothesis that the points lie on the curve"]
    accepted: Annotated[bool, "whether the points and the intervals support the fit"]
    reason: Annotated[str, "why the fit is not accepted"]


class ScalingFitsJson(TypedDict):
    """The fits of both laws, and the one that the points support."""

    amdahl: ScalingFitJson | None
    usl: ScalingFitJson | None
    chosen: Law | None
    coherency_p_value: Annotated[float | None, "p-value of the hypothesis that Amdahl's law suffices"]
    reason: Annotated[str, "why there is no fit or no choice"]
    kink: Annotated[int | None, "thread count beyond which each thread costs more"]


class ThreadScalingJson(TypedDict):
    """How one subject scales along an axis of threads."""

    axis: str
    metric: str
    base: Annotated[int, "smallest thread count"]
    processors: Processors
    points: list[ScalingPoint]
    best: Best
    fits: ScalingFitsJson
    peak: FittedNumberJson | None
    contention: Contention


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadScaling:
    """How one subject scales along `axis`; `point` has the fewest threads and all other parameters."""

    subject: Subject
    benchmark: str
    axis: str
    point: Point
    scaling: Scaling
    contention: Contention

    @property
    def row_key(self) -> tuple[Subject, str, Point, str]:
        """Identity of the row with this scaling: the one with the fewest threads."""
        return (self.subject, self.benchmark, self.point, self.scaling.metric)

    def as_json(self) -> ThreadScalingJson:
        """Return the scaling as `show --json` prints it; an infinite bound is null."""
        plain = asdict(self.scaling)
        data = {"axis": self.axis, **plain, "peak": self.scaling.peak and asdict(self.scaling.peak)}
        return cast("ThreadScalingJson", _finite({**data, "contention": asdict(self.contention)}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadScalings:
    """How subjects scale, in the order of history: those of `described` revisions among all `measured` ones."""

    found: tuple[ThreadScaling, ...] = ()
    described: tuple[Revision, ...] = ()
    measured: tuple[Revision, ...] = ()


def thread_scalings(
    view: View,
    *,
    measured: MeasuredHere | None = None,
    choose: Callable[[Sequence[Revision]], Sequence[Revision]] = tuple,
) -> ThreadScalings:
    """Analyse each subject's scaling where a benchmark has a parameter that counts threads. Measures nothing.

    `measured` contains the samples that were already read. `choose` selects the revisions to analyse from
    those with a thread axis.
    """
    groups = [group for group in _groups(view, measured) if len(group.counts) > 1]
    revisions = tuple(dict.fromkeys(group.subject.revision for group in groups))
    parts = tuple(choose(revisions))
    ids = {revision.id for revision in parts}
    scaled = (_scaled(view, group) for group in groups if group.subject.revision.id in ids)
    return ThreadScalings(found=tuple(filter(None, scaled)), described=parts, measured=revisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Samples that differ only in the number of threads: the point and the samples of each number."""

    subject: Subject
    benchmark: str
    axis: str
    counts: dict[int, tuple[Point, Samples]]


def _groups(view: View, measured: MeasuredHere | None) -> Iterable[_Group]:
    axes = {name: axis for name, each in view.study.benchmarks.items() if (axis := thread_axis(each))}
    if (
        not axes or view.study.searched_source.kind == "samples"
    ):  # the processors of imported samples are unknown
        return ()
    known = MeasuredHere(view) if measured is None else measured
    stored = {name: known.samples(name, _metrics(view.study.benchmarks[name])) for name in axes}
    groups: dict[tuple[Subject, str, Point], _Group] = {}
    for cell, key in known.cells:
        axis = axes.get(cell.benchmark)
        threads = cell.point[axis] if axis else None
        if axis and isinstance(threads, int) and threads >= 1 and key in stored[cell.benchmark]:
            group = groups.setdefault(
                (cell.subject, cell.benchmark, cell.point.without([axis])),
                _Group(subject=cell.subject, benchmark=cell.benchmark, axis=axis, counts={}),
            )
            group.counts[threads] = (cell.point, stored[cell.benchmark][key])
    return groups.values()


def _scaled(view: View, group: _Group) -> ThreadScaling | None:
    benchmark = view.study.benchmarks[group.benchmark]
    metric = scaled_metric(benchmark)
    samples = ThreadSamples(
        metric=metric,
        rising=metric != "wall" and benchmark.metrics[metric].better == "higher",
        samples={
            count: _by_ordinal(samples, least=view.study.measure.invocations.least)
            for count, (_, samples) in group.counts.items()
        },
        processors=processors(view.machine),
    )
    found = scaling(samples)
    if found is None:
        return None
    return ThreadScaling(
        subject=group.subject,
        benchmark=group.benchmark,
        axis=group.axis,
        point=group.counts[found.base][0],
        scaling=found,
        contention=contention(samples),
    )


def thread_axis(benchmark: Benchmark) -> str | None:
    """Return the parameter that counts threads, or `None`."""
    return next((name for name in THREAD_AXES if name in benchmark.parameters), None)


def scaled_metric(benchmark: Benchmark) -> str:
    """Return the first declared time or throughput (a unit in s, or per second), else the wall time."""
    for name, metric in benchmark.metrics.items():
        by_second = metric.unit.endswith("/s") and metric.better == "higher"
        if by_second or (metric.unit == "s" and metric.better == "lower"):
            return name
    return "wall"


def processors(machine: Machine) -> Processors:
    """Return the number of processors that perftrail may use, or the tighter quota of a control group.

    A virtual machine may hide shared cores, so its cores are known only if it reports that some processors
    share one.
    """
    logical = machine.facts.get("logical_cpus", "")
    limits = [float(logical)] if logical.isdecimal() else []
    with suppress(ValueError):  # no quota, or one that is not a number
        limits.append(float(machine.facts.get("cpu_quota", "")))
    count = max(1, int(min(limits, default=1.0)))
    cores = machine.facts.get("physical_cores", "")
    known = cores.isdecimal() and (machine.facts.get("virtualisation") == "none" or cores != logical)
    return Processors(
        count=count,
        paired=machine.facts.get("smt") == "on",
        cores=max(1, min(count, int(cores))) if known else None,
    )


def _metrics(benchmark: Benchmark) -> frozenset[str]:
    return frozenset((*benchmark.measured, *benchmark.metrics))


def _by_ordinal(samples: Samples, *, least: int) -> dict[int, Mapping[str, float]]:
    """Return the values by ordinal: of the quiet samples if they are enough, else of all."""
    taken = {at for values in samples.values.values() for at in values}
    quiet = {at for at in taken if weight(samples.flags.get(at, ())) > 0.0}
    chosen = quiet if enough_quiet(len(quiet), least=least) else taken
    return {
        at: {name: values[at] for name, values in samples.values.items() if at in values}
        for at in sorted(chosen)
    }


def _finite(value: object) -> Json:
    """Return a number that JSON supports, or null."""
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    assert value is None or isinstance(value, (str, int))
    return value
