"""Comparison of two unpaired samples: verdicts, intervals and refused values."""

from __future__ import annotations

import math
import operator
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from perftrail.stats.ratios import compare_unpaired


def test_a_difference_is_reported_with_its_interval() -> None:
    rng = np.random.default_rng(1)
    first, second = (level * np.exp(rng.normal(0.0, 0.01, 20)) for level in (1.0, 1.2))
    found = compare_unpaired(first.tolist(), second.tolist(), level=0.01)
    assert found.verdict == "slower"
    assert found.low < 1.2 < found.high
    assert found.low > 1.18


def test_exchanging_the_samples_inverts_the_effect() -> None:
    first, second = [1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3]
    one, other = (compare_unpaired(*pair, level=0.05) for pair in ((first, second), (second, first)))
    assert math.isclose(one.effect * other.effect, 1.0)
    assert math.isclose(one.low * other.high, 1.0)
    assert (one.verdict, other.verdict) == ("slower", "faster")


def rank_sum_p(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Return the exact two-sided p-value: the share of all ways to choose ranks with such an extreme sum, doubled."""
    values = np.concatenate((first, second))
    ranks = values.argsort().argsort()
    own = ranks[: len(first)].sum()
    sums = [sum(each) for each in combinations(range(len(values)), len(first))]
    below, above = (
        sum(compare(each, own) for each in sums) / len(sums) for compare in (operator.le, operator.ge)
    )
    return float(min(1.0, 2.0 * min(below, above)))


@pytest.mark.parametrize("sizes", [(4, 4), (5, 7)])
def test_verdicts_agree_with_the_rank_sums_of_all_choices(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    verdicts = set()
    for _ in range(30):
        first, second = (
            np.exp(rng.normal(shift, 0.1, size)) for shift, size in zip((0.0, 0.1), sizes, strict=True)
        )
        expected = rank_sum_p(first, second) <= 0.05
        found = compare_unpaired(first.tolist(), second.tolist(), level=0.05, threshold=0.0)
        assert (found.verdict in ("faster", "slower")) == expected
        verdicts.add(expected)
    assert verdicts == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(4, 4), (5, 9), (12, 7)])
def test_verdicts_agree_with_the_exact_rank_sum_test_of_scipy(sizes: tuple[int, int]) -> None:
    from scipy.stats import mannwhitneyu  # here: only one process of a test run needs it

    rng = np.random.default_rng(2)
    for _ in range(60):
        first, second = (
            np.exp(rng.normal(shift, 0.1, size)) for shift, size in zip((0.0, 0.1), sizes, strict=True)
        )
        expected = mannwhitneyu(first, second, method="exact").pvalue <= 0.05
        found = compare_unpaired(first.tolist(), second.tolist(), level=0.05, threshold=0.0)
        assert (found.verdict in ("faster", "slower")) == expected


@pytest.mark.parametrize(("trials", "most"), [(200, 18), pytest.param(1000, 70, marks=pytest.mark.long)])
def test_equal_samples_are_called_different_no_more_often_than_allowed(trials: int, most: int) -> None:
    rng = np.random.default_rng(3)
    different = 0
    for _ in range(trials):
        first, second = (np.exp(rng.normal(0.0, 0.05, 8)) for _ in range(2))
        different += compare_unpaired(first.tolist(), second.tolist(), level=0.05).verdict in (
            "faster",
            "slower",
        )
    assert different <= most


def test_too_few_values_are_unclear() -> None:
    found = compare_unpaired([1.0, 1.0], [2.0, 2.0], level=0.01)
    assert (found.verdict, found.minimum_detectable) == ("unclear", None)
    assert found.effect == pytest.approx(2.0)


def test_samples_within_the_threshold_are_the_same() -> None:
    values = [1.0 + 0.0001 * index for index in range(20)]
    assert compare_unpaired(values, values, level=0.01).verdict == "same"


@pytest.mark.parametrize(("first", "second"), [([], [1.0]), ([1.0], []), ([0.0], [1.0])])
def test_samples_without_a_ratio_are_refused(first: list[float], second: list[float]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        compare_unpaired(first, second, level=0.05)
