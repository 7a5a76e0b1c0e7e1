"""Two subjects measured in turns: the effect, its interval, and a verdict that looking often cannot inflate.

Pairs are started A B, B A, A B, … (ABBA), so that drift hits both alike; what is compared is the logarithm of
each pair's ratio. Under "no difference" exchanging the names in a pair only changes that number's sign:
Wilcoxon's signed ranks are tested against all signs, whatever the noise's shape. It assumes that
pairs are independent and that a pair's first and second place differ in nothing but what ABBA cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.spending import first_level, levels, looks

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


class Verdict(StrEnum):
    """What a comparison says of the second subject against the first."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The ratio second/first (Hodges and Lehmann's estimate; of points see `over`), its interval and the verdict.

    `confidence` is the interval's at this look, with every look and comparison of the report considered.
    `smallest_seen` is the relative change that this many pairs, as noisy as these, call in 80 of 100 cases, `None`
    where there are fewer than `needed_pairs`.
    `settled`: the verdict stands and measuring can stop.
    """

    effect: float
    low: float
    high: float
    confidence: float
    pairs: int
    smallest_seen: float | None
    verdict: Verdict
    settled: bool

    @property
    def needed_pairs(self) -> int:
        """How many pairs it takes for a verdict so strict, if every pair says the same."""
        return needed(1.0 - self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When to look, how strictly, and which change is worth telling.

    `most` pairs are measured at most; `comparisons` verdicts stand in one report and share its error;
    `smallest` is the relative change below which two subjects count as the same.
    """

    most: int
    comparisons: int = 1
    smallest: float = 0.01
    error: float = FAMILY_ERROR

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many pairs to look: from the first look on that could call anything."""
        counts = looks(self.most)
        while len(counts) > 1 and 2.0 ** (1 - counts[0]) > first_level(counts, self.error / self.comparisons):
            counts = counts[1:]
        return counts

    def level(self, pairs: int) -> float:
        """The p-value that a look after so many pairs may call significant."""
        counts = self.looks
        at = max((number for number, count in enumerate(counts) if count <= pairs), default=0)
        return levels(counts, self.error / self.comparisons)[at]


def compare(first: Sequence[float], second: Sequence[float], rule: Rule) -> Comparison:
    """Compare two subjects from values of pairs, all above zero, in the order taken; less is faster.

    Raises `ValueError` for samples of different lengths, empty ones, and values that are not above zero.
    """
    ratios = log_ratios(first, second)
    level = rule.level(len(ratios))
    averages = walsh(ratios)
    value = float(np.median(averages))
    low, high = accepted_shifts(averages, len(ratios), level)
    worth = math.log1p(rule.smallest)
    verdict, smallest = Verdict.UNCLEAR, None
    if len(ratios) >= needed(level):  # fewer could not call anything, whatever they say
        verdict = judged(value, low, high, significant=signed_rank_p(ratios) <= level, worth=worth)
        smallest = seen(low, high, level)
    return Comparison(
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - level,
        pairs=len(ratios),
        smallest_seen=smallest,
        verdict=verdict,
        settled=verdict is not Verdict.UNCLEAR or len(ratios) >= rule.most,
    )


def needed(level: float) -> int:
    """The fewest pairs of which the signed-rank test can call anything at a level.

    >>> needed(0.05), needed(0.0625)
    (6, 5)
    """
    return 1 + math.ceil(-math.log2(level) - 1e-9)


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
