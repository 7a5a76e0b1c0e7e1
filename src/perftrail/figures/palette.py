"""One colour, one shape and one dash for each subject, the same in every figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perftrail.figures.frame import Spec

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#808590")
"""Okabe and Ito's colours, told apart by colour-blind readers; those left out vanish on white or on black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))

DIVERGING = ("#0072B2", "#f4f4f2", "#D55E00")
"""Less, as much, more."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The names that are drawn, in their order. What has no name of its own is drawn like the first."""

    names: tuple[str, ...]

    def colour(self, name: str) -> str:
        """The colour of a name."""
        return COLOURS[self._number(name) % len(COLOURS)]

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Give each of some names once, in the palette's order."""
        return sorted(set(names), key=lambda name: (self._number(name), name))

    def encoding(self, shown: Sequence[str], *, field: str = "subject") -> Spec:
        """Give the colour channel for some of the names; a legend only where there is something to tell apart."""
        return {
            "field": field,
            "type": "nominal",
            "title": None,
            "scale": {"domain": list(shown), "range": [self.colour(name) for name in shown]},
            "legend": {} if len(shown) > 1 else None,
        }

    def shapes(self, shown: Sequence[str]) -> Spec:
        """Give the shape channel, which tells names apart where colours cannot: also those that share a colour."""
        numbers = [self._number(name) for name in shown]
        return self._second(shown, [SHAPES[(at + at // len(COLOURS)) % len(SHAPES)] for at in numbers])

    def dashes(self, shown: Sequence[str]) -> Spec:
        """Give the dash channel of lines."""
        dashes = [list(DASHES[self._number(name) % len(DASHES)]) for name in shown]
        return self._second(shown, [*dashes])

    def _second(self, shown: Sequence[str], chosen: list[object]) -> Spec:
        channel: Spec = {
            "field": "subject",
            "type": "nominal",
            "title": None,
            "legend": {} if len(shown) > 1 else None,
        }
        channel["scale"] = {"domain": list(shown), "range": chosen}  # type: ignore[dict-item] # names and lists
        return channel

    def _number(self, name: str) -> int:
        return self.names.index(name) if name in self.names else 0
