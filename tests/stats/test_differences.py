"""Metrics are ranked by what noise leaves of their difference, and small numbers are of no account."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.stats.ratios import difference


def test_counts_that_come_out_alike_differ_by_all_of_it() -> None:
    found = difference([100.0] * 3, [200.0] * 3, floor=0.0, metrics=50)
    assert found.lower_bound == found.size == pytest.approx(math.log(2.0))


def test_one_call_more_is_of_no_account_where_a_thousand_more_are() -> None:
    few = difference([1.0] * 3, [2.0] * 3, floor=5.0, metrics=1)
    many = difference([1000.0] * 3, [2000.0] * 3, floor=5.0, metrics=1)
    assert few.lower_bound < many.lower_bound / 4


def test_what_was_not_there_before_differs() -> None:
    assert difference([0.0] * 3, [1000.0] * 3, floor=5.0, metrics=1).differs


def test_what_is_gone_differs_downwards() -> None:
    found = difference([1000.0] * 3, [0.0] * 3, floor=5.0, metrics=1)
    assert found.differs
    assert found.size < 0.0


def test_a_difference_within_the_noise_is_none() -> None:
    assert not difference([1.0, 1.2, 0.9], [1.1, 0.95, 1.25], floor=0.0, metrics=10).differs


def test_a_small_but_steady_difference_outranks_a_large_one_in_noise() -> None:
    steady = difference([1.0, 1.001, 0.999], [1.2, 1.201, 1.199], floor=0.0, metrics=2)
    wild = difference([1.0, 3.0, 0.5], [2.0, 6.0, 1.0], floor=0.0, metrics=2)
    assert steady.lower_bound > wild.lower_bound


def test_a_report_of_many_metrics_seldom_claims_a_difference_that_does_not_exist() -> None:
    rng = np.random.default_rng(3)
    told = 0
    for _ in range(300):
        told += any(
            difference(
                list(np.exp(0.1 * rng.normal(size=5))),
                list(np.exp(0.1 * rng.normal(size=5))),
                floor=0.0,
                metrics=20,
            ).differs
            for _ in range(20)
        )
    assert told / 300 <= 0.03


def test_one_invocation_of_each_has_no_verdict() -> None:
    assert not difference([1.0], [2.0], floor=0.0, metrics=1).differs


def test_noise_that_hides_a_change_is_unclear_and_equal_values_are_the_same() -> None:
    assert difference([1.0, 1.2, 0.9], [1.1, 0.95, 1.25], floor=0.0, metrics=10).verdict == "unclear"
    assert difference([7.0] * 3, [7.0] * 3, floor=5.0, metrics=10).verdict == "same"
    assert difference([1.0], [2.0], floor=0.0, metrics=1).verdict == "unclear"


def test_the_minimum_detectable_change_is_detected_in_about_four_of_five_cases() -> None:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(400):
        noise = np.exp(0.05 * rng.normal(size=(2, 5)))
        least = difference(list(noise[0]), list(noise[1]), floor=0.0, metrics=20).minimum_detectable
        found.append(least)
    change = 1.0 + float(np.median(found))
    detected = 0
    for _ in range(400):
        noise = np.exp(0.05 * rng.normal(size=(2, 5)))
        detected += difference(list(noise[0]), list(noise[1] * change), floor=0.0, metrics=20).differs
    assert 0.65 <= detected / 400 <= 0.95


def test_nothing_before_has_no_relative_change() -> None:
    assert difference([0.0, 1.0, 0.0], [0.0] * 3, floor=5.0, metrics=5).minimum_detectable == float("inf")
