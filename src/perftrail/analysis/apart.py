"""Two samples that were not taken in turns: the effect, its interval, and a verdict.

Nothing pairs their values, so that whatever changed between the two besides the subject, the machine's mood say, is in
the effect. Under "no difference" every way to share the values out is as likely: Wilcoxon and Mann and Whitney's rank
sum is tested against all of them, on the logarithms. It assumes that the values of a sample are independent.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.compare import Comparison, Verdict, judged, seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

EXACT = 10_000
"""Up to so many pairs of values the distribution of the rank sum is worked out exactly."""

MOST = 2000
"""So many values of a sample are looked at."""


def compare_apart(
    first: Sequence[float], second: Sequence[float], *, level: float, smallest: float = 0.01
) -> Comparison:
    """Compare two samples of values above zero; less is faster. `pairs` is the size of the smaller one.

    The effect is Hodges and Lehmann's: the median of all ratios of one value to another. Its interval holds the shifts
    that the test does not reject at `level`. `smallest` is the change below which the two count as the same. Raises
    `ValueError` for an empty sample and for values that are not above zero.
    """
    if not first or not second or min(*first, *second, math.inf) <= 0.0:
        raise ValueError("two samples of values above zero are needed")
    one, other = (np.log(_thinned(sample)) for sample in (first, second))
    shifts = np.sort(np.subtract.outer(other, one).ravel())
    left_out = _left_out(len(one), len(other), level)
    edge = max(0, left_out - 1)  # too few values for any verdict: all that they span is told
    value, low, high = (float(each) for each in (np.median(shifts), shifts[edge], shifts[-1 - edge]))
    verdict = judged(value, low, high, significant=left_out > 0, worth=math.log1p(smallest))
    return Comparison(
        effect=math.exp(value),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1.0 - level,
        level=level,
        pairs=min(len(first), len(second)),
        smallest_seen=seen(low, high, level) if left_out else None,
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
