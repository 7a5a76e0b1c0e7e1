"""The looks share one error rate, whatever their number."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from perftrail.analysis.spending import levels, looks


@pytest.mark.parametrize("most", [10, 15, 40, 150, 600])
def test_the_last_look_is_at_the_most_and_looks_grow_apart(most: int) -> None:
    counts = looks(most)
    assert counts[-1] == most
    assert list(counts) == sorted(set(counts))


@pytest.mark.parametrize(("most", "alpha"), [(150, 0.05), (600, 0.05), (40, 0.01)])
def test_all_looks_together_err_as_often_as_allowed(most: int, alpha: float) -> None:
    rng = np.random.default_rng(1)
    counts = looks(most)
    bounds = [NormalDist().inv_cdf(1 - level / 2) for level in levels(counts, alpha)]
    steps = np.diff((0, *counts))
    trials = 100_000
    paths = np.cumsum(rng.normal(size=(trials, len(counts))) * np.sqrt(steps), axis=1)
    crossed = (np.abs(paths) / np.sqrt(counts) >= bounds).any(axis=1).mean()
    assert crossed == pytest.approx(alpha, abs=4 * (alpha / trials) ** 0.5)


def test_one_look_may_spend_it_all() -> None:
    assert levels((30,), 0.05) == pytest.approx((0.05,), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_an_error_rate_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        levels((10,), alpha)
