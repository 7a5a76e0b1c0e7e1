"""Distributions agree with scipy's, and with closed forms where scipy is less exact."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from perftrail.stats.student import f_above, normal_cdf, t_cdf, t_quantile

FREEDOMS = (0.3, 0.5, 1.5, 2, 3, 4.7, 9, 10, 19, 20, 21, 30, 55.5, 100, 399, 1e3, 1e4, 1e5, 1e6)
SMALLEST = 1e-280
"""Smaller probabilities lose digits in any implementation with 64-bit numbers."""


def agree(found: npt.ArrayLike, expected: npt.ArrayLike, precision: float = 1e-12) -> None:
    usable = np.abs(np.asarray(expected)) > SMALLEST
    np.testing.assert_allclose(
        np.asarray(found)[usable], np.asarray(expected)[usable], rtol=precision, atol=0.0
    )


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_probabilities_of_t_are_those_of_scipy(freedom: float) -> None:
    from scipy.special import stdtr  # here: only one process of a test run needs it

    sizes = np.logspace(-12, 12, 500)
    values = np.concatenate([-sizes[::-1], [0.0], sizes])
    agree(t_cdf(freedom, values), stdtr(freedom, values))
    agree(t_cdf(freedom, values.reshape(-1, 7)), stdtr(freedom, values.reshape(-1, 7)))
    assert float(t_cdf(freedom, 1.5)) == t_cdf(freedom, np.array([1.5]))[0]


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_of_t_are_those_of_scipy(freedom: float) -> None:
    from scipy.special import stdtrit

    tails = [1e-12, 1e-9, 1e-4, 0.025, 0.1, 0.2, 0.25, 0.3, 0.49]
    probabilities = [*tails, *(1.0 - each for each in tails)]
    agree([t_quantile(freedom, each) for each in probabilities], stdtrit(freedom, probabilities))


def test_one_and_two_degrees_of_freedom_have_closed_forms() -> None:
    tails = np.logspace(-140, math.log10(0.4999999999), 200)
    cauchy = np.array([-1.0 / math.tan(math.pi * each) for each in tails])
    agree(t_cdf(1, cauchy), tails)
    far = tails < 0.49  # nearer, the tangent's argument has fewer digits
    agree([t_quantile(1, each) for each in tails[far]], cauchy[far])
    agree([t_quantile(2, each) for each in tails], [(2 * p - 1) / math.sqrt(2 * p * (1 - p)) for p in tails])
    assert t_quantile(3, 0.5) == 0.0


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 40, 300])
@pytest.mark.parametrize("freedom_of_error", [1, 2, 3, 8, 20, 55, 100, 1000])
def test_probabilities_of_f_are_those_of_scipy(freedom: int, freedom_of_error: int) -> None:
    from scipy.special import fdtrc

    for value in (0.0, 1e-9, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0, 20.0, 100.0, 1e4):
        agree(f_above(freedom, freedom_of_error, value), fdtrc(freedom, freedom_of_error, value))


def test_probabilities_of_the_normal_distribution_are_those_of_scipy() -> None:
    from scipy.special import ndtr

    values = np.linspace(-35.0, 35.0, 10_001)
    agree(normal_cdf(values), ndtr(values))
