"""The data of a report: everything that a store contains of a study, read once."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from perftrail.charts.frame import Palette
from perftrail.local_engine import LocalEngine
from perftrail.measure.session import missing_builds
from perftrail.model.plan import Cell
from perftrail.model.program import may_be_linked
from perftrail.model.subject import Revision, Subject
from perftrail.model.target import TargetError, claimed_metric, parse_metric, resolve, shown_metrics
from perftrail.model.wording import escaped
from perftrail.present.report.words import revision_mark
from perftrail.results.changes import answers_of, begin_changes, with_answers
from perftrail.results.gate import stored_comparisons
from perftrail.results.measured import MeasuredHere
from perftrail.results.rows import better_of, in_order, rows_by_benchmark
from perftrail.results.show import searches, steps

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.measure.session import Missing, View
    from perftrail.model.benchmark import Point
    from perftrail.model.json_data import Json
    from perftrail.model.metrics import Better
    from perftrail.model.store_records import ExplanationRecord, SearchRecord, StepRecord
    from perftrail.model.study import Study
    from perftrail.ports import Engine, Pending
    from perftrail.results.changes import HistoryChange, HistoryChanges
    from perftrail.results.gate import Gate
    from perftrail.results.rows import Row

MEMORY = "peak_memory"
MOST_REVISIONS = 6
"""Maximum number of revisions that are compared as subjects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMetric:
    """A metric of a benchmark at one point, as the report follows it along the history."""

    benchmark: str
    metric: str
    point: Point
    unit: str
    better: Better

    def is_of(self, row: Row) -> bool:
        """Whether a row has this metric."""
        return (row.benchmark, row.metric, row.point) == (self.benchmark, self.metric, self.point)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionMetric:
    """The metric of a study's question: of one benchmark, at one point, or at every point."""

    benchmark: str
    metric: str
    point: Point | None

    def is_of(self, row: Row) -> bool:
        """Whether a row has this metric."""
        return (row.benchmark, row.metric) == (self.benchmark, self.metric) and self.point in (
            None,
            row.point,
        )


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The data of a report; `search` is the one with the report's answer, with its steps.

    An engine computes change points while perftrail writes independent parts of the report.
    """

    view: View
    results: Path
    revisions: tuple[Revision, ...]
    measured_here: MeasuredHere
    rows: tuple[Row, ...]
    pending_changes: Pending[HistoryChanges]
    missing: Missing
    comparisons: tuple[Gate, ...]
    searches: tuple[SearchRecord, ...]
    search: SearchRecord | None
    steps: Sequence[StepRecord]
    explanations: tuple[ExplanationRecord, ...] = ()

    @cached_property
    def along_history(self) -> HistoryChanges:
        """Every change along the history of every metric except memory."""
        return with_answers(self.pending_changes.outcome(), self.view.study, self.searches)

    @cached_property
    def changes(self) -> tuple[HistoryChange, ...]:
        """The changes along the history at the alert level."""
        return self.along_history.alerts

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each revision in the history."""
        return {revision.id: position for position, revision in enumerate(self.revisions)}

    @cached_property
    def by_id(self) -> Mapping[str, Revision]:
        """The revisions of the history by id, in its order."""
        return {revision.id: revision for revision in self.revisions}

    @cached_property
    def revision_texts(self) -> Mapping[str, tuple[str, str, str]]:
        """Position, name and message of each revision, for tables."""
        return {
            each.id: (str(position), revision_mark(each), escaped(each.summary))
            for position, each in enumerate(self.revisions)
        }

    @cached_property
    def rows_by_metric(self) -> Mapping[tuple[str, str, Point], Sequence[Row]]:
        """The rows of each benchmark, metric and point, in the order of the history."""
        found: dict[tuple[str, str, Point], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.benchmark, row.metric, row.point), []).append(row)
        return found

    def rows_of(self, history_metric: HistoryMetric) -> Sequence[Row]:
        """Return the rows with a metric."""
        return self.rows_by_metric.get(
            (history_metric.benchmark, history_metric.metric, history_metric.point), ()
        )

    @cached_property
    def measured(self) -> tuple[Revision, ...]:
        """The revisions with values, oldest first."""
        ids = {row.subject.revision.id for row in self.rows if row.values}
        return tuple(revision for revision in self.revisions if revision.id in ids)

    @property
    def variants(self) -> tuple[str, ...]:
        """The study's variants."""
        return tuple(self.view.study.variants)

    def is_linked(self, benchmark: str) -> bool:
        """Whether a linker made a benchmark's program, judged by its commands and stored comparisons."""
        study, any_revision = self.view.study, Revision(id="")
        subjects = [Subject(revision=any_revision, variant=variant) for variant in study.variants]
        first_cells = [
            Cell(subject=subject, benchmark=benchmark, point=point)
            for subject in subjects
            for point in islice(study.benchmarks[benchmark].each_point(subject.variant), 1)
        ]
        rows = [row for gate in self.comparisons for row in gate.rows if row.metric.benchmark == benchmark]
        return any(may_be_linked(study, cell) for cell in first_cells) and all(row.linked for row in rows)

    @cached_property
    def compared(self) -> tuple[Revision, ...]:
        """The revisions that are compared as subjects: both ends, and both sides of changes."""
        if len(self.variants) > 1:
            return self.measured[-1:]
        ends = [*self.measured[:1], *self.measured[-1:]]
        sides = [each for change in self.changes for each in (change.previous, change.row.subject.revision)]
        wanted = list(dict.fromkeys([*ends, *sides, *(self.measured if len(self.measured) <= 6 else ())]))
        return tuple(sorted(wanted[:MOST_REVISIONS], key=lambda revision: self.positions.get(revision.id, 0)))

    @cached_property
    def compared_rows(self) -> tuple[Row, ...]:
        """The rows of the revisions that are compared as subjects."""
        ids = {revision.id for revision in self.compared}
        return tuple(row for row in self.rows if row.subject.revision.id in ids)

    @cached_property
    def palette(self) -> Palette:
        """One colour for each variant and each revision that is compared as a subject."""
        return Palette((*self.variants, *(revision_mark(revision) for revision in self.compared)))

    def subject_name(self, row: Row) -> str:
        """Return the name of a row's subject in comparisons."""
        return row.subject.variant if len(self.variants) > 1 else revision_mark(row.subject.revision)

    @cached_property
    def answers(self) -> tuple[Mapping[str, Json], ...]:
        """The search's answers, one for each metric; empty before it has ended."""
        return () if self.search is None else answers_of(self.search)

    @cached_property
    def question_metric(self) -> QuestionMetric | None:
        """The metric of the study's question: that of `find`, else the first derived one."""
        study = self.view.study
        for text in (*study.find.metric, *study.derived):
            resolved = self._resolved(text, None)
            if resolved is not None:
                return QuestionMetric(
                    benchmark=resolved.benchmark, metric=resolved.metric, point=resolved.point
                )
            with suppress(TargetError):
                every_point = claimed_metric(study, text)
                assert every_point.benchmark is not None
                return QuestionMetric(benchmark=every_point.benchmark, metric=every_point.name, point=None)
        return None

    @cached_property
    def question_rows(self) -> tuple[Row, ...]:
        """The rows with values of the study's question, in the order of the history."""
        question = self.question_metric
        if question is None:
            return ()
        return tuple(row for row in self.rows if question.is_of(row) and row.values)

    @cached_property
    def largest_change(self) -> HistoryChange | None:
        """The largest change along the history, of the study's question if that has values."""
        question = self.question_metric if self.question_rows else None
        changes = [change for change in self.changes if question is None or question.is_of(change.row)]
        return max(changes, key=lambda each: abs(math.log(each.point.effect)), default=None)

    @cached_property
    def lead(self) -> HistoryMetric | None:
        """The metric of the study's question at one point."""
        answered = sorted(self.answers, key=lambda each: not each.get("changes"))
        metrics = [(str(each["metric"]), str(each["variant"])) for each in answered]
        if not metrics and self.search is not None:
            metrics = [(str(self.search.question["metric"]), str(self.search.question["variant"]))]
        for text, variant in metrics:
            resolved = self._resolved(text, variant or None)
            if resolved is not None:
                return resolved
        if self.question_rows:
            return self.history_metric(self.question_rows[-1])
        if self.largest_change is not None:
            return self.history_metric(self.largest_change.row)
        measured = [row for row in self.rows if row.values]
        first = next((row for row in measured if row.metric != MEMORY), measured[0] if measured else None)
        return None if first is None else self.history_metric(first)

    def history_metric(self, row: Row) -> HistoryMetric:
        """Return the metric of a row."""
        return HistoryMetric(
            benchmark=row.benchmark,
            metric=row.metric,
            point=row.point,
            unit=row.unit,
            better=better_of(self.view.study, row),
        )

    def _resolved(self, text: str, variant: str | None) -> HistoryMetric | None:
        """Return the metric that a text names in a variant, or in the first that has it; `None` without one."""
        study = self.view.study
        for each in study.variants if variant is None else (variant,):
            with suppress(TargetError):
                target = resolve(study, text, each)
                return HistoryMetric(
                    benchmark=target.benchmark,
                    metric=parse_metric(text).name,
                    point=target.open_point,
                    unit=target.unit,
                    better=target.better,
                )
        return None


def read_report_data(view: View, results: Path, *, engine: Engine | None = None) -> ReportData:
    """Read the data of a report. Builds and measures nothing.

    `engine` computes change points; without one, this process does.
    """
    engine = engine or LocalEngine()
    stored_searches = searches(view)
    measured = MeasuredHere(view)
    main_search = _main_search(view.study, stored_searches, {revision.id for revision in measured.history})
    all_rows: list[Sequence[Row]] = []
    rows = _rows_for_changes(view, measured, _metrics(view, stored_searches), all_rows)
    pending_changes = begin_changes(measured.history, rows, engine)
    return ReportData(
        view=view,
        results=results,
        revisions=measured.history,
        measured_here=measured,
        rows=in_order(measured, all_rows),
        pending_changes=pending_changes,
        missing=missing_builds(view, measured.history),
        comparisons=stored_comparisons(view),
        searches=stored_searches,
        search=main_search,
        steps=() if main_search is None else steps(view, main_search),
        explanations=tuple(reversed(view.store.explanations())),
    )


def _main_search(
    study: Study, records: Sequence[SearchRecord], revisions: Collection[str]
) -> SearchRecord | None:
    """Return the search that answers the study's question, `None` without a search.

    It is the last ended one of its metrics between two of its `revisions`, else of its metrics, else the last one. A
    search of a branch that a gate compared is about revisions that the study's range does not contain.
    """
    question_metrics = {parse_metric(text).name for text in study.find.metric}

    def rank(record: SearchRecord) -> tuple[bool, bool, bool]:
        is_within = record.question["first"] in revisions and record.question["last"] in revisions
        return (
            record.answer is not None,
            not question_metrics.isdisjoint(_searched_metrics(record)),
            is_within,
        )

    return max(reversed(records), key=rank, default=None)


def _searched_metrics(record: SearchRecord) -> Iterator[str]:
    """Yield the names of a search's metrics, without those that cannot be read."""
    for text in str(record.question["metric"]).split(", "):
        with suppress(TargetError):
            yield parse_metric(text).name


def _rows_for_changes(
    view: View, measured: MeasuredHere, metrics: Sequence[str], all_rows: list[Sequence[Row]]
) -> Iterator[Sequence[Row]]:
    """Yield the rows of each benchmark in which changes are searched, and append every row to `all_rows`.

    Rows of memory are yielded only if it is one of the metrics.
    """
    for rows in rows_by_benchmark(view, measured, metrics, (MEMORY,)):
        all_rows.append(rows)
        yield [row for row in rows if row.metric != MEMORY or MEMORY in metrics]


def _metrics(view: View, records: Sequence[SearchRecord]) -> list[str]:
    """Return the metrics of a report: those that tables show, and those of searches."""
    study = view.study
    names = [name for benchmark in study.benchmarks for name in shown_metrics(study, benchmark)]
    searched = (name for record in records for name in _searched_metrics(record))
    return list(dict.fromkeys([*names, *searched, *study.derived]))
