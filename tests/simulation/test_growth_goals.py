"""How often orders of growth are recognised and exponents covered, over three decades at 3 % noise."""

from __future__ import annotations

import pytest

from perftrail.stats.growth import Order, growth
from tests.stats.test_growth import SIZES, TRUE, curve

pytestmark = pytest.mark.slow("simulation")

SERIES = 100
EXPONENTS = {Order.CONSTANT: 0.0, Order.LINEAR: 1.0, Order.QUADRATIC: 2.0, Order.CUBIC: 3.0}


@pytest.mark.parametrize("order", TRUE)
def test_an_order_is_reported_and_hardly_ever_a_wrong_one(order: Order) -> None:
    right = wrong = held = 0
    for seed in range(SERIES):
        found = growth(curve(SIZES, TRUE[order](SIZES), seed=seed))
        assert found is not None
        right += found.order is order
        wrong += order not in found.orders
        power = EXPONENTS.get(order, found.exponent.value)
        held += found.exponent.low <= power <= found.exponent.high
    assert right >= 95
    assert wrong <= 1
    assert held >= 88, "95 % within what a hundred series can tell"
