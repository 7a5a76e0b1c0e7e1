"""What a search asks for: something to measure, or nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.search.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Take so many readings of a position, building it first where that has not been done.

    `redraw`: draw a new layout for each of them (tell so with `Readings.redraw`). `reference`: they are taken
    to know the machine's level now, not for the position's own sake.
    """

    position: int
    readings: int
    redraw: bool = False
    reference: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Nothing more is to be measured."""

    answer: Answer


Action = Measure | Settled
