"""What a report is made of: everything a store holds of a study, read once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perftrail.figures.palette import Palette
from perftrail.model.target import TargetError, parse_metric, resolve
from perftrail.workflows.not_had import not_had
from perftrail.workflows.reporting.words import revision_mark
from perftrail.workflows.show import searches, steps
from perftrail.workflows.showing.changes import history_changes
from perftrail.workflows.showing.measured import MeasuredHere
from perftrail.workflows.showing.rows import rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from perftrail.model.metrics import Better
    from perftrail.model.parameters import Point
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json, SearchRecord, StepRecord
    from perftrail.workflows.not_had import NotHad
    from perftrail.workflows.session import View
    from perftrail.workflows.showing.changes import HistoryChange
    from perftrail.workflows.showing.rows import Row

MEMORY = "peak_memory"
MOST_REVISIONS = 6
"""So many revisions are drawn as subjects beside each other at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One figure along a history: which metric of which benchmark at which point, and its unit."""

    benchmark: str
    metric: str
    point: Point
    unit: str
    better: Better

    def is_of(self, row: Row) -> bool:
        """Whether a row measures it."""
        return (row.benchmark, row.metric, row.point) == (self.benchmark, self.metric, self.point)


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everything a report is made of; `search` is the one whose answer it tells, with its steps."""

    view: View
    results: Path
    revisions: tuple[Revision, ...]
    measured_here: MeasuredHere
    rows: tuple[Row, ...]
    changes: tuple[HistoryChange, ...]
    lacking: NotHad
    searches: tuple[SearchRecord, ...]
    search: SearchRecord | None
    steps: Sequence[StepRecord]

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each revision stands in the history."""
        return {revision.id: position for position, revision in enumerate(self.revisions)}

    @cached_property
    def by_figure(self) -> Mapping[tuple[str, str, Point], Sequence[Row]]:
        """The rows of each benchmark, metric and point, in the order of the history."""
        found: dict[tuple[str, str, Point], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.benchmark, row.metric, row.point), []).append(row)
        return found

    def rows_of(self, followed: Followed) -> Sequence[Row]:
        """The rows that measure a figure."""
        return self.by_figure.get((followed.benchmark, followed.metric, followed.point), ())

    @cached_property
    def measured(self) -> tuple[Revision, ...]:
        """The revisions with values, oldest first."""
        ids = {row.subject.revision.id for row in self.rows if row.estimate is not None}
        return tuple(revision for revision in self.revisions if revision.id in ids)

    @property
    def variants(self) -> tuple[str, ...]:
        """The study's variants."""
        return tuple(self.view.study.variants)

    @cached_property
    def compared(self) -> tuple[Revision, ...]:
        """The revisions that are drawn as subjects: both ends, and both sides of what changed, as fit."""
        if len(self.variants) > 1:
            return self.measured[-1:]
        ends = [*self.measured[:1], *self.measured[-1:]]
        sides = [each for change in self.changes for each in (change.previous, change.row.subject.revision)]
        wanted = list(dict.fromkeys([*ends, *sides, *(self.measured if len(self.measured) <= 6 else ())]))
        return tuple(sorted(wanted[:MOST_REVISIONS], key=lambda revision: self.positions.get(revision.id, 0)))

    @cached_property
    def compared_rows(self) -> tuple[Row, ...]:
        """The rows of the revisions that are drawn as subjects."""
        ids = {revision.id for revision in self.compared}
        return tuple(row for row in self.rows if row.subject.revision.id in ids)

    @cached_property
    def palette(self) -> Palette:
        """One colour for each variant and for each revision that is drawn as a subject."""
        return Palette((*self.variants, *(revision_mark(revision) for revision in self.compared)))

    def subject_name(self, row: Row) -> str:
        """What a row's subject is called where subjects are beside each other."""
        return row.subject.variant if len(self.variants) > 1 else revision_mark(row.subject.revision)

    @cached_property
    def answers(self) -> tuple[Mapping[str, Json], ...]:
        """What the search answered, one for each metric; nothing before it has ended."""
        if self.search is None or self.search.answer is None:
            return ()
        several = self.search.answer.get("metrics")
        if isinstance(several, list):
            return tuple(each for each in several if isinstance(each, dict))
        return (self.search.answer,)

    @cached_property
    def largest_change(self) -> HistoryChange | None:
        """The largest change along the history: of what the study's question is about, else of anything."""
        asked = self._asked((*self.view.study.find.metric, *self.view.study.derived))
        own = [change for change in self.changes if asked is not None and asked.is_of(change.row)]
        return max(own or self.changes, key=lambda each: abs(math.log(each.point.effect)), default=None)

    @cached_property
    def lead(self) -> Followed | None:
        """The figure that the study's question is about."""
        answered = sorted(self.answers, key=lambda each: not each.get("changes"))
        texts = [(str(each["metric"]), str(each["variant"])) for each in answered]
        if not texts and self.search is not None:
            texts = [(str(self.search.question["metric"]), str(self.search.question["variant"]))]
        for text, variant in texts:
            found = self._resolved(text, variant or None)
            if found is not None:
                return found
        asked = self._asked((*self.view.study.find.metric, *self.view.study.derived))
        if asked is not None:
            return asked
        if self.largest_change is not None:
            return self.followed(self.largest_change.row)
        told = [row for row in self.rows if row.estimate is not None]
        first = next((row for row in told if row.metric != MEMORY), told[0] if told else None)
        return None if first is None else self.followed(first)

    def followed(self, row: Row) -> Followed:
        """What a row measures, as something that can be followed."""
        study = self.view.study
        declared = study.derived.get(row.metric) or study.benchmarks[row.benchmark].metrics.get(row.metric)
        known = declared or study.benchmarks[row.benchmark].measured.get(row.metric)
        return Followed(
            benchmark=row.benchmark,
            metric=row.metric,
            point=row.point,
            unit=row.unit,
            better="lower" if known is None else known.better,
        )

    def _asked(self, texts: Sequence[str]) -> Followed | None:
        """The first of some figures that the study has."""
        found = (self._resolved(text, None) for text in texts)
        return next((each for each in found if each is not None), None)

    def _resolved(self, text: str, variant: str | None) -> Followed | None:
        study = self.view.study
        try:
            target = resolve(study, text, variant or next(iter(study.variants)))
            name = parse_metric(text).name
        except TargetError:
            return None
        return Followed(
            benchmark=target.benchmark,
            metric=name,
            point=target.open_point,
            unit=target.unit,
            better=target.better,
        )


def gather(view: View, results: Path) -> Gathered:
    """Read everything that a report is made of. Makes and measures nothing."""
    revisions = view.source.history()
    known = searches(view)
    ended = [record for record in known if record.answer is not None]
    candidates = ended or list(known)
    chosen = candidates[-1] if candidates else None
    measured = MeasuredHere(view)
    found = rows(view, metrics=_metrics(view, known), measured=measured)
    return Gathered(
        view=view,
        results=results,
        revisions=revisions,
        measured_here=measured,
        rows=found,
        changes=history_changes(revisions, [row for row in found if row.metric != MEMORY]),
        lacking=not_had(view),
        searches=known,
        search=chosen,
        steps=() if chosen is None else steps(view, chosen),
    )


def _metrics(view: View, known: Sequence[SearchRecord]) -> list[str]:
    """Every metric that is told of: those that lead, those that were searched for, and memory."""
    study = view.study
    names = [name for benchmark in study.benchmarks.values() for name in benchmark.leading]
    for record in known:
        for text in str(record.question["metric"]).split(", "):
            try:
                names.append(parse_metric(text).name)
            except TargetError:
                continue
    return list(dict.fromkeys([*names, *study.derived, MEMORY]))
