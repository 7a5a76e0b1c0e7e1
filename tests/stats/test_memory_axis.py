"""Memory for each unit, heaps that grow in steps, and leaks, in simulated series."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.stats.curves import Curve, curve_of
from perftrail.stats.memory import Leak, find_quantum, over_time, per_unit

MIB = 2.0**20


def curve(xs: list[float], values: list[float], *, noise: float = 0.003, seed: int = 1) -> Curve:
    rng = np.random.default_rng(seed)
    return curve_of(
        [(x, tuple(value * np.exp(noise * rng.normal(size=5)))) for x, value in zip(xs, values, strict=True)]
    )


def test_a_unit_costs_the_slope_and_its_interval_contains_it() -> None:
    xs = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    covered = 0
    for seed in range(100):
        found = per_unit(curve(xs, [100 * MIB + 3 * MIB * x for x in xs], noise=0.01, seed=seed))
        assert found is not None
        covered += found.low <= 3 * MIB <= found.high
    assert covered >= 90


def test_the_cost_of_a_unit_does_not_contain_a_large_base() -> None:
    xs = [1.0, 2.0, 3.0, 4.0]
    found = per_unit(curve(xs, [1000.0 + 10.0 * x for x in xs], noise=0.0))
    assert found is not None
    assert found.value == pytest.approx(10.0)
    assert found.base == pytest.approx(1000.0)
    assert not found.bent


def test_memory_that_grows_with_the_square_is_not_linear() -> None:
    xs = [float(x) for x in range(10, 101, 10)]
    found = per_unit(curve(xs, [MIB + 100.0 * x * x for x in xs]))
    assert found is not None
    assert found.bent


def test_two_points_are_too_few_for_a_slope() -> None:
    assert per_unit(curve([1.0, 2.0], [10.0, 20.0])) is None


@pytest.mark.parametrize("factor", [1.15, 1.5, 2.0])
def test_a_heap_that_grows_by_a_factor_is_recognised(factor: float) -> None:
    xs = [float(x) for x in np.geomspace(1e3, 1e5, 48).round()]
    heap = [126976.0 * factor ** math.ceil(math.log(max(1.0, 40.0 * x / 126976.0), factor)) for x in xs]
    found = find_quantum(curve(xs, heap, noise=0.0))
    assert found is not None
    assert found.factor == factor


def test_a_heap_that_grows_by_chunks_is_recognised_and_reported_with_the_slope() -> None:
    xs = [float(x) for x in range(1, 25)]
    heap = [4 * MIB * math.ceil((5 * MIB + 1.3 * MIB * x) / (4 * MIB)) for x in xs]
    found = per_unit(curve(xs, heap, noise=0.0))
    assert found is not None
    assert found.quantum is not None
    assert found.quantum.chunk == pytest.approx(4 * MIB, rel=0.01)
    assert found.low <= 1.3 * MIB <= found.high


def test_straight_lines_have_no_quantum() -> None:
    for xs in ([float(x) for x in range(1, 13)], [2.0**x for x in range(12)]):
        assert find_quantum(curve(xs, [MIB * x for x in xs], noise=0.0)) is None
        assert find_quantum(curve(xs, [50 * MIB + MIB * x for x in xs])) is None


def sawtooth(rng: np.random.Generator, *, leak: float, count: int = 200) -> list[tuple[float, float]]:
    times = np.arange(count) * 0.5
    collected = (times * 3.0 * MIB + rng.uniform(0.0, 30.0) * MIB) % (30 * MIB)
    noise = rng.normal(size=count) * 0.5 * MIB
    return list(zip(times.tolist(), (100 * MIB + collected + leak * times + noise).tolist(), strict=True))


def test_leaks_are_found_under_a_collector_with_few_false_alarms() -> None:
    rng = np.random.default_rng(3)
    false_alarms = detected = 0
    for _ in range(100):
        without, leaking = (over_time(sawtooth(rng, leak=leak)) for leak in (0.0, 0.5 * MIB))
        assert without is not None
        assert leaking is not None
        false_alarms += without.verdict is Leak.LEAK
        detected += leaking.verdict is Leak.LEAK
    assert false_alarms <= 1
    assert detected >= 95


def test_separate_runs_of_growing_length_show_a_leak_too() -> None:
    rng = np.random.default_rng(4)
    counts = dict.fromkeys(Leak, 0)
    for leak in (0.0, 1.0) * 50:
        series = [
            (seconds, 50 * MIB * (1.0 + 0.005 * float(rng.normal())) + leak * MIB * seconds)
            for seconds in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
            for _ in range(3)
        ]
        found = over_time(series)
        assert found is not None
        counts[found.verdict] += 1
    assert counts[Leak.LEAK] <= 51
    assert counts[Leak.LEAK] >= 48


def test_memory_that_levels_off_is_not_a_leak() -> None:
    times = [float(x) for x in range(40)]
    found = over_time([(x, 100 * MIB * (1.0 - 0.5 * math.exp(-x / 10.0))) for x in times])
    assert found is not None
    assert found.verdict is Leak.LEVELS_OFF


def test_four_times_are_too_few_for_a_verdict() -> None:
    assert over_time([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]) is None
