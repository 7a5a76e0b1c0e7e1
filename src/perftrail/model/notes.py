"""What people say of a regression, and how far a store is: for who watches a study while it is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
