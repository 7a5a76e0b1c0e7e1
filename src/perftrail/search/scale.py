"""Scale of a metric: how two of its values are compared, and the evidence of paired 0/1 outcomes.

A search compares values on one scale, where differences are of interest: logarithms for ratios, plain values for
differences, 0 and 1 for rates. All sizes and thresholds of its rounds are on that scale.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from perftrail.stats.comparison import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

Floats = npt.NDArray[np.float64]

LARGEST = 50.0
"""Larger logarithms are not distinguished, so that all ratios stay finite."""

_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95])
"""The bets on a difference of rates: each stakes this share of the most that cannot lose everything."""

_STEPS = 12
"""Halvings that determine a bound of a difference of rates, to 0.05 points."""


class Scale(StrEnum):
    """How the values of a metric are compared."""

    RATIO = "ratio"
    """By their ratio: values above zero."""
    DIFFERENCE = "difference"
    """By their difference, in the metric's unit: values may be zero or negative."""
    RATE = "rate"
    """By the difference of the shares of runs with outcome 1, where each outcome is 0 or 1."""

    def allows(self, value: float) -> bool:
        """Whether a value of the metric can be compared on this scale."""
        if self is Scale.RATIO:
            return value > 0.0
        return self is Scale.DIFFERENCE or value in (0.0, 1.0)

    def level(self, value: float) -> float:
        """Return a value of the metric as a level on this scale. Raises `ValueError` if it has none."""
        if not self.allows(value):
            raise ValueError(f"{value!r} has no place on the scale of a {self}")
        return math.log(value) if self is Scale.RATIO else value

    def suited(self, values: Iterable[float]) -> Scale:
        """Return this scale, or the first of ratio, rate and difference that all further values allow as well.

        >>> Scale.RATIO.suited([2.0, 1.0]).value, Scale.RATIO.suited([0.0, 1.0]).value
        ('ratio', 'rate')
        >>> Scale.RATE.suited([5.0]).value, Scale.RATIO.suited([-0.5]).value
        ('difference', 'difference')
        """
        values = list(values)
        later = (Scale.RATIO, Scale.RATE, Scale.DIFFERENCE)
        return next(each for each in later[later.index(self) :] if all(map(each.allows, values)))

    def on_scale(self, threshold: float) -> float:
        """Return a threshold on this scale: a relative change for ratios, else a difference."""
        return math.log1p(threshold) if self is Scale.RATIO else threshold

    def effect(self, size: float) -> float:
        """Return a difference on this scale as a ratio or a difference of values."""
        return math.exp(min(max(size, -LARGEST), LARGEST)) if self is Scale.RATIO else size

    def change(self, size: float) -> float:
        """Return an absolute difference on this scale as a relative change or a difference of values."""
        if self is Scale.RATE:
            return min(size, 1.0)
        return math.expm1(min(size, LARGEST)) if self is Scale.RATIO else size

    def as_value(self, level: float) -> float:
        """Return a level on this scale as a value of the metric."""
        return math.exp(level) if self is Scale.RATIO else level


def rate_bounds(differences: Floats, level: float) -> Bounds:
    """Return the differences of two rates that bets in both directions do not exclude, valid after any round.

    `differences` (n,) are outcomes of pairs, -1, 0 or 1, in their order. The wealth of bets
    ``prod_t (1 + s (d_t - c))`` on a mean above c is a supermartingale if the mean is at most c (Waudby-Smith and
    Ramdas 2024). Each bound has an error of at most `level`.
    """
    return Bounds(low=_lowest_rate(differences, level), high=-_lowest_rate(-differences, level))


def rate_error(differences: Floats) -> float:
    """Return the standard error of the mean of paired 0/1 outcomes, with one more pair of each sign."""
    count = len(differences)
    if not count:
        return math.inf
    mean = float(differences.sum()) / (count + 2)
    square = (float(np.abs(differences).sum()) + 1.0) / (count + 2)
    return math.sqrt(max(square - mean**2, 0.0) / count)


def _lowest_rate(differences: Floats, level: float) -> float:
    """Return the largest mean that the bets exclude; -1 if they exclude none."""
    counts = [np.cumsum(differences == each) for each in (1.0, 0.0, -1.0)]
    low, high = -1.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        stakes = _SHARES[:, None] / (1.0 + middle)
        gains = (1.0 - middle, -middle, -1.0 - middle)
        logs = sum(count * np.log1p(stakes * gain) for count, gain in zip(counts, gains, strict=True))
        wealth = np.logaddexp.reduce(np.asarray(logs), axis=0) - math.log(len(_SHARES))
        if float(wealth.max(initial=0.0)) >= math.log(1 / level):
            low = middle
        else:
            high = middle
    return low
