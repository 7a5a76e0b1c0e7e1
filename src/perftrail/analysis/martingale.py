"""Bets on the sign of differences of randomised pairs: evidence and intervals that hold whenever measuring stops.

If two programs are equal, exchanging their names only changes the sign of a pair's difference d, whatever the machine
did meanwhile. A fair coin decides the order of each pair, so it also decides that sign. Then the wealth

``W(c) = mean_j prod_t (1 + s_j tanh(r_j (d_t - c) / scale))``

of bets that the difference exceeds c is a test martingale: P(W(c) ever reaches 1/level) <= level if the shift is c or
less (Ville 1939). No independence, normality or stationarity is assumed, and analysing after each pair costs nothing.
The shifts c that are never excluded form the interval; for c other than zero it assumes a constant shift in logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

STAKES = np.array([0.99, 0.99, 0.99, 0.99, 0.99, 0.5])
RATES = np.array([0.1, 0.25, 0.5, 1.0, 2.0, 1.0])
"""The bets: each stakes this share of its wealth on ``tanh(rate * difference / scale)``."""

FIRST = 8
"""The scale of the first bets comes from this many differences."""

HALF_NORMAL = 0.4731
"""The mean deviation of a normal variable's absolute value from its median, in standard deviations."""

TINY = 1e-13
"""The smallest scale: differences of logarithms are not more exact."""

CAUTION = 1.0
"""By how many standard errors the estimated correlation is raised; that of n differences is about 1/sqrt(n)."""

SETTLING = 2
"""From this many differences more than a verdict needs on, their correlation counts."""

FAR = 3.0
"""Bounds this many times as far from the centre also hold for correlated differences."""

FARTHEST = 10
"""The longest lag of differences whose correlation is estimated."""

MOST_CORRELATED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Lowest and highest shift that are not excluded, in logarithms; infinite where nothing is excluded yet."""

    low: float
    high: float

    def within(self, margin: float) -> bool:
        """Whether every shift that is left is smaller than a margin."""
        return -margin < self.low and self.high < margin


def log_wealth(differences: Floats, scale: float | Floats, shifts: Floats) -> Floats:
    """Return the logarithm of the largest wealth so far of bets that the differences exceed each shift.

    `differences` (n,), `scale` above zero, for all differences or (n, 1), `shifts` (C,); returns (C,), zero where the
    bets never gained.
    """
    surplus = (differences - shifts[:, None]) / np.reshape(scale, -1)
    logs = np.cumsum(np.log1p(STAKES[:, None, None] * np.tanh(RATES[:, None, None] * surplus)), axis=2)
    top = logs.max(axis=0)
    wealth = top + np.log(np.exp(logs - top).mean(axis=0))
    largest: Floats = wealth.max(axis=1, initial=0.0)
    return largest


def current_log_wealth(differences: Floats, scale: float | Floats) -> float:
    """Return the logarithm of the present wealth of bets that the differences exceed zero."""
    logs = np.log1p(STAKES * np.tanh(RATES * (differences[:, None] / scale))).sum(axis=0)
    return float(np.logaddexp.reduce(logs)) - math.log(len(STAKES))


def bounds(differences: Floats, scale: float | Floats, level: float) -> Bounds:
    """Return the shifts not excluded by bets on either side, each side with an error of at most `level`."""
    return Bounds(
        low=_lowest(differences, scale, math.log(1 / level)),
        high=-_lowest(-differences, scale, math.log(1 / level)),
    )


def careful_bounds(differences: Floats, level: float) -> Bounds:
    """Return bounds with a scale from the differences themselves, wider where neighbouring differences are alike.

    The coin rules out what the machine does. What a build does to itself, such as its pages in the cache, it does not:
    such differences are correlated in spite of the coin. Then the evidence counts as that of fewer differences (see
    `inflation`), unless zero is `FAR` times as far away as their uncertainty. This only ever widens the bounds.
    Simulated with autoregressive differences of correlation 0.3 and 150 pairs, the error is at most twice the level.
    """
    if len(differences) == 0:
        return Bounds(low=-math.inf, high=math.inf)
    return Bounds(low=_carefully_lowest(differences, level), high=-_carefully_lowest(-differences, level))


def _carefully_lowest(differences: Floats, level: float) -> float:
    scale, wanted, more = scales(differences), math.log(1 / level), inflation(differences, level)
    if more == 1.0:
        return _lowest(differences, scale, wanted)
    middle = centre(differences)
    far = middle - FAR * math.sqrt(more) * (middle - _lowest(differences, scale, wanted))
    return max(_lowest(differences, scale, wanted * more), far)


def excludes_zero(differences: Floats, level: float) -> bool:
    """Whether `careful_bounds` at this level do not contain zero."""
    scale, wanted, more = scales(differences), math.log(1 / level), inflation(differences, level)
    for sign in (1.0, -1.0):
        signed = sign * differences
        middle = centre(signed)
        shifts = np.array([0.0, middle * (1.0 - 1.0 / (FAR * math.sqrt(more)))])
        careful, far = log_wealth(signed, scale, shifts)
        if careful >= wanted * more or (more > 1.0 and middle > 0.0 and far >= wanted):
            return True
    return False


def scales(differences: Floats) -> Floats:
    """Return the scale of each bet, (n, 1): from absolute values only, which say nothing of the signs.

    The first bets share the scale of the first `FIRST` differences; each later one uses differences before it. So no
    bet depends on a sign that is not known yet.
    """
    sizes = np.abs(differences)
    found = np.empty((len(sizes), 1))
    first, last = 0, 2 * FIRST
    while first < len(sizes):
        known = sizes[: max(first, FIRST)]
        spread = float(np.abs(known - np.median(known)).mean()) / HALF_NORMAL
        found[first:last] = max(spread, TINY)
        first, last = last, 2 * last
    return found


def inflation(differences: Floats, level: float) -> float:
    """Return how many times as large the variance of the mean is as that of independent differences; at least 1.

    It is the larger of an autoregressive model's, whose correlation is taken a standard error too large, and the sum of
    the correlations of longer lags up to the first below zero. What exceeds 1 counts the more the more differences
    there are: as few as a verdict at this level needs show no correlation.
    """
    count = len(differences)
    centred = differences - np.median(differences)
    squares = float(centred @ centred)
    if count < 3 or squares < count * TINY**2:
        return 1.0
    found = [
        float(centred[lag:] @ centred[:-lag]) / squares + 1 / count
        for lag in range(1, 1 + max(1, min(count // 4, FARTHEST)))
    ]
    first = min(max(found[0] + CAUTION / math.sqrt(count), 0.0), MOST_CORRELATED)
    positive = next((at for at, each in enumerate(found) if each <= 0.0), len(found))
    summed = sum(each * (1 - (at + 1) / count) for at, each in enumerate(found[:positive]))
    known = math.sqrt(max(0.0, 1 - (needed(level) + SETTLING) / count))
    return 1 + known * (max((1 + first) / (1 - first), 1 + 2 * summed) - 1)


@lru_cache(maxsize=256)
def needed(level: float) -> int:
    """Return the fewest differences that can exclude a shift with an error of at most `level`.

    >>> needed(0.005), needed(0.0001)
    (8, 14)
    """
    count = 1
    while float(((1 + STAKES) ** count).mean()) < 1 / level:
        count += 1
    return count


def centre(differences: Floats) -> float:
    """Return the median of the averages of all pairs of differences, each with itself (Hodges and Lehmann 1963)."""
    rows, columns = np.triu_indices(len(differences))
    return float(np.median((differences[rows] + differences[columns]) / 2))


def _lowest(differences: Floats, scale: float | Floats, wanted: float) -> float:
    """Return the largest shift that bets of so much log-wealth exceed, minus infinity where there is none."""
    if len(differences) == 0:
        return -math.inf
    high = float(differences.max())
    low = float(differences.min()) - 50.0 * float(np.max(scale))
    if log_wealth(differences, scale, np.array([low]))[0] < wanted:
        return -math.inf
    for _ in range(6):
        shifts = np.linspace(low, high, 17)
        shown = log_wealth(differences, scale, shifts) >= wanted
        last = int(np.nonzero(shown)[0][-1])
        if last == len(shifts) - 1:
            return high
        low, high = float(shifts[last]), float(shifts[last + 1])
    return low
