"""Ranks from pairwise comparisons: each rank is a range, as wide as the comparisons require.

If all stated orders are true together with some probability, every range contains the true rank with that probability
(Al Mohamad, Goeman and van Zwet 2022, "Simultaneous confidence intervals for ranks", Biometrics 78:238). The caller
compares all pairs with one family-wise error rate. Pairs without a verdict only widen the ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True, slots=True, order=True)
class RankRange:
    """The ranks that the comparisons do not exclude; 1 is the best.

    >>> str(RankRange(1, 1)), str(RankRange(2, 3))
    ('1', '2–3')
    """

    first: int
    last: int

    @property
    def is_certain(self) -> bool:
        """Whether one rank remains."""
        return self.first == self.last

    def __str__(self) -> str:
        """Return the rank, or the first and the last of the range."""
        return str(self.first) if self.is_certain else f"{self.first}–{self.last}"


def rank_ranges(count: int, orders: Collection[tuple[int, int]]) -> tuple[RankRange, ...]:
    """Return the range of the rank of each of `count` subjects; each order is (better, worse), by number.

    A rank is at least 1 + the number of subjects that are surely better, and at most `count` less the number of those
    that are surely worse. Raises `ValueError` if two orders contradict each other, or for an unknown subject.

    >>> [str(each) for each in rank_ranges(3, {(0, 1), (0, 2)})]
    ['1', '2–3', '2–3']
    """
    better, worse = [0] * count, [0] * count
    for first, second in set(orders):
        if first == second or (second, first) in orders or not (0 <= first < count and 0 <= second < count):
            raise ValueError(f"not an order of {count} subjects: {first} before {second}")
        worse[first] += 1
        better[second] += 1
    return tuple(RankRange(1 + above, count - below) for above, below in zip(better, worse, strict=True))
