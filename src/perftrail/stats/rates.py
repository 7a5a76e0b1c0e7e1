"""Evidence of paired outcomes 0 and 1: the difference of two rates, with an interval that is valid after any pair."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.comparison import (
    TESTS,
    Bounds,
    Comparison,
    Verdict,
    log_wealth,
    minimum_detectable_change,
)
from perftrail.stats.estimate import Estimate
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.stats.comparison import Rule

    Floats = npt.NDArray[np.float64]

_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.75, 0.95])
"""The bets on a difference of rates: each stakes this share of the most that cannot lose everything."""

_SIGN_STAKES = np.array([1.0, 0.9, 0.75, 0.6, 0.45, 0.3, 0.15])
_SIGN_WEIGHTS = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.06, 0.04])
"""The bets on the sign of a difference, and their shares of the first wealth."""

_STEPS = 12
"""Halvings that determine a bound of a difference of rates, to 0.05 points."""


QUANTILE = 1.96


def compare_rates(first: Sequence[float], second: Sequence[float], rule: Rule) -> Comparison:
    """Compare two subjects by pairs of outcomes 0 and 1, in the order of measurement; less is faster.

    Half of the error is for the interval of the difference, half for bets on the sign of the pairs that differ.
    """
    differences = np.array(second, dtype=np.float64) - np.array(first, dtype=np.float64)
    level, value = rule.level / TESTS, float(differences.mean())
    found = rate_bounds(differences, level / 2.0)
    sign = math.copysign(1.0, value)
    certain = log_wealth(sign * differences, 1.0, np.zeros(1))[0] >= math.log(2.0 / level)
    low = max(found.low, 0.0) if certain and value > 0.0 else found.low
    high = min(found.high, 0.0) if certain and value < 0.0 else found.high
    verdict = Verdict.SAME if found.within(rule.threshold) else Verdict.UNCLEAR
    if certain and verdict is not Verdict.SAME:
        verdict = Verdict.SLOWER if value > 0.0 else Verdict.FASTER
    settled = verdict is Verdict.SAME or max(low, -high) >= rule.threshold
    return Comparison(
        effect=value,
        low=low,
        high=high,
        confidence=1.0 - rule.error,
        level=level,
        pairs=len(differences),
        minimum_detectable=minimum_detectable_change(low, high, level, Scale.RATE),
        verdict=verdict,
        settled=settled or len(differences) >= rule.most,
        scale=Scale.RATE,
    )


def rate_evidence(differences: Floats) -> float:
    """Return the logarithm of the largest wealth of bets that the second of two rates is higher.

    `differences` (n,) are outcomes of pairs, -1, 0 or 1. If the rates are equal, random order decides the sign of those
    that are not 0. Each bet stakes its share of the wealth on it; the largest one, which cannot survive a loss, is for
    builds that always differ.
    """
    signs = differences[differences != 0.0]
    if not len(signs):
        return 0.0
    logs = np.cumsum(np.log(np.maximum(1.0 + _SIGN_STAKES[:, None] * signs, 1e-300)), axis=1)
    wealth = np.logaddexp.reduce(logs + np.log(_SIGN_WEIGHTS)[:, None], axis=0)
    return max(0.0, float(wealth.max()))


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


def rate_estimate(outcomes: Sequence[float]) -> Estimate:
    """Return the rate of the outcome 1 with Wilson's 95 % interval (1927); needs an outcome."""
    count, rate = len(outcomes), sum(outcomes) / len(outcomes)
    square = QUANTILE**2 / count
    centre = (rate + square / 2) / (1 + square)
    half = math.sqrt(rate * (1 - rate) * square + square**2 / 4) / (1 + square)
    return Estimate(value=rate, low=max(0.0, centre - half), high=centre + half, confidence=0.95, count=count)
