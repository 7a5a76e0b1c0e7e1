"""Two subjects measured in randomised pairs: the effect, its interval, and a verdict that holds whenever it stops.

A fair coin decides which of a pair starts first. What is compared is the logarithm of each pair's ratio: under "no
difference" the coin decides its sign, whatever the machine's noise is. `compare` bets on that sign, so that it may be
asked after each pair (see `martingale`). Half of its error is for the last analysis, at a number of pairs that is fixed
in advance: there Wilcoxon's signed ranks are tested against all signs, which sees smaller changes. `compare_once`, for
pairs that are analysed once, only does the latter. Both widen the interval where neighbouring pairs are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.martingale import careful_bounds, centre, inflation, needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

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
    error allowed to each test of this comparison. `smallest_seen` is the relative change that this many pairs, as noisy
    as these, call in 80 of 100 cases, `None` where there are fewer than `needed_pairs`. `settled`: measuring can stop,
    since the verdict is sure and the interval does not contain the smallest change that counts.
    """

    effect: float
    low: float
    high: float
    confidence: float
    level: float = FAMILY_ERROR
    pairs: int
    smallest_seen: float | None
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
    `smallest` is the relative change below which two subjects count as the same.
    """

    most: int
    comparisons: int = 1
    smallest: float = 0.01
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
        return math.log1p(self.smallest)

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
        smallest_seen=seen(low, high, level) if enough else None,
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
