"""The interval of an estimate covers the median as often as its confidence, for any shape of the noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perftrail.stats.estimate import enough, estimate

finite = st.floats(min_value=-1e9, max_value=1e9)


def gaussian(rng: random.Random) -> float:
    return rng.gauss(0.0, 1.0)


def skewed_with_outliers(rng: random.Random) -> float:
    value = rng.gammavariate(4.0, 1.0)
    return value * 3.0 if rng.random() < 0.03 else value


MEDIANS: dict[Callable[[random.Random], float], float] = {gaussian: 0.0, skewed_with_outliers: 3.7406}
"""The median is m with 0.97 G(m) + 0.03 G(m / 3) = 1/2 for the distribution function G of the gamma distribution."""


@pytest.mark.parametrize("trials", [400, pytest.param(4000, marks=pytest.mark.long)])
@pytest.mark.parametrize("count", [6, 7, 10, 25, 30])
@pytest.mark.parametrize("draw", [gaussian, skewed_with_outliers])
def test_the_interval_covers_the_median_in_about_95_of_100_samples(
    draw: Callable[[random.Random], float], count: int, trials: int
) -> None:
    truth, rng = MEDIANS[draw], random.Random(count)
    covered = 0
    for _ in range(trials):
        found = estimate([draw(rng) for _ in range(count)])
        covered += found.low <= truth <= found.high
    # Three standard errors of a share of 0.95 over the trials, and 0.005 for the interpolation.
    assert covered / trials == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / trials) + 0.005)


def test_five_values_have_a_confidence_below_95_percent() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.high) == (1.0, 5.0)
    assert found.confidence == pytest.approx(0.9375)


def test_one_value_has_no_confidence() -> None:
    found = estimate([3.0])
    assert (found.value, found.low, found.high, found.confidence) == (3.0, 3.0, 3.0, 0.0)


def test_an_empty_sample_has_no_estimate() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        estimate([])


@example([0.0, 0.0, 0.0, 0.0, 0.22, 0.22])
@given(st.lists(finite, min_size=1, max_size=40))
def test_the_interval_contains_the_median_and_stays_within_the_sample(values: list[float]) -> None:
    found = estimate(values)
    assert min(values) <= found.low <= found.value <= found.high <= max(values)


@given(st.lists(finite, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_matter(values: list[float], rng: random.Random) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert estimate(shuffled) == estimate(values)


@given(st.lists(st.floats(min_value=0.1, max_value=10), min_size=6, max_size=40), st.floats(0.5, 2.0))
def test_scaling_the_values_scales_the_estimate(values: list[float], factor: float) -> None:
    plain, scaled = estimate(values), estimate([value * factor for value in values])
    assert scaled.value == pytest.approx(plain.value * factor)
    assert scaled.low == pytest.approx(plain.low * factor)
    assert scaled.high == pytest.approx(plain.high * factor)


def test_a_wide_sample_needs_the_largest_number_of_values_and_a_narrow_one_the_smallest() -> None:
    wide = [1.0 + 0.5 * math.sin(number) for number in range(30)]
    narrow = [1.0 + 0.001 * math.sin(number) for number in range(6)]
    assert not enough(wide[:29], least=5, most=30, precision=0.02)
    assert enough(wide, least=5, most=30, precision=0.02)
    assert enough(narrow, least=5, most=30, precision=0.02)
    assert not enough(narrow[:4], least=5, most=30, precision=0.02)
