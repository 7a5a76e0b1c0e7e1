"""The orders of growth that programs have, and the power laws between them, as shapes to weigh."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.shapes import borne, with_start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from perftrail.analysis.curve import Curve
    from perftrail.analysis.shapes import Borne

    Floats = npt.NDArray[np.float64]

EXPONENTS = (-2.0, 5.0)
"""Between these a power law's exponent is looked for."""

STEEP = (math.log(8.0), math.log(1e30))
"""An exponential grows at least eightfold over the range: one that grows less has no bend to know it by."""


class Order(StrEnum):
    """How a cost grows with n, a cost that does not depend on n aside."""

    CONSTANT = "constant"
    LOGARITHMIC = "log n"
    LINEAR = "n"
    LINEARITHMIC = "n log n"
    QUADRATIC = "n²"
    CUBIC = "n³"
    EXPONENTIAL = "exponential"


FUNCTIONS: Mapping[Order, Callable[[float], float]] = {
    Order.LOGARITHMIC: math.log,
    Order.LINEAR: lambda n: n,
    Order.LINEARITHMIC: lambda n: n * math.log(n),
    Order.QUADRATIC: lambda n: n**2,
    Order.CUBIC: lambda n: n**3,
}
"""What grows with n under each order that leaves nothing open."""


def named(curve: Curve) -> Mapping[Order, Borne]:
    """Weigh every order that the axis allows: logarithms need n of 1 and more, some n above 1."""
    found = {Order.CONSTANT: borne(curve, _level, [])}
    for order, power in ((Order.LINEAR, 1.0), (Order.QUADRATIC, 2.0), (Order.CUBIC, 3.0)):
        found[order] = _one(curve, power * np.log(curve.xs), power=power, logarithms=0.0)
    if curve.xs[0] >= 1.0:
        found[Order.LOGARITHMIC] = _one(curve, _log_log(curve.xs), power=0.0, logarithms=1.0)
        linearithmic = np.log(curve.xs) + _log_log(curve.xs)
        found[Order.LINEARITHMIC] = _one(curve, linearithmic, power=1.0, logarithms=1.0)
    found[Order.EXPONENTIAL] = _exponential(curve)
    return {order: found[order] for order in Order if order in found}


def power_law(curve: Curve) -> Borne:
    """Weigh ``a + b n^p``; what is open are the share of `a` and the exponent `p`."""
    known = np.log(curve.xs)

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        share, exponent = nodes
        return with_start(share, exponent[:, None] * np.log(xs), exponent[:, None] * known)

    return borne(curve, shape, [(0.0, 1.0), EXPONENTS])


def pure_power(curve: Curve) -> Borne:
    """Weigh ``b n^p`` without a cost that does not depend on n; the exponent is open."""

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        slopes: Floats = nodes[0][:, None] * np.log(xs)
        return slopes

    return borne(curve, shape, [EXPONENTS], cells=400)


def _one(curve: Curve, known: Floats, *, power: float, logarithms: float) -> Borne:
    """Weigh ``a + b n^power (log n)^logarithms``; the share of `a` is open."""

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        logs = power * np.log(xs) + (_log_log(xs) if logarithms else 0.0)
        cells = (len(nodes[0]), 1)
        return with_start(nodes[0], np.tile(logs, cells), np.tile(known, cells))

    return borne(curve, shape, [(0.0, 1.0)])


def _exponential(curve: Curve) -> Borne:
    """Weigh ``a + b r^n``; open are the share of `a` and the logarithm of the growth over the whole range."""
    first, last = curve.xs[0], curve.xs[-1]

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        share, steepness = nodes
        rates = np.exp(steepness)[:, None]
        return with_start(
            share, rates * (xs - last) / (last - first), rates * (curve.xs - last) / (last - first)
        )

    return borne(curve, shape, [(0.0, 1.0), (math.log(STEEP[0]), math.log(STEEP[1]))])


def _level(_nodes: Sequence[Floats], xs: Floats) -> Floats:
    return np.zeros((1, len(xs)))


def _log_log(xs: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.log(xs))
    return logs
