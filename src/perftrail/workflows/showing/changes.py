"""What the samples along a history say of it: at which revisions a metric changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.analysis.changepoints import change_points
from perftrail.workflows.showing.intervals import interval_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.analysis.changepoints import ChangePoint
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.workflows.showing.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The natural logarithms of what was measured at a position, and which runnables gave it."""

    position: int
    runnables: frozenset[str]
    logs: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """A change point of the metric of `row`, which is the first measured with the new level.

    `candidates` are the revisions that may have made it, oldest first: the row's own, and those between it and
    the one measured before, `previous`. `earliest` and `latest` bound where it is with 95 %.
    """

    row: Row
    previous: Revision
    candidates: tuple[Revision, ...]
    earliest: Revision
    latest: Revision
    point: ChangePoint

    def as_json(self) -> dict[str, Json]:
        """The change as `show --json` prints it with its row."""
        return {
            "previous": self.previous.id,
            "revisions": [revision.id for revision in self.candidates],
            "earliest": self.earliest.id,
            "latest": self.latest.id,
            "before": self.point.before,
            "after": self.point.after,
            "effect": interval_json(self.point.effect, self.point.low, self.point.high),
            "p_value": self.point.p_value,
        }


def history_changes(revisions: Sequence[Revision], rows: Iterable[Row]) -> tuple[HistoryChange, ...]:
    """Find the change points of every metric in every variant at every point, each in the order of history.

    `revisions` are the whole history, measured or not.
    """
    positions = {revision.id: position for position, revision in enumerate(revisions)}
    series: dict[tuple[object, ...], dict[int, Row]] = {}
    for row in rows:
        name = (row.subject.variant, row.benchmark, row.point, row.metric)
        series.setdefault(name, {})[positions[row.subject.revision.id]] = row
    return tuple(
        HistoryChange(
            row=along[point.position],
            previous=revisions[point.previous],
            candidates=tuple(revisions[point.previous + 1 : point.position + 1]),
            earliest=revisions[point.earliest],
            latest=revisions[point.latest],
            point=point,
        )
        for along in series.values()
        for point in found([_measured(position, row) for position, row in sorted(along.items())])
    )


def found(measured: Sequence[Measured]) -> list[ChangePoint]:
    """Find change points among revisions of which neighbours may share their samples, in the order of history.

    Equal artefacts are one level, or one odd reading would speak for each of them.
    """
    levels = stretches(measured)
    lasts = {each[0].position: each[-1].position for each in levels}
    return [
        replace(
            point,
            previous=lasts[point.previous],
            earliest=lasts.get(point.earliest - 1, point.earliest - 1) + 1,
        )
        for point in change_points([(each[0].position, each[0].logs) for each in levels])
    ]


def stretches(measured: Sequence[Measured]) -> list[list[Measured]]:
    """Put neighbours that share their samples together."""
    parts: list[list[Measured]] = []
    for each in measured:
        if parts and parts[-1][-1].runnables == each.runnables:
            parts[-1].append(each)
        else:
            parts.append([each])
    return parts


def _measured(position: int, row: Row) -> Measured:
    """Take the values of a row; none of zero or less, which have no ratio to others."""
    logs = [math.log(value) for value in row.values if value > 0.0]
    return Measured(position=position, runnables=row.runnables, logs=logs)
