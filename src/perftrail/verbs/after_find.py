"""The culprits of a search's answer, for the commands that explain or revert them after `find --then`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from perftrail.find.answer import FindAnswerJson, FindTable, FindTableJson, by_culprit
from perftrail.model.target import Working
from perftrail.verbs.backport.revert import RevertJson
from perftrail.verbs.explain.explain import ExplainReportJson

if TYPE_CHECKING:
    from perftrail.find.answer import FindAnswer, InsideMerge
    from perftrail.model.subject import Revision


class CulpritJson(TypedDict):
    """What `find --then` found out about one culprit."""

    revision: str
    inner: Annotated[str | None, "the commit inside the merge, if the search found one"]
    explain: Annotated[ExplainReportJson | None, "of the inner commit if there is one"]
    revert: RevertJson | None
    note: Annotated[str, "why something was not done; empty otherwise"]


class FindAnswerThenJson(FindAnswerJson, total=False):
    """The answer of a search, and what `--then` found out about each culprit."""

    then: list[CulpritJson]


class FindTableThenJson(FindTableJson, total=False):
    """The answers of a search of several metrics, and what `--then` found out about each culprit."""

    then: list[CulpritJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCulprit:
    """A revision that a search names as the only candidate, with its changed metrics.

    `inner` is the commit inside it if it is a merge and the search named one. `worse`: it made a metric worse.
    """

    revision: Revision
    inner: Revision | None
    metrics: tuple[str, ...]
    worse: bool


def named_culprits(answer: FindAnswer | FindTable) -> tuple[NamedCulprit, ...]:
    """Return the culprits of the changed metrics of an answer, in the order of the history."""
    answers = answer.answers if isinstance(answer, FindTable) else (answer,)
    found = []
    for changes in by_culprit(answers).values():
        first, number = changes[0]
        candidates = first.candidates(first.answer.changes[number])
        if len(candidates) != 1:
            continue
        inner = next(
            (
                revision
                for each, index in changes
                if (revision := _innermost(each.inside.get(index))) is not None
            ),
            None,
        )
        found.append(
            NamedCulprit(
                revision=candidates[0],
                inner=None if inner is None or inner.id == candidates[0].id else inner,
                metrics=tuple(dict.fromkeys(each.target.name for each, _ in changes)),
                worse=any(_is_worse(each, index) for each, index in changes),
            )
        )
    return tuple(found)


def _innermost(inside: InsideMerge | None) -> Revision | None:
    """Return the commit that caused a change inside a merge, through merges inside merges."""
    if inside is None:
        return None
    deeper = _innermost(inside.inside)
    candidates = inside.candidates
    return deeper or (candidates[0] if inside.origin == "branch" and len(candidates) == 1 else None)


def _is_worse(answer: FindAnswer, number: int) -> bool:
    effect = answer.answer.changes[number].effect
    if effect is None or isinstance(answer.target, Working):
        return False
    return effect.size != 0.0 and not effect.improves(answer.target.better)
