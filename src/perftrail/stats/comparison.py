"""Paired comparison of two subjects: effect, interval and verdict, valid whenever measuring stops.

A fair coin decides which subject of a pair runs first. If two programs are equal, exchanging their names only changes
the sign of a pair's difference d of logarithms. So the coin decides that sign, whatever the machine does. Then the
wealth ``W(c) = mean_j prod_t (1 + s_j tanh(r_j (d_t - c) / scale))`` of bets that the difference exceeds c is a test
martingale: P(W(c) ever reaches 1/level) <= level if the shift is at most c (Ville 1939). No independence, normality or
stationarity is assumed, and an interim analysis after each pair has no cost. The interval consists of the shifts c
that are never excluded. For c other than zero it assumes a constant shift in logarithms.

`compare` uses these bets for half of its error. The other half is for the last analysis, at a fixed number of pairs:
Wilcoxon's signed-rank test, which detects smaller changes. `compare_once`, for pairs that are analysed once, only
uses that test. Both widen the interval where neighbouring pairs are correlated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from perftrail.model.metrics import Better, improves
from perftrail.stats.scale import Scale
from perftrail.stats.student import normal_cdf

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

STAKES = np.array([0.99, 0.99, 0.99, 0.99, 0.99, 0.5])
RATES = np.array([0.1, 0.25, 0.5, 1.0, 2.0, 1.0])
"""The bets: each stakes its share of the wealth on ``tanh(rate * difference / scale)``."""

_GRID: Floats = np.arange(17, dtype=np.float64)
_MOST_CACHED = 200
"""Largest number of values whose pairs of indices are cached."""

_DISTINCT_RATES, _RATE_OF_BET = np.unique(RATES, return_inverse=True)

MOST_WEALTH = 1e300
"""Larger wealths count as this one: they exclude a shift at any level."""

FIRST = 8
"""Number of differences that determine the scale of the first bets."""

HALF_NORMAL = 0.4731
HALF_NORMAL_MEDIAN = 0.3991
"""Mean and median absolute deviation of |normal| from its median, in standard deviations."""

TINY = 1e-13
"""Smallest scale: differences of logarithms are not more exact."""

CAUTION = 1.0
"""The estimated correlation is raised by this many standard errors; one is about 1/sqrt(n)."""

SETTLING = 2
"""Correlation counts from this many differences beyond the fewest that a verdict needs."""

FAR = 3.0
"""Bounds this many times as far from the centre are also valid for correlated differences."""

FARTHEST = 10
"""Longest lag whose correlation is estimated."""

MOST_CORRELATED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Lowest and highest shift that are not excluded, in logarithms; infinite if nothing is excluded yet."""

    low: float
    high: float

    def within(self, margin: float) -> bool:
        """Return whether every remaining shift is smaller than a margin."""
        return -margin < self.low and self.high < margin


def log_wealth(differences: Floats, scale: float | Floats, shifts: Floats) -> Floats:
    """Return the logarithm of the largest wealth so far, for bets that the differences exceed each shift.

    `differences` has shape (n,), `shifts` and the result (C,). `scale` is positive, one number or (n, 1). The result
    is zero where the bets never gained, and at most the logarithm of `MOST_WEALTH`.
    """
    surplus = (differences - shifts[:, None]) / (scale.ravel() if isinstance(scale, np.ndarray) else scale)
    factors = np.tanh(_DISTINCT_RATES[:, None, None] * surplus)[_RATE_OF_BET]
    factors *= STAKES[:, None, None]
    factors += 1.0
    with np.errstate(over="ignore"):
        wealth = np.multiply.accumulate(factors, axis=2, out=factors).sum(axis=0) / len(STAKES)
    largest: Floats = np.log(np.clip(wealth.max(axis=1, initial=1.0), None, MOST_WEALTH))
    return largest


def current_log_wealth(differences: Floats, scale: float | Floats) -> float:
    """Return the logarithm of the current wealth, for bets that the differences exceed zero."""
    logs = np.log1p(STAKES * np.tanh(RATES * (differences[:, None] / scale))).sum(axis=0)
    return float(np.logaddexp.reduce(logs)) - math.log(len(STAKES))


def bounds(differences: Floats, scale: float | Floats, level: float) -> Bounds:
    """Return the shifts that bets in both directions do not exclude. Each bound has an error of at most `level`."""
    return Bounds(
        low=_lowest(differences, scale, math.log(1 / level)),
        high=-_lowest(-differences, scale, math.log(1 / level)),
    )


def careful_bounds(differences: Floats, level: float) -> Bounds:
    """Return bounds scaled by the differences themselves, wider if neighbouring differences are correlated.

    The coin excludes what the machine does. It does not exclude a build's own state, such as its pages in the cache:
    such differences are correlated in spite of the coin. Then the evidence counts as that of fewer differences (see
    `inflation`), unless zero is `FAR` times as far away as the uncertainty. This only ever widens the bounds. In a
    simulation with autoregressive differences (correlation 0.3, 150 pairs), the error is at most twice the level.
    """
    if len(differences) == 0:
        return Bounds(low=-math.inf, high=math.inf)
    return Bounds(low=_careful_lowest(differences, level), high=-_careful_lowest(-differences, level))


def _careful_lowest(differences: Floats, level: float) -> float:
    scale, wanted, more = scales(differences), math.log(1 / level), inflation(differences, level)
    if more == 1.0:
        return _lowest(differences, scale, wanted)
    middle = centre(differences)
    far = middle - FAR * math.sqrt(more) * (middle - _lowest(differences, scale, wanted))
    return max(_lowest(differences, scale, wanted * more), far)


def excludes_zero(differences: Floats, level: float) -> bool:
    """Return whether `careful_bounds` at this level exclude zero."""
    scale, wanted, more = scales(differences), math.log(1 / level), inflation(differences, level)
    upwards = centre(differences)
    for sign in (1.0, -1.0):
        signed, middle = sign * differences, sign * upwards
        shifts = np.array([0.0, middle * (1.0 - 1.0 / (FAR * math.sqrt(more)))])
        careful, far = log_wealth(signed, scale, shifts)
        if careful >= wanted * more or (more > 1.0 and middle > 0.0 and far >= wanted):
            return True
    return False


def scales(differences: Floats, *, robust: bool = False) -> Floats:
    """Return the scale of each bet, (n, 1), from absolute values only: they do not reveal the signs.

    The first bets share the scale of the first `FIRST` differences. Each later bet uses the differences before it. So
    no bet depends on a sign that is not known yet. `robust`: outliers do not widen it; one among the first differences
    would make all later bets weak.
    """
    sizes = np.abs(differences)
    found = np.empty((len(sizes), 1))
    first, last = 0, 2 * FIRST
    while first < len(sizes):
        known = sizes[: max(first, FIRST)]
        distances = np.abs(known - _median(known))
        spread = _median(distances) / HALF_NORMAL_MEDIAN if robust else float(distances.mean()) / HALF_NORMAL
        found[first:last] = max(spread, TINY)
        first, last = last, 2 * last
    return found


def inflation(differences: Floats, level: float) -> float:
    """Return the variance of the mean relative to independent differences, at least 1.

    It is the larger of two estimates. One is an autoregressive model's, with the correlation raised by one standard
    error. The other sums the correlations up to the first negative one. The excess over 1 counts more with more
    differences: the fewest that a verdict at this level needs cannot show a correlation.
    """
    count = len(differences)
    centred = differences - _median(differences)
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
    """Return the median of all pairwise averages, each value with itself included (Hodges and Lehmann 1963)."""
    if len(differences) > _MOST_CACHED:
        sums = np.concatenate([differences[at:] + each for at, each in enumerate(differences)])
        return _median(sums) / 2
    rows, columns = _cached_triangle(len(differences))
    return _median((differences[rows] + differences[columns]) / 2)


def _median(values: Floats) -> float:
    """Return the median. `np.median` takes ten times as long for a few values."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    ordered = np.partition(values, (half - 1, half))
    return float((ordered[half - 1] + ordered[half]) / 2)


def _triangle(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indices of every pair of `count` values, each value with itself included."""
    return _cached_triangle(count) if count <= _MOST_CACHED else np.triu_indices(count)


@lru_cache(maxsize=64)
def _cached_triangle(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(count)


def _lowest(differences: Floats, scale: float | Floats, wanted: float) -> float:
    """Return the largest shift whose bets reach the log-wealth `wanted`; minus infinity if there is none."""
    if len(differences) == 0:
        return -math.inf
    high = float(differences.max())
    low = float(differences.min()) - 50.0 * float(np.max(scale))
    most, least = log_wealth(differences, scale, np.array([low, high])).tolist()
    if most < wanted:
        return -math.inf
    if least >= wanted:
        return high
    # Wealth falls as the shift grows: interpolation finds where it falls below `wanted` on each of six finer grids.
    for _ in range(6):
        shifts = low + (high - low) / 16 * _GRID
        shifts[-1] = high
        first, last = 0, 16
        while last - first > 1:
            guess = first + int((most - wanted) / (most - least) * (last - first))
            begin, end = max(first + 1, guess - 1), min(last, guess + 3)
            tried = log_wealth(differences, scale, shifts[begin:end]).tolist()
            shown = sum(each >= wanted for each in tried)
            if shown > 0:
                first, most = begin + shown - 1, tried[shown - 1]
            if shown < len(tried):
                last, least = begin + shown, tried[shown]
        low, high = float(shifts[first]), float(shifts[last])
    return low


POWER = 0.8
"""Power at the minimum detectable change."""

FAMILY_ERROR = 0.01
"""Family-wise error rate of a whole report."""


EXACT = 300
"""Largest number of pairs for which the test's distribution is computed exactly."""

ALIKE = 1e-12
"""Ratios whose logarithms differ by less are equal."""

TESTS = 2
"""The bets use half of a comparison's error. The other half is reserved for the last analysis."""

LAST = 0.25
"""Share of a comparison's error that the last analysis uses: half of its reserve.

The other half allows for an underestimated correlation.
"""

FIRST_PAIRS = 10
GROWTH = 1.35
"""Pairs at the first interim analysis, and the growth factor to the next."""


class Verdict(StrEnum):
    """Verdict on the second subject relative to the first."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The ratio second/first (Hodges-Lehmann estimate), its interval and the verdict: ``slower`` for larger values.

    On another `scale`, `effect`, `low`, `high` and `minimum_detectable` are differences second − first.
    `confidence` applies to all intervals of the report together, at any analysis. With fewer than `needed_pairs` the
    interval is the sample's range, with that range's own confidence. `level` is the error of each test of this
    comparison. `minimum_detectable` is the relative change that this many pairs, with this noise, detect in 80 of 100
    cases; `None` with fewer than `needed_pairs`. `settled`: measuring can stop, because
    the interval does not contain the threshold or the number of pairs is `most`.
    """

    effect: float
    low: float
    high: float
    confidence: float
    level: float = FAMILY_ERROR
    pairs: int
    minimum_detectable: float | None
    verdict: Verdict
    settled: bool
    scale: Scale = Scale.RATIO

    @property
    def size(self) -> float:
        """The effect on the scale: for ratios the logarithm."""
        return self.scale.size(self.effect)

    @property
    def bounds(self) -> Bounds:
        """The interval on the scale."""
        return Bounds(low=self.scale.size(self.low), high=self.scale.size(self.high))

    @property
    def needed_pairs(self) -> int:
        """Fewest pairs for a verdict at this level, if every pair agrees."""
        return needed(self.level / 2.0)

    def judged(self, better: Better) -> Verdict:
        """Return the verdict in which ``slower`` means worse, in whichever direction the metric is better."""
        if self.verdict in (Verdict.SAME, Verdict.UNCLEAR):
            return self.verdict
        return Verdict.FASTER if improves(self.size, better, same=0.0) else Verdict.SLOWER


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Error rate, threshold and schedule of interim analyses.

    `most` is the largest number of pairs. `comparisons` is the number of verdicts that share the report's error.
    `threshold` is the relative change below which two subjects count as the same.
    """

    most: int
    comparisons: int = 1
    threshold: float = 0.01
    error: float = FAMILY_ERROR

    @property
    def level(self) -> float:
        """Two-sided error of one comparison."""
        return self.error / self.comparisons

    @property
    def needed_pairs(self) -> int:
        """Fewest pairs for a verdict."""
        return needed(self.level / TESTS / 2.0)

    @property
    def log_threshold(self) -> float:
        """The threshold on the scale of logarithms: log(1 + threshold)."""
        return Scale.RATIO.on_scale(self.threshold)

    @property
    def analyses(self) -> tuple[int, ...]:
        """Numbers of pairs at which to analyse: from the first that allows a verdict, up to `most`.

        >>> Rule(most=150).analyses
        (10, 14, 18, 25, 33, 45, 61, 82, 110, 150)
        """
        counts, count = [], float(FIRST_PAIRS)
        while count < self.most / math.sqrt(GROWTH):
            counts.append(round(count))
            count *= GROWTH
        return (*(each for each in counts if each >= self.needed_pairs), self.most)

    def analysed(self, pairs: int, *, least: int = 0) -> int:
        """Return how many of the pairs the last due interim analysis uses: all, before the first.

        Stopping between two interim analyses is then not another analysis. Analyses of fewer than `least` pairs do not
        count.

        >>> Rule(most=150).analysed(17), Rule(most=150).analysed(9)
        (14, 9)
        """
        return max((each for each in self.analyses if least <= each <= pairs), default=pairs)


def compare(
    first: Sequence[float], second: Sequence[float], rule: Rule, scale: Scale = Scale.RATIO
) -> Comparison:
    """Compare two subjects by pairs of values, in the order of measurement; less is faster.

    `scale` is that of ratios, for positive values, or of differences. The result is valid after any pair: interim
    analyses do not raise the error. Raises `ValueError` for samples of different lengths, empty samples, and values
    that have no place on the scale.
    """
    ratios = log_ratios(first, second) if scale is Scale.RATIO else _plain_differences(first, second)
    value = centre(ratios)
    level = rule.level / TESTS
    found = careful_bounds(ratios, level / 2.0)
    low, high = found.low, found.high
    if len(ratios) == rule.most:
        last = _signed_rank_bounds(ratios, value, rule.level * LAST)
        low, high = max(low, last[0]), min(high, last[1])
    return _comparison(ratios, value, (low, high), rule, level=level, scale=scale)


def _plain_differences(first: Sequence[float], second: Sequence[float]) -> Floats:
    differences: Floats = np.array(second, dtype=np.float64) - np.array(first, dtype=np.float64)
    if not len(differences) or not np.isfinite(differences).all():
        raise ValueError("a comparison needs pairs of finite values, at least one")
    return differences


def compare_once(first: Sequence[float], second: Sequence[float], rule: Rule) -> Comparison:
    """Compare two subjects by pairs that are analysed once; their number must not depend on the values.

    The interval is that of the signed-rank test, exact for pairs in random order. It is widened by the correlation of
    neighbouring pairs. Raises `ValueError` like `compare`.
    """
    ratios = log_ratios(first, second)
    value = centre(ratios)
    bounds = _signed_rank_bounds(ratios, value, rule.level)
    significant = signed_rank_p(ratios) <= rule.level
    return _comparison(ratios, value, bounds, rule, level=rule.level, significant=significant)


def _signed_rank_bounds(ratios: Floats, value: float, level: float) -> tuple[float, float]:
    """Return the shifts that the signed-rank test accepts, widened around the centre for correlated neighbours."""
    low, high = accepted_shifts(walsh_averages(ratios), len(ratios), level)
    wider = math.sqrt(inflation(ratios, level / 2.0))
    return value - wider * (value - low), value + wider * (high - value)


def _comparison(
    ratios: Floats,
    value: float,
    bounds: tuple[float, float],
    rule: Rule,
    *,
    level: float,
    significant: bool = True,
    scale: Scale = Scale.RATIO,
) -> Comparison:
    """Return the comparison for an effect and its bounds. Too few or equal pairs have their range as interval."""
    low, high = bounds
    least, largest = float(ratios.min()), float(ratios.max())
    enough = len(ratios) >= needed(level / 2.0)
    if largest - least < ALIKE:
        low, high = least, largest
    elif not enough or math.isinf(high - low):
        low, high, enough = least, largest, False
    verdict, threshold = Verdict.UNCLEAR, scale.on_scale(rule.threshold)
    if enough:
        verdict = verdict_of(value, low, high, significant=significant, log_threshold=threshold)
    return Comparison(
        effect=scale.effect(value),
        low=scale.effect(low),
        high=scale.effect(high),
        confidence=1.0 - rule.error if enough else 1.0 - 2.0 ** (1 - len(ratios)),
        level=level,
        pairs=len(ratios),
        minimum_detectable=minimum_detectable_change(low, high, level, scale) if enough else None,
        verdict=verdict,
        settled=is_settled(verdict, low, high, log_threshold=threshold) or len(ratios) >= rule.most,
        scale=scale,
    )


def is_settled(verdict: Verdict, low: float, high: float, *, log_threshold: float) -> bool:
    """Return whether a verdict is final: `SAME`, or a difference whose interval is beyond the threshold.

    `low`, `high` and `log_threshold` are logarithms.
    """
    return verdict is Verdict.SAME or (
        verdict is not Verdict.UNCLEAR and max(low, -high) >= log_threshold - ALIKE
    )


def signed_rank_p(differences: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, with any ties; zeros are ignored.

    Doubled mid-ranks are whole numbers, and the distribution of their sum is symmetric.
    """
    nonzero = differences[differences != 0.0]
    if len(nonzero) == 0:
        return 1.0
    doubled = np.rint(2.0 * _mid_ranks(np.abs(nonzero))).astype(np.int64)
    above = int(doubled[nonzero > 0.0].sum())
    fewer = min(above, int(doubled.sum()) - above)
    return min(1.0, 2.0 * float(_at_most(doubled)[fewer]))


@lru_cache(maxsize=256)
def excluded_averages(pairs: int, level: float) -> int:
    """Return the number of lowest (and of highest) Walsh averages outside the signed-rank test's interval.

    It is also the number of lowest rank sums that the test rejects; 0 if there are too few pairs.
    """
    return int(np.searchsorted(_at_most(np.arange(1, pairs + 1)), level / 2.0, side="right"))


def _at_most(ranks: npt.NDArray[np.int64]) -> Floats:
    """Return P(sum <= k) for each k; the sum is of the ranks with positive sign, all signs equally likely.

    The result is exact for at most `EXACT` ranks. For more ranks, where that takes seconds, it is Edgeworth's
    expansion to the fourth cumulant with a continuity correction (Fellingham and Stoker 1964).
    """
    if len(ranks) <= EXACT:
        return np.cumsum(_rank_sums(ranks))
    halves = ranks / 2.0
    spread = math.sqrt(float((halves**2).sum()))
    excess = -2.0 * float((halves**4).sum()) / spread**4
    step = int(np.gcd.reduce(ranks))
    sums = np.arange(int(ranks.sum()) + 1) // step * step
    normal = (sums + step / 2.0 - halves.sum()) / spread
    bend = excess / 24.0 * (normal**3 - 3.0 * normal) * np.exp(-(normal**2) / 2.0) / math.sqrt(2.0 * math.pi)
    chances: Floats = np.maximum.accumulate(np.clip(normal_cdf(normal) - bend, 0.0, 1.0))
    return chances


def _rank_sums(ranks: npt.NDArray[np.int64]) -> Floats:
    """Return P(sum = k) for each k; the sum is of the ranks with positive sign, all signs equally likely."""
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = (ways[rank:] + ways[: len(ways) - rank]) / 2.0
        ways[:rank] /= 2.0
    return ways


def log_ratios(first: Sequence[float], second: Sequence[float]) -> Floats:
    """Return the logarithm of second/first for each pair. Raises `ValueError` like `compare`."""
    if len(first) != len(second) or len(first) == 0:
        raise ValueError(f"{len(first)} and {len(second)} values: a comparison needs pairs, at least one")
    values = np.array([first, second], dtype=np.float64)
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise ValueError("only finite values above zero can be compared as ratios")
    ratios: Floats = np.log(values[1]) - np.log(values[0])
    return ratios


def minimum_detectable_change(low: float, high: float, level: float, scale: Scale = Scale.RATIO) -> float:
    """Return the change that an interval of this width, on a scale, detects with this `POWER`."""
    bound = NormalDist().inv_cdf(1.0 - level / 2.0)
    return scale.change((bound + NormalDist().inv_cdf(POWER)) * (high - low) / 2.0 / bound)


def verdict_of(value: float, low: float, high: float, *, significant: bool, log_threshold: float) -> Verdict:
    """Return the verdict for an effect and its interval, in logarithms.

    Subjects whose whole interval is within `log_threshold` are the same. Many equal pairs can make the test significant
    although the interval contains no change. Such a verdict is unclear.
    """
    if -log_threshold < low and high < log_threshold:
        return Verdict.SAME
    if significant and not low <= 0.0 <= high:
        return Verdict.SLOWER if value > 0.0 else Verdict.FASTER
    return Verdict.UNCLEAR


def walsh_averages(ratios: Floats) -> Floats:
    """Return every average of two differences, each with itself included, ascending."""
    rows, columns = _triangle(len(ratios))
    averages: Floats = np.sort((ratios[rows] + ratios[columns]) / 2.0)
    return averages


def accepted_shifts(averages: Floats, pairs: int, level: float) -> tuple[float, float]:
    """Return the shifts that the signed-rank test accepts at a level, exactly (Hollander and Wolfe, section 3.3).

    With too few pairs for any rejection, the result is the sample's range.
    """
    outside = excluded_averages(pairs, level)
    if outside == 0:
        return float(averages[0]), float(averages[-1])
    return float(averages[outside - 1]), float(averages[len(averages) - outside])


def _mid_ranks(values: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(1, len(values) + 1)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=ranks)
    mid: Floats = (sums / counts)[inverse]
    return mid
