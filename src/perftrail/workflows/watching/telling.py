"""The message about a change that a search confirmed: in words, and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.build import content_key
from perftrail.model.quantity import change as relative
from perftrail.model.quantity import probability
from perftrail.workflows.watching.state import Pending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.study import Study
    from perftrail.model.target import Target
    from perftrail.search.answer import Change
    from perftrail.workflows.found import FindAnswer
    from perftrail.workflows.watching.alarms import Alarm

MOST_NAMED = 10
"""So many of the revisions that may have made a change are named."""


def message(
    study: Study, alarm: Alarm, answer: FindAnswer, change: Change, *, receivers: Sequence[str]
) -> Pending:
    """Write the message about one change of a search's answer, for everybody who is to have it."""
    culprits = answer.candidates(change)
    who = culprits[-1].short if len(culprits) == 1 else f"one of {len(culprits)} up to {culprits[-1].short}"
    what = "" if change.effect is None else f" {relative(change.effect.value)}"
    lower = alarm.target.better == "lower"
    good = change.effect is not None and (change.effect.value < 1.0) == lower
    word = "better" if good else "worse"
    lines = [
        f"{answer.name}:{what} since {who}, which is {word}.",
        *(f"  {each.short}  {each.time[:10]}  {each.summary}" for each in culprits[:MOST_NAMED]),
        f"Probability {probability(change.confidence)}; {answer.invocations} invocations on {answer.machine}.",
        f"{answer.answer.reason}",
    ]
    return Pending(
        id=change_id(figure(alarm.target), culprits[-1].id),
        subject=f"{study.title}: {answer.name}{what} ({word})",
        text="\n".join(lines) + "\n",
        data={
            "study": study.title,
            "metric": alarm.target.name,
            "variant": alarm.target.variant,
            "better": good,
            "at": alarm.at,
            "revisions": [each.id for each in culprits],
            "answer": answer.as_json(),
        },
        left=tuple(receivers),
    )


def figure(target: Target) -> str:
    """Name a figure with its variant, without blanks."""
    return f"{target.name}@{target.variant}".replace(" ", "_")


def change_id(name: str, revision: str) -> str:
    """Name the change of a figure at a revision: the same however often it is found."""
    return content_key("watch", name, revision)[:32]
