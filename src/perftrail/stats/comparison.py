"""Two subjects measured in randomised pairs: the effect, its interval, and a verdict that holds whenever it stops.

A fair coin decides which of a pair starts first. What is compared is the logarithm of each pair's ratio: under "no
difference" the coin decides its sign, whatever the machine's noise is. `compare` bets on that sign, so that it may be
asked after each pair (see `martingale`). Half of its error is for the last analysis, at a number of pairs that is fixed
in advance: there Wilcoxon's signed ranks are tested against all signs, which sees smaller changes. `compare_once`, for
pairs that are analysed once, only does the latter. Both widen the interval where neighbouring pairs are alike.

Bets on the sign of differences of randomised pairs: evidence and intervals that hold whenever measuring stops.

If two programs are equal, exchanging their names only changes the sign of a pair's difference d, whatever the machine
did meanwhile. A fair coin decides the order of each pair, so it also decides that sign. Then the wealth

``W(c) = mean_j prod_t (1 + s_j tanh(r_j (d_t - c) / scale))``

of bets that the difference exceeds c is a test martingale: P(W(c) ever reaches 1/level) <= level if the shift is c or
less (Ville 1939). No independence, normality or stationarity is assumed, and analysing after each pair costs nothing.
The shifts c that are never excluded form the interval; for c other than zero it assumes a constant shift in logarithms.

How far two builds lie apart though no change made one faster: estimated from neighbours in a history.

Most neighbouring revisions change nothing that a benchmark measures. What their builds differ by nevertheless is
the linker's placement of code, so the spread of these differences is layout noise.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

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


SEEN = 0.8
"""How often a change of the smallest size seen would have been called."""

FAMILY_ERROR = 0.01
"""How often a whole report may call something different that is not."""


EXACT = 300
"""Up to so many pairs the test's distribution is worked out exactly."""

ALIKE = 1e-12
"""Logarithms that differ by less are those of equal ratios."""

TESTS = 2
"""The bets have half of a comparison's error; the rest is for the last analysis."""

LAST = 0.25
"""The last analysis uses half of that rest: a reserve for pairs whose correlation it underestimates."""

FIRST_PAIRS = 10
GROWTH = 1.35
"""The first interim analysis, and how many times as many pairs the next one has."""


class Verdict(StrEnum):
    """What a comparison says of the second subject against the first."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The ratio second/first (Hodges and Lehmann's estimate; of points see `over`), its interval and the verdict.

    `confidence` is that of all intervals of the report together, at whatever analysis measuring stopped; with fewer
    than `needed_pairs` the interval is the sample's range, and `confidence` says what that reaches. `level` is the
    error allowed to each test of this comparison. `minimum_detectable` is the relative change that this many pairs, as
    noisy as these, call in 80 of 100 cases, `None` where there are fewer than `needed_pairs`. `settled`: measuring can
    stop, since the verdict is sure and the interval does not contain the smallest change that counts.
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

    @property
    def needed_pairs(self) -> int:
        """How many pairs it takes for a verdict so strict, if every pair says the same."""
        return needed(self.level / 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How strictly to analyse, and which change is worth telling.

    `most` pairs are measured at most; `comparisons` verdicts stand in one report and share its error;
    `threshold` is the relative change below which two subjects count as the same.
    """

    most: int
    comparisons: int = 1
    threshold: float = 0.01
    error: float = FAMILY_ERROR

    @property
    def level(self) -> float:
        """The error allowed to one comparison, both sides together."""
        return self.error / self.comparisons

    @property
    def needed_pairs(self) -> int:
        """How many pairs a verdict takes at least."""
        return needed(self.level / TESTS / 2.0)

    @property
    def worth(self) -> float:
        """The logarithm of the smallest ratio above 1 that is worth telling."""
        return math.log1p(self.threshold)

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many pairs to analyse: from the first number on that could call anything, the last at `most`.

        >>> Rule(most=150).looks
        (10, 14, 18, 25, 33, 45, 61, 82, 110, 150)
        """
        counts, count = [], float(FIRST_PAIRS)
        while count < self.most / math.sqrt(GROWTH):
            counts.append(round(count))
            count *= GROWTH
        return (*(each for each in counts if each >= self.needed_pairs), self.most)


def compare(first: Sequence[float], second: Sequence[float], rule: Rule) -> Comparison:
    """Compare two subjects from values of pairs, all above zero, in the order taken; less is faster.

    It may be asked after any pair: a sure verdict is wrong no oftener for it. Raises `ValueError` for samples of
    different lengths, empty ones, and values that are not above zero.
    """
    ratios = log_ratios(first, second)
    value = centre(ratios)
    level = rule.level / TESTS
    found = careful_bounds(ratios, level / 2.0)
    low, high = found.low, found.high
    if len(ratios) == rule.most:
        last = _signed_rank_bounds(ratios, value, rule.level * LAST)
        low, high = max(low, last[0]), min(high, last[1])
    return _comparison(ratios, value, (low, high), rule, level=level)


def compare_once(first: Sequence[float], second: Sequence[float], rule: Rule) -> Comparison:
    """Compare two subjects from pairs that are analysed once, their number not chosen for what they say.

    The interval is that of the signed ranks, exact for pairs in random order, and as many times as wide as the
    correlation of neighbouring pairs asks for. Raises `ValueError` as `compare` does.
    """
    ratios = log_ratios(first, second)
    value = centre(ratios)
    bounds = _signed_rank_bounds(ratios, value, rule.level)
    significant = signed_rank_p(ratios) <= rule.level
    return _comparison(ratios, value, bounds, rule, level=rule.level, significant=significant)


def _signed_rank_bounds(ratios: Floats, value: float, level: float) -> tuple[float, float]:
    """Give the shifts that signed ranks do not reject, wider around the centre where neighbours are alike."""
    low, high = accepted_shifts(walsh(ratios), len(ratios), level)
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
) -> Comparison:
    """Judge an effect with its bounds; too few pairs say nothing, and these and equal ones show their range."""
    low, high = bounds
    least, largest = float(ratios.min()), float(ratios.max())
    enough = len(ratios) >= needed(level / 2.0)
    if largest - least < ALIKE:
        low, high = least, largest
    elif not enough or math.isinf(high - low):
        low, high, enough = least, largest, False
    verdict = Verdict.UNCLEAR
    if enough:
        verdict = judged(value, low, high, significant=significant, worth=rule.worth)
    return Comparison(
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - rule.error if enough else 1.0 - 2.0 ** (1 - len(ratios)),
        level=level,
        pairs=len(ratios),
        minimum_detectable=seen(low, high, level) if enough else None,
        verdict=verdict,
        settled=is_settled(verdict, low, high, worth=rule.worth) or len(ratios) >= rule.most,
    )


def is_settled(verdict: Verdict, low: float, high: float, *, worth: float) -> bool:
    """Whether a verdict is sure, and whether the change is as large as `worth`, too; all in logarithms."""
    return verdict is Verdict.SAME or (verdict is not Verdict.UNCLEAR and max(low, -high) >= worth - ALIKE)


def signed_rank_p(differences: Floats) -> float:
    """The two-sided p-value of Wilcoxon's signed ranks, for any ties; zeros are left out.

    Doubled mid-ranks are whole numbers, and their sum has the same distribution from either end.
    """
    moved = differences[differences != 0.0]
    if len(moved) == 0:
        return 1.0
    doubled = np.rint(2.0 * _mid_ranks(np.abs(moved))).astype(np.int64)
    above = int(doubled[moved > 0.0].sum())
    fewer = min(above, int(doubled.sum()) - above)
    return min(1.0, 2.0 * float(_at_most(doubled)[fewer]))


def left_out(pairs: int, level: float) -> int:
    """How many of the lowest, and of the highest, Walsh averages the signed-rank test's interval leaves out.

    It is also how many of the lowest rank sums the test rejects; none where so few pairs reject nothing.
    """
    return int(np.searchsorted(_at_most(np.arange(1, pairs + 1)), level / 2.0, side="right"))


def _at_most(ranks: npt.NDArray[np.int64]) -> Floats:
    """The probability of each sum, or a smaller one, of the ranks whose sign is plus, all signs equally likely.

    Exact, built up rank by rank, for as many as `EXACT`; beyond it, where that takes seconds, Edgeworth's
    expansion to the fourth cumulant with the step of the sums halved (Fellingham and Stoker 1964).
    """
    if len(ranks) <= EXACT:
        return np.cumsum(_rank_sums(ranks))
    from scipy.special import ndtr  # noqa: PLC0415 - a second to import, and seldom needed

    halves = ranks / 2.0
    spread = math.sqrt(float((halves**2).sum()))
    excess = -2.0 * float((halves**4).sum()) / spread**4
    step = int(np.gcd.reduce(ranks))
    sums = np.arange(int(ranks.sum()) + 1) // step * step
    normal = (sums + step / 2.0 - halves.sum()) / spread
    bend = excess / 24.0 * (normal**3 - 3.0 * normal) * np.exp(-(normal**2) / 2.0) / math.sqrt(2.0 * math.pi)
    chances: Floats = np.maximum.accumulate(np.clip(ndtr(normal) - bend, 0.0, 1.0))
    return chances


def _rank_sums(ranks: npt.NDArray[np.int64]) -> Floats:
    """The probability of each sum of the ranks whose sign is plus, all signs being equally likely."""
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = (ways[rank:] + ways[: len(ways) - rank]) / 2.0
        ways[:rank] /= 2.0
    return ways


def log_ratios(first: Sequence[float], second: Sequence[float]) -> Floats:
    """Give the logarithm of second/first of each pair. Raises `ValueError` as `compare` does."""
    if len(first) != len(second) or len(first) == 0:
        raise ValueError(f"{len(first)} and {len(second)} values: a comparison needs pairs, at least one")
    values = np.array([first, second], dtype=np.float64)
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise ValueError("only finite values above zero can be compared as ratios")
    ratios: Floats = np.log(values[1]) - np.log(values[0])
    return ratios


def seen(low: float, high: float, level: float) -> float:
    """The relative change that would have been called, `SEEN` often, by an interval of such a width (in logarithms)."""
    bound = NormalDist().inv_cdf(1.0 - level / 2.0)
    return math.expm1((bound + NormalDist().inv_cdf(SEEN)) * (high - low) / 2.0 / bound)


def judged(value: float, low: float, high: float, *, significant: bool, worth: float) -> Verdict:
    """Say what an effect and its interval come to, in logarithms; within `worth` two subjects are the same.

    Many pairs that are exactly alike leave a test significant by the others, and no change within the interval: then
    it is unclear.
    """
    if -worth < low and high < worth:
        return Verdict.SAME
    if significant and not low <= 0.0 <= high:
        return Verdict.SLOWER if value > 0.0 else Verdict.FASTER
    return Verdict.UNCLEAR


def walsh(ratios: Floats) -> Floats:
    """Every average of two differences, each with itself included; ascending."""
    rows, columns = np.triu_indices(len(ratios))
    averages: Floats = np.sort((ratios[rows] + ratios[columns]) / 2.0)
    return averages


def accepted_shifts(averages: Floats, pairs: int, level: float) -> tuple[float, float]:
    """The shifts that the signed-rank test does not reject at a level (Hollander and Wolfe, section 3.3), exactly.

    So few pairs that nothing is ever rejected exclude no shift: the sample's range is then all there is to show.
    """
    outside = left_out(pairs, level)
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


LEAST_NEIGHBOURS = 5
LEAST_PAIRS = 3

TO_SIGMA = 1.4826
"""A normal variable's median distance from its centre times this is its standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutNoise:
    """The standard deviation of a build's level over layouts, in logarithms, from the pairs of neighbours."""

    value: float
    builds: int


def layout_noise(neighbours: Sequence[Sequence[float]]) -> LayoutNoise | None:
    """Estimate layout noise from the log ratios of the pairs of neighbouring builds, one sequence for each two builds.

    It is robust: fewer than half of the neighbours may be real changes. What the pairs' own scatter explains is
    subtracted. `None` with fewer than `LEAST_NEIGHBOURS` of at least `LEAST_PAIRS` pairs.
    """
    known = [each for each in neighbours if len(each) >= LEAST_PAIRS]
    if len(known) < LEAST_NEIGHBOURS:
        return None
    apart = TO_SIGMA * statistics.median(abs(statistics.fmean(each)) for each in known)
    sampling = statistics.median(statistics.variance(each) / len(each) for each in known)
    return LayoutNoise(value=max(0.0, (apart**2 - sampling) / 2.0) ** 0.5, builds=len(known))
