"""Bets on the sign of differences: their wealth, their bounds, and their error rates under any noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.stats.comparison import bounds, centre, current_log_wealth, log_wealth

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Rng = np.random.Generator

LEVEL = 0.05
MOST = 64


def white(rng: Rng, count: int) -> Floats:
    return rng.normal(size=count)


def heavy(rng: Rng, count: int) -> Floats:
    return rng.standard_t(1.5, count)


def bimodal(rng: Rng, count: int) -> Floats:
    return rng.normal(size=count) + 30.0 * (rng.random(count) < 0.5)


def autocorrelated(rng: Rng, count: int) -> Floats:
    """AR(1) with a correlation of 0.5."""
    values = rng.normal(size=count)
    for at in range(1, count):
        values[at] += 0.5 * values[at - 1]
    return values


def bursts(rng: Rng, count: int) -> Floats:
    """Other load of 3 to 9 samples at a time, in 15 % of the time."""
    values = rng.normal(size=count)
    at = int(rng.integers(40))
    while at < count:
        length = int(rng.integers(3, 10))
        values[at : at + length] += 10.0
        at += length + int(rng.geometric(1 / 34))
    return values


def drifting(rng: Rng, count: int) -> Floats:
    return rng.normal(size=count) + np.linspace(0.0, 20.0, count)


NOISES = [white, heavy, bimodal, autocorrelated, bursts, drifting]


def few_or(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with a few trials, and a long one with many."""
    return pytest.mark.parametrize("trials", [few, pytest.param(many, marks=pytest.mark.long)])


def test_bets_have_the_wealth_of_their_formula() -> None:
    """W(c) = mean of prod(1 + s tanh(r (d - c) / scale)), and the largest so far counts."""
    differences, scale = [0.5, 1.5, -3.0], 2.0
    for shift in (0.0, 0.4):
        products = [1.0] * 6
        wealth = []
        for difference in differences:
            for at, (stake, rate) in enumerate(
                [(0.99, 0.1), (0.99, 0.25), (0.99, 0.5), (0.99, 1.0), (0.99, 2.0), (0.5, 1.0)]
            ):
                products[at] *= 1.0 + stake * math.tanh(rate * (difference - shift) / scale)
            wealth.append(sum(products) / 6)
        found = log_wealth(np.array(differences), scale, np.array([shift]))[0]
        assert found == pytest.approx(math.log(max(1.0, *wealth)))
        assert current_log_wealth(np.array(differences) - shift, scale) == pytest.approx(math.log(wealth[-1]))


def test_bounds_are_the_shifts_at_which_the_wealth_reaches_its_limit() -> None:
    differences = 2.0 + np.array([0.3, -1.1, 0.7, 0.1, -0.4, 1.2, -0.2, 0.5, -0.9, 0.6, 0.0, -0.3])
    found = bounds(differences, 1.0, LEVEL)
    limit = math.log(1 / LEVEL)
    # Wealth falls as the shift grows; a bound is exact to a small part of the scale.
    at_low = log_wealth(differences, 1.0, np.array([found.low, found.low + 0.001]))
    at_high = log_wealth(-differences, 1.0, np.array([-found.high, -found.high + 0.001]))
    for reached, missed in (at_low, at_high):
        assert reached >= limit > missed
    assert found.low < 2.0 < found.high
    assert math.isfinite(bounds(np.full(8, 5.0), 1.0, 0.005).low)
    assert bounds(np.full(7, 5.0), 1.0, 0.005).low == -math.inf, "seven bets cannot gain enough"


@few_or(300, 3000)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.__name__)
def test_equal_builds_are_called_different_no_more_often_than_allowed(
    noise: Callable[[Rng, int], Floats], trials: int
) -> None:
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(trials):
        pairs = noise(rng, 2 * MOST).reshape(MOST, 2)
        signs = rng.choice([-1.0, 1.0], MOST)
        evidence = log_wealth(signs * (pairs[:, 1] - pairs[:, 0]), 1.0, np.zeros(1))[0]
        wrong += evidence >= math.log(1 / LEVEL)
    # By Ville's inequality the share is at most LEVEL, plus three standard errors for chance.
    assert wrong / trials <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / trials)
    # A test that never rejects would have no power.
    assert wrong / trials > LEVEL / 20


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.__name__)
def test_bounds_contain_the_true_shift(noise: Callable[[Rng, int], Floats]) -> None:
    rng, trials = np.random.default_rng(8), 200
    missed = 0
    for _ in range(trials):
        pairs = noise(rng, 2 * 24).reshape(24, 2)
        signs = rng.choice([-1.0, 1.0], 24)
        found = bounds(2.0 + signs * (pairs[:, 1] - pairs[:, 0]), 1.0, LEVEL)
        missed += not found.low <= 2.0 <= found.high
    assert missed / trials <= 2 * LEVEL


def test_the_size_is_the_median_of_the_averages_of_all_pairs_of_values() -> None:
    assert centre(np.array([1.0, 2.0, 30.0])) == pytest.approx(np.median([1, 1.5, 2, 15.5, 16, 30]))


def test_the_centre_of_many_values_is_that_of_their_pairwise_averages() -> None:
    values = np.random.default_rng(3).normal(size=301)
    averages = np.add.outer(values, values)[np.triu_indices(len(values))] / 2
    assert centre(values) == pytest.approx(np.median(averages), abs=1e-12)
