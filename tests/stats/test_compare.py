"""Comparisons detect differences, and interim analyses do not make wrong verdicts more frequent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perftrail.stats.comparison as compare_module
from perftrail.stats.comparison import Comparison, Rule, Verdict, compare, compare_once, signed_rank_p

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

RULE = Rule(most=150, comparisons=3, threshold=0.01)
positive = st.floats(min_value=0.01, max_value=100.0)


def skewed_with_outliers(rng: np.random.Generator, count: int) -> Floats:
    noise = 0.08 * (rng.gamma(4.0, size=count) - 4.0) / 2.0
    return noise + np.where(rng.random(count) < 0.03, math.log(2.0), 0.0)


def two_speeds(rng: np.random.Generator, count: int) -> Floats:
    """A machine that changes between two speeds, a factor 1.6 apart, every twenty runs or so."""
    slow = np.cumsum(rng.random(count) < 0.05) % 2
    return 0.5 * slow + 0.06 * rng.normal(size=count)


def drifting(rng: np.random.Generator, count: int) -> Floats:
    return np.linspace(0.0, 1.0, count) + 0.06 * rng.normal(size=count)


def paired_times(noise: Floats, effect: float) -> tuple[list[float], list[float]]:
    """Return the times of two programs in ABBA order on one machine; the second takes `effect` times as long."""
    first, second = [], []
    for pair in range(len(noise) // 2):
        early, late = noise[2 * pair], noise[2 * pair + 1]
        ours, theirs = (early, late) if pair % 2 == 0 else (late, early)
        first.append(math.exp(ours))
        second.append(math.exp(theirs) * effect)
    return first, second


def sequential(rng: np.random.Generator, draw: Draw, effect: float) -> Comparison:
    """Compare at each interim analysis of the rule, and stop when the verdict is settled."""
    first, second = paired_times(draw(rng, 2 * RULE.most), effect)
    for count in RULE.analyses:
        found = compare(first[:count], second[:count], RULE)
        if found.settled:
            break
    return found


@pytest.mark.long
@pytest.mark.parametrize("draw", [skewed_with_outliers, two_speeds, drifting])
def test_a_program_differs_from_itself_in_less_than_one_percent_of_comparisons(draw: Draw) -> None:
    rng = np.random.default_rng(3)
    verdicts = Counter(sequential(rng, draw, 1.0).verdict for _ in range(600))
    # 600 trials at 1 in 300 expect 2; 8 would be beyond 99.9 % of such campaigns.
    assert verdicts[Verdict.FASTER] + verdicts[Verdict.SLOWER] <= 7


@pytest.mark.long
@pytest.mark.parametrize("draw", [skewed_with_outliers, two_speeds, drifting])
def test_a_change_of_five_percent_is_detected_within_150_pairs_and_never_with_the_wrong_sign(
    draw: Draw,
) -> None:
    rng = np.random.default_rng(4)
    verdicts = Counter(sequential(rng, draw, 1.05).verdict for _ in range(150))
    assert verdicts[Verdict.SLOWER] >= 125
    assert verdicts[Verdict.FASTER] == 0


@pytest.mark.long
def test_the_final_interval_covers_the_effect_as_often_as_its_confidence() -> None:
    rng = np.random.default_rng(5)
    covered = sum(
        found.low <= 1.03 <= found.high
        for found in (sequential(rng, skewed_with_outliers, 1.03) for _ in range(300))
    )
    assert covered >= 296


def test_a_large_difference_is_settled_early() -> None:
    found = sequential(np.random.default_rng(6), skewed_with_outliers, 2.0)
    assert found.verdict is Verdict.SLOWER
    assert found.pairs <= 33


def test_a_program_with_little_noise_is_the_same_as_itself() -> None:
    rng = np.random.default_rng(7)
    found = sequential(rng, lambda rng, count: 0.003 * rng.normal(size=count), 1.0)
    assert found.verdict is Verdict.SAME
    assert found.minimum_detectable is not None
    assert found.minimum_detectable < 0.01


def test_an_unclear_comparison_has_a_minimum_detectable_change() -> None:
    rng = np.random.default_rng(8)
    found = sequential(rng, lambda rng, count: 0.5 * rng.normal(size=count), 1.0)
    assert found.verdict is Verdict.UNCLEAR
    assert found.settled
    assert found.minimum_detectable is not None
    assert 0.1 < found.minimum_detectable < 0.5


def test_values_without_noise_are_the_same_or_have_an_exact_effect() -> None:
    same = compare([5.0] * 20, [5.0] * 20, RULE)
    assert (same.verdict, same.effect, same.minimum_detectable) == (Verdict.SAME, 1.0, 0.0)
    different = compare([5.0] * 20, [6.0] * 20, RULE)
    assert different.verdict is Verdict.SLOWER
    assert [different.low, different.high] == pytest.approx([1.2, 1.2])


def test_with_many_equal_pairs_a_verdict_needs_an_interval_without_one() -> None:
    rule = Rule(most=50, comparisons=100)
    rng = np.random.default_rng(9)
    few, many = rng.permutation([1.0] * 25 + [0.4] * 25), rng.permutation([1.0] * 5 + [0.4] * 45)
    assert signed_rank_p(np.log(few)) < rule.level
    found = compare_once([1.0] * 50, list(few), rule)
    assert found.verdict is Verdict.UNCLEAR
    assert found.high >= 1.0
    assert compare_once([1.0] * 50, list(many), rule).verdict is Verdict.FASTER
    assert compare([1.0] * 50, list(many), rule).verdict is Verdict.FASTER


def test_the_confidence_does_not_depend_on_when_measuring_stops() -> None:
    rng = np.random.default_rng(10)
    for effect in (1.0, 1.05, 3.0):
        found = sequential(rng, lambda rng, count: 0.003 * rng.normal(size=count), effect)
        assert found.pairs < RULE.most
        assert found.confidence == 0.99
    assert compare([1.0, 1.1, 1.2], [1.0, 1.3, 1.1], RULE).confidence == 0.75


def test_a_difference_is_settled_once_its_interval_exceeds_the_threshold() -> None:
    rng = np.random.default_rng(11)
    ratios = np.exp(0.03 + 0.01 * rng.normal(size=60))
    rule = Rule(most=60, threshold=0.02)
    found = [compare([1.0] * count, list(ratios[:count]), rule) for count in range(8, 61)]
    assert found[-1].low > 1.02
    slower = [each for each in found if each.verdict is Verdict.SLOWER]
    assert {each.settled for each in slower} == {True, False}
    assert all(each.settled == (each.low >= 1.02 or each.pairs == 60) for each in slower)


def autoregressive(rng: np.random.Generator, count: int, correlation: float) -> Floats:
    noise = rng.normal(size=count) * math.sqrt(1.0 - correlation**2)
    noise[0] = rng.normal()
    for at in range(1, count):
        noise[at] += correlation * noise[at - 1]
    return noise


@pytest.mark.long
def test_correlated_pairs_of_equal_programs_differ_in_at_most_two_percent_of_comparisons() -> None:
    """Random order cannot remove this noise, which belongs to one build. At the time of writing 12 of 800 differed."""
    rng = np.random.default_rng(12)
    rule = Rule(most=150, threshold=1e-6)
    different = 0
    for _ in range(800):
        ratios = np.exp(0.02 * autoregressive(rng, rule.most, 0.3))
        for count in rule.analyses:
            found = compare([1.0] * count, list(ratios[:count]), rule)
            if found.verdict is not Verdict.UNCLEAR:
                different += 1
                break
    assert different <= 16


@pytest.mark.long
def test_one_analysis_of_correlated_pairs_misses_hardly_more_often_than_allowed() -> None:
    rng = np.random.default_rng(13)
    rule = Rule(most=30)
    missed = 0
    for _ in range(1500):
        ratios = np.exp(0.02 * autoregressive(rng, rule.most, 0.3))
        found = compare_once([1.0] * rule.most, list(ratios), rule)
        missed += not found.low <= 1.0 <= found.high
    assert missed <= 22  # 1500 at 1 in 100 expect 15


@pytest.mark.parametrize("most", [10, 15, 40, 150, 600])
def test_analyses_are_ascending_and_end_at_the_largest_number_of_pairs(most: int) -> None:
    counts = Rule(most=most).analyses
    assert counts[-1] == most
    assert list(counts) == sorted(set(counts))


def test_too_few_pairs_are_unclear_without_a_minimum_detectable_change() -> None:
    rule = Rule(most=20)
    few = compare([5.0] * 4, [5.0] * 4, rule)
    assert (few.verdict, few.minimum_detectable) == (Verdict.UNCLEAR, None)
    enough = compare([5.0] * few.needed_pairs, [5.0] * few.needed_pairs, rule)
    assert (enough.verdict, enough.minimum_detectable) == (Verdict.SAME, 0.0)
    assert (
        compare([5.0] * (few.needed_pairs - 1), [9.0] * (few.needed_pairs - 1), rule).minimum_detectable
        is None
    )


def test_a_change_below_the_threshold_is_the_same() -> None:
    assert compare([1.0] * 30, [1.004] * 30, RULE).verdict is Verdict.SAME


@pytest.mark.parametrize("invalid", [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [math.nan])])
def test_values_that_are_not_pairs_of_positive_numbers_are_refused(
    invalid: tuple[list[float], list[float]],
) -> None:
    with pytest.raises(ValueError, match=r"pairs|above zero"):
        compare(*invalid, RULE)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=40))
def test_exchanging_the_programs_inverts_the_effect_and_the_verdict(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    forward, backward = compare(first, second, RULE), compare(second, first, RULE)
    assert forward.effect == pytest.approx(1.0 / backward.effect)
    assert forward.low == pytest.approx(1.0 / backward.high)
    mirrored = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert backward.verdict is mirrored.get(forward.verdict, forward.verdict)


@settings(max_examples=25)
@given(st.lists(st.floats(-3, 3).filter(lambda x: abs(x) > 1e-6), min_size=3, max_size=10, unique_by=abs))
def test_the_p_value_is_the_share_of_all_signs_with_such_an_extreme_rank_sum(
    differences: list[float],
) -> None:
    values = np.array(differences)
    ranks = 1 + np.abs(values).argsort().argsort()
    signs = np.array(list(product([0, 1], repeat=len(values))))
    sums, own = signs @ ranks, int(ranks[values > 0].sum())
    expected = min(1.0, 2.0 * min(float((sums <= own).mean()), float((sums >= own).mean())))
    assert signed_rank_p(values) == pytest.approx(expected, abs=1e-9)


@pytest.mark.long
@given(st.lists(st.floats(-3, 3).filter(lambda x: abs(x) > 1e-6), min_size=3, max_size=18, unique_by=abs))
def test_the_p_value_is_that_of_the_signed_rank_test_of_scipy(differences: list[float]) -> None:
    from scipy.stats import wilcoxon  # here: only one process of a test run needs it

    ours = signed_rank_p(np.array(differences))
    assert ours == pytest.approx(wilcoxon(differences, method="exact").pvalue, abs=1e-9)


@pytest.mark.parametrize("copies", [1, 3])
def test_the_approximate_signed_rank_test_agrees_with_the_exact_one(
    copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = copies * np.repeat(np.arange(1, 300 // copies + 1), copies)
    exact = compare_module._at_most(ranks)
    monkeypatch.setattr(compare_module, "EXACT", 10)
    approximate = compare_module._at_most(ranks)
    for level in (1e-4, 1e-3, 0.01, 0.3):
        at = np.searchsorted(exact, level)
        assert approximate[at] == pytest.approx(exact[at], rel=2e-3)
    assert np.all(np.diff(approximate) >= 0.0)
