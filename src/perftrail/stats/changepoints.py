"""Change points of a metric along a measured history: position, effect, size and significance.

The levels and their noise are in `series_noise`.

**Detection.** Kernel change point detection in overlapping blocks proposes candidates. Each noise model is weighted
by its likelihood, with its best number of steps. A test then drops the weakest candidate until all others are
significant. Its statistic is the log likelihood ratio of two levels to one, divided by the noise's inflation. Its
p-value is the tail of chi-square with one degree of freedom, times the number of tests. These are the tested splits
times the tested lengths, which double. A size is a step divided by the noise of one level. It assumes one level
between two points, and one kind of noise along the whole history. A ramp is reported as a staircase.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.series_noise import (
    FEW,
    FEWEST,
    INDEPENDENT,
    Correlation,
    Floats,
    Levels,
    Noise,
    SampleColumns,
    Samples,
    by_columns,
    levels_of,
    log_likelihoods,
    noise_likelihoods,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


FALSE_ALARMS = 0.01
"""Probability that a series without a change shows any point."""

CREDIBILITY = 0.95
"""Probability of the intervals for position, effect and size."""

ALERT_SIZE = 1.25
"""A step is worth an alert if its lower limit exceeds this many standard deviations of one level.

People who labelled changes in 466 real series of performance tests did not label smaller ones.
"""

ALERT_ODD_BUILDS = 0.03
"""An alert must stay significant if this share of builds is unrelated to its revision.

Series of fewer than `FEWEST` levels are exempt: they are usually releases, and each may have its own level.
"""

BURST = 10
"""Longest burst, in levels. A shift that returns is not an alert if both neighbouring ranges are twice as long."""

LAGS = range(3, 9)
"""Distances, in levels, at which differences also estimate the noise: neighbours alone miss slow drift."""

REACH = 500
"""A point is tested with at most this many levels on each side. More would not change the result."""

CONTAMINATION_DENSITY = 0.25
"""Density of arbitrary values as a share of the peak when a split is located; in `log_likelihoods` it is 1."""

SHORT = 40
"""In series of at most this length, every gap is a candidate."""

BLOCK = 128
STEP = 96
"""Levels in a block of the detector, and between the starts of two blocks."""

BLOCKS_AT_ONCE = 16
"""Number of blocks that the detector partitions together, in a few megabytes."""

COARSER = 8
"""Number of levels that are combined into one of the next coarser series."""

GAMMA = 0.125
"""1 / (2 w^2), for a kernel that is two standard errors wide (docs/explanation/change-points.md)."""

PENALTY = 2.0
"""The detector's penalty for each candidate. It is low, because a test follows."""

NOISE_BLOCK = 500
NOISE_BLOCKS = 4
"""A long series' noise is estimated from this many evenly spread blocks, of this many levels."""

SEARCH_SHARE = 0.5
"""Share of a search's prior near change points. The rest is uniform, so that no revision is excluded."""

SEARCH_FALSE_ALARMS = 0.05
"""False alarms of a search's prior: it also uses points that are not significant enough to show."""

_FIT_ROUNDS = 4
_MOST_REFINEMENTS = 4
_QUANTILE = 1.96
"""Of the normal distribution, for 95 % intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A position at which a metric has a new level.

    `position` is the first measured revision of the new level, `previous` the measured one before it. The culprit
    is in ``previous + 1 .. position``, and in ``earliest .. latest`` with 95 % probability. `before` and `after` are
    the levels in the metric's unit. `effect` is after/before, `low` and `high` are its 95 % interval. `p_value`
    bounds the probability that a series of this length without a change shows such a point anywhere.

    `size` is the absolute step over the standard deviation of one revision's level, with its 95 % interval.
    `alert`: the size is clearly above `ALERT_SIZE`, and several builds show the change.
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
    size: float
    size_low: float
    size_high: float
    alert: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The change points of a series, in the order of the history, and the correlation of its noise.

    `correlation` is None for series that are too short, and for series without a point even if neighbours
    are independent.
    """

    points: tuple[ChangePoint, ...] = ()
    correlation: Correlation | None = None


@dataclass(frozen=True, slots=True)
class _Fit:
    """A level fitted to some values, its standard error, and its log likelihood."""

    level: float
    error: float
    log_likelihood: float


def change_points(samples: Samples, *, false_alarms: float = FALSE_ALARMS) -> tuple[ChangePoint, ...]:
    """Return every change point, in the order of the history.

    `samples` are ascending positions, each with the natural logarithms of any number of values. Positions may
    be missing. `false_alarms` is the probability that a series without a change shows any point. A series that is
    too short has no points.
    """
    return changes_of(by_columns(samples), false_alarms=false_alarms).points


def changes_of(samples: SampleColumns, *, false_alarms: float = FALSE_ALARMS) -> Changes:
    """Return every change point of samples in columns, and the correlation of neighbours, like `change_points`."""
    levels = levels_of(samples)
    if levels is None:
        return Changes()
    splits = _Series(levels).prune(_candidates(levels.values), false_alarms)
    if not splits:
        return Changes()  # correlated noise would only drop more splits
    noise = INDEPENDENT if len(levels) < FEWEST else _noise(levels, splits, false_alarms)
    series = _Series(levels, noise)
    splits = series.prune(splits, false_alarms)
    for _ in range(_MOST_REFINEMENTS):
        before, splits = splits, series.prune(series.refine(splits), false_alarms)
        if splits == before:
            break
    return Changes(
        points=tuple(series.points(splits)),
        correlation=None if noise is INDEPENDENT else noise.correlation,
    )


def search_weights(samples: Samples, revisions: int) -> tuple[float, ...] | None:
    """Return a prior over culprits from earlier measurements; `None` if they show no change.

    `samples` have ascending positions in `0..revisions-1`. The result is `revisions` positive weights whose sum is
    one. Half of the weight is uniform. The other half is shared equally by the change points: uniform within the
    interval of the position, and falling by a factor e for each interval width beyond it.

    The weights only guide a search. It may use the same samples again, so its own evidence must decide.

    >>> search_weights([(0, [0.0, 0.01, 0.0, 0.02, 0.01]), (9, [0.01, 0.0, 0.02, 0.01, 0.0])], 10) is None
    True
    """
    points = change_points(samples, false_alarms=SEARCH_FALSE_ALARMS)
    if not points:
        return None
    positions = np.arange(revisions)
    weights = np.full(revisions, (1.0 - SEARCH_SHARE) / revisions)
    for point in points:
        outside = np.maximum(0, np.maximum(point.earliest - positions, positions - point.latest))
        near = np.exp(-outside / (point.latest - point.earliest + 1))
        weights += SEARCH_SHARE / len(points) * near / near.sum()
    return tuple(weights.tolist())


def _noise(levels: Levels, splits: Sequence[int], false_alarms: float) -> Noise:
    """Weight the noise models, each with the steps that fit the series best under it."""
    firsts = range(0, max(1, len(levels) - NOISE_BLOCK // 2), NOISE_BLOCK)
    cost = _least_gain(len(levels), false_alarms)
    found = []
    for first in firsts[:: math.ceil(len(firsts) / NOISE_BLOCKS)]:
        part = levels.part(first, first + NOISE_BLOCK)
        inside = [split - first for split in splits if 0 < split - first < len(part)]
        found.append(_Series(part).noise_likelihoods(inside, cost))
    return Noise.of(np.sum(found, axis=0))


def _test_count(levels: float) -> float:
    """Return the number of tested splits, times the tested lengths of the ranges on both sides."""
    return (levels - 1) * math.log2(levels)


def _least_gain(levels: int, false_alarms: float) -> float:
    """Return the smallest significant gain."""
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2.0
        enough = _test_count(levels) * math.erfc(math.sqrt(middle)) <= false_alarms
        low, high = (low, middle) if enough else (middle, high)
    return high


def _candidates(values: Floats) -> list[int]:
    """Return the indices, ascending, at which a new level may begin.

    Kernel change point detection finds them in overlapping blocks, in the series and in coarser ones. Its kernel is
    bounded, so that an outlier counts as one level, however large it is. Blocks make the time linear. Coarser series
    show small steps between ranges that are longer than a block.
    """
    if len(values) <= SHORT:
        return list(range(1, len(values)))
    edges = range(1, 4)
    found = {*edges, *(len(values) - edge for edge in edges)}
    width = 1
    while len(values) >= 16:
        found.update(width * split for split in _in_blocks(values))
        usable = len(values) // COARSER * COARSER
        values = np.median(values[:usable].reshape(-1, COARSER), axis=1)
        width *= COARSER
    return sorted(found)


def _in_blocks(values: Floats) -> set[int]:
    scaled = values / (spread(np.diff(values)) / np.sqrt(2.0))
    firsts = range(0, max(1, len(values) - BLOCK + STEP), STEP)
    whole = [first for first in firsts if first + BLOCK <= len(values)]
    found: set[int] = set()
    for at in range(0, len(whole), BLOCKS_AT_ONCE):
        starts = whole[at : at + BLOCKS_AT_ONCE]
        found.update(likely_splits(np.array([scaled[first : first + BLOCK] for first in starts]), starts))
    for first in firsts[len(whole) :]:
        if len(values) - first >= 4:
            found.update(likely_splits(scaled[None, first:], [first]))
    return found


def likely_splits(blocks: Floats, firsts: Sequence[int]) -> Iterator[int]:
    """Yield the splits of each block's best partition: kernel change point detection (Arlot et al., JMLR 2019).

    `blocks` has one block in each row, and `firsts` the index of its first level. A part has at least two levels. It
    costs `PENALTY` and the squared distance of its levels from their mean in the space of the Gaussian kernel.
    """
    number, length = blocks.shape
    sums = np.zeros((number, length + 1, length + 1))
    distances = blocks[:, :, None] - blocks[:, None, :]
    sums[:, 1:, 1:] = np.exp(-GAMMA * distances**2).cumsum(axis=1).cumsum(axis=2)
    squares = np.diagonal(sums, axis1=1, axis2=2)
    costs = np.zeros((number, length + 1))
    costs[:, 1] = np.inf
    starts = np.zeros((number, length + 1), dtype=np.intp)
    rows = np.arange(number)
    for end in range(2, length + 1):
        lengths = np.arange(end, 1, -1)
        likeness = squares[:, end, None] - 2.0 * sums[:, end, : end - 1] + squares[:, : end - 1]
        found = costs[:, : end - 1] + lengths - likeness / lengths + PENALTY
        starts[:, end] = found.argmin(axis=1)
        costs[:, end] = found[rows, starts[:, end]]
    for row, first in enumerate(firsts):
        split = int(starts[row, length])
        while split:
            yield first + split
            split = int(starts[row, split])


class _Series:
    """Levels under test. `splits` are ascending indices at which a new level begins."""

    def __init__(self, levels: Levels, noise: Noise = INDEPENDENT) -> None:
        self._plain = levels
        self._levels = levels if noise is INDEPENDENT else levels.noisier(noise.scale)
        self._noise = noise
        # Correlated levels count as fewer independent ones, so that fewer splits can gain by chance.
        self._test_count = _test_count(max(2.0, len(levels) / noise.inflation(REACH, REACH)))
        self._fits: dict[tuple[int, int], _Fit] = {}

    def prune(self, splits: Sequence[int], false_alarms: float) -> list[int]:
        """Drop the weakest split until all remaining splits are significant."""
        for left, least in self._dropping(splits):
            if self._p_value(least) <= false_alarms:
                return left
        return []

    def noise_likelihoods(self, splits: Sequence[int], cost: float) -> Floats:
        """Return each noise model's log likelihood with its best number of steps, each with a penalty of `cost`."""
        best, number = np.array([-np.inf]), len(splits)
        for left, _ in self._dropping(splits):
            if len(left) > number:
                continue
            number = len(left) - 1 - len(left) // 5
            residuals = self._residuals(left) / self._levels.errors
            found = noise_likelihoods(residuals, self._levels.contamination) - cost * len(left)
            best = np.maximum(best, found)
        return best

    def refine(self, splits: list[int]) -> list[int]:
        """Move each split to its likeliest index, given the levels on both sides."""
        bounds = [0, *splits, len(self._levels)]
        for at in range(1, len(bounds) - 1):
            first, split, last = bounds[at - 1 : at + 2]
            for _ in range(2):
                start, posterior = self._posterior(first, split, last)
                split = start + int(np.argmax(posterior))
            bounds[at] = split
        return bounds[1:-1]

    def points(self, splits: list[int]) -> Iterator[ChangePoint]:
        """Describe each split as a `ChangePoint`."""
        bounds = [0, *splits, len(self._levels)]
        positions = self._levels.positions.tolist()
        noise = self._level_noise(splits)
        odd_builds = ALERT_ODD_BUILDS if len(self._levels) >= FEWEST else 0.0
        more_contamination = replace(
            self._plain, contamination=np.minimum(0.5, self._plain.contamination + odd_builds)
        )
        with_odd_builds = _Series(more_contamination, self._noise)
        bursts = self._bursts(bounds, ALERT_SIZE * noise)
        for first, split, last in zip(bounds, bounds[1:], bounds[2:], strict=False):
            start, posterior = self._posterior(first, split, last)
            earliest, latest = _shortest(posterior)
            before, after = self._sides(first, split, last)
            step = after.level - before.level
            error = _QUANTILE * math.hypot(before.error, after.error)
            error *= math.sqrt(self._inflation(first, split, last))
            least = (abs(step) - error) / noise
            odd_p_value = with_odd_builds._p_value(with_odd_builds._gain(first, split, last))
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
                size=abs(step) / noise,
                size_low=max(0.0, least),
                size_high=(abs(step) + error) / noise,
                alert=least > ALERT_SIZE and odd_p_value <= FALSE_ALARMS and split not in bursts,
            )

    def _dropping(self, splits: Sequence[int]) -> Iterator[tuple[list[int], float]]:
        """Drop the weakest split repeatedly; yield the remaining splits with their smallest gain."""
        left = [0, *splits, len(self._levels)]
        gains = [self._gain(*left[at - 1 : at + 2]) for at in range(1, len(left) - 1)]
        while gains:
            least = min(gains)
            yield left[1:-1], least
            at = gains.index(least) + 1
            del left[at], gains[at - 1]
            for near in (at - 1, at):
                if 0 < near < len(left) - 1:
                    gains[near - 1] = self._gain(*left[near - 1 : near + 2])
        yield [], math.inf

    def _residuals(self, splits: Sequence[int]) -> Floats:
        bounds = [0, *splits, len(self._levels)]
        levels = [self._side(*ends).level for ends in pairwise(bounds)]
        found: Floats = self._levels.values - np.repeat(levels, np.diff(bounds))
        return found

    def _level_noise(self, splits: Sequence[int]) -> float:
        """Return the standard deviation of one level: the larger estimate of neighbours and of distant levels."""
        inside = np.repeat(np.arange(len(splits) + 1), np.diff([0, *splits, len(self._levels)]))
        values = self._levels.values
        distant = [
            (values[lag:] - values[:-lag])[inside[lag:] == inside[:-lag]] for lag in LAGS if lag < len(values)
        ]
        differences = np.concatenate(distant) if distant else np.empty(0)
        wide = spread(differences) / math.sqrt(2.0) if len(differences) >= FEW else 0.0
        return max(wide, float(np.median(self._plain.errors)))

    def _bursts(self, bounds: Sequence[int], alike: float) -> set[int]:
        """Return the splits at both ends of short ranges after which the earlier level returns."""
        found: set[int] = set()
        for before, first, last, after in zip(bounds, bounds[1:], bounds[2:], bounds[3:], strict=False):
            count = last - first
            if count <= BURST and 2 * count <= min(first - before, after - last):
                old = self._side(max(before, first - REACH), first)
                new = self._side(last, min(after, last + REACH))
                found |= {first, last} if abs(new.level - old.level) < alike else set()
        return found

    def _gain(self, first: int, split: int, last: int) -> float:
        """Return the log likelihood ratio of two levels to one, divided by the noise's inflation."""
        before, after = self._sides(first, split, last)
        low, high = max(first, split - REACH), min(last, split + REACH)
        both = _fit(self._levels, low, high, (before.level, after.level))
        gain = before.log_likelihood + after.log_likelihood - both.log_likelihood
        return gain / self._inflation(first, split, last)

    def _inflation(self, first: int, split: int, last: int) -> float:
        if self._noise is INDEPENDENT:
            return 1.0
        return self._noise.inflation(min(split - first, REACH), min(last - split, REACH))

    def _p_value(self, gain: float) -> float:
        """Return an upper bound of the p-value: the tail of chi-square, times the number of tests."""
        return min(1.0, self._test_count * math.erfc(math.sqrt(max(gain, 0.0))))

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
        """Return the first split and the posterior over all splits between two others, shape (splits,).

        The levels on both sides are given. Each revision has the same prior, so a gap weighs as much as its length.
        """
        before, after = self._sides(first, split, last)
        low, high = max(first, split - REACH), min(last, split + REACH)
        contamination = self._levels.contamination[low:high] * CONTAMINATION_DENSITY
        distances = self._levels.values[low:high] - np.array([[before.level], [after.level]])
        found = log_likelihoods(distances / self._levels.errors[low:high], contamination)
        weights = np.cumsum(found[0] - found[1])[:-1] / self._inflation(first, split, last)
        weights += np.log(np.diff(self._levels.positions[low:high]))
        posterior = np.exp(weights - weights.max())
        return low + 1, posterior / posterior.sum()


def _median(values: Floats) -> float:
    """Return the median of finite values. `np.median` first checks for NaN, which takes most of its time."""
    count = len(values)
    ordered = np.sort(values)
    return float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0


def _fit(levels: Levels, first: int, last: int, starts: Sequence[float]) -> _Fit:
    """Fit a level to the values from each starting level; return the likeliest fit."""
    values, errors = levels.values[first:last], levels.errors[first:last]
    bounds, contamination = levels.bounds[first:last], levels.contamination[first:last]
    found, clean, variances = np.array(starts)[:, None], 1.0 - contamination, errors**2
    for _ in range(_FIT_ROUNDS):
        inlier = clean * np.exp(-0.5 * ((values - found) / bounds) ** 2)
        weight = inlier / (inlier + contamination) / variances
        total = weight.sum(axis=1)
        # If every value is arbitrary, the level stays.
        found = np.where(total > 0.0, weight @ values / np.maximum(total, 1e-300), found[:, 0])[:, None]
    totals = log_likelihoods((values - found) / bounds, contamination).sum(axis=1)
    best = int(np.argmax(totals))
    return _Fit(
        level=float(found[best, 0]),
        error=1.0 / math.sqrt(max(float(total[best]), 1e-300)),
        log_likelihood=float(totals[best]),
    )


def _shortest(posterior: Floats) -> tuple[int, int]:
    """Return the shortest range around the likeliest split with a probability of `CREDIBILITY`."""
    low = high = int(np.argmax(posterior))
    total = float(posterior[low])
    while total < CREDIBILITY and (low > 0 or high < len(posterior) - 1):
        below = posterior[low - 1] if low > 0 else -1.0
        above = posterior[high + 1] if high < len(posterior) - 1 else -1.0
        total += float(max(below, above))
        low, high = (low - 1, high) if below >= above else (low, high + 1)
    return low, high
