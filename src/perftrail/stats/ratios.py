"""The ratio of two figures that were taken in turns, with its interval; and the interval of a figure of pairs.

Two subjects measured in pairs at several points: the geometric mean of the points' ratios, and a verdict on it.

The points stand for themselves and are no sample of others: what scatters is what they give from round to round. All
points of a round share its noise, so the k-th pairs of all points make one, and the round is the unit. Where there are
as many rounds as a verdict takes, these are compared as those of a point are. Fewer rounds cannot say so much without a
shape: then their mean has Student's t. It assumes that rounds scatter as sums of many small things do.

Two samples that were not taken in turns: the effect, its interval, and a verdict.

Nothing pairs their values, so that whatever changed between the two besides the subject, the machine's mood say, is in
the effect. Under "no difference" every way to share the values out is as likely: Wilcoxon and Mann and Whitney's rank
sum is tested against all of them, on the logarithms. It assumes that the values of a sample are independent.

In which of many figures two subjects differ, from a few starts of each, and which differ most.

A figure is compared on a logarithmic scale after adding its floor, below which it is of no account: from 1 to 2
system calls is not the change that from 1,000 to 2,000 is. What remains of the difference after its own noise
(Student's t over the starts of both, all figures of a report sharing one error) is what ranks it. It assumes starts
to be independent; figures that come out alike each time have no noise.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from statistics import NormalDist, geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.comparison import (
    Comparison,
    Rule,
    Verdict,
    accepted_shifts,
    compare_once,
    judged,
    left_out,
    log_ratios,
    seen,
    walsh,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Pairs = Sequence[tuple[float, float]]
    """Values of the first subject and the second, of one point, in the order taken."""
    Floats = npt.NDArray[np.float64]

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


def compare_over(points: Sequence[Pairs], *, comparisons: int = 1) -> Comparison:
    """Compare two subjects over points by pairs of values above zero; less is faster.

    It is one of so many `comparisons` that share an error; nothing was looked at before. `pairs` counts those that
    it goes by, of every point. Raises `ValueError` for no point, one without a pair, and values not above zero.
    """
    if not points or not all(points):
        raise ValueError("a comparison needs points with a pair each")
    rounds = over_points(points)
    rule = Rule(most=max(len(rounds), 2), comparisons=comparisons)
    first, second = [one for one, _ in rounds], [other for _, other in rounds]
    exact = compare_once(first, second, rule)
    found = exact
    if len(points) > 1 and 1 < len(rounds) < exact.needed_pairs <= len(rounds) * len(points):
        found = _by_shape(log_ratios(first, second), exact, rule)
    return replace(found, pairs=len(rounds) * len(points))


def over_points(points: Sequence[Pairs]) -> list[tuple[float, float]]:
    """Put the pairs of several points together: the k-th is the geometric means of each point's k-th pair.

    The ratio of such a pair is the geometric mean of the points' ratios. There are as many as the point with the
    fewest has.

    >>> [(round(one), round(two)) for one, two in over_points([[(1.0, 2.0), (1.0, 9.9)], [(4.0, 32.0)]])]
    [(2, 8)]
    """
    return [
        (geometric_mean(first for first, _ in pairs), geometric_mean(second for _, second in pairs))
        for pairs in zip(*points, strict=False)
    ]


def _by_shape(logs: Floats, exact: Comparison, rule: Rule) -> Comparison:
    """Compare by Student's t over rounds that are too few for an exact verdict."""
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is imported where it is used

    value = float(logs.mean())
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    half = float(stdtrit(len(logs) - 1, 1.0 - rule.level / 2.0)) * error
    low, high = value - half, value + half
    return replace(
        exact,
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - rule.error,
        minimum_detectable=seen(low, high, rule.level),
        verdict=judged(value, low, high, significant=True, worth=rule.worth),
        settled=True,
    )


EXACT = 10_000
"""Up to so many pairs of values the distribution of the rank sum is worked out exactly."""

MOST = 2000
"""So many values of a sample are looked at."""


def compare_apart(
    first: Sequence[float], second: Sequence[float], *, level: float, threshold: float = 0.01
) -> Comparison:
    """Compare two samples of values above zero; less is faster. `pairs` is the size of the smaller one.

    The effect is Hodges and Lehmann's: the median of all ratios of one value to another. Its interval holds the shifts
    that the test does not reject at `level`. `threshold` is the change below which the two count as the same. Raises
    `ValueError` for an empty sample and for values that are not above zero.
    """
    if not first or not second or min(*first, *second, math.inf) <= 0.0:
        raise ValueError("two samples of values above zero are needed")
    one, other = (np.log(_thinned(sample)) for sample in (first, second))
    shifts = np.sort(np.subtract.outer(other, one).ravel())
    left_out = _left_out(len(one), len(other), level)
    edge = max(0, left_out - 1)  # too few values for any verdict: all that they span is told
    value, low, high = (float(each) for each in (np.median(shifts), shifts[edge], shifts[-1 - edge]))
    verdict = judged(value, low, high, significant=left_out > 0, worth=math.log1p(threshold))
    return Comparison(
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - level,
        level=level,
        pairs=min(len(first), len(second)),
        minimum_detectable=seen(low, high, level) if left_out else None,
        verdict=verdict if left_out else Verdict.UNCLEAR,
        settled=True,
    )


def _thinned(sample: Sequence[float]) -> Floats:
    """Give a sample, or of a very large one values from all along it."""
    return np.asarray(sample)[:: math.ceil(len(sample) / MOST)]


def _left_out(first: int, second: int, level: float) -> int:
    """How many of the sorted ratios lie outside the interval at each end; 0 where the samples are too small for one.

    >>> _left_out(3, 3, 0.05), _left_out(4, 4, 0.05), _left_out(10, 10, 0.05)
    (0, 1, 24)
    """
    if first * second > EXACT:
        spread = math.sqrt(first * second * (first + second + 1) / 12.0)
        return max(0, math.floor(first * second / 2.0 - NormalDist().inv_cdf(1.0 - level / 2.0) * spread))
    below = np.cumsum(_rank_sums(first, second))
    return int(np.searchsorted(below, level / 2.0, side="right"))


def _rank_sums(first: int, second: int) -> Floats:
    """P(so many of the pairs have their larger value in the second sample), from 0 on, under no difference."""
    sizes = [np.array([1.0]) for _ in range(second + 1)]
    for one in range(1, first + 1):
        fresh = [np.array([1.0])]
        for other in range(1, second + 1):
            # the largest of all values is in the second sample, and so above `one`, or in the first
            share = other / (one + other)
            sums = np.zeros(one * other + 1)
            sums[one:] += share * fresh[other - 1]
            sums[: (one - 1) * other + 1] += (1.0 - share) * sizes[other]
            fresh.append(sums)
        sizes = fresh
    return sizes[second]


REPORT_ERROR = 0.01
"""How often a whole report may tell a difference that is none."""

SMALLEST = 0.002
"""A relative difference below this is not told, however sure it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure before and after (medians), and how far it differs on the logarithmic scale.

    `size` is the logarithm of after/before with the floor added to both, `sure` what noise leaves of its amount.
    """

    before: float
    after: float
    size: float
    sure: float

    @property
    def differs(self) -> bool:
        """Whether there is a difference worth telling."""
        return self.sure > SMALLEST


def difference(before: Sequence[float], after: Sequence[float], *, floor: float, figures: int) -> Difference:
    """Compare a figure, one of `figures` in the report, at least zero each time, from the starts of both.

    Raises `ValueError` without a value on either side, or when value and floor are zero together.

    >>> difference([10.0, 10.0], [20.0, 20.0], floor=0.0, figures=1).differs
    True
    """
    logs = [[math.log(value + floor) for value in values] for values in (before, after)]
    medians = [statistics.median(values) for values in (before, after)]
    size = statistics.median(logs[1]) - statistics.median(logs[0])
    return Difference(
        before=medians[0],
        after=medians[1],
        size=size,
        sure=max(0.0, abs(size) - _noise(logs, REPORT_ERROR / max(1, figures))),
    )


def _noise(logs: Sequence[Sequence[float]], error: float) -> float:
    """How far apart the two would lie by chance, no oftener than `error`; infinite when one start each cannot tell."""
    freedom = sum(len(each) - 1 for each in logs)
    squares = sum((value - statistics.fmean(each)) ** 2 for each in logs for value in each)
    if freedom == 0:
        return math.inf
    if squares < 1e-24:
        return 0.0
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is imported where it is used

    spread = math.sqrt(squares / freedom * sum(1.0 / len(each) for each in logs))
    return float(stdtrit(freedom, 1.0 - error / 2.0)) * spread
