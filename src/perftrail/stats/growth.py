"""Growth of a metric along an axis: its order, the exponent of a power law, and a break.

**Shapes** are ``a + b f(x)``. In logarithms, up to an additive constant, they are ``log(exp(t) + f(x))``; `t` is the
share of the cost that does not depend on x. Errors are relative to the value: a level is its shape plus a constant
plus noise. The noise variance is the level's own plus `MODEL_ERROR`, times a common unknown factor. The constant (flat
prior) and the factor (scaled inverse chi-square, `TRUST` degrees of freedom around 1) are integrated out. The result is
Student's t: the evidence is ``(TRUST + chi^2)^(-(n - 1 + TRUST) / 2)``, averaged over a shape's open parameters
(Gelman et al., Bayesian Data Analysis, 3rd edition, section 3.2; Kass and Raftery 1995 on its use). A point that was
given up contributes the probability that it is above its limit, given the others.

**Orders** are weighted by their evidence, with equal priors. The result is a set of orders that contains the
true one with probability `SURE`. An order under which the metric changes by less than `FLAT` over the range
counts as constant. If a power law or a break is `ODDS` times likelier than every order, no order is reported.
If points differ from every shape by more than their samples vary, the difference is systematic and smooth, as
with cache misses. Then n points count as `SMOOTH` independent ones, and close orders (n and n log n) are not
separated. A break is a shape with two exponents (Muggeo 2003 calls it broken-line regression); at most one is
reported. It assumes one shape along the whole axis, except for the break.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.student import t_cdf

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from perftrail.stats.curves import Curve

    Floats = npt.NDArray[np.float64]

MODEL_ERROR = 0.005
"""Relative error of every shape: no shape is exact to less than half a percent."""

TRUST = 1.0
"""Weight of the levels' own errors, in degrees of freedom. Their scatter around a shape counts more."""

MISFIT = 4.0
"""Points differ systematically from a shape if chi-square exceeds this multiple of their number."""

SMOOTH = 3.0
"""Number of independent points that systematic (smooth) differences count as, for any number of points."""

BELOW, ABOVE = 7.0, 4.0
"""Constant costs range from 1/1000 of the smallest varying cost to 50 times the largest."""

_GRID_ROUNDS = 5
_NEGLIGIBLE = 14.0
"""Cells whose log evidence is this much below the largest are outside of the next, finer grid."""

Shape = Callable[[Sequence["Floats"], "Floats"], "Floats"]
"""Function of open parameters, arrays of shape (cells,), and xs, shape (n,); returns logarithms, shape (cells, n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeEvidence:
    """A shape's evidence (a natural logarithm), and the grid of its open parameters with weights.

    `nodes` has shape (open, cells). `growths` is each cell's change over the range, in logarithms. `fit` is
    the shape at its likeliest cell, in logarithms of the metric; `chi_square` is the distance of the levels
    from it, in their own errors.
    """

    evidence: float
    nodes: Floats
    weights: Floats
    growths: Floats
    fit: Floats
    chi_square: float

    def interval(self, axis: int, *, confidence: float = 0.95) -> tuple[float, float, float]:
        """Return the median of an open parameter, and the ends of its credible interval with this `confidence`."""
        order = np.argsort(self.nodes[axis], kind="stable")
        values, cumulative = self.nodes[axis][order], np.cumsum(self.weights[order])
        tail = (1.0 - confidence) / 2.0
        low, middle, high = (float(np.interp(share, cumulative, values)) for share in (tail, 0.5, 1.0 - tail))
        return middle, low, high


def shape_evidence(
    curve: Curve, shape: Shape, bounds: Sequence[tuple[float, float]], *, cells: int = 0
) -> ShapeEvidence:
    """Return the evidence of a shape, averaged over its open parameters with uniform priors between bounds.

    The grid of `cells` on each axis is refined in rounds around the largest evidence.
    """
    count = cells or {0: 1, 1: 96, 2: 56}.get(len(bounds), 20)
    box = list(bounds)
    for number in range(_GRID_ROUNDS):
        axes = [low + (np.arange(count) + 0.5) * (high - low) / count for low, high in box]
        nodes = _cells(axes)
        found, growths, chi_squares, fits = _evidence(curve, shape, nodes)
        if number == _GRID_ROUNDS - 1 or not box:
            break
        near = nodes[:, found > found.max() - _NEGLIGIBLE]
        box = [
            (max(bound[0], values.min() - width), min(bound[1], values.max() + width))
            for bound, values, width in zip(
                bounds, near, [(high - low) / count for low, high in box], strict=True
            )
        ]
    top = float(found.max())
    weights = np.exp(found - top)
    share = math.prod(
        (high - low) / (last - first) for (low, high), (first, last) in zip(box, bounds, strict=True)
    )
    best = int(np.argmax(found))
    return ShapeEvidence(
        evidence=top + math.log(float(weights.mean()) * share),
        nodes=nodes,
        weights=weights / weights.sum(),
        growths=growths,
        fit=fits[best],
        chi_square=float(chi_squares[best]),
    )


def with_constant_cost(open_share: Floats, logs: Floats, known: Floats) -> Floats:
    """Add a cost that does not depend on x to f: `open_share` in 0..1 is its size on a log scale.

    `logs` is log f at the requested xs, `known` at the measured ones, both (cells, n).
    """
    finite = np.where(np.isfinite(known), known, np.nan)
    low = np.nanmin(finite, axis=1) - BELOW
    high = np.nanmax(finite, axis=1) + ABOVE
    start = low + open_share * (high - low)
    added: Floats = np.logaddexp(start[:, None], logs)
    return added


def _cells(axes: Sequence[Floats]) -> Floats:
    if not axes:
        return np.zeros((0, 1))
    return np.array([each.ravel() for each in np.meshgrid(*axes, indexing="ij")])


def _evidence(curve: Curve, shape: Shape, nodes: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, per cell, the log evidence, the growth over the range, chi-square, and the fitted logarithms."""
    every_x = curve.xs if curve.beyond is None else np.append(curve.xs, curve.beyond.x)
    every = shape(tuple(nodes), every_x)
    shapes = every[:, : len(curve)]
    variances = curve.errors**2 + MODEL_ERROR**2
    weights = 1.0 / variances
    distances = curve.logs - shapes
    level = distances @ weights / weights.sum()
    chi_squares = ((distances - level[:, None]) ** 2) @ weights
    freedom = (len(curve) if curve.effective_points is None else curve.effective_points) - 1 + TRUST
    found = -freedom / 2.0 * np.log(TRUST + chi_squares)
    if curve.beyond is not None:
        spread = np.sqrt((TRUST + chi_squares) / freedom * (np.median(variances) + 1.0 / weights.sum()))
        found = found + _above((level + every[:, -1] - math.log(curve.beyond.least)) / spread, freedom)
    return found, shapes.max(axis=1) - shapes.min(axis=1), chi_squares, shapes + level[:, None]


def _above(distances: Floats, freedom: float) -> Floats:
    """Return the log probability that a limit is exceeded, for predictions `distances` standard errors above it."""
    logarithms: Floats = np.log(np.maximum(t_cdf(freedom, distances), 1e-300))
    return logarithms


EXPONENTS = (-2.0, 5.0)
"""Bounds of a power law's exponent."""

STEEP = (math.log(8.0), math.log(1e30))
"""Bounds of an exponential's growth over the range. Below eightfold growth, it has no visible bend."""


class Order(StrEnum):
    """Growth of a cost with n, apart from a constant cost."""

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
"""Growth with n for each order without open parameters."""


def evidence_of_orders(curve: Curve) -> Mapping[Order, ShapeEvidence]:
    """Return the evidence of every possible order. Logarithms need n of at least 1, and some n above 1."""
    found = {Order.CONSTANT: shape_evidence(curve, _level, [])}
    for order, power in ((Order.LINEAR, 1.0), (Order.QUADRATIC, 2.0), (Order.CUBIC, 3.0)):
        found[order] = _one(curve, power * np.log(curve.xs), power=power, logarithms=0.0)
    if curve.xs[0] >= 1.0:
        found[Order.LOGARITHMIC] = _one(curve, _log_log(curve.xs), power=0.0, logarithms=1.0)
        linearithmic = np.log(curve.xs) + _log_log(curve.xs)
        found[Order.LINEARITHMIC] = _one(curve, linearithmic, power=1.0, logarithms=1.0)
    found[Order.EXPONENTIAL] = _exponential(curve)
    return {order: found[order] for order in Order if order in found}


def power_law(curve: Curve) -> ShapeEvidence:
    """Return the evidence of ``a + b n^p``; the share of `a` and the exponent `p` are open."""
    known = np.log(curve.xs)

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        share, exponent = nodes
        return with_constant_cost(share, exponent[:, None] * np.log(xs), exponent[:, None] * known)

    return shape_evidence(curve, shape, [(0.0, 1.0), EXPONENTS])


def pure_power(curve: Curve) -> ShapeEvidence:
    """Return the evidence of ``b n^p``, without a constant cost; the exponent is open."""

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        slopes: Floats = nodes[0][:, None] * np.log(xs)
        return slopes

    return shape_evidence(curve, shape, [EXPONENTS], cells=400)


def _one(curve: Curve, known: Floats, *, power: float, logarithms: float) -> ShapeEvidence:
    """Return the evidence of ``a + b n^power (log n)^logarithms``; the share of `a` is open."""

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        logs = power * np.log(xs) + (_log_log(xs) if logarithms else 0.0)
        cells = (len(nodes[0]), 1)
        return with_constant_cost(nodes[0], np.tile(logs, cells), np.tile(known, cells))

    return shape_evidence(curve, shape, [(0.0, 1.0)])


def _exponential(curve: Curve) -> ShapeEvidence:
    """Return the evidence of ``a + b r^n``; the share of `a` and the log growth over the range are open."""
    first, last = curve.xs[0], curve.xs[-1]

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        share, steepness = nodes
        rates = np.exp(steepness)[:, None]
        return with_constant_cost(
            share, rates * (xs - last) / (last - first), rates * (curve.xs - last) / (last - first)
        )

    return shape_evidence(curve, shape, [(0.0, 1.0), (math.log(STEEP[0]), math.log(STEEP[1]))])


def _level(_nodes: Sequence[Floats], xs: Floats) -> Floats:
    return np.zeros((1, len(xs)))


def _log_log(xs: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.log(xs))
    return logs


LEAST_PER_SIDE = 3
"""Minimum number of points on each side of a break."""

NOTABLE = 0.1
"""Smallest change of the exponent that counts as a break."""

_BREAK_CELLS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A value of the axis at which the exponent changes, with its 95 % interval.

    `before` and `after` are the exponents on its two sides, without the constant cost.
    """

    x: float
    low: float
    high: float
    before: float
    after: float


def break_point(curve: Curve, least: float) -> Break | None:
    """Return the break if its evidence, averaged over its position, exceeds `least`; else `None`."""
    positions = _possible_positions(curve)
    if not positions:
        return None
    found = [_broken(curve, position) for position in positions]
    top = max(each.evidence for each in found)
    weights = np.exp(np.array([each.evidence - top for each in found]))
    if top + math.log(float(weights.mean())) <= least:
        return None
    best = found[int(np.argmax(weights))]
    before, after = (best.interval(axis)[0] for axis in (1, 2))
    if abs(after - before) < NOTABLE:
        return None
    cumulative = np.cumsum(weights / weights.sum())
    first, last = int(np.searchsorted(cumulative, 0.025)), int(np.searchsorted(cumulative, 0.975))
    return Break(
        x=positions[int(np.argmax(weights))],
        low=_neighbour(curve, positions[first], below=True),
        high=_neighbour(curve, positions[min(last, len(positions) - 1)], below=False),
        before=before,
        after=after,
    )


def _possible_positions(curve: Curve) -> list[float]:
    """Return the possible positions of a break: points and midpoints, with enough points on both sides."""
    xs = curve.xs.tolist()
    halves = [math.sqrt(one * other) for one, other in pairwise(xs)]
    return [
        position
        for position in sorted((*xs, *halves))
        if sum(x < position for x in xs) >= LEAST_PER_SIDE and sum(x > position for x in xs) >= LEAST_PER_SIDE
    ]


def _broken(curve: Curve, position: float) -> ShapeEvidence:
    def logs(before: Floats, after: Floats, xs: Floats) -> Floats:
        beyond = np.log(xs / position)
        bent: Floats = np.where(beyond < 0.0, before[:, None] * beyond, after[:, None] * beyond)
        return bent

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        share, before, after = nodes
        return with_constant_cost(share, logs(before, after, xs), logs(before, after, curve.xs))

    return shape_evidence(curve, shape, [(0.0, 1.0), EXPONENTS, EXPONENTS], cells=_BREAK_CELLS)


def _neighbour(curve: Curve, position: float, *, below: bool) -> float:
    """Return the point next to a position: a break is known no better than the axis was measured."""
    if below:
        return float(curve.xs[curve.xs < position].max())
    return float(curve.xs[curve.xs > position].min())


LEAST_POINTS = 4
"""Minimum number of axis values for an order."""

SURE = 0.99
"""Total probability of the reported orders."""

FLAT = 0.1
"""A metric that changes by less than this share over the range is constant."""

MATTERS = 0.1
"""A constant cost is reported if it is at least this share of the first point's cost."""

ODDS = 100.0
"""A shape that is not an order must be this many times likelier than every order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponent:
    """Exponent of a power law, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Growth of a curve.

    `orders` are the remaining orders with their probabilities, likeliest first. There are several if they cannot be
    separated, and none if the curve follows none. `exponent` is that of a power law, without the constant cost
    unless the metric may be constant. `start` is the constant cost in the metric's unit, if the likeliest order has
    a relevant one. `misfit` is the relative distance of points from the fit. `systematic`: the samples' variation does
    not explain it. `factor` is the ratio of the last point to the first.
    """

    orders: Mapping[Order, float]
    exponent: Exponent
    start: float | None
    misfit: float
    systematic: bool
    factor: float
    bend: Break | None

    @property
    def order(self) -> Order | None:
        """The order, if only one remains."""
        return next(iter(self.orders)) if len(self.orders) == 1 else None


def growth(curve: Curve) -> Growth | None:
    """Return the growth of a curve; `None` with fewer than `LEAST_POINTS` axis values above zero."""
    curve = curve.part(int(np.searchsorted(curve.xs, 0.0, side="right")), len(curve))
    if len(curve) < LEAST_POINTS:
        return None
    found, power = evidence_of_orders(curve), power_law(curve)
    nearest = min(each.chi_square for each in (*found.values(), power)) / len(curve)
    bend = None
    if nearest >= 1.0:
        known = max(each.evidence for each in (*found.values(), power))
        bend = break_point(curve, known + math.log(ODDS))
    systematic = bend is None and curve.repeated and nearest > MISFIT
    if systematic:
        curve = replace(curve, effective_points=SMOOTH)
        found, power = evidence_of_orders(curve), power_law(curve)
    weights = probabilities(found)
    remaining = _remaining(weights, least=1.0 - SURE if systematic else 0.0)
    likeliest = max(weights, key=lambda order: weights[order])
    best = found[likeliest]
    evidence = max(each.evidence for each in found.values())
    if bend or power.evidence > evidence + math.log(ODDS):
        remaining, best = {}, power
    slope = pure_power(curve) if Order.CONSTANT in remaining else power
    middle, low, high = slope.interval(0 if slope is not power else 1)
    return Growth(
        orders=remaining,
        exponent=Exponent(value=middle, low=low, high=high),
        start=_start(curve, likeliest, best) if remaining and not systematic else None,
        misfit=math.sqrt(float(((curve.logs - best.fit) ** 2).mean())),
        systematic=systematic,
        factor=math.exp(float(curve.logs[-1] - curve.logs[0])),
        bend=bend,
    )


def probabilities(found: Mapping[Order, ShapeEvidence]) -> dict[Order, float]:
    """Return the probability of each order; parameters that hardly change the metric count as constant."""
    top = max(each.evidence for each in found.values())
    weights = dict.fromkeys(found, 0.0)
    for order, each in found.items():
        weight = math.exp(each.evidence - top)
        flat = float(each.weights[each.growths < math.log1p(FLAT)].sum())
        weights[order] += weight * (1.0 - flat)
        weights[Order.CONSTANT] += weight * flat
    total = sum(weights.values())
    return {order: weight / total for order, weight in weights.items()}


def _remaining(weights: Mapping[Order, float], *, least: float) -> dict[Order, float]:
    kept: dict[Order, float] = {}
    for order in sorted(weights, key=lambda order: -weights[order]):
        if sum(kept.values()) >= SURE or weights[order] < least:
            break
        kept[order] = weights[order]
    return kept


def _start(curve: Curve, order: Order, best: ShapeEvidence) -> float | None:
    """Return the constant cost, if it is at least a tenth of the first point's cost."""
    if order not in FUNCTIONS:
        return None
    function = FUNCTIONS[order]
    first, last = (float(function(curve.xs[at])) for at in (0, -1))
    lowest, highest = (math.exp(float(best.fit[at])) for at in (0, -1))
    start = lowest - (highest - lowest) / (last - first) * first
    return start if start >= MATTERS * lowest else None
