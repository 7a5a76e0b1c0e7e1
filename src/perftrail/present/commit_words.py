"""The result of a search as text for git: a trailer for a fix's commit message, and a note for the culprit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.find.answer import FindTable
from perftrail.model.wording import probability
from perftrail.present.answer_sentence import (
    ChangeFacts,
    answer_facts,
    certificate_words,
    change_sentence,
    levels_of,
)
from perftrail.search.words import moved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.find.answer import FindAnswer
    from perftrail.model.subject import Revision

REGRESSION, IMPROVEMENT = "Perf-regression-in", "Perf-improvement-in"
"""Keys of the trailers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A revision that certainly changed one metric, with the trailer and the note about that change."""

    revision: Revision
    trailer: str
    note: str


def culprits(answer: FindAnswer | FindTable) -> tuple[Culprit, ...]:
    """Return the culprit of each change that is one revision, in the order of the answer."""
    answers = answer.answers if isinstance(answer, FindTable) else (answer,)
    changes = (change for each in answers for change in answer_facts(each).changes)
    return tuple(
        Culprit(revision=revision, trailer=trailer(change, revision), note="\n".join(_note(change, revision)))
        for change in changes
        if (revision := _single(change)) is not None
    )


def _single(change: ChangeFacts) -> Revision | None:
    if change.culprit is not None:
        return change.culprit
    return change.candidates[0] if len(change.candidates) == 1 else None


def trailer(change: ChangeFacts, culprit: Revision) -> str:
    """Return one line ``KEY: ID (CHANGE, PROBABILITY)`` for a commit message."""
    key = IMPROVEMENT if change.tone == "better" else REGRESSION
    if change.began:
        key, what = (IMPROVEMENT if change.began.startswith("made") else REGRESSION), change.began
    else:
        what = (
            change.metric if change.effect is None else f"{change.metric} {moved(change.effect, change.unit)}"
        )
    return f"{key}: {culprit.id} ({what}, probability {probability(change.confidence)})"


def _note(change: ChangeFacts, culprit: Revision) -> Iterator[str]:
    yield f"perftrail: {change_sentence(change)}"
    yield from (f"  {line}" for line in (levels_of(change), *certificate_words(change)) if line)
    yield trailer(change, culprit)
