"""Warm-up is found: how many first runs differ from those that follow."""

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
def test_a_level_series_rarely_loses_a_value(noise: float) -> None:
    rng = random.Random(1)
    found = [find_warmup(series(rng, noise=noise)) for _ in range(500)]
    assert sum(warmup is not None and warmup.count == 0 for warmup in found) > 460


@pytest.mark.parametrize("factors", [(1.8,), (3.0, 1.5), (4.0, 3.0, 2.0, 1.5), (0.5, 0.7)])
def test_first_runs_that_differ_are_left_out_and_no_others(factors: tuple[float, ...]) -> None:
    rng = random.Random(2)
    found = [find_warmup(series(rng, noise=0.02, factors=factors)) for _ in range(300)]
    assert sum(warmup is not None and warmup.count == len(factors) for warmup in found) > 255


def test_it_says_how_much_longer_the_first_took() -> None:
    found = find_warmup([1.8, *[1.0, 1.01] * 5])
    assert found is not None
    assert found.count == 1
    assert found.first_ratio == pytest.approx(1.8, rel=0.01)


def test_a_series_that_never_levels_is_said_to_be_so() -> None:
    found = find_warmup([math.exp(-0.2 * number) for number in range(40)])
    assert found is not None
    assert (found.count, found.stable) == (MOST, False)


@given(st.lists(st.floats(0.01, 100.0), min_size=WINDOW, max_size=40))
def test_what_follows_never_changes_what_was_decided(values: list[float]) -> None:
    decided = [find_warmup(values[:count]) for count in range(len(values) + 1)]
    known = [each for each in decided if each is not None]
    assert all(each == known[0] for each in known)


def test_too_few_values_show_only_a_large_first_one() -> None:
    assert provisional_warmup([3.0, 1.0, 1.02, 0.99]).count == 1
    assert provisional_warmup([1.1, 1.0, 1.02, 0.99]).count == 0
    assert not provisional_warmup([3.0, 1.0, 1.0]).stable


@given(st.lists(st.floats(0.01, 100.0), max_size=20))
def test_there_is_always_a_last_word_and_it_leaves_something(values: list[float]) -> None:
    assert provisional_warmup(values).count <= max(0, len(values) - 3)


def test_a_given_number_is_kept_to() -> None:
    assert fixed_warmup([2.0, 1.0, 1.0], 1).count == 1
    assert fixed_warmup([2.0], 3).count == 3
