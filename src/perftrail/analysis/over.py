"""Two subjects measured in pairs at several points: the geometric mean of the points' ratios, and a verdict on it.

The points stand for themselves and are no sample of others: what scatters is what they give from round to round. All
points of a round share its noise, so the k-th pairs of all points make one, and the round is the unit. Where there are
as many rounds as a verdict takes, these are compared as those of a point are. Fewer rounds cannot say so much without a
shape: then their mean has Student's t. It assumes that rounds scatter as sums of many small things do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import geometric_mean
from typing import TYPE_CHECKING

from perftrail.analysis.compare import Comparison, Rule, compare_once, judged, log_ratios, seen

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
        smallest_seen=seen(low, high, rule.level),
        verdict=judged(value, low, high, significant=True, worth=rule.worth),
        settled=True,
    )
