"""Sections of a report along the history: each metric with its changes, releases, failures and search steps."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from perftrail.charts.curve import Labels
from perftrail.charts.frame import MOST, HistoryPoint
from perftrail.charts.history import Events, Gap, Mark, history
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
    from perftrail.present.report.gathered import Followed, Gathered
    from perftrail.results.rows import Row


def events(gathered: Gathered, followed: Followed) -> Events:
    """Return the events along the history: changes, releases, failures, broken ranges, and steps of the search."""
    is_lead = followed == gathered.lead
    parts = [
        Mark(position=gathered.positions[id_], word=word)
        for id_, word in (_culprit_labels(gathered) if is_lead else ())
        if id_ in gathered.positions
    ]
    seen = [
        Mark(
            position=each.point.position,
            word=f"{each.row.subject.revision.short} {change(each.point.effect)}",
        )
        for each in gathered.changes
        if followed.is_of(each.row)
    ]
    return Events(
        length=len(gathered.revisions),
        changes=tuple(parts or seen),
        releases=tuple(_releases(gathered.revisions)),
        failed=tuple(_failed(gathered)),
        gaps=tuple(_gaps(gathered)),
        steps=tuple(_steps(gathered)) if is_lead else (),
    )


def _culprit_labels(gathered: Gathered) -> Iterator[tuple[str, str]]:
    """Return the culprits of the answers; for a range, its last revision."""
    lead = gathered.lead
    for answer in gathered.answers:
        if lead is not None and str(answer["benchmark"]) != lead.benchmark:
            continue
        for each in records(answer.get("changes")):
            ids, effect = each["revisions"], each.get("effect")
            if isinstance(ids, list) and ids:
                value = effect["value"] if isinstance(effect, dict) else None
                size = f" {change(value)}" if isinstance(value, float) else ""
                yield str(ids[-1]), f"{str(ids[-1])[:10]}{size}"


def culprits(gathered: Gathered) -> list[int]:
    """Return the positions of the culprits."""
    return [gathered.positions[id_] for id_, _ in _culprit_labels(gathered) if id_ in gathered.positions]


def _releases(revisions: Sequence[Revision]) -> Iterator[Mark]:
    """Yield the positions at which the label changes."""
    before = ""
    for position, revision in enumerate(revisions):
        if revision.label not in {"", before, revision.id}:
            yield Mark(position=position, word=escaped(revision.label, longest=24))
            before = revision.label


def _failed(gathered: Gathered) -> Iterator[Mark]:
    for group in gathered.missing.failure_groups:
        for subject in group.subjects:
            if subject.revision.id in gathered.positions and group.failure.stage != "skipped":
                position = gathered.positions[subject.revision.id]
                yield Mark(position=position, word=f"{subject.revision.short}: {group.failure.stage}")


def _gaps(gathered: Gathered) -> Iterator[Gap]:
    """Yield the ranges without samples: broken ranges of a search, and ranges that the study skips."""
    for answer in gathered.answers[:1]:
        for each in records(answer.get("broken_ranges")):
            ends = each.get("revisions")
            if isinstance(ends, list) and all(str(end) in gathered.positions for end in ends):
                first, last = (gathered.positions[str(end)] for end in ends)
                yield Gap(first=first, last=last, why=f"{each['stage']}, {each['tried']} tried")
    for skipped in gathered.missing.skipped_revisions:
        positions = sorted(gathered.positions[revision.id] for revision in skipped.revisions)
        yield from _runs(positions, f"skipped: {escaped(skipped.reason)}")


def _runs(positions: Sequence[int], why: str) -> Iterator[Gap]:
    first = 0
    for number, position in enumerate(positions):
        if number + 1 == len(positions) or positions[number + 1] != position + 1:
            yield Gap(first=positions[first], last=position, why=why)
            first = number + 1


def _steps(gathered: Gathered) -> Iterator[Mark]:
    """Yield the step of the search that first measured each revision."""
    seen: set[str] = set()
    for step in gathered.steps:
        id_ = str(step.action.get("measure"))
        if id_ in gathered.positions and id_ not in seen:
            seen.add(id_)
            yield Mark(position=gathered.positions[id_], word=str(step.number))


def records(value: Json) -> list[dict[str, Json]]:
    """Return the objects of a JSON list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


LEAST = 3
"""Minimum number of measured revisions of a chart along the history."""

MOST_SECTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A metric along the history, and its chart."""

    followed: Followed
    points: Sequence[HistoryPoint]
    chart: Chart


def _points_ahead(gathered: Gathered) -> Mapping[Followed, Sequence[HistoryPoint]]:
    """Estimate the points of the first charts, while the changes are being computed."""
    first = islice(gathered.rows_by_metric.values(), MOST_SECTIONS - 1)
    return {
        (followed := gathered.followed(rows[0])): along_history(gathered, followed)
        for rows in first
        if any(row.values for row in rows)
    }


def history_sections(
    gathered: Gathered, *, on_chart: Callable[[Chart], None] | None = None
) -> tuple[Section, ...]:
    """Return a section for each metric along the history, that of the study's question first.

    `on_chart` is called with each chart before any table is made.
    """
    ahead, lead = _points_ahead(gathered), gathered.lead
    every = dict.fromkeys(gathered.followed(rows[0]) for rows in gathered.rows_by_metric.values())
    ordered = [*([lead] if lead is not None else []), *(each for each in every if each != lead)]
    drawn: list[_Drawn] = []
    for followed in ordered:
        if len(drawn) >= MOST_SECTIONS:
            break
        points = ahead[followed] if followed in ahead else along_history(gathered, followed)
        if len({point.position for point in points}) >= LEAST:
            name = slug(
                f"history-{followed.benchmark}-{followed.metric}-{followed.point}",
                [each.chart.name for each in drawn],
            )
            chart = _chart(gathered, followed, points, name)
            drawn.append(_Drawn(followed=followed, points=points, chart=chart))
            if on_chart is not None:
                on_chart(chart)
    sections = [_section(gathered, each) for each in drawn]
    if len(sections) == MOST_SECTIONS and len(ordered) > MOST_SECTIONS:
        sections.append(_overview(gathered, ordered))
    return tuple(sections)


def _overview(gathered: Gathered, every: Sequence[Followed]) -> Section:
    """Return one line for each metric, if there are too many to draw."""
    rows = []
    for followed in every:
        found = [row for row in gathered.rows_of(followed) if row.values]
        changes = [each for each in gathered.changes if followed.is_of(each.row)]
        last = changes[-1] if changes else None
        rows.append(
            (
                escaped(f"{followed.benchmark}.{followed.metric} {followed.point}".strip()),
                row_value(found[-1]) if found else "no value",
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
            f"The report has charts of {MOST_SECTIONS} of {len(every)} metrics; this table has all.",
        ),
        tables=(
            Table(
                name="histories",
                head=("metric", "newest [95 % interval]", "changes", "last change"),
                rows=tuple(rows),
                numbers=frozenset({1, 2}),
            ),
        ),
    )


def _chart(gathered: Gathered, followed: Followed, points: Sequence[HistoryPoint], name: str) -> Chart:
    point = f" at {escaped(str(followed.point))}" if followed.point.values else ""
    title = f"{followed.benchmark}.{followed.metric}{point} along the history"
    labels = Labels(
        name=name, title=title, axis="position in the history", metric=followed.metric, unit=followed.unit
    )
    return history(points, events(gathered, followed), labels=labels, palette=gathered.palette)


def _section(gathered: Gathered, drawn: _Drawn) -> Section:
    return Section(
        name=drawn.chart.name,
        title=drawn.chart.title,
        answers=bool(gathered.question_rows) and drawn.followed == gathered.lead,
        paragraphs=tuple(_changes(gathered, drawn.followed)),
        chart=drawn.chart,
        tables=(_table(gathered, drawn),),
        detail=tuple(drawn.points) if len(drawn.points) > MOST else (),
    )


def _changes(gathered: Gathered, followed: Followed) -> Iterator[str]:
    for each in gathered.changes:
        if followed.is_of(each.row):
            point = each.point
            where = revision_name(each.row.subject.revision)
            if len(each.candidates) > 1:
                where = f"one of {len(each.candidates)} revisions from {each.candidates[0].short} to {where}"
            variant = f" ({each.row.subject.variant})" if len(gathered.variants) > 1 else ""
            effect = effect_words(point.effect, point.low, point.high)
            yield f"Changed{variant} at {where}: {effect}, {size_words(point)}."
    seen = gathered.along_history
    if small := sum(followed.is_of(each.row) and not each.point.alert for each in seen.points):
        yield f"{counted(small, 'more change')} below the alert level; perftrail show lists them all."
    for series in seen.correlated:
        if followed.is_of(series.row):
            variant = f" ({series.row.subject.variant})" if len(gathered.variants) > 1 else ""
            words = correlation_words(series.correlation)
            yield f"{capitalised(words)}{variant}."


def _texts(
    gathered: Gathered, followed: Followed, points: Sequence[HistoryPoint]
) -> Sequence[tuple[str, ...]]:
    """Return the values of the charts; from the search's steps if the store has none under today's builds."""
    rows = gathered.rows_of(followed)
    if rows:
        return [
            (
                *gathered.revision_texts[row.subject.revision.id],
                row.subject.variant,
                row_value(row),
                str(len(row.values)),
            )
            for row in rows
        ]
    return [
        (
            *gathered.revision_texts[gathered.revisions[point.position].id],
            point.subject,
            quantity(point.value, followed.unit, low=point.low, high=point.high),
            str(point.count),
        )
        for point in points
    ]


def _table(gathered: Gathered, drawn: _Drawn) -> Table:
    texts = _texts(gathered, drawn.followed, drawn.points)
    head = ("position", "revision", "message", "variant", "median [95 % interval]", "n")
    kept = [column for column in range(len(head)) if column != 3 or len(gathered.variants) > 1]
    columns = itemgetter(*kept)
    return Table(
        name=drawn.chart.name,
        head=columns(head),
        rows=tuple(map(columns, texts)),
        numbers=frozenset(number for number, column in enumerate(kept) if column in (0, 4, 5)),
    )


def along_history(gathered: Gathered, followed: Followed) -> list[HistoryPoint]:
    """Return a metric at each measured revision, in the order of the rows."""
    rows = [row for row in gathered.rows_of(followed) if row.values]
    if not rows and followed == gathered.lead:
        return _searched_points(gathered)
    return [_point(gathered, row) for row in rows]


def _point(gathered: Gathered, row: Row) -> HistoryPoint:
    assert row.estimate is not None
    position = gathered.positions[row.subject.revision.id]
    return HistoryPoint(
        position=position,
        subject=row.subject.variant,
        revision=gathered.revision_texts[row.subject.revision.id][1],
        value=row.estimate.value,
        low=row.estimate.low,
        high=row.estimate.high,
        count=row.estimate.count,
        last=position,
    )


def _searched_points(gathered: Gathered) -> list[HistoryPoint]:
    """Return a search's values, if the store has none under today's builds, for example after a change of toolchain."""
    assert gathered.search is not None or not gathered.steps
    read: dict[str, list[float]] = {}
    for step in gathered.steps:
        values = step.observation.get("values")
        if isinstance(values, list) and str(step.action.get("measure")) in gathered.positions:
            numbers = [float(value) for value in values if isinstance(value, int | float)]
            read.setdefault(str(step.action["measure"]), []).extend(numbers)
    variant = "" if gathered.search is None else str(gathered.search.question["variant"])
    points = []
    for id_, values_read in sorted(read.items(), key=lambda item: gathered.positions[item[0]]):
        found, position = estimate(values_read), gathered.positions[id_]
        points.append(
            HistoryPoint(
                position=position,
                subject=variant,
                revision=revision_mark(gathered.revisions[position]),
                value=statistics.median(values_read),
                low=found.low,
                high=found.high,
                count=found.count,
                last=position,
            )
        )
    return points
