"""Orders of growth, exponents, breaks and crossings of curves whose truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from perftrail.stats.curves import Bound, Curve, crossings, curve_of
from perftrail.stats.growth import Order, growth

Floats = npt.NDArray[np.float64]
SIZES = np.geomspace(100.0, 1e5, 7).round()

TRUE: dict[Order, Callable[[Floats], Floats]] = {
    Order.CONSTANT: np.ones_like,
    Order.LOGARITHMIC: np.log,
    Order.LINEAR: lambda n: n,
    Order.LINEARITHMIC: lambda n: n * np.log(n),
    Order.QUADRATIC: lambda n: n**2,
    Order.CUBIC: lambda n: n**3,
}


def curve(
    sizes: Floats,
    levels: Floats,
    *,
    seed: int = 1,
    noise: float = 0.03,
    samples: int = 5,
    beyond: Bound | None = None,
) -> Curve:
    rng = np.random.default_rng(seed)
    values = levels[:, None] * np.exp(rng.normal(size=(len(sizes), samples)) * noise)
    return curve_of(list(zip(sizes.tolist(), map(tuple, values.tolist()), strict=True)), beyond=beyond)


@pytest.mark.parametrize("order", TRUE)
def test_an_order_is_recognised_over_three_decades(order: Order) -> None:
    for seed in range(5):
        found = growth(curve(SIZES, TRUE[order](SIZES), seed=seed))
        assert found is not None
        assert order in found.orders
        assert found.order in (order, None)
        assert found.bend is None


def test_an_exponential_is_recognised() -> None:
    sizes = np.arange(10.0, 24.0, 2.0)
    found = growth(curve(sizes, 2.0**sizes))
    assert found is not None
    assert found.order is Order.EXPONENTIAL


def test_the_cost_of_starting_is_subtracted_and_reported() -> None:
    found = growth(curve(SIZES, 1e3 + SIZES))
    assert found is not None
    assert found.order is Order.LINEAR
    assert found.start == pytest.approx(1e3, rel=0.1)
    assert found.exponent.low <= 1.0 <= found.exponent.high


def test_orders_that_cannot_be_distinguished_have_weights() -> None:
    sizes = np.array([1e3, 1.2e3, 1.5e3, 2e3])
    found = growth(curve(sizes, sizes * np.log(sizes), noise=0.1))
    assert found is not None
    assert found.order is None
    assert {Order.LINEAR, Order.LINEARITHMIC} <= set(found.orders)
    assert sum(found.orders.values()) == pytest.approx(1.0, abs=0.011)


def test_a_power_that_is_not_a_common_order_is_reported_as_a_power() -> None:
    found = growth(curve(SIZES, SIZES**1.5))
    assert found is not None
    assert not found.orders
    assert found.exponent.low <= 1.5 <= found.exponent.high


def costs_beyond_caches(sizes: Floats) -> Floats:
    """Return the costs of a linear program whose items of 16 bytes cost 1, 2, 4 or 10, by the cache they are in."""
    cost, dearest = np.ones_like(sizes), 1.0
    for capacity, dearer in ((32e3, 2.0), (1e6, 4.0), (32e6, 10.0)):
        cost += (dearer - dearest) * np.clip(1.0 - capacity / (16.0 * sizes), 0.0, 1.0)
        dearest = dearer
    levels: Floats = sizes * cost
    return levels


@pytest.mark.parametrize("noise", [0.01, 0.03])
@pytest.mark.parametrize(
    ("first", "last", "count"), [(1e2, 1e5, 7), (1e3, 1e6, 7), (1e3, 1e6, 10), (1e3, 1e7, 13)]
)
def test_linear_work_beyond_caches_is_not_distinguished_from_n_log_n(
    noise: float, first: float, last: float, count: int
) -> None:
    sizes = np.geomspace(first, last, count).round()
    for seed in range(5):
        found = growth(curve(sizes, costs_beyond_caches(sizes), seed=seed, noise=noise))
        assert found is not None
        assert found.systematic
        assert {Order.LINEAR, Order.LINEARITHMIC} <= set(found.orders)


def test_points_that_follow_an_order_have_no_systematic_deviation() -> None:
    for order, level in TRUE.items():
        found = growth(curve(SIZES, level(SIZES)))
        assert found is not None
        assert not found.systematic, order


def test_three_values_are_too_few_for_a_fit() -> None:
    assert growth(curve(SIZES[:3], SIZES[:3])) is None


def test_zero_on_the_axis_is_ignored() -> None:
    sizes = np.array([0.0, 100.0, 1e3, 1e4, 1e5])
    found = growth(curve(sizes, 1.0 + sizes))
    assert found is not None
    assert found.order is Order.LINEAR


def test_a_skipped_point_excludes_orders_that_would_have_stayed_below_its_limit() -> None:
    sizes = np.array([1e3, 2e3, 4e3, 8e3])
    for limit, linear in ((1e3, True), (1e9, False)):
        found = growth(curve(sizes, sizes, beyond=Bound(x=1e6, least=limit)))
        assert found is not None
        assert (max(found.orders, key=lambda order: found.orders[order]) is Order.LINEAR) is linear


@pytest.mark.parametrize("after", [1.3, 2.0])
def test_a_break_is_found_at_its_value(after: float) -> None:
    sizes = np.geomspace(100.0, 1e6, 12)
    found = growth(curve(sizes, np.where(sizes < 1e4, sizes / 1e4, (sizes / 1e4) ** after)))
    assert found is not None
    assert found.bend is not None
    assert found.bend.low <= 1e4 <= found.bend.high
    assert found.bend.before == pytest.approx(1.0, abs=0.1)
    assert found.bend.after == pytest.approx(after, abs=0.1)


def test_crossings_are_found_and_their_intervals_contain_them() -> None:
    covered = 0
    for seed in range(200):
        found = crossings(
            curve(SIZES, 2000.0 + SIZES, seed=seed), curve(SIZES, 1.0 + 1.5 * SIZES, seed=seed + 1000)
        )
        assert found is not None
        (each,) = found.crossings
        assert each.lower == 0
        covered += each.low <= 3998.0 <= each.high
    assert covered >= 170, "curves are not straight between their points"


def test_equal_curves_neither_differ_nor_cross() -> None:
    different = 0
    for seed in range(200):
        found = crossings(curve(SIZES, SIZES, seed=seed), curve(SIZES, SIZES, seed=seed + 1000))
        assert found is not None
        assert not found.crossings
        different += any(part.lower is not None for part in found.ranges)
    assert different <= 6


def test_the_lower_curve_is_named_along_the_axis() -> None:
    found = crossings(curve(SIZES, SIZES), curve(SIZES, 2.0 * SIZES, seed=2))
    assert found is not None
    (part,) = found.ranges
    assert part.lower == 0
    assert part.ratio == pytest.approx(2.0, rel=0.05)


def test_curves_without_a_common_value_are_not_compared() -> None:
    assert crossings(curve(SIZES, SIZES), curve(SIZES + 1.0, SIZES)) is None
