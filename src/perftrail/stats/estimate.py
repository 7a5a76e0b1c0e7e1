"""Median of a sample with a distribution-free interval, and the stopping rule that uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The median of a sample, and an interval for the median of its distribution.

    `confidence` is the interval's actual confidence: fewer than six values cannot reach 0.95.
    """

    value: float
    low: float
    high: float
    confidence: float
    count: int

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the value; infinite if the value is zero and the width is not."""
        width = self.high - self.low
        if width == 0.0:
            return 0.0
        return math.inf if self.value == 0.0 else abs(width / 2.0 / self.value)

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate times a positive factor."""
        return replace(self, value=self.value * factor, low=self.low * factor, high=self.high * factor)


def estimate(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """Estimate the median with a distribution-free interval between order statistics.

    The interval is Hettmansperger and Sheather's interpolation (Statistics & Probability Letters 4, 1986) between
    neighbouring sign-test intervals. It assumes independent values from one continuous distribution of any shape.
    Raises `ValueError` for an empty sample.

    >>> print(estimate([5.0, 1.0, 3.0, 2.0, 4.0]))
    Estimate(value=3.0, low=1.0, high=5.0, confidence=0.9375, count=5)
    """
    if not values:
        raise ValueError("an estimate needs at least one value")
    ordered = sorted(values)
    count = len(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0
    depth = _deepest(count, confidence)
    if depth == 0:
        reached = _coverage(count, 1) if count > 1 else 0.0
        return Estimate(value=middle, low=ordered[0], high=ordered[-1], confidence=reached, count=count)
    outer, inner = _coverage(count, depth), _coverage(count, depth + 1)
    share = (outer - confidence) / (outer - inner)
    weight = (count - depth) * share / (depth + (count - 2 * depth) * share)
    low = _between(ordered[depth - 1], ordered[depth], weight)
    high = _between(ordered[count - depth], ordered[count - depth - 1], weight)
    return Estimate(value=middle, low=low, high=high, confidence=confidence, count=count)


def _between(outer: float, inner: float, weight: float) -> float:
    """Return the weighted mean of two values. Rounding does not move it beyond either."""
    value = (1.0 - weight) * outer + weight * inner
    return min(max(value, min(outer, inner)), max(outer, inner))


@cache
def _deepest(count: int, confidence: float) -> int:
    """Return the largest d for which the d-th smallest and largest values reach the confidence."""
    depth = 0
    while depth + 1 <= count // 2 and _coverage(count, depth + 1) >= confidence:
        depth += 1
    return depth


@cache
def _coverage(count: int, depth: int) -> float:
    """Return P(the median is between the depth-th smallest and largest of count values), by the sign test."""
    if 2 * depth > count:
        return 0.0
    log_half = -count * math.log(2.0)
    tail = math.fsum(
        math.exp(math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + log_half)
        for k in range(depth)
    )
    return 1.0 - 2.0 * tail


def enough(values: Sequence[float], *, least: int, most: int, precision: float) -> bool:
    """Return whether a sample is complete: at `most` values, or from `least` on with a narrow interval.

    Narrow is a half width of at most `precision` times the median. This only decides how long to measure. No verdict
    uses it, so that checking after each value only makes the interval slightly too narrow.
    """
    if len(values) >= most:
        return True
    if len(values) < least:
        return False
    return estimate(values).relative_half_width <= precision
