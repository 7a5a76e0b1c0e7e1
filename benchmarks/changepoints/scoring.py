"""How well reported change points match the true ones: precision, recall and F1 within a margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The numbers of true, reported and matched points of one or more series."""

    true: int = 0
    reported: int = 0
    matched: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(
            true=self.true + other.true,
            reported=self.reported + other.reported,
            matched=self.matched + other.matched,
        )

    @property
    def precision(self) -> float:
        """The share of reported points that are true; 1 when none was reported."""
        return self.matched / self.reported if self.reported else 1.0

    @property
    def recall(self) -> float:
        """The share of true points that were reported; 1 when there are none."""
        return self.matched / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.matched / (self.true + self.reported) if self.true + self.reported else 1.0


def score(true: Sequence[int], reported: Sequence[int], *, margin: int) -> Score:
    """Match each true point with at most one reported point that is at most `margin` away.

    Both are in ascending order. Each true point gets the first one left: with equal margins no matching has more pairs.

    >>> score([10, 50], [8, 12, 90], margin=5)
    Score(true=2, reported=3, matched=1)
    """
    left = list(reported)
    matched = 0
    for point in true:
        while left and left[0] < point - margin:
            left.pop(0)
        if left and left[0] <= point + margin:
            left.pop(0)
            matched += 1
    return Score(true=len(true), reported=len(reported), matched=matched)
