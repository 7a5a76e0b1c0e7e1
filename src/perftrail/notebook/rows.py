"""What `show`, `report` and `find` have found, as rows for tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perftrail.notebook.tables import moment, point_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.metrics import Better
    from perftrail.model.search_record import Json, SearchRecord
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.workflows.reporting.beside import Beside
    from perftrail.workflows.showing.changes import HistoryChange
    from perftrail.workflows.showing.rows import Row

Values = dict[str, object]


def estimate_rows(study: Study, history: Sequence[Revision], rows: Sequence[Row]) -> list[Values]:
    """Give the rows of `show`."""
    positions = _positions(history)
    return [
        {
            **_where(study, positions, row),
            "value": None if row.estimate is None else row.estimate.value,
            "low": None if row.estimate is None else row.estimate.low,
            "high": None if row.estimate is None else row.estimate.high,
            "confidence": None if row.estimate is None else row.estimate.confidence,
            "count": 0 if row.estimate is None else row.estimate.count,
            "failures": row.failures,
            "flags": list(row.flags),
            "noise": row.noise,
            "time": moment(row.subject.revision.time),
            "summary": row.subject.revision.summary,
        }
        for row in rows
    ]


def change_rows(study: Study, history: Sequence[Revision], changes: Sequence[HistoryChange]) -> list[Values]:
    """Give the change points of `show`, each at the first revision measured after it."""
    positions = _positions(history)
    return [
        {
            **_where(study, positions, each.row),
            "before": each.point.before,
            "after": each.point.after,
            "effect": each.point.effect,
            "low": each.point.low,
            "high": each.point.high,
            "p_value": each.point.p_value,
            "size_in_noise": each.point.size,
            "size_in_noise_low": each.point.size_low,
            "size_in_noise_high": each.point.size_high,
            "alert": each.point.alert,
            "candidates": [revision.id for revision in each.candidates],
            "earliest": each.earliest.id,
            "latest": each.latest.id,
        }
        for each in changes
    ]


def comparison_rows(beside: Sequence[Beside]) -> list[Values]:
    """Give the comparisons of `report`."""
    return [
        {
            "subject": each.name,
            "reference": each.reference,
            "benchmark": each.benchmark,
            "metric": each.metric,
            "better": each.better,
            "effect": each.comparison.effect,
            "low": each.comparison.low,
            "high": each.comparison.high,
            "confidence": each.comparison.confidence,
            "pairs": each.comparison.pairs,
            "verdict": each.verdict,
            "improved": {"better": True, "worse": False}.get(each.words),
            "smallest_seen": each.comparison.smallest_seen,
        }
        for each in beside
    ]


def answer_rows(searches: Sequence[SearchRecord]) -> list[Values]:
    """Give a row for each change of each answer of each search, and one where there is none."""
    return [
        {**_asked(number, record), **_answered(answer), **change}
        for number, record in enumerate(searches, start=1)
        for answer in _answers(record)
        for change in _changes(answer)
    ]


def _positions(history: Sequence[Revision]) -> Mapping[str, int]:
    return {revision.id: position for position, revision in enumerate(history)}


def _where(study: Study, positions: Mapping[str, int], row: Row) -> Values:
    revision = row.subject.revision
    return {
        "position": positions[revision.id],
        "revision": revision.id,
        "label": revision.label,
        "variant": row.subject.variant,
        "benchmark": row.benchmark,
        **point_values(study, row.point),
        "metric": row.metric,
        "unit": row.unit,
        "better": _better(study, row),
    }


def _better(study: Study, row: Row) -> Better:
    benchmark = study.benchmarks[row.benchmark]
    known = (
        study.derived.get(row.metric) or benchmark.metrics.get(row.metric) or benchmark.measured[row.metric]
    )
    return known.better


def _asked(number: int, record: SearchRecord) -> Values:
    question = record.question
    return {
        "search": number,
        "started": moment(record.started),
        **{name: question.get(name) for name in ("metric", "benchmark", "variant", "first", "last")},
    }


ANSWERED = (
    *("unit", "better", "verdict", "reason", "confidence", "smallest_seen"),
    *("revisions", "builds", "invocations", "seconds"),
)


def _answers(record: SearchRecord) -> Sequence[Mapping[str, Json]]:
    """Give the answers of a search, one about each metric; an empty one where it has not ended."""
    if record.answer is None:
        return ({},)
    several = record.answer.get("metrics")
    return (
        [each for each in several if isinstance(each, dict)]
        if isinstance(several, list)
        else (record.answer,)
    )


def _answered(answer: Mapping[str, Json]) -> Values:
    named = {name: answer[name] for name in ("metric", "benchmark", "variant") if name in answer}
    return {**{name: answer.get(name) for name in ANSWERED}, **named}


def _changes(answer: Mapping[str, Json]) -> Iterator[Values]:
    found = answer.get("changes")
    changes = found if isinstance(found, list) else []
    for number, change in enumerate(changes or [None]):
        told = change if isinstance(change, dict) else {}
        effect = told.get("effect")
        figures = effect if isinstance(effect, dict) else {}
        inside = told.get("inside")
        yield {
            "change": number if told else None,
            "kind": told.get("kind"),
            "candidates": told.get("revisions"),
            "sure": told.get("confidence"),
            "before": told.get("before"),
            "after": told.get("after"),
            "effect": figures.get("value"),
            "low": figures.get("low"),
            "high": figures.get("high"),
            "inside": None if inside is None else json.dumps(inside),
        }
