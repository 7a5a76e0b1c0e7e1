"""Two subjects measured in turns at several points: the geometric mean of the points' ratios, and a verdict on it.

The points stand for themselves and are no sample of others: what scatters is what a point gives from pair to pair.
Where each point has as many pairs as a verdict takes, the k-th pairs of all points make one, and these are compared
as those of a point are, exactly. Where there are fewer, pairs cannot say so much without a shape: then each point's
log-ratios are taken to scatter as sums of many small things do, with a spread of its own, and the mean of the points'
means has Student's t with the degrees of freedom of Welch and Satterthwaite. Log-ratios that scatter more to one side
than to the other, as those of equal programs do not, make it miss more often than it says.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.compare import Comparison, Rule, Verdict, compare, judged, log_ratios, needed, seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.analysis.compare import Floats

    Pairs = Sequence[tuple[float, float]]
    """Values of the first subject and the second, of one point, in the order taken."""


def compare_over(points: Sequence[Pairs], *, comparisons: int = 1) -> Comparison:
    """Compare two subjects over points by pairs of values above zero; less is faster.

    It is one of so many `comparisons` that share an error; nothing was looked at before. `pairs` counts those that
    it goes by, of every point. Raises `ValueError` for no point, one without a pair, and values not above zero.
    """
    if not points or not all(points):
        raise ValueError("a comparison needs points with a pair each")
    rounds = over_points(points)
    pairs = sum(map(len, points))
    rule = Rule(most=max(len(rounds), 2), comparisons=comparisons)
    exact = compare([first for first, _ in rounds], [second for _, second in rounds], rule)
    if len(points) == 1 or len(rounds) >= exact.needed_pairs or pairs == len(points):
        return replace(exact, pairs=len(rounds) * len(points))
    return _by_shape(points, Rule(most=pairs, comparisons=comparisons).level(pairs))


def over_points(points: Sequence[Pairs]) -> list[tuple[float, float]]:
    """Put the pairs of several points together: the k-th is the geometric means of each point's k-th pair.

    The ratio of such a pair is the geometric mean of the points' ratios. It assumes that pairs of different points
    are independent. There are as many as the point with the fewest has.

    >>> [(round(one), round(two)) for one, two in over_points([[(1.0, 2.0), (1.0, 9.9)], [(4.0, 32.0)]])]
    [(2, 8)]
    """
    return [
        (geometric_mean(first for first, _ in pairs), geometric_mean(second for _, second in pairs))
        for pairs in zip(*points, strict=False)
    ]


def _by_shape(points: Sequence[Pairs], level: float) -> Comparison:
    """Compare by Student's t, at points that have too few pairs each but enough together."""
    logs = [log_ratios([first for first, _ in pairs], [second for _, second in pairs]) for pairs in points]
    value = float(np.mean([each.mean() for each in logs]))
    half = _half_width(logs, level)
    count = sum(map(len, logs))
    verdict, smallest = Verdict.UNCLEAR, None
    if count >= needed(level):
        verdict = judged(
            value, value - half, value + half, significant=True, worth=math.log1p(Rule(most=2).smallest)
        )
        smallest = seen(value - half, value + half, level)
    return Comparison(
        effect=math.exp(value),
        low=math.exp(value - half),
        high=math.exp(value + half),
        confidence=1.0 - level,
        pairs=count,
        smallest_seen=smallest,
        verdict=verdict,
        settled=True,
    )


def _half_width(logs: Sequence[Floats], level: float) -> float:
    """Half the interval of the mean of the points' means, in logarithms; a single pair scatters as the others do."""
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is imported where it is used

    squares = np.array([float(((each - each.mean()) ** 2).sum()) for each in logs])
    free = np.array([len(each) - 1 for each in logs])
    common = float(squares.sum() / free.sum())
    spreads = np.where(free > 0, squares / np.maximum(free, 1), common)
    variances = spreads / (free + 1) / len(logs) ** 2
    total = float(variances.sum())
    if total == 0.0:
        return 0.0
    freedom = total**2 / float((variances**2 / np.maximum(free, 1)).sum())
    return float(stdtrit(freedom, 1.0 - level / 2.0)) * math.sqrt(total)
