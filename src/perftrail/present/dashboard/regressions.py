"""Regressions along a history, the newest first, with their status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.model.build import content_key
from perftrail.model.metrics import improves
from perftrail.model.target import TargetError, parse_metric
from perftrail.model.wording import change as relative
from perftrail.model.wording import escaped
from perftrail.present.answer_sentence import effect_and_interval, levels_of, stored_answers
from perftrail.present.flame_graph import stored_flame_graph
from perftrail.present.report.answer import culprit_certainty
from perftrail.present.report.words import certainty_words, revision_mark, row_metric
from perftrail.present.shared_sentences import effect_words, levels_words
from perftrail.present.why import MOST_IN_SUMMARY, explanation_lines
from perftrail.results.changes import answers_of
from perftrail.search.words import moved
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.json_data import Json
    from perftrail.model.store_records import RegressionNote, Status
    from perftrail.model.subject import Revision
    from perftrail.present.answer_sentence import ChangeFacts
    from perftrail.present.report.data import ReportData
    from perftrail.results.changes import HistoryChange


FoundBy = Literal["search", "history"]
"""Whether a search found a regression, or the samples along the history show it."""


class RegressionJson(TypedDict):
    """A change for the worse."""

    id: str
    qualified_metric: str
    benchmark: str
    metric: str
    variant: str
    position: Annotated[int, "of the culprit in the history"]
    revisions: Annotated[list[str], "candidates for the culprit, oldest first"]
    ratio: Annotated[float | None, "after/before; null: the metric is compared by differences"]
    effect: str
    levels: str
    certainty: str
    found_by: FoundBy
    better_since: Annotated[str | None, "the revision at which the metric improved again"]
    why: Annotated[
        list[str], "the functions that explain it, by a stored explanation of the culprit; at most three"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A change for the worse: metric, variant, culprits, size and certainty.

    `key` is the same as long as metric, variant and culprit are. `revisions` are the candidates, the oldest first.
    `found_by` is a search, or the samples along the history. `better_since` is the revision at which the metric
    improved again, or empty. `why` are sentences on the functions that explain it, and `flame_graph` is the name of
    their flame graph, or empty. `size` is the ratio after/before, `None` for a difference.
    """

    key: str
    qualified_metric: str
    benchmark: str
    metric: str
    variant: str
    position: int
    revisions: tuple[Revision, ...]
    size: float | None
    size_words: str
    effect: str
    levels: str
    certainty: str
    found_by: FoundBy
    better_since: str = ""
    other_points: int = 0
    why: tuple[str, ...] = ()
    flame_graph: str = ""

    def as_json(self) -> RegressionJson:
        """Return the JSON of the API."""
        return {
            "id": self.key,
            "qualified_metric": self.qualified_metric,
            "benchmark": self.benchmark,
            "metric": self.metric,
            "variant": self.variant,
            "position": self.position,
            "revisions": [revision.id for revision in self.revisions],
            "ratio": self.size,
            "effect": self.effect,
            "levels": self.levels,
            "certainty": self.certainty,
            "found_by": self.found_by,
            "better_since": self.better_since or None,
            "why": list(self.why),
        }


def regressions(data: ReportData) -> tuple[Regression, ...]:
    """Return every change for the worse: those that searches found, and those at the alert level in the samples."""
    by_key: dict[str, Regression] = {}
    for each in (*_found_by_searches(data), *_along_history(data)):
        earlier = by_key.get(each.key)
        by_key[each.key] = (
            _explained(data, each)
            if earlier is None
            else replace(earlier, other_points=earlier.other_points + 1)
        )
    return tuple(
        sorted(by_key.values(), key=lambda each: (-each.position, each.qualified_metric, each.variant))
    )


def _explained(data: ReportData, regression: Regression) -> Regression:
    """Add the functions of the latest stored explanation of a regression's only candidate."""
    if len(regression.revisions) > 1:
        return regression
    (culprit,) = regression.revisions
    for record in data.explanations:
        if record.revision == culprit.id:
            lines = explanation_lines(record, benchmark=regression.benchmark, variant=regression.variant)
            if lines:
                graph = stored_flame_graph(record, data.by_id)
                name = "" if graph is None else graph.name
                return replace(regression, why=tuple(lines[:MOST_IN_SUMMARY]), flame_graph=name)
    return regression


def status_of(notes: Sequence[RegressionNote], key: str) -> Status:
    """Return the status of a regression from its last note."""
    own = [note.status for note in notes if note.regression == key]
    return own[-1] if own else "new"


def _key(benchmark: str, metric: str, variant: str, culprit: str) -> str:
    return content_key(benchmark, metric, variant, culprit)[:16]


def _found_by_searches(data: ReportData) -> Iterator[Regression]:
    for record in reversed(data.searches):
        if record.answer is None:
            continue
        facts = stored_answers(record.answer, data.by_id)
        for answer, answer_facts in zip(answers_of(record), facts, strict=True):
            for each in answer_facts.changes:
                if each.tone == "worse":
                    yield from _of_answer(data, answer, each)


def _of_answer(data: ReportData, answer: Mapping[str, Json], change: ChangeFacts) -> Iterator[Regression]:
    ids = [revision.id for revision in change.candidates]
    if any(id_ not in data.positions for id_ in ids):
        return  # the study no longer has this range
    assert change.effect is not None
    try:
        metric = parse_metric(str(answer["metric"])).name
    except TargetError:
        return
    yield Regression(
        key=_key(str(answer["benchmark"]), metric, str(answer["variant"]), ids[-1]),
        qualified_metric=escaped(str(answer["metric"])),
        benchmark=str(answer["benchmark"]),
        metric=metric,
        variant=str(answer["variant"]),
        position=data.positions[ids[-1]],
        revisions=change.candidates,
        size=change.effect.value if change.effect.scale is Scale.RATIO else None,
        size_words=moved(change.effect, change.unit),
        effect=effect_and_interval(change.effect, change.unit),
        levels=levels_of(change),
        certainty=culprit_certainty(change),
        found_by="search",
    )


def _along_history(data: ReportData) -> Iterator[Regression]:
    for each in data.changes:
        if not _better(data, each):
            row, point = each.row, each.point
            yield Regression(
                key=_key(row.benchmark, row.metric, row.subject.variant, row.subject.revision.id),
                qualified_metric=row_metric(row),
                benchmark=row.benchmark,
                metric=row.metric,
                variant=row.subject.variant,
                position=data.positions[row.subject.revision.id],
                revisions=each.candidates,
                size=point.effect,
                size_words=relative(point.effect),
                effect=effect_words(point.effect, point.low, point.high),
                levels=levels_words(point.before, point.after, row.unit, low=point.low, high=point.high),
                certainty=certainty_words(point),
                found_by="history",
                better_since=_better_since(data, each),
            )


def _better(data: ReportData, each: HistoryChange) -> bool:
    return improves(each.point.effect, data.history_metric(each.row).better)


def _better_since(data: ReportData, worse: HistoryChange) -> str:
    """Return the first later revision at which the same metric improved."""
    row = worse.row
    for each in data.along_history.points:
        same = (each.row.benchmark, each.row.metric, each.row.point, each.row.subject.variant) == (
            row.benchmark,
            row.metric,
            row.point,
            row.subject.variant,
        )
        if same and each.point.position > worse.point.position and _better(data, each):
            return revision_mark(each.row.subject.revision)
    return ""
