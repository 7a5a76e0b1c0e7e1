"""What a search's budget still allows, and what to say where it allows no more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perftrail.search.question import Question


class Spent(Protocol):
    """What was spent so far: revisions attempted, invocations, seconds."""

    @property
    def builds(self) -> int:
        """How many revisions were attempted."""
        ...

    @property
    def invocations(self) -> int:
        """How many invocations were made."""
        ...

    @property
    def seconds(self) -> float:
        """How long both took."""
        ...


def refusal(question: Question, spent: Spent, *, fresh: bool) -> str | None:
    """Say why not even one more reading is allowed, of a `fresh` revision with its build; `None` when it is."""
    seconds = question.budget.seconds
    if seconds is not None and spent.seconds >= seconds:
        return "the budget of seconds is spent"
    if fresh and not may_build(question, spent):
        return "the budget of builds is spent"
    if readings_left(question, spent) < 1:
        return "the budget of invocations is spent"
    return None


def may_build(question: Question, spent: Spent) -> bool:
    """Whether the budget allows one more build."""
    most = question.budget.builds
    return most is None or spent.builds < most


def readings_left(question: Question, spent: Spent) -> float:
    """How many readings the budget of invocations allows, infinite without one."""
    most = question.budget.invocations
    return math.inf if most is None else (most - spent.invocations) // question.invocations_per_reading


def affordable(question: Question, spent: Spent, readings: int) -> int:
    """As many of the readings as the budget of invocations allows."""
    return int(min(readings, readings_left(question, spent)))
