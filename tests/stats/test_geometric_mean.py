"""Comparisons over several points: their effect, how often their interval covers it, and when they are unclear."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest

from perftrail.stats.comparison import Rule, Verdict, compare_once
from perftrail.stats.ratios import compare_over

Noise = Callable[[random.Random], float]

EFFECTS = (0.5, 1.0, 1.3, 1.7, 0.9, 1.1)
TRUE = math.exp(sum(map(math.log, EFFECTS)) / len(EFFECTS))


def normal(rng: random.Random) -> float:
    return rng.gauss(0.0, 0.02)


def with_outliers(rng: random.Random) -> float:
    return rng.gauss(0.0, 0.02) * rng.choice((1, 1, 1, 1, 1, 1, 1, 5))


def pairs_of_points(
    rng: random.Random, effects: Sequence[float], counts: Sequence[int], noise: Noise
) -> list[list[tuple[float, float]]]:
    """Return pairs of each point. The noise grows from point to point, to almost three times the first."""
    return [
        [(1.0, effect * math.exp(noise(rng) * (1 + 2 * at / len(effects)))) for _ in range(count)]
        for at, (effect, count) in enumerate(zip(effects, counts, strict=True))
    ]


def test_two_rounds_of_many_comparisons_are_unclear_without_an_overflow() -> None:
    # A study with 840 comparisons: Student's bound of one degree of freedom is 53,000 errors.
    found = compare_over([[(1.0, 1.18), (1.0, 1.14)]] * 20, comparisons=840)
    assert found.verdict is Verdict.UNCLEAR
    assert found.minimum_detectable is None


def test_the_effect_is_the_geometric_mean_of_the_points_for_any_numbers_of_pairs() -> None:
    few = compare_over(pairs_of_points(random.Random(1), (4.0, 1.0), (9, 4), normal))
    many = compare_over(pairs_of_points(random.Random(1), (4.0, 1.0), (30, 12), normal))
    assert few.effect == pytest.approx(2.0, rel=0.05)
    assert many.effect == pytest.approx(2.0, rel=0.05)
    assert (few.pairs, many.pairs) == (2 * 4, 2 * 12)
    assert few.verdict is many.verdict is Verdict.SLOWER


def test_one_point_is_compared_like_a_single_comparison() -> None:
    [pairs] = pairs_of_points(random.Random(2), (1.1,), (12,), normal)
    first, second = zip(*pairs, strict=True)
    assert compare_over([pairs], comparisons=3) == compare_once(first, second, Rule(most=12, comparisons=3))


@pytest.mark.parametrize(("usual", "one", "verdict"), [(1.2, 0.1, "faster"), (0.8, 10.0, "slower")])
def test_the_verdict_follows_the_mean_and_not_the_majority_of_the_points(
    usual: float, one: float, verdict: str
) -> None:
    """Seven points are a fifth slower and one is ten times as fast: their mean is faster."""
    for count in (5, 24):
        found = compare_over(pairs_of_points(random.Random(3), (*[usual] * 7, one), (count,) * 8, normal))
        assert found.effect == pytest.approx((usual**7 * one) ** (1 / 8), rel=0.02)
        assert found.verdict == verdict


FEW_OR_MANY = pytest.mark.parametrize("trials", [200, pytest.param(1000, marks=pytest.mark.long)])


@FEW_OR_MANY
@pytest.mark.parametrize("noise", [normal, with_outliers])
@pytest.mark.parametrize("count", [2, 3, 5, 24])
def test_the_interval_covers_the_mean_as_often_as_its_confidence(
    count: int, noise: Noise, trials: int
) -> None:
    rng = random.Random(4)
    found = [
        compare_over(pairs_of_points(rng, EFFECTS, (count,) * len(EFFECTS), noise)) for _ in range(trials)
    ]
    missed = sum(not each.low <= TRUE <= each.high for each in found)
    assert missed <= 2 * trials * max(1.0 - each.confidence for each in found) + math.sqrt(trials) / 10


@FEW_OR_MANY
def test_equal_subjects_are_seldom_called_different(trials: int) -> None:
    rng = random.Random(5)
    found = [compare_over(pairs_of_points(rng, (1.0,) * 4, (5,) * 4, with_outliers)) for _ in range(trials)]
    assert sum(each.verdict in (Verdict.FASTER, Verdict.SLOWER) for each in found) <= 0.015 * trials


def test_few_equal_pairs_are_unclear() -> None:
    """Equal pairs, as of counts: chance may cause a few of them, but hardly eighteen."""
    few, many = (compare_over([[(1.0, 2.0)] * count, [(1.0, 3.0)] * count]) for count in (3, 18))
    assert (few.verdict, few.minimum_detectable) == (Verdict.UNCLEAR, None)
    assert many.verdict is Verdict.SLOWER
    assert many.low == many.high == pytest.approx(math.sqrt(6.0))


def test_single_pairs_of_points_show_their_range() -> None:
    found = compare_over([[(1.0, 2.0)], [(1.0, 8.0)]])
    assert found.effect == pytest.approx(4.0)
    assert found.verdict is Verdict.UNCLEAR


def test_points_without_pairs_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="a pair each"):
        compare_over([[(1.0, 2.0)], []])
    with pytest.raises(ValueError, match="points"):
        compare_over([])


@FEW_OR_MANY
def test_points_that_share_the_noise_of_a_round_have_a_wide_interval(trials: int) -> None:
    """Ten points of five rounds with a correlation of 0.5: their mean is hardly more precise than one point."""
    rng = random.Random(6)
    missed, width = 0, []
    for _ in range(trials):
        shared = [rng.gauss(0.0, 0.02) for _ in range(5)]
        points = [
            [(1.0, math.exp((each + rng.gauss(0.0, 0.02)) / math.sqrt(2))) for each in shared]
            for _ in range(10)
        ]
        found = compare_over(points)
        missed += not found.low <= 1.0 <= found.high
        width.append(math.log(found.high / found.low) / 2)
    assert missed <= 0.02 * trials  # the error is 1 in 100
    # the mean of five rounds has a standard error of 0.02 * sqrt((0.5 + 0.05) / 5), and Student's t 4.6 of these
    assert sum(width) / trials > 4.0 * 0.02 * math.sqrt(0.55 / 5)
