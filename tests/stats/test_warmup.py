"""Detection of warm-ups: the number of first runs that differ from later ones."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.stats.trial import MOST, WINDOW, find_warmup, fixed_warmup, provisional_warmup


def series(
    rng: random.Random, *, noise: float, factors: tuple[float, ...] = (), count: int = 25
) -> list[float]:
    values = [math.exp(rng.gauss(0.0, noise)) for _ in range(count)]
    return [value * factor for value, factor in zip(values, (*factors, *[1.0] * count), strict=False)]


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.05, 0.1])
def test_a_flat_series_rarely_has_a_warm_up(noise: float) -> None:
    rng = random.Random(1)
    found = [find_warmup(series(rng, noise=noise)) for _ in range(500)]
    assert sum(warmup is not None and warmup.count == 0 for warmup in found) > 460


@pytest.mark.parametrize("factors", [(1.8,), (3.0, 1.5), (4.0, 3.0, 2.0, 1.5), (0.5, 0.7)])
def test_exactly_the_first_runs_that_differ_are_warm_ups(factors: tuple[float, ...]) -> None:
    rng = random.Random(2)
    found = [find_warmup(series(rng, noise=0.02, factors=factors)) for _ in range(300)]
    assert sum(warmup is not None and warmup.count == len(factors) for warmup in found) > 255


def test_the_ratio_of_the_first_run_to_the_others_is_reported() -> None:
    found = find_warmup([1.8, *[1.0, 1.01] * 5])
    assert found is not None
    assert found.count == 1
    assert found.first_ratio == pytest.approx(1.8, rel=0.01)


def test_a_series_that_never_levels_off_is_not_stable() -> None:
    found = find_warmup([math.exp(-0.2 * number) for number in range(40)])
    assert found is not None
    assert (found.count, found.stable) == (MOST, False)


@given(st.lists(st.floats(0.01, 100.0), min_size=WINDOW, max_size=40))
def test_later_values_never_change_the_number_of_warm_ups(values: list[float]) -> None:
    decided = [find_warmup(values[:count]) for count in range(len(values) + 1)]
    known = [each for each in decided if each is not None]
    assert all(each == known[0] for each in known)


def test_too_few_values_show_only_a_large_first_one() -> None:
    assert provisional_warmup([3.0, 1.0, 1.02, 0.99]).count == 1
    assert provisional_warmup([1.1, 1.0, 1.02, 0.99]).count == 0
    assert not provisional_warmup([3.0, 1.0, 1.0]).stable


@given(st.lists(st.floats(0.01, 100.0), max_size=20))
def test_a_provisional_warm_up_leaves_at_least_three_values(values: list[float]) -> None:
    assert provisional_warmup(values).count <= max(0, len(values) - 3)


def test_a_fixed_number_of_warm_ups_is_obeyed() -> None:
    assert fixed_warmup([2.0, 1.0, 1.0], 1).count == 1
    assert fixed_warmup([2.0], 3).count == 3
