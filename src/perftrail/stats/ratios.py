"""Ratios of two subjects: with an interval, over several points, of unpaired samples, and of many metrics.

`ratio` estimates from interleaved pairs, `centre` from single values. `compare_over` returns the geometric mean
over points. The points are fixed, not a sample of others; only rounds vary. All points of a round share its
noise, so the k-th pairs of all points form one pair. With enough rounds for a verdict, the exact comparison
applies. With fewer rounds, their mean has Student's t, assuming approximately normal rounds.

`compare_unpaired` compares unpaired samples by the Wilcoxon-Mann-Whitney rank-sum test on logarithms, assuming
independent values. Anything else that changed between the samples, such as the machine's state, is part of the effect.
`difference` compares one of many metrics on a log scale, after adding a floor below which values do not matter: the
change from 1 to 2 system calls matters less than that from 1,000 to 2,000. Differences are ranked by the part that
exceeds their noise (Student's t over independent runs, one error for the whole report).
"""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist, geometric_mean
from typing import TYPE_CHECKING, Literal

import numpy as np

from perftrail.stats.comparison import (
    POWER,
    Comparison,
    Rule,
    Verdict,
    accepted_shifts,
    compare_once,
    excluded_averages,
    log_ratios,
    minimum_detectable_change,
    verdict_of,
    walsh_averages,
)
from perftrail.stats.student import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Pairs = Sequence[tuple[float, float]]
    """Values of the first and the second subject at one point, in the order of measurement."""
    Floats = npt.NDArray[np.float64]

LEVEL = 0.05
"""Error of an interval, both sides together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEstimate:
    """An estimate from interleaved pairs with its interval.

    `confidence` is that of the interval, which is lower with few pairs.
    """

    value: float
    low: float
    high: float
    confidence: float
    pairs: int

    def inverse(self) -> PairedEstimate:
        """Return one over the value, which must be positive."""
        return self.to_power(-1.0)

    def times(self, factor: float) -> PairedEstimate:
        """Return the value times a positive constant."""
        return PairedEstimate(
            value=self.value * factor,
            low=self.low * factor,
            high=self.high * factor,
            confidence=self.confidence,
            pairs=self.pairs,
        )

    def to_power(self, power: float) -> PairedEstimate:
        """Return the value raised to a power; the value must be positive."""
        ends = sorted((self.low**power, self.high**power))
        return PairedEstimate(
            value=self.value**power, low=ends[0], high=ends[1], confidence=self.confidence, pairs=self.pairs
        )


def centre(values: Sequence[float], *, level: float = LEVEL) -> PairedEstimate:
    """Estimate the centre of independent values (Hodges and Lehmann 1963) with the signed-rank interval.

    `level` is the interval's error. It assumes symmetric scatter. Fewer than six values cannot reach 95 %: the interval
    is then their range, with its own `confidence`. Raises `ValueError` without a value.

    >>> centre([1.0, 2.0, 3.0]).confidence
    0.75
    """
    if not values:
        raise ValueError("an interval needs at least one value")
    averages = walsh_averages(np.array(values, dtype=np.float64))
    low, high = accepted_shifts(averages, len(values), level)
    enough = excluded_averages(len(values), level) > 0
    return PairedEstimate(
        value=float(np.median(averages)),
        low=low,
        high=high,
        confidence=1.0 - level if enough else 1.0 - 2.0 ** (1 - len(values)),
        pairs=len(values),
    )


def ratio(first: Sequence[float], second: Sequence[float], *, level: float = LEVEL) -> PairedEstimate | None:
    """Estimate second/first from interleaved pairs, with an interval of error `level`; None without positive pairs.

    >>> ratio([1.0, 1.0], [2.0, 2.0]).value
    2.0
    """
    logs = [math.log(b) - math.log(a) for a, b in zip(first, second, strict=True) if a > 0.0 and b > 0.0]
    if not logs:
        return None
    found = centre(logs, level=level)
    return PairedEstimate(
        value=math.exp(found.value),
        low=math.exp(found.low),
        high=math.exp(found.high),
        confidence=found.confidence,
        pairs=found.pairs,
    )


def compare_over(points: Sequence[Pairs], *, comparisons: int = 1) -> Comparison:
    """Compare two subjects over points by pairs of positive values; less is faster.

    The result is one of `comparisons` that share a family-wise error rate, without interim analyses. `pairs`
    is the number of pairs over all points. Raises `ValueError` without a point, for a point without a pair,
    and for values not above zero.
    """
    if not points or not all(points):
        raise ValueError("a comparison needs points with a pair each")
    rounds = over_points(points)
    rule = Rule(most=max(len(rounds), 2), comparisons=comparisons)
    first, second = [one for one, _ in rounds], [other for _, other in rounds]
    exact = compare_once(first, second, rule)
    found = exact
    if len(points) > 1 and 1 < len(rounds) < exact.needed_pairs <= len(rounds) * len(points):
        found = _by_students_t(log_ratios(first, second), exact, rule)
    return replace(found, pairs=len(rounds) * len(points))


def over_points(points: Sequence[Pairs]) -> list[tuple[float, float]]:
    """Combine the pairs of several points: the k-th pair has the geometric means of each point's k-th pair.

    The ratio of such a pair is the geometric mean of the points' ratios. The shortest point decides the length.

    >>> [(round(one), round(two)) for one, two in over_points([[(1.0, 2.0), (1.0, 9.9)], [(4.0, 32.0)]])]
    [(2, 8)]
    """
    return [
        (geometric_mean(first for first, _ in pairs), geometric_mean(second for _, second in pairs))
        for pairs in zip(*points, strict=False)
    ]


WIDEST = math.log(1000.0)
"""An interval that is wider on one side, in logarithms, has no information: there are too few rounds."""


def _by_students_t(logs: Floats, exact: Comparison, rule: Rule) -> Comparison:
    """Compare by Student's t, for too few rounds for an exact verdict; return the exact one if t has none either."""
    value = float(logs.mean())
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    half = t_quantile(len(logs) - 1, 1.0 - rule.level / 2.0) * error
    if half > WIDEST:
        return exact
    low, high = value - half, value + half
    return replace(
        exact,
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - rule.error,
        minimum_detectable=minimum_detectable_change(low, high, rule.level),
        verdict=verdict_of(value, low, high, significant=True, log_threshold=rule.log_threshold),
        settled=True,
    )


EXACT = 10_000
"""Largest number of pairs of values for which the distribution of the rank sum is computed exactly."""

MOST = 2000
"""Largest number of values used from one sample."""


def compare_unpaired(
    first: Sequence[float], second: Sequence[float], *, level: float, threshold: float = 0.01
) -> Comparison:
    """Compare two unpaired samples of positive values; less is faster. `pairs` is the size of the smaller one.

    The effect is the Hodges-Lehmann estimate: the median of all ratios between the samples. Its interval contains the
    shifts that the test accepts at `level`. `threshold` is the change below which the two count as the same. Raises
    `ValueError` for an empty sample and for values that are not above zero.
    """
    if not first or not second or min(*first, *second, math.inf) <= 0.0:
        raise ValueError("two samples of values above zero are needed")
    one, other = (np.log(_thinned(sample)) for sample in (first, second))
    shifts = np.sort(np.subtract.outer(other, one).ravel())
    excluded = _excluded_ratios(len(one), len(other), level)
    edge = max(0, excluded - 1)  # too few values for any verdict: the interval is their range
    value, low, high = (float(each) for each in (np.median(shifts), shifts[edge], shifts[-1 - edge]))
    verdict = verdict_of(value, low, high, significant=excluded > 0, log_threshold=math.log1p(threshold))
    return Comparison(
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - level,
        level=level,
        pairs=min(len(first), len(second)),
        minimum_detectable=minimum_detectable_change(low, high, level) if excluded else None,
        verdict=verdict if excluded else Verdict.UNCLEAR,
        settled=True,
    )


def needed_values(level: float) -> int:
    """Return the fewest values of each sample for a verdict of `compare_unpaired`, if the samples do not overlap.

    >>> needed_values(0.05), needed_values(0.01)
    (4, 5)
    """
    return next(size for size in itertools.count(2) if _excluded_ratios(size, size, level) > 0)


def _thinned(sample: Sequence[float]) -> Floats:
    """Return a sample, or evenly spaced values of a very large one."""
    return np.asarray(sample)[:: math.ceil(len(sample) / MOST)]


@cache
def _excluded_ratios(first: int, second: int, level: float) -> int:
    """Return the number of sorted ratios outside the interval at each end; 0 for too small samples.

    >>> _excluded_ratios(3, 3, 0.05), _excluded_ratios(4, 4, 0.05), _excluded_ratios(10, 10, 0.05)
    (0, 1, 24)
    """
    if first * second > EXACT:
        spread = math.sqrt(first * second * (first + second + 1) / 12.0)
        return max(0, math.floor(first * second / 2.0 - NormalDist().inv_cdf(1.0 - level / 2.0) * spread))
    below = np.cumsum(_rank_sums(first, second))
    return int(np.searchsorted(below, level / 2.0, side="right"))


def _rank_sums(first: int, second: int) -> Floats:
    """Return P(k pairs have their larger value in the second sample) for each k, if the samples do not differ."""
    previous_row = [np.array([1.0]) for _ in range(second + 1)]
    for one in range(1, first + 1):
        row = [np.array([1.0])]
        for other in range(1, second + 1):
            # The largest of all values is in the second sample (above `one` values) or in the first.
            share = other / (one + other)
            sums = np.zeros(one * other + 1)
            sums[one:] += share * row[other - 1]
            sums[: (one - 1) * other + 1] += (1.0 - share) * previous_row[other]
            row.append(sums)
        previous_row = row
    return previous_row[second]


REPORT_ERROR = 0.01
"""Probability that a whole report shows a difference that does not exist."""

SMALLEST = 0.002
"""Smallest relative difference that is reported."""


Answer = Literal["differs", "same", "unclear"]
"""Whether a metric differs; same: by `SMALLEST` at most; unclear: the noise hides changes above `SMALLEST`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Medians of one metric before and after, and their difference on the log scale.

    `size` is the logarithm of after/before with the floor added to both. `lower_bound` is its absolute value minus
    noise, `upper_bound` its absolute value plus noise. `minimum_detectable` is the relative change of `before` that
    these values would have detected with probability `POWER`; infinite with one value each, or if `before` is zero.
    """

    before: float
    after: float
    size: float
    lower_bound: float
    upper_bound: float
    minimum_detectable: float

    @property
    def differs(self) -> bool:
        """Whether the difference is worth reporting."""
        return self.lower_bound > SMALLEST

    @property
    def verdict(self) -> Answer:
        """Whether the metric differs; unclear if the noise is too large."""
        if self.differs:
            return "differs"
        return "same" if self.upper_bound <= SMALLEST else "unclear"


def difference(before: Sequence[float], after: Sequence[float], *, floor: float, metrics: int) -> Difference:
    """Compare one metric by non-negative values of both subjects; a report has `metrics` metrics.

    Raises `ValueError` if a side has no value, or if a value and the floor are both zero.

    >>> difference([10.0, 10.0], [20.0, 20.0], floor=0.0, metrics=1).differs
    True
    """
    logs = [[math.log(value + floor) for value in values] for values in (before, after)]
    medians = [statistics.median(values) for values in (before, after)]
    size = statistics.median(logs[1]) - statistics.median(logs[0])
    noise = _noise(logs, REPORT_ERROR / max(1, metrics))
    return Difference(
        before=medians[0],
        after=medians[1],
        size=size,
        lower_bound=max(0.0, abs(size) - noise.bound),
        upper_bound=abs(size) + noise.bound,
        minimum_detectable=_detectable(noise, before=medians[0], floor=floor),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    """Noise of the distance of two medians, in logarithms.

    Equal subjects exceed `bound` with the allowed error. A real difference that is larger than `bound` by `margin` is
    detected with probability `POWER`.
    """

    bound: float
    margin: float


def _noise(logs: Sequence[Sequence[float]], error: float) -> _Noise:
    """Return the noise for a two-sided error of `error` and the power `POWER`; infinite with one run each."""
    freedom = sum(len(each) - 1 for each in logs)
    squares = sum((value - statistics.fmean(each)) ** 2 for each in logs for value in each)
    if freedom == 0:
        return _Noise(bound=math.inf, margin=math.inf)
    if squares < 1e-24:
        return _Noise(bound=0.0, margin=0.0)
    spread = math.sqrt(squares / freedom * sum(1.0 / len(each) for each in logs))
    return _Noise(
        bound=t_quantile(freedom, 1.0 - error / 2.0) * spread,
        margin=t_quantile(freedom, POWER) * spread,
    )


def _detectable(noise: _Noise, *, before: float, floor: float) -> float:
    """Return the relative change of `before` that the noise does not hide."""
    shift = SMALLEST + noise.bound + noise.margin
    if before <= 0.0 or shift > WIDEST:
        return math.inf
    return math.expm1(shift) * (before + floor) / before
