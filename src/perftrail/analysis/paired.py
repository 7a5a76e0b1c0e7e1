"""The ratio of two figures that were taken in turns, with its interval; and the interval of a figure of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.compare import accepted_shifts, left_out, walsh

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its interval; `confidence` is what that reaches, less than was asked for where pairs are few."""

    value: float
    low: float
    high: float
    confidence: float
    pairs: int

    def inverse(self) -> Interval:
        """One over the figure, which must be above zero."""
        return self.mapped(-1.0)

    def times(self, factor: float) -> Interval:
        """The figure times a constant above zero."""
        return Interval(
            value=self.value * factor,
            low=self.low * factor,
            high=self.high * factor,
            confidence=self.confidence,
            pairs=self.pairs,
        )

    def mapped(self, power: float) -> Interval:
        """The figure raised to a power; only for one above zero."""
        ends = sorted((self.low**power, self.high**power))
        return Interval(
            value=self.value**power, low=ends[0], high=ends[1], confidence=self.confidence, pairs=self.pairs
        )


def centre(values: Sequence[float], *, level: float = LEVEL) -> Interval:
    """Estimate the centre of independent values (Hodges and Lehmann 1963) with the signed-rank interval.

    It assumes that they scatter symmetrically. Fewer than six values reach no 95 %: their range is then the
    interval, and `confidence` says what that reaches. Raises `ValueError` without a value.

    >>> centre([1.0, 2.0, 3.0]).confidence
    0.75
    """
    if not values:
        raise ValueError("no values, no interval")
    averages = walsh(np.array(values, dtype=np.float64))
    low, high = accepted_shifts(averages, len(values), level)
    enough = left_out(len(values), level) > 0
    return Interval(
        value=float(np.median(averages)),
        low=low,
        high=high,
        confidence=1.0 - level if enough else 1.0 - 2.0 ** (1 - len(values)),
        pairs=len(values),
    )


def ratio(first: Sequence[float], second: Sequence[float], *, level: float = LEVEL) -> Interval | None:
    """Estimate second/first from values taken in turns; None where no pair has both above zero.

    >>> ratio([1.0, 1.0], [2.0, 2.0]).value
    2.0
    """
    logs = [math.log(b) - math.log(a) for a, b in zip(first, second, strict=True) if a > 0.0 and b > 0.0]
    if not logs:
        return None
    found = centre(logs, level=level)
    return Interval(
        value=math.exp(found.value),
        low=math.exp(found.low),
        high=math.exp(found.high),
        confidence=found.confidence,
        pairs=found.pairs,
    )
