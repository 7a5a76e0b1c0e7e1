"""What the samples along a history say of it: at which revisions a metric changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.changepoints import points_of
from perftrail.analysis.levels import Readings
from perftrail.engines.local import LocalEngine
from perftrail.workflows.showing.intervals import interval_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.analysis.changepoints import ChangePoint
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.ports import Engine, Pending
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
    return looked_for(revisions, [rows], LocalEngine()).outcome()


def looked_for(revisions: Sequence[Revision], parts: Iterable[Iterable[Row]], engine: Engine) -> LookedFor:
    """Have the change points that `history_changes` gives looked for by an engine.

    All that was measured of one thing is in the same part: it is looked through while the next part is made.
    """
    positions = {revision.id: position for position, revision in enumerate(revisions)}
    return LookedFor(
        revisions=revisions,
        begun=tuple(begun for part in parts for begun in _begin(positions, part, engine)),
    )


def _begin(positions: Mapping[str, int], rows: Iterable[Row], engine: Engine) -> Iterator[_Begun]:
    series: dict[tuple[object, ...], dict[int, Row]] = {}
    for row in rows:
        name = (row.subject.variant, row.benchmark, row.point, row.metric)
        series.setdefault(name, {})[positions[row.subject.revision.id]] = row
    for along in series.values():
        yield _begun(dict(sorted(along.items())), engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedFor:
    """The change points of several series, each looked for; `revisions` are the whole history."""

    revisions: Sequence[Revision]
    begun: tuple[_Begun, ...]

    def outcome(self) -> tuple[HistoryChange, ...]:
        """Give those that were found, series by series."""
        return tuple(
            HistoryChange(
                row=each.along[point.position],
                previous=self.revisions[point.previous],
                candidates=tuple(self.revisions[point.previous + 1 : point.position + 1]),
                earliest=self.revisions[point.earliest],
                latest=self.revisions[point.latest],
                point=point,
            )
            for each in self.begun
            for point in each.outcome()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """Rows by position, and the change points among their levels; `lasts` is where a level ends, by its first."""

    along: Mapping[int, Row]
    lasts: Mapping[int, int]
    points: Pending[tuple[ChangePoint, ...]]

    def outcome(self) -> Iterator[ChangePoint]:
        """Give the points, each after the last revision of the level before it."""
        for point in self.points.outcome():
            yield replace(
                point,
                previous=self.lasts[point.previous],
                earliest=self.lasts.get(point.earliest - 1, point.earliest - 1) + 1,
            )


def _begun(along: Mapping[int, Row], engine: Engine) -> _Begun:
    """Have change points looked for among rows by position, of which neighbours may share their samples.

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
    return _Begun(along=along, lasts=lasts, points=engine.begin(points_of, readings))


def stretches(runnables: Sequence[frozenset[str]]) -> list[range]:
    """Put neighbours that share their samples together; give the places of each such stretch.

    >>> one, other = frozenset({"a"}), frozenset({"b"})
    >>> stretches([one, one, other, one])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    starts = [place for place, each in enumerate(runnables) if place == 0 or each != runnables[place - 1]]
    return [range(first, end) for first, end in pairwise([*starts, len(runnables)])]
