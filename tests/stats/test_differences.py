"""Metrics are ranked by the lower bound of their difference, and small counts rank low."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.stats.ratios import difference


def test_counts_without_noise_differ_by_their_whole_ratio() -> None:
    found = difference([100.0] * 3, [200.0] * 3, floor=0.0, metrics=50)
    assert found.lower_bound == found.size == pytest.approx(math.log(2.0))


def test_one_more_call_ranks_far_below_a_thousand_more_calls() -> None:
    few = difference([1.0] * 3, [2.0] * 3, floor=5.0, metrics=1)
    many = difference([1000.0] * 3, [2000.0] * 3, floor=5.0, metrics=1)
    assert few.lower_bound < many.lower_bound / 4


def test_a_new_count_differs() -> None:
    assert difference([0.0] * 3, [1000.0] * 3, floor=5.0, metrics=1).differs


def test_a_vanished_count_differs_downwards() -> None:
    found = difference([1000.0] * 3, [0.0] * 3, floor=5.0, metrics=1)
    assert found.differs
    assert found.size < 0.0


def test_a_difference_within_the_noise_is_not_reported() -> None:
    assert not difference([1.0, 1.2, 0.9], [1.1, 0.95, 1.25], floor=0.0, metrics=10).differs


def test_a_small_but_steady_difference_outranks_a_large_one_in_noise() -> None:
    steady = difference([1.0, 1.001, 0.999], [1.2, 1.201, 1.199], floor=0.0, metrics=2)
    wild = difference([1.0, 3.0, 0.5], [2.0, 6.0, 1.0], floor=0.0, metrics=2)
    assert steady.lower_bound > wild.lower_bound


def test_a_report_of_many_metrics_seldom_claims_a_difference_that_does_not_exist() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        wrong += any(
            difference(
                list(np.exp(0.1 * rng.normal(size=5))),
                list(np.exp(0.1 * rng.normal(size=5))),
                floor=0.0,
                metrics=20,
            ).differs
            for _ in range(20)
        )
    assert wrong / 300 <= 0.03


def test_one_invocation_of_each_has_no_verdict() -> None:
    assert not difference([1.0], [2.0], floor=0.0, metrics=1).differs


def test_noise_that_hides_a_change_is_unclear_and_equal_values_are_the_same() -> None:
    assert difference([1.0, 1.2, 0.9], [1.1, 0.95, 1.25], floor=0.0, metrics=10).verdict == "unclear"
    assert difference([7.0] * 3, [7.0] * 3, floor=5.0, metrics=10).verdict == "same"
    assert difference([1.0], [2.0], floor=0.0, metrics=1).verdict == "unclear"


def test_the_minimum_detectable_change_is_detected_in_about_four_of_five_cases() -> None:
    rng = np.random.default_rng(5)
    minimums = []
    for _ in range(400):
        noise = np.exp(0.05 * rng.normal(size=(2, 5)))
        minimum = difference(list(noise[0]), list(noise[1]), floor=0.0, metrics=20).minimum_detectable
        minimums.append(minimum)
    change = 1.0 + float(np.median(minimums))
    detected = 0
    for _ in range(400):
        noise = np.exp(0.05 * rng.normal(size=(2, 5)))
        detected += difference(list(noise[0]), list(noise[1] * change), floor=0.0, metrics=20).differs
    assert 0.65 <= detected / 400 <= 0.95


def test_counts_near_zero_have_no_finite_minimum_detectable_change() -> None:
    assert difference([0.0, 1.0, 0.0], [0.0] * 3, floor=5.0, metrics=5).minimum_detectable == float("inf")
