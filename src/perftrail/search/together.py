"""One answer of what was found in the parts of a history, each between the levels on its two sides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.search.answer import Answer, Change, Verdict

if TYPE_CHECKING:
    from perftrail.search.picture import Contrast
    from perftrail.search.steps import Steps


def accounted(answer: Answer, low: int, high: int, steps: Steps) -> Answer:
    """Name the whole stretch where its step is there but could not be located."""
    if answer.changes or answer.verdict is Verdict.NONE:
        return answer
    change = Change(
        positions=tuple(range(low + 1, high + 1)),
        confidence=float(steps.counts[steps.count :].sum()),
        before=None,
        after=None,
        effect=None,
    )
    return replace(answer, verdict=Verdict.RANGE, changes=(change,))


def as_ramp(contrast: Contrast) -> Answer:
    """Answer with a ramp: no one of the revisions that it spans is the culprit."""
    return Answer(
        verdict=Verdict.RANGE,
        changes=(contrast.ramps.change(contrast.probability),),
        confidence=contrast.probability,
        smallest_seen=contrast.ramps.smallest_seen,
        reason="the level moves little by little over many revisions: no one of them is the culprit",
    )


def together(answers: list[Answer]) -> Answer:
    """Make one answer of those of the parts of a history."""
    changes: list[Change] = []
    for change in sorted((change for answer in answers for change in answer.changes), key=_rank):
        if not any(set(change.positions) & set(other.positions) for other in changes):
            changes.append(change)
    if len(changes) < 2:
        return next((answer for answer in answers if answer.changes), answers[0])
    return Answer(
        verdict=Verdict.SEVERAL,
        changes=tuple(sorted(changes, key=lambda change: change.positions)),
        confidence=math.prod(change.confidence for change in changes),
        smallest_seen=max(answer.smallest_seen for answer in answers),
        reason="each change was searched for between the levels on its two sides",
    )


def _rank(change: Change) -> tuple[float, tuple[int, ...]]:
    return (-change.confidence, change.positions)
