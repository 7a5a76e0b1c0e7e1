"""Answers that must be the same: whether every variant and revision gave the same at each point."""

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
    """A metric that should be the same at a point and is not: each value with the subjects that gave it."""

    benchmark: str
    metric: str
    point: Point
    given: Mapping[float, tuple[Subject, ...]]

    def as_json(self) -> dict[str, Json]:
        """The disagreement as `run --json` prints it."""
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
    """Compare the metrics that are declared as ``same``, over every invocation of each cell, warm-ups too."""
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
