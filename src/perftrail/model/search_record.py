"""A search as the store keeps it, so that it can be replayed in words.

What people say of a regression, and how far a store is: for who watches a study while it is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Plain data, as it goes into a JSON column and comes out of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """One search: `key` is the content of its question, `question` what it asked, `answer` once settled."""

    key: str
    machine: str
    question: Mapping[str, Json]
    started: str = ""
    answer: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of a search: what was asked for, what came of it, what was believed then, and in words."""

    number: int
    action: Mapping[str, Json]
    news: Mapping[str, Json]
    belief: Mapping[str, Json]
    words: str


Status = Literal["new", "acknowledged", "fixed"]

STATUSES: tuple[Status, ...] = get_args(Status)
"""What becomes of a regression, in the order in which it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionNote:
    """What a person said of a regression: its `status` from then on, a text and who wrote it. Hostile texts."""

    regression: str
    status: Status
    text: str
    author: str
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a store is: numbers that only grow, one of which differs once anything was added."""

    invocations: int
    builds: int
    searches: int
    answers: int
    steps: int
    notes: int
