"""A search as the store keeps it, so that it can be replayed in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
