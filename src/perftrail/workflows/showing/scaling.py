"""How the study's benchmarks scale with threads, from what the store holds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.contention import contention
from perftrail.analysis.scaling import Processors, ThreadSamples, scaling
from perftrail.model.conditions import enough_quiet, weight
from perftrail.workflows.showing.measured import MeasuredHere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.analysis.contention import Contention
    from perftrail.analysis.scaling import Scaling
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.measurement import Machine, Samples
    from perftrail.model.parameters import Point
    from perftrail.model.subject import Subject
    from perftrail.model.trail import Json
    from perftrail.workflows.session import View
    from perftrail.workflows.showing.rows import Row

THREAD_AXES = ("threads", "n_threads", "jobs", "workers")
"""The parameters that say how many threads or processes share the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadScaling:
    """How one subject scales along `axis`; `point` is of the fewest threads, the other parameters stand."""

    subject: Subject
    benchmark: str
    axis: str
    point: Point
    scaling: Scaling
    contention: Contention

    def belongs_to(self, row: Row) -> bool:
        """Whether a row is the one that this is told with: of the fewest threads."""
        mine = (self.subject, self.benchmark, self.point, self.scaling.metric)
        return mine == (row.subject, row.benchmark, row.point, row.metric)

    def as_json(self) -> dict[str, Json]:
        """The scaling as `show --json` prints it; an infinite bound is null."""
        plain = asdict(self.scaling)
        told = {"axis": self.axis, **plain, "peak": self.scaling.peak and asdict(self.scaling.peak)}
        found = _finite({**told, "contention": asdict(self.contention)})
        assert isinstance(found, dict)
        return found


def thread_scalings(view: View, *, measured: MeasuredHere | None = None) -> tuple[ThreadScaling, ...]:
    """Tell how each subject scales where a benchmark has a parameter that counts threads. Makes nothing.

    `measured` is what was read of the study already.
    """
    axes = {name: axis for name, each in view.study.benchmarks.items() if (axis := thread_axis(each))}
    if not axes or view.study.walked.kind == "samples":  # where others measured, processors are not known
        return ()
    known = MeasuredHere(view) if measured is None else measured
    held = {name: known.samples(name, _metrics(view.study.benchmarks[name])) for name in axes}
    groups: dict[tuple[Subject, str, Point], dict[int, tuple[Point, Samples]]] = {}
    for cell, key in known.cells:
        axis = axes.get(cell.benchmark)
        threads = cell.point[axis] if axis else None
        if axis and isinstance(threads, int) and threads >= 1 and key in held[cell.benchmark]:
            group = groups.setdefault((cell.subject, cell.benchmark, cell.point.without([axis])), {})
            group[threads] = (cell.point, held[cell.benchmark][key])
    told = []
    for (subject, name, _), group in groups.items():
        metric = scaled_metric(view.study.benchmarks[name])
        samples = ThreadSamples(
            metric=metric,
            rising=metric != "wall" and view.study.benchmarks[name].metrics[metric].better == "higher",
            samples={
                count: _by_ordinal(samples, least=view.study.measure.invocations.least)
                for count, (_, samples) in group.items()
            },
            processors=processors(view.machine),
        )
        found = scaling(samples)
        if found is not None:
            told.append(
                ThreadScaling(
                    subject=subject,
                    benchmark=name,
                    axis=axes[name],
                    point=group[found.base][0],
                    scaling=found,
                    contention=contention(samples),
                )
            )
    return tuple(told)


def thread_axis(benchmark: Benchmark) -> str | None:
    """Name the parameter that counts threads; None where none does."""
    return next((name for name in THREAD_AXES if name in benchmark.parameters), None)


def scaled_metric(benchmark: Benchmark) -> str:
    """Name the first declared time or throughput (a unit in s, or by the second), else the wall time."""
    for name, metric in benchmark.metrics.items():
        by_second = metric.unit.endswith("/s") and metric.better == "higher"
        if by_second or (metric.unit == "s" and metric.better == "lower"):
            return name
    return "wall"


def processors(machine: Machine) -> Processors:
    """Give how many processors this machine lets us use; a quota of a control group may be the tighter limit."""
    logical = machine.facts.get("logical_cpus", "")
    limits = [float(logical)] if logical.isdecimal() else []
    with suppress(ValueError):  # no quota, or one that is no number
        limits.append(float(machine.facts.get("cpu_quota", "")))
    return Processors(count=max(1, int(min(limits, default=1.0))), paired=machine.facts.get("smt") == "on")


def _metrics(benchmark: Benchmark) -> frozenset[str]:
    return frozenset((*benchmark.measured, *benchmark.metrics))


def _by_ordinal(samples: Samples, *, least: int) -> dict[int, Mapping[str, float]]:
    """Give the values by ordinal: of the unmarked samples where they are enough, else of all."""
    taken = {at for values in samples.values.values() for at in values}
    quiet = {at for at in taken if weight(samples.flags.get(at, ())) > 0.0}
    chosen = quiet if enough_quiet(len(quiet), least=least) else taken
    return {
        at: {name: values[at] for name, values in samples.values.items() if at in values}
        for at in sorted(chosen)
    }


def _finite(value: object) -> Json:
    """Make plain data of what JSON can hold."""
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    assert value is None or isinstance(value, (str, int))
    return value
