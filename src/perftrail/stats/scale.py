"""Scale of a metric: how two of its values are compared.

On its scale, differences are of interest: logarithms for ratios, plain values for differences, 0 and 1 for rates. All
sizes and thresholds of a comparison are on that scale.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


LARGEST = 50.0
"""Larger logarithms are not distinguished, so that all ratios stay finite."""


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

    def size(self, effect: float) -> float:
        """Return a ratio or a difference of values as a difference on this scale."""
        if self is Scale.RATIO:
            return math.log(effect) if effect > 0.0 else -math.inf
        return effect

    def change(self, size: float) -> float:
        """Return an absolute difference on this scale as a relative change or a difference of values."""
        if self is Scale.RATE:
            return min(size, 1.0)
        return math.expm1(min(size, LARGEST)) if self is Scale.RATIO else size

    def as_value(self, level: float) -> float:
        """Return a level on this scale as a value of the metric."""
        return math.exp(level) if self is Scale.RATIO else level
