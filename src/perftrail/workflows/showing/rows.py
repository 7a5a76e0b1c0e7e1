"""What the store holds of a study: each metric of each subject at each point, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.analysis.estimate import estimate
from perftrail.model.conditions import Marked, sift
from perftrail.model.expression import ExpressionError, evaluate
from perftrail.model.measurement import FailedInvocation, Measurement, Runnable
from perftrail.model.plan import cells, subjects
from perftrail.model.target import derived_targets
from perftrail.workflows.measuring import marked_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.analysis.estimate import Estimate
    from perftrail.model.expression import Reference
    from perftrail.model.measurement import Outcome
    from perftrail.model.metrics import MeasuredMetric, Metric
    from perftrail.model.parameters import Point
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Subject
    from perftrail.model.target import Target
    from perftrail.model.trail import Json
    from perftrail.workflows.session import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric of one subject at one point: its estimate, or `None` with the number of failures.

    `noise` says which samples were marked as taken in noise, and whether they were left out; else empty.
    `values` are those that the estimate uses, `runnables` the keys of what gave them: neighbours with the same
    ones share their samples. `stages` are those at which invocations failed.
    """

    subject: Subject
    benchmark: str
    point: Point
    metric: str
    unit: str
    estimate: Estimate | None
    failures: int
    flags: tuple[str, ...] = ()
    noise: str = ""
    values: tuple[float, ...] = ()
    runnables: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Json]:
        """The row as `show --json` prints it."""
        found = self.estimate
        return {
            "revision": self.subject.revision.id,
            "label": self.subject.revision.label,
            "variant": self.subject.variant,
            "benchmark": self.benchmark,
            "point": dict(self.point.values),
            "metric": self.metric,
            "unit": self.unit,
            "count": found.count if found else 0,
            "failures": self.failures,
            "flags": list(self.flags),
            "noise": self.noise,
            "estimate": None
            if found is None
            else {
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "confidence": found.confidence,
                "method": "median, order statistics",
            },
        }


def rows(view: View, *, metrics: Sequence[str] | None = None) -> tuple[Row, ...]:
    """Give every metric of every cell that was measured here, in the order of history.

    `metrics` chooses by name; without it, each benchmark's declared ones are shown, or ``wall``.
    """
    by_cell = measured_cells(view)
    plain = (row for cell, held in by_cell.items() for row in _rows_of(view, cell, held, metrics))
    return (*plain, *_derived_rows(view, by_cell, metrics))


def measured_cells(view: View) -> dict[Cell, Sequence[Outcome]]:
    """Give everything that was measured of the study on this machine, in the order of history."""
    view.workshop.recall()
    measured = {runnable.revision for runnable in view.store.runnables()}
    revisions = [revision for revision in view.source.history() if revision.id in measured]
    found: dict[Cell, Runnable] = {}
    for subject in subjects(view.study, revisions):
        for cell in cells(view.study, subject):
            runnable = view.workshop.known_runnable(cell)
            if isinstance(runnable, Runnable):
                found[cell] = runnable
    outcomes = view.store.outcomes(tuple({each.key for each in found.values()}), view.machine.id)
    by_cell = {cell: outcomes.get(runnable.key, ()) for cell, runnable in found.items()}
    return {cell: held for cell, held in by_cell.items() if held}


def _rows_of(view: View, cell: Cell, held: Sequence[Outcome], metrics: Sequence[str] | None) -> Iterator[Row]:
    benchmark = view.study.benchmarks[cell.benchmark]
    known: dict[str, Metric | MeasuredMetric] = {**benchmark.measured, **benchmark.metrics}
    samples = [outcome for outcome in held if outcome.key.phase == "sample"]
    measured = [outcome for outcome in samples if isinstance(outcome, Measurement)]
    for name in metrics or benchmark.leading:
        if name not in known:
            continue
        sifted = sift(marked_values(measured, name), least=view.study.measure.invocations.least)
        yield Row(
            subject=cell.subject,
            benchmark=cell.benchmark,
            point=cell.point,
            metric=name,
            unit=known[name].unit,
            estimate=estimate(sifted.values) if sifted.values else None,
            failures=sum(not isinstance(outcome, Measurement) for outcome in held),
            flags=tuple(sorted({flag for each in measured for flag in each.flags})),
            noise=sifted.note,
            values=sifted.values,
            runnables=_runnables(held),
            stages=frozenset(each.failure.stage for each in held if isinstance(each, FailedInvocation)),
        )


def _derived_rows(
    view: View, by_cell: Mapping[Cell, Sequence[Outcome]], metrics: Sequence[str] | None
) -> Iterator[Row]:
    by_subject: dict[Subject, dict[tuple[str, Point], Sequence[Outcome]]] = {}
    for cell, held in by_cell.items():
        by_subject.setdefault(cell.subject, {})[cell.benchmark, cell.point] = held
    for name in view.study.derived:
        if metrics is not None and name not in metrics:
            continue
        for subject, points in by_subject.items():
            for target in derived_targets(view.study, name, subject.variant):
                sifted = sift(list(_evaluated(target, points)), least=view.study.measure.invocations.least)
                if sifted.values:
                    yield Row(
                        subject=subject,
                        benchmark=target.benchmark,
                        point=target.open_point,
                        metric=name,
                        unit=target.unit,
                        estimate=estimate(sifted.values),
                        failures=0,
                        noise=sifted.note,
                        values=sifted.values,
                        runnables=_runnables(
                            outcome for point in target.points for outcome in points[target.benchmark, point]
                        ),
                    )


def _runnables(held: Iterable[Outcome]) -> frozenset[str]:
    return frozenset(outcome.key.runnable for outcome in held)


def _evaluated(target: Target, held: Mapping[tuple[str, Point], Iterable[Outcome]]) -> Iterator[Marked]:
    """Evaluate a target for each ordinal that every point has; a mark of any point is the value's."""
    by_point: dict[Point, dict[int, Measurement]] = {
        point: {
            outcome.key.ordinal: outcome
            for outcome in held.get((target.benchmark, point), ())
            if isinstance(outcome, Measurement) and outcome.key.phase == "sample"
        }
        for point in target.points
    }
    shared = set.intersection(*(set(each) for each in by_point.values()))
    for ordinal in sorted(shared):

        def lookup(reference: Reference, ordinal: int = ordinal) -> float:
            return by_point[reference.point][ordinal].values[reference.name]

        marks = {flag: None for each in by_point.values() for flag in each[ordinal].flags}
        try:
            yield Marked(value=evaluate(target.expression, lookup), flags=tuple(marks))
        except (ExpressionError, KeyError):
            continue
