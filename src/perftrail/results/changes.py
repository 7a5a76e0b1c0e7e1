"""Find the revisions at which a metric changed, from the samples along a history.

`revisions_to_describe` selects revisions for a report: both ends, and the culprits of searches.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Annotated, TypedDict

import numpy as np

from perftrail.local_engine import LocalEngine
from perftrail.model.recipe import PLAIN
from perftrail.model.target import TargetError, parse_metric, resolve
from perftrail.results.rows import ValueWithIntervalJson, interval_json
from perftrail.stats.changepoints import changes_of
from perftrail.stats.series_noise import SampleColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.json_data import Json
    from perftrail.model.store_records import SearchRecord
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.ports import Engine, Pending
    from perftrail.results.rows import Row
    from perftrail.stats.changepoints import ChangePoint, Changes
    from perftrail.stats.series_noise import Correlation


class HistoryChangeJson(TypedDict):
    """A change along the history that begins at a row."""

    previous: Annotated[str, "the last revision before the change"]
    revisions: Annotated[list[str], "candidates for the culprit, oldest first"]
    earliest: str
    latest: str
    before: float
    after: float
    effect: Annotated[ValueWithIntervalJson, "the ratio after/before"]
    p_value: float
    size: Annotated[ValueWithIntervalJson, "standardised effect size"]
    alert: Annotated[bool, "certainly large and shown by several builds, or certified by a search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """A change point of the metric of `row`, which is the first measured with the new level.

    `candidates` are the revisions that may have caused it, oldest first: the row's own, and those after
    `previous`, the one measured before. `earliest` and `latest` bound the position with 95 % confidence.
    """

    row: Row
    previous: Revision
    candidates: tuple[Revision, ...]
    earliest: Revision
    latest: Revision
    point: ChangePoint

    def as_json(self) -> HistoryChangeJson:
        """Return the change as `show --json` prints it with its row."""
        return {
            "previous": self.previous.id,
            "revisions": [revision.id for revision in self.candidates],
            "earliest": self.earliest.id,
            "latest": self.latest.id,
            "before": self.point.before,
            "after": self.point.after,
            "effect": interval_json(self.point.effect, self.point.low, self.point.high),
            "p_value": self.point.p_value,
            "size": interval_json(self.point.size, self.point.size_low, self.point.size_high),
            "alert": self.point.alert,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedSeries:
    """A series with significant correlation between neighbours; `row` is its last one."""

    row: Row
    correlation: Correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChanges:
    """The change points of several series, series by series, and the series with correlated neighbours."""

    points: tuple[HistoryChange, ...] = ()
    correlated: tuple[CorrelatedSeries, ...] = ()

    @property
    def alerts(self) -> tuple[HistoryChange, ...]:
        """The changes at the alert level, and those that a search certified."""
        return tuple(each for each in self.points if each.point.alert)

    @property
    def ranked(self) -> tuple[HistoryChange, ...]:
        """The changes by rank: the largest relative to the noise first."""
        return tuple(sorted(self.points, key=lambda each: -each.point.size))


def history_changes(revisions: Sequence[Revision], rows: Iterable[Row]) -> HistoryChanges:
    """Return the change points of every metric in every variant at every point, each in the order of history.

    `revisions` are the whole history, measured or not.
    """
    return begin_changes(revisions, [rows], LocalEngine()).outcome()


def begin_changes(
    revisions: Sequence[Revision], parts: Iterable[Iterable[Row]], engine: Engine
) -> PendingChanges:
    """Start an engine on the change points that `history_changes` returns.

    All rows of a series are in the same part: the engine searches one part while the next is read.
    """
    positions = {revision.id: position for position, revision in enumerate(revisions)}
    return PendingChanges(
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
class PendingChanges:
    """The change points of several series, while the engine computes them; `revisions` are the whole history."""

    revisions: Sequence[Revision]
    begun: tuple[_Begun, ...]

    def outcome(self) -> HistoryChanges:
        """Wait for all change points, and return them."""
        found = [(each, each.found.outcome()) for each in self.begun]
        return HistoryChanges(
            points=tuple(
                HistoryChange(
                    row=each.along[point.position],
                    previous=self.revisions[point.previous],
                    candidates=tuple(self.revisions[point.previous + 1 : point.position + 1]),
                    earliest=self.revisions[point.earliest],
                    latest=self.revisions[point.latest],
                    point=point,
                )
                for each, changes in found
                for point in each.placed(changes)
            ),
            correlated=tuple(
                CorrelatedSeries(row=list(each.along.values())[-1], correlation=changes.correlation)
                for each, changes in found
                if changes.correlation is not None and changes.correlation.is_certain
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """Rows by position, and the changes among their levels; `lasts` maps the start of each level to its end."""

    along: Mapping[int, Row]
    lasts: Mapping[int, int]
    found: Pending[Changes]

    def placed(self, changes: Changes) -> Iterator[ChangePoint]:
        """Yield each point, placed after the last revision of the level before it."""
        for point in changes.points:
            yield replace(
                point,
                previous=self.lasts[point.previous],
                earliest=self.lasts.get(point.earliest - 1, point.earliest - 1) + 1,
            )


def _begun(along: Mapping[int, Row], engine: Engine) -> _Begun:
    """Start an engine on the change points of rows by position; neighbours may share their samples.

    Equal artefacts are one level. Otherwise one outlier would count once for each of them.
    """
    positions, rows = list(along), list(along.values())
    levels = equal_neighbours([row.runnables for row in rows])
    firsts = [positions[level[0]] for level in levels]
    lasts = {positions[level[0]]: positions[level[-1]] for level in levels}
    samples = [rows[level[0]].values for level in levels]
    values = np.fromiter(chain.from_iterable(samples), np.float64)
    columns = SampleColumns(
        positions=np.array(firsts),
        counts=np.fromiter(map(len, samples), np.int64),
        # The logarithm of a value at or below zero does not exist.
        logs=np.log(values, out=np.full_like(values, np.nan), where=values > 0.0),
    )
    return _Begun(along=along, lasts=lasts, found=engine.begin(changes_of, columns))


def equal_neighbours(runnables: Sequence[frozenset[str]]) -> list[range]:
    """Group neighbours that share their samples; return the range of positions of each group.

    >>> one, other = frozenset({"a"}), frozenset({"b"})
    >>> equal_neighbours([one, one, other, one])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    starts = [index for index, each in enumerate(runnables) if index == 0 or each != runnables[index - 1]]
    return [range(first, end) for first, end in pairwise([*starts, len(runnables)])]


FEW = 3
"""Up to this number of revisions, a report describes all of them."""


def answers_of(record: SearchRecord) -> tuple[Mapping[str, Json], ...]:
    """Return a search's answers, one for each metric; empty before the search has ended."""
    if record.answer is None:
        return ()
    several = record.answer.get("metrics")
    if isinstance(several, list):
        return tuple(each for each in several if isinstance(each, dict))
    return (record.answer,)


def with_answers(found: HistoryChanges, study: Study, records: Sequence[SearchRecord]) -> HistoryChanges:
    """Return changes with certified effects and levels, where the last search of a metric names the change.

    So one change has one effect and one interval in every output, and a certified change is never called small.
    """
    effects = dict(_effects(study, records))
    return replace(found, points=tuple(_certified(each, effects) for each in found.points))


Named = tuple[str, str, str, "Point"]
"""The variant, benchmark, metric and point of a series."""


def _effects(study: Study, records: Sequence[SearchRecord]) -> Iterator[tuple[Named, Mapping[str, Json]]]:
    """Yield the answer of each search to a metric that the study still has, the latest last."""
    for record in records:
        for answer in answers_of(record):
            variant, text = str(answer.get("variant", PLAIN)), str(answer.get("metric", ""))
            with suppress(TargetError):
                target = resolve(study, text, variant)
                yield (variant, target.benchmark, parse_metric(text).name, target.open_point), answer


def _certified(each: HistoryChange, effects: Mapping[Named, Mapping[str, Json]]) -> HistoryChange:
    row = each.row
    answer = effects.get((row.subject.variant, row.benchmark, row.metric, row.point), {})
    changes = answer.get("changes")
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, dict) and change.get("revisions") == [
            revision.id for revision in each.candidates
        ]:
            effect = change.get("effect")
            if isinstance(effect, dict) and "value" in effect:
                value, low, high = (float(str(effect[name])) for name in ("value", "low", "high"))
                point = replace(each.point, effect=value, low=low, high=high)
                levels = [change.get(name) for name in ("before", "after")]
                if all(isinstance(level, float) for level in levels):
                    before, after = (float(str(level)) for level in levels)
                    point = replace(point, before=before, after=after)
                return replace(each, point=replace(point, alert=True))
    return each


def searched_targets(study: Study, records: Sequence[SearchRecord], culprit: str) -> tuple[Target, ...]:
    """Return the metrics of all stored answers that name a revision, also one inside a merge, as a candidate."""
    found: dict[str, Target] = {}
    for record in records:
        for answer in answers_of(record):
            if culprit in set(candidate_ids(answer)):
                with suppress(TargetError):
                    target = resolve(study, str(answer.get("metric", "")), str(answer.get("variant", PLAIN)))
                    found[f"{target.variant} {target.name}"] = target
    return tuple(found.values())


def candidate_ids(answer: Mapping[str, Json]) -> Iterator[str]:
    """Yield the ids of the candidates of all changes of an answer, also of those inside merges."""
    changes = answer.get("changes")
    found = list(changes) if isinstance(changes, list) else []
    for change in found:
        if isinstance(change, dict):
            revisions = change.get("revisions")
            yield from (str(id_) for id_ in (revisions if isinstance(revisions, list) else ()))
            found.append(change.get("inside"))


def culprit_ids(records: Iterable[SearchRecord]) -> frozenset[str]:
    """Return the ids of the culprits of some searches; for a range, its last revision."""
    found: set[str] = set()
    for record in records:
        for answer in answers_of(record):
            changes = answer.get("changes")
            for change in changes if isinstance(changes, list) else []:
                ids = change.get("revisions") if isinstance(change, dict) else None
                if isinstance(ids, list) and ids:
                    found.add(str(ids[-1]))
    return frozenset(found)


def revisions_to_describe(
    measured: Sequence[Revision], records: Iterable[SearchRecord]
) -> tuple[Revision, ...]:
    """Select from measured revisions, oldest first: all if they are few, else the first, the last and the culprits."""
    if len(measured) <= FEW:
        return tuple(measured)
    named = culprit_ids(records)
    ends = {measured[0].id, measured[-1].id}
    return tuple(revision for revision in measured if revision.id in ends | named)
