"""Sections of a report along the history: each metric with its changes, releases, failures and search steps."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from perftrail.charts.curve import Labels
from perftrail.charts.frame import MOST, HistoryPoint
from perftrail.charts.history import Events, Gap, Mark, history, sparkline
from perftrail.model.wording import change, counted, escaped, quantity
from perftrail.present.answer_sentence import revision_name
from perftrail.present.html_page import Section, Table
from perftrail.present.report.words import (
    correlation_words,
    revision_mark,
    row_value,
    size_words,
    slug,
)
from perftrail.present.shared_sentences import capitalised, effect_words
from perftrail.stats.estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.charts.frame import Chart
    from perftrail.model.json_data import Json
    from perftrail.model.subject import Revision
    from perftrail.present.report.data import HistoryMetric, ReportData
    from perftrail.results.changes import HistoryChange
    from perftrail.results.rows import Row

MOST_SPARKLINE_POINTS = 48

SPARKLINE_RANGE = 0.05
"""Smallest height of a sparkline, as a share of the value: noise does not look like a change."""


def events(data: ReportData, history_metric: HistoryMetric) -> Events:
    """Return the events along the history: changes, releases, failures, broken ranges, and steps of the search."""
    is_lead = history_metric == data.lead
    culprit_marks = [
        Mark(position=data.positions[id_], word=word)
        for id_, word in (_culprit_labels(data) if is_lead else ())
        if id_ in data.positions
    ]
    change_marks = [
        Mark(
            position=each.point.position,
            word=f"{each.row.subject.revision.short} {change(each.point.effect)}",
        )
        for each in data.changes
        if history_metric.is_of(each.row)
    ]
    return Events(
        length=len(data.revisions),
        changes=tuple(culprit_marks or change_marks),
        releases=tuple(_releases(data.revisions)),
        failed=tuple(_failed(data)),
        gaps=tuple(_gaps(data)),
        steps=tuple(_steps(data)) if is_lead else (),
    )


def _culprit_labels(data: ReportData) -> Iterator[tuple[str, str]]:
    """Yield the culprits of the answers, each with its label; for a range, its last revision."""
    lead = data.lead
    for answer in data.answers:
        if lead is not None and str(answer["benchmark"]) != lead.benchmark:
            continue
        for each in records(answer.get("changes")):
            ids, effect = each["revisions"], each.get("effect")
            if isinstance(ids, list) and ids:
                value = effect.get("value") if isinstance(effect, dict) else None
                size = f" {change(value)}" if isinstance(value, float) else ""
                yield str(ids[-1]), f"{str(ids[-1])[:10]}{size}"


def culprits(data: ReportData) -> list[int]:
    """Return the positions of the culprits."""
    return [data.positions[id_] for id_, _ in _culprit_labels(data) if id_ in data.positions]


def _releases(revisions: Sequence[Revision]) -> Iterator[Mark]:
    """Yield the positions at which the label changes."""
    before = ""
    for position, revision in enumerate(revisions):
        if revision.label not in {"", before, revision.id}:
            yield Mark(position=position, word=escaped(revision.label, longest=24))
            before = revision.label


def _failed(data: ReportData) -> Iterator[Mark]:
    for group in data.missing.failure_groups:
        for subject in group.subjects:
            if subject.revision.id in data.positions and group.failure.stage != "skipped":
                position = data.positions[subject.revision.id]
                yield Mark(position=position, word=f"{subject.revision.short}: {group.failure.stage}")


def _gaps(data: ReportData) -> Iterator[Gap]:
    """Yield the ranges without samples: broken ranges of a search, and ranges that the study skips."""
    for answer in data.answers[:1]:
        for each in records(answer.get("broken_ranges")):
            ends = each.get("revisions")
            if isinstance(ends, list) and all(str(end) in data.positions for end in ends):
                first, last = (data.positions[str(end)] for end in ends)
                tried = "1 revision" if each["tried"] == 1 else f"{each['tried']} revisions"
                yield Gap(first=first, last=last, why=f"{each['stage']}, {tried} tried")
    for skipped in data.missing.skipped_revisions:
        positions = sorted(data.positions[revision.id] for revision in skipped.revisions)
        yield from _gaps_at(positions, f"skipped: {escaped(skipped.reason)}")


def _gaps_at(positions: Sequence[int], why: str) -> Iterator[Gap]:
    """Yield a gap for each range of adjacent positions."""
    first = 0
    for number, position in enumerate(positions):
        if number + 1 == len(positions) or positions[number + 1] != position + 1:
            yield Gap(first=positions[first], last=position, why=why)
            first = number + 1


def _steps(data: ReportData) -> Iterator[Mark]:
    """Yield the step of the search that first measured each revision."""
    marked: set[str] = set()
    for step in data.steps:
        id_ = str(step.action.get("measure"))
        if id_ in data.positions and id_ not in marked:
            marked.add(id_)
            yield Mark(position=data.positions[id_], word=str(step.number))


def records(value: Json) -> list[dict[str, Json]]:
    """Return the objects of a JSON list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


LEAST_REVISIONS = 3
"""Minimum number of measured revisions of a chart along the history."""

MOST_SECTIONS = 8
"""Maximum number of metrics with a chart along the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A metric along the history, and its chart."""

    history_metric: HistoryMetric
    points: Sequence[HistoryPoint]
    chart: Chart


def _points_ahead(data: ReportData) -> Mapping[HistoryMetric, Sequence[HistoryPoint]]:
    """Estimate the points of the first charts, while an engine computes the changes."""
    first = islice(data.rows_by_metric.values(), MOST_SECTIONS - 1)
    return {
        (history_metric := data.history_metric(rows[0])): along_history(data, history_metric)
        for rows in first
        if any(row.values for row in rows)
    }


def history_sections(
    data: ReportData, *, on_chart: Callable[[Chart], None] | None = None
) -> tuple[Section, ...]:
    """Return a section for each metric along the history, that of the study's question first.

    `on_chart` is called with each chart before any table is made.
    """
    points_ahead, lead = _points_ahead(data), data.lead
    metrics = dict.fromkeys(data.history_metric(rows[0]) for rows in data.rows_by_metric.values())
    ordered = [*([lead] if lead is not None else []), *(each for each in metrics if each != lead)]
    drawn: list[_Drawn] = []
    for history_metric in ordered:
        if len(drawn) >= MOST_SECTIONS:
            break
        points = points_ahead.get(history_metric) or along_history(data, history_metric)
        if len({point.position for point in points}) >= LEAST_REVISIONS:
            name = slug(
                f"history-{history_metric.benchmark}-{history_metric.metric}-{history_metric.point}",
                [each.chart.name for each in drawn],
            )
            chart = _chart(data, history_metric, points, name)
            drawn.append(_Drawn(history_metric=history_metric, points=points, chart=chart))
            if on_chart is not None:
                on_chart(chart)
    sections = [_section(data, each) for each in drawn]
    if len(sections) == MOST_SECTIONS and len(ordered) > MOST_SECTIONS:
        sections.append(_overview(data, ordered))
    return tuple(sections)


def _overview(data: ReportData, metrics: Sequence[HistoryMetric]) -> Section:
    """Return one line for each metric, if there are too many to draw."""
    rows = []
    for history_metric in metrics:
        measured = [row for row in data.rows_of(history_metric) if row.values]
        changes = [each for each in data.changes if history_metric.is_of(each.row)]
        last = changes[-1] if changes else None
        rows.append(
            (
                escaped(f"{history_metric.benchmark}.{history_metric.metric} {history_metric.point}".strip()),
                _sparkline(measured),
                row_value(measured[-1]) if measured else "no value",
                str(len(changes)),
                ""
                if last is None
                else f"{revision_mark(last.row.subject.revision)} {change(last.point.effect)}",
            )
        )
    return Section(
        name="histories",
        title="Every metric along the history",
        paragraphs=(
            f"The report has charts of {MOST_SECTIONS} of {len(metrics)} metrics; this table has all metrics.",
        ),
        tables=(
            Table(
                name="histories",
                head=("metric", "history", "newest [95 % interval]", "changes", "last change"),
                rows=tuple(rows),
                numbers=frozenset({2, 3}),
                sparklines=frozenset({1}),
            ),
        ),
    )


def _sparkline(rows: Sequence[Row]) -> str:
    """Return a line through the medians of evenly spaced revisions, the newest included, of the newest variant."""
    newest_first = [row.values for row in reversed(rows) if row.subject.variant == rows[-1].subject.variant]
    step = -(-len(newest_first) // MOST_SPARKLINE_POINTS) or 1
    medians = [statistics.median(values) for values in newest_first[::step]]
    return sparkline(medians[::-1], least_range=SPARKLINE_RANGE)


def _chart(
    data: ReportData, history_metric: HistoryMetric, points: Sequence[HistoryPoint], name: str
) -> Chart:
    point = f" at {escaped(str(history_metric.point))}" if history_metric.point.values else ""
    title = f"{history_metric.benchmark}.{history_metric.metric}{point} along the history"
    labels = Labels(
        name=name,
        title=title,
        axis="position in the history",
        metric=history_metric.metric,
        unit=history_metric.unit,
    )
    return history(points, events(data, history_metric), labels=labels, palette=data.palette)


def _section(data: ReportData, drawn: _Drawn) -> Section:
    return Section(
        name=drawn.chart.name,
        title=drawn.chart.title,
        answers=bool(data.question_rows) and drawn.history_metric == data.lead,
        paragraphs=tuple(_changes(data, drawn.history_metric)),
        chart=drawn.chart,
        tables=(*_change_tables(data, drawn), _table(data, drawn)),
        detail=tuple(drawn.points) if len(drawn.points) > MOST else (),
    )


def _candidates_words(change: HistoryChange) -> str:
    where = revision_name(change.row.subject.revision)
    if len(change.candidates) == 1:
        return where
    return f"one of {len(change.candidates)} revisions from {change.candidates[0].short} to {where}"


def _change_tables(data: ReportData, drawn: _Drawn) -> Iterator[Table]:
    """Yield a table of a metric's changes, if there are several."""
    changes = [each for each in data.changes if drawn.history_metric.is_of(each.row)]
    if len(changes) > 1:
        variants = len(data.variants) > 1
        yield Table(
            name=f"{drawn.chart.name}-changes",
            head=("changed at", *(("variant",) if variants else ()), "change", "size"),
            rows=tuple(
                (
                    _candidates_words(each),
                    *((each.row.subject.variant,) if variants else ()),
                    effect_words(each.point.effect, each.point.low, each.point.high),
                    size_words(each.point),
                )
                for each in changes
            ),
            whole=True,
        )


def _changes(data: ReportData, history_metric: HistoryMetric) -> Iterator[str]:
    changes = [each for each in data.changes if history_metric.is_of(each.row)]
    if len(changes) == 1:
        [each] = changes
        point = each.point
        variant = f" ({each.row.subject.variant})" if len(data.variants) > 1 else ""
        effect = effect_words(point.effect, point.low, point.high)
        yield f"Changed{variant} at {_candidates_words(each)}: {effect}, {size_words(point)}."
    along = data.along_history
    if small := sum(history_metric.is_of(each.row) and not each.point.alert for each in along.points):
        yield f"{counted(small, 'more change')} below the alert level; perftrail show lists them all."
    for series in along.correlated:
        if history_metric.is_of(series.row):
            variant = f" ({series.row.subject.variant})" if len(data.variants) > 1 else ""
            words = correlation_words(series.correlation)
            yield f"{capitalised(words)}{variant}."


def _texts(
    data: ReportData, history_metric: HistoryMetric, points: Sequence[HistoryPoint]
) -> Sequence[tuple[str, ...]]:
    """Return the values of a chart as texts: the stored ones, else those of the search's steps."""
    rows = data.rows_of(history_metric)
    if rows:
        return [
            (
                *data.revision_texts[row.subject.revision.id],
                row.subject.variant,
                row_value(row),
                str(len(row.values)),
            )
            for row in rows
        ]
    return [
        (
            *data.revision_texts[data.revisions[point.position].id],
            point.subject,
            quantity(point.value, history_metric.unit, low=point.low, high=point.high),
            str(point.count),
        )
        for point in points
    ]


def _table(data: ReportData, drawn: _Drawn) -> Table:
    texts = _texts(data, drawn.history_metric, drawn.points)
    head = ("position", "revision", "message", "variant", "median [95 % interval]", "n")
    shown = [column for column in range(len(head)) if column != 3 or len(data.variants) > 1]
    columns = itemgetter(*shown)
    return Table(
        name=drawn.chart.name,
        head=columns(head),
        rows=tuple(map(columns, texts)),
        numbers=frozenset(number for number, column in enumerate(shown) if column in (0, 4, 5)),
    )


def along_history(data: ReportData, history_metric: HistoryMetric) -> list[HistoryPoint]:
    """Return a metric at each measured revision, in the order of the rows."""
    rows = [row for row in data.rows_of(history_metric) if row.values]
    if not rows and history_metric == data.lead:
        return _searched_points(data)
    return [_point(data, row) for row in rows]


def _point(data: ReportData, row: Row) -> HistoryPoint:
    assert row.estimate is not None
    position = data.positions[row.subject.revision.id]
    return HistoryPoint(
        position=position,
        subject=row.subject.variant,
        revision=data.revision_texts[row.subject.revision.id][1],
        value=row.estimate.value,
        low=row.estimate.low,
        high=row.estimate.high,
        count=row.estimate.count,
        last=position,
    )


def _searched_points(data: ReportData) -> list[HistoryPoint]:
    """Return the values of the search's steps, for example if all stored samples are from another toolchain."""
    assert data.search is not None or not data.steps
    values_by_revision: dict[str, list[float]] = {}
    for step in data.steps:
        values = step.observation.get("values")
        if isinstance(values, list) and str(step.action.get("measure")) in data.positions:
            numbers = [float(value) for value in values if isinstance(value, int | float)]
            values_by_revision.setdefault(str(step.action["measure"]), []).extend(numbers)
    variant = "" if data.search is None else str(data.search.question["variant"])
    points = []
    for id_, samples in sorted(values_by_revision.items(), key=lambda item: data.positions[item[0]]):
        found, position = estimate(samples), data.positions[id_]
        points.append(
            HistoryPoint(
                position=position,
                subject=variant,
                revision=revision_mark(data.revisions[position]),
                value=statistics.median(samples),
                low=found.low,
                high=found.high,
                count=found.count,
                last=position,
            )
        )
    return points
