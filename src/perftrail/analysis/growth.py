"""How a metric grows along an axis: its order, a power law's exponent, and where that changes.

Orders are weighed against each other by their evidence (see `shapes`), each as likely as another beforehand.
What is told is a set of orders that holds the true one with `SURE`: one, or several that cannot be told apart
over this range. An order under which the metric changes by less than `FLAT` over the whole range is no other
than constant. Where a power law or one with a break is `ODDS` times likelier than every order, none is told.

Assumes that points scatter independently and relative to their value, and one regime but for the breaks told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.breaks import Break, break_point
from perftrail.analysis.orders import FUNCTIONS, Order, named, power_law, pure_power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.analysis.curve import Curve
    from perftrail.analysis.shapes import Borne

LEAST_POINTS = 4
"""Fewer values of an axis say nothing of an order."""

SURE = 0.99
"""How probable the orders that are told are together."""

FLAT = 0.1
"""A metric that changes by less over the whole range is called constant."""

MATTERS = 0.1
"""A cost that does not depend on the axis is told when it is such a share of the first point's."""

ODDS = 100.0
"""How much likelier than every order something else must be to be told instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with the interval that holds it with 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a curve says.

    `orders` are those that remain, likeliest first, with their probabilities: one when it is told, several when
    they cannot be told apart, none when the curve follows none of them. `exponent` is that of a power law, a cost
    that does not depend on the axis taken off, unless the metric may be constant. `start` is that cost in the
    metric's unit, where the likeliest order has one that matters at the first point. `misfit` is how far points
    lie from the fit, as a share, and `factor` how many times more the last point takes than the first.
    """

    orders: Mapping[Order, float]
    exponent: Interval
    start: float | None
    misfit: float
    factor: float
    bend: Break | None

    @property
    def order(self) -> Order | None:
        """The order, where only one remains."""
        return next(iter(self.orders)) if len(self.orders) == 1 else None


def growth(curve: Curve) -> Growth | None:
    """Say how a curve grows; `None` for fewer than `LEAST_POINTS` values of the axis above zero."""
    curve = curve.part(int(np.searchsorted(curve.xs, 0.0, side="right")), len(curve))
    if len(curve) < LEAST_POINTS:
        return None
    found, free = named(curve), power_law(curve)
    weights = probabilities(found)
    remaining = _remaining(weights)
    likeliest = max(weights, key=lambda order: weights[order])
    best = found[likeliest]
    evidence = max(each.evidence for each in found.values())
    fits = min(best.chi_square, free.chi_square) < len(curve)
    bend = None if fits else break_point(curve, max(evidence, free.evidence) + math.log(ODDS))
    if bend or free.evidence > evidence + math.log(ODDS):
        remaining, best = {}, free
    slope = pure_power(curve) if Order.CONSTANT in remaining else free
    middle, low, high = slope.interval(0 if slope is not free else 1)
    return Growth(
        orders=remaining,
        exponent=Interval(value=middle, low=low, high=high),
        start=_start(curve, likeliest, best) if remaining else None,
        misfit=math.sqrt(float(((curve.logs - best.fit) ** 2).mean())),
        factor=math.exp(float(curve.logs[-1] - curve.logs[0])),
        bend=bend,
    )


def probabilities(found: Mapping[Order, Borne]) -> dict[Order, float]:
    """Weigh orders against each other; what hardly changes over the range counts as constant."""
    top = max(each.evidence for each in found.values())
    weights = dict.fromkeys(found, 0.0)
    for order, each in found.items():
        weight = math.exp(each.evidence - top)
        flat = float(each.weights[each.growths < math.log1p(FLAT)].sum())
        weights[order] += weight * (1.0 - flat)
        weights[Order.CONSTANT] += weight * flat
    total = sum(weights.values())
    return {order: weight / total for order, weight in weights.items()}


def _remaining(weights: Mapping[Order, float]) -> dict[Order, float]:
    kept: dict[Order, float] = {}
    for order in sorted(weights, key=lambda order: -weights[order]):
        if sum(kept.values()) >= SURE:
            break
        kept[order] = weights[order]
    return kept


def _start(curve: Curve, order: Order, best: Borne) -> float | None:
    """The cost that does not depend on the axis, where it is at least a tenth of the first point's."""
    if order not in FUNCTIONS:
        return None
    function = FUNCTIONS[order]
    first, last = (float(function(curve.xs[at])) for at in (0, -1))
    cheapest, dearest = (math.exp(float(best.fit[at])) for at in (0, -1))
    start = cheapest - (dearest - cheapest) / (last - first) * first
    return start if start >= MATTERS * cheapest else None
