"""Compare metrics that must be equal for all variants and revisions at a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A metric whose values differ at a point, with the subjects that gave each value."""

    benchmark: str
    metric: str
    point: Point
    given: Mapping[float, tuple[Subject, ...]]

    def as_json(self) -> dict[str, Json]:
        """Return the disagreement as `run --json` prints it."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "point": dict(self.point.values),
            "values": [
                {"value": value, "subjects": [str(subject) for subject in subjects]}
                for value, subjects in self.given.items()
            ],
        }


def disagreements(
    study: Study, measured: Iterable[tuple[Cell, Sequence[Outcome]]]
) -> tuple[Disagreement, ...]:
    """Return the disagreements of metrics declared as ``same``, over all invocations, warm-ups included."""
    found: dict[tuple[str, str, Point], dict[float, dict[Subject, None]]] = {}
    for cell, outcomes in measured:
        metrics = study.benchmarks[cell.benchmark].metrics
        for name in (name for name, metric in metrics.items() if metric.same):
            given = found.setdefault((cell.benchmark, name, cell.point), {})
            for outcome in outcomes:
                if isinstance(outcome, Measurement):
                    given.setdefault(outcome.values[name], {})[cell.subject] = None
    return tuple(
        Disagreement(
            benchmark=benchmark,
            metric=metric,
            point=point,
            given={value: tuple(subjects) for value, subjects in given.items()},
        )
        for (benchmark, metric, point), given in found.items()
        if len(given) > 1
    )
