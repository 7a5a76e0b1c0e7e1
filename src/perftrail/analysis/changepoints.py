"""Change points of a metric along a history that is already measured, each with its position, effect and certainty.

Candidates are put to a test that one reading cannot decide: a level's likelihood is a normal one or, with the
probability that it is garbage, that of the peak, so it never weighs more than the logarithm of that
probability (Huber 1964). The weakest candidate is dropped until all that are left gain enough. What a point
gains is the logarithm of the likelihood ratio of two levels to one; its p-value is that of a chi-square
variable of one degree of freedom, times the number of splits and of lengths (doubled each) that a stretch
beside one may have.

Assumes that levels scatter independently around a level that stays between points. A ramp is told as a
staircase, and where neighbours resemble each other (drift), points are found that nobody made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.candidates import candidates
from perftrail.analysis.levels import by_columns, levels_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from perftrail.analysis.levels import Levels, Readings, Samples

    Floats = npt.NDArray[np.float64]

FALSE_ALARMS = 0.01
"""How often a series in which nothing changed may show a point at all."""

CREDIBILITY = 0.95
"""The probability of a position's and of an effect's interval."""

REACH = 500
"""So many levels on each side of a point say how surely it is one; more would say nothing new."""

ASTRAY = 0.25
"""How high the density of garbage is at the level beyond a split, as a share of the peak: it lies anywhere."""

_ROUNDS = 4
_MOST_MOVES = 4
_QUANTILE = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A position at which a metric has a new level.

    `position` is the first measured revision of the new level, `previous` the measured one before it: the
    culprit is one of ``previous + 1 .. position``, and of ``earliest .. latest`` with 95 %. `before` and
    `after` are the levels in the metric's own unit, `effect` is after/before with its 95 % interval. `p_value`
    bounds how often a series of this length in which nothing changed shows such a point anywhere.
    """

    position: int
    previous: int
    earliest: int
    latest: int
    before: float
    after: float
    effect: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class _Fit:
    """A level put through some values: where it lies, its standard error, the likelihood's logarithm."""

    level: float
    error: float
    log_likelihood: float


def change_points(samples: Samples, *, false_alarms: float = FALSE_ALARMS) -> tuple[ChangePoint, ...]:
    """Find every change point, in the order of history.

    `samples` are positions in the history, ascending, each with the natural logarithms of the values there:
    any number of them, positions may be missing. `false_alarms` is how often a series without a change may
    show any point. Too little to tell anything gives none.
    """
    return points_of(by_columns(samples), false_alarms=false_alarms)


def points_of(readings: Readings, *, false_alarms: float = FALSE_ALARMS) -> tuple[ChangePoint, ...]:
    """Find every change point of samples by columns, as `change_points` does."""
    levels = levels_of(readings)
    if levels is None:
        return ()
    series = _Series(levels)
    splits = candidates(levels.values)
    splits = series.prune(splits, false_alarms)
    for _ in range(_MOST_MOVES):
        before, splits = splits, series.prune(series.refine(splits), false_alarms)
        if splits == before:
            break
    return tuple(series.points(splits))


class _Series:
    """Levels under test; `splits` are ascending indices at which a new level begins."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._searched = (len(levels) - 1) * math.log2(len(levels))
        self._fits: dict[tuple[int, int], _Fit] = {}

    def prune(self, splits: list[int], false_alarms: float) -> list[int]:
        """Drop the weakest split until each of those left is significant."""
        left = [0, *splits, len(self._levels)]
        gains = [self._gain(*left[at - 1 : at + 2]) for at in range(1, len(left) - 1)]
        while gains and self._p_value(least := min(gains)) > false_alarms:
            at = gains.index(least) + 1
            del left[at], gains[at - 1]
            for near in (at - 1, at):
                if 0 < near < len(left) - 1:
                    gains[near - 1] = self._gain(*left[near - 1 : near + 2])
        return left[1:-1]

    def refine(self, splits: list[int]) -> list[int]:
        """Move each split to where its two levels fit best."""
        bounds = [0, *splits, len(self._levels)]
        for at in range(1, len(bounds) - 1):
            first, split, last = bounds[at - 1 : at + 2]
            for _ in range(2):
                start, posterior = self._posterior(first, split, last)
                split = start + int(np.argmax(posterior))
            bounds[at] = split
        return bounds[1:-1]

    def points(self, splits: list[int]) -> Iterator[ChangePoint]:
        """Say of each split what it did."""
        bounds = [0, *splits, len(self._levels)]
        positions = self._levels.positions.tolist()
        for first, split, last in zip(bounds, bounds[1:], bounds[2:], strict=False):
            start, posterior = self._posterior(first, split, last)
            earliest, latest = _shortest(posterior)
            before, after = self._sides(first, split, last)
            step = after.level - before.level
            error = _QUANTILE * math.hypot(before.error, after.error)
            yield ChangePoint(
                position=positions[split],
                previous=positions[split - 1],
                earliest=positions[start + earliest - 1] + 1,
                latest=positions[start + latest],
                before=math.exp(before.level),
                after=math.exp(after.level),
                effect=math.exp(step),
                low=math.exp(step - error),
                high=math.exp(step + error),
                p_value=self._p_value(self._gain(first, split, last)),
            )

    def _gain(self, first: int, split: int, last: int) -> float:
        """Give the logarithm of the likelihood ratio of two levels to one."""
        before, after = self._sides(first, split, last)
        low, high = max(first, split - REACH), min(last, split + REACH)
        both = _fit(self._levels, low, high, (before.level, after.level))
        return before.log_likelihood + after.log_likelihood - both.log_likelihood

    def _p_value(self, gain: float) -> float:
        """Bound how often chance gains so much anywhere: chi-square's tail, times what was searched."""
        return min(1.0, self._searched * math.erfc(math.sqrt(max(gain, 0.0))))

    def _sides(self, first: int, split: int, last: int) -> tuple[_Fit, _Fit]:
        return self._side(max(first, split - REACH), split), self._side(split, min(last, split + REACH))

    def _side(self, first: int, last: int) -> _Fit:
        known = self._fits.get((first, last))
        if known is None:
            known = self._fits[first, last] = _fit(
                self._levels, first, last, (_median(self._levels.values[first:last]),)
            )
        return known

    def _posterior(self, first: int, split: int, last: int) -> tuple[int, Floats]:
        """Weigh every split between two others, given the levels beside it; shape (splits,) from an index on.

        Every revision is as likely as another, measured or not: a gap weighs as many as it holds.
        """
        before, after = self._sides(first, split, last)
        low, high = max(first, split - REACH), min(last, split + REACH)
        garbage = self._levels.garbage[low:high] * ASTRAY
        away = self._levels.values[low:high] - np.array([[before.level], [after.level]])
        told = _told(away / self._levels.errors[low:high], garbage)
        weights = np.cumsum(told[0] - told[1])[:-1] + np.log(np.diff(self._levels.positions[low:high]))
        posterior = np.exp(weights - weights.max())
        return low + 1, posterior / posterior.sum()


def _median(values: Floats) -> float:
    """Give the median of finite values; NumPy's own looks for others first, which takes longer than the rest."""
    count = len(values)
    ordered = np.sort(values)
    return float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0


def _fit(levels: Levels, first: int, last: int, starts: Sequence[float]) -> _Fit:
    """Put a level through some of the values, from each start; the likeliest is taken."""
    values, errors = levels.values[first:last], levels.errors[first:last]
    bounds, garbage = levels.bounds[first:last], levels.garbage[first:last]
    found, clean, variances = np.array(starts)[:, None], 1.0 - garbage, errors**2
    for _ in range(_ROUNDS):
        inlier = clean * np.exp(-0.5 * ((values - found) / bounds) ** 2)
        weight = inlier / (inlier + garbage) / variances
        found = (weight @ values / weight.sum(axis=1))[:, None]
    told = _told((values - found) / bounds, garbage).sum(axis=1)
    best = int(np.argmax(told))
    return _Fit(
        level=float(found[best, 0]),
        error=1.0 / math.sqrt(float(weight[best].sum())),
        log_likelihood=float(told[best]),
    )


def _told(away: Floats, garbage: Floats) -> Floats:
    """Give the log likelihoods, relative to the peak, of values so many standard errors away from a level."""
    logarithm: Floats = np.log((1.0 - garbage) * np.exp(-0.5 * away**2) + garbage)
    return logarithm


def _shortest(posterior: Floats) -> tuple[int, int]:
    """Give the shortest run around the likeliest split that holds `CREDIBILITY`."""
    low = high = int(np.argmax(posterior))
    held = float(posterior[low])
    while held < CREDIBILITY and (low > 0 or high < len(posterior) - 1):
        below = posterior[low - 1] if low > 0 else -1.0
        above = posterior[high + 1] if high < len(posterior) - 1 else -1.0
        held += float(max(below, above))
        low, high = (low - 1, high) if below >= above else (low, high + 1)
    return low, high
