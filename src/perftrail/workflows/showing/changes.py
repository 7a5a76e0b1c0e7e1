"""What the samples along a history say of it: at which revisions a metric changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.changepoints import points_of
from perftrail.analysis.levels import Readings
from perftrail.workflows.showing.intervals import interval_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.analysis.changepoints import ChangePoint
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.workflows.showing.rows import Row


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
        for point in _found(dict(sorted(along.items())))
    )


def _found(along: Mapping[int, Row]) -> list[ChangePoint]:
    """Find change points among rows by position, of which neighbours may share their samples.

    Equal artefacts are one level, or one odd reading would speak for each of them.
    """
    positions, rows = list(along), list(along.values())
    levels = stretches([row.runnables for row in rows])
    firsts = [positions[level[0]] for level in levels]
    lasts = {positions[level[0]]: positions[level[-1]] for level in levels}
    samples = [rows[level[0]].values for level in levels]
    values = np.fromiter(chain.from_iterable(samples), np.float64)
    readings = Readings(
        positions=np.array(firsts),
        counts=np.fromiter(map(len, samples), np.int64),
        # of zero or less, which has no ratio to others, there is no logarithm
        logs=np.log(values, out=np.full_like(values, np.nan), where=values > 0.0),
    )
    return [
        replace(
            point,
            previous=lasts[point.previous],
            earliest=lasts.get(point.earliest - 1, point.earliest - 1) + 1,
        )
        for point in points_of(readings)
    ]


def stretches(runnables: Sequence[frozenset[str]]) -> list[range]:
    """Put neighbours that share their samples together; give the places of each such stretch.

    >>> one, other = frozenset({"a"}), frozenset({"b"})
    >>> stretches([one, one, other, one])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    starts = [place for place, each in enumerate(runnables) if place == 0 or each != runnables[place - 1]]
    return [range(first, end) for first, end in pairwise([*starts, len(runnables)])]
