"""Shapes of curves, ``a + b f(x)``, and how well each is borne out by what was measured.

A shape is a logarithm up to an additive constant, ``log(exp(t) + f(x))``; `t` says how much of the cost does
not depend on x. Errors are taken relative to the value: a level is its shape plus a constant plus noise, whose
variance is the level's own plus `LACK`, times a common factor that is unknown. The constant (flat prior) and
the factor (scaled inverse chi-square, `TRUST` degrees of freedom around 1) are integrated out, which leaves
Student's t: the evidence is ``(TRUST + chi^2)^(-(n - 1 + TRUST) / 2)``, averaged over what else a shape leaves
open (Gelman et al., Bayesian Data Analysis, 3rd edition, section 3.2; Kass and Raftery 1995 on its use). A
point that was given up counts with the probability that it lies above its limit, given the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.analysis.curve import Curve

    Floats = npt.NDArray[np.float64]

LACK = 0.005
"""No shape is believed to hold closer than to half a percent."""

TRUST = 1.0
"""How many degrees of freedom the levels' own errors are worth: their scatter around a shape counts more."""

BELOW, ABOVE = 7.0, 4.0
"""Costs that do not depend on x range from a thousandth of the least to fifty times the largest that do."""

_ROUNDS = 5
_HELD = 14.0

Shape = Callable[[Sequence["Floats"], "Floats"], "Floats"]
"""From what is open, arrays of shape (cells,) each, and xs of shape (n,) to logarithms of shape (cells, n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Borne:
    """A shape's evidence (a natural logarithm), and the cells of what it leaves open with their weights.

    `nodes` has shape (open, cells). `fit` is the shape at its likeliest cell, in logarithms of the metric;
    `chi_square` says how far levels are from it, in their own errors.
    """

    evidence: float
    nodes: Floats
    weights: Floats
    growths: Floats
    fit: Floats
    chi_square: float

    def interval(self, axis: int, *, confidence: float = 0.95) -> tuple[float, float, float]:
        """The median of something open and the interval that holds it with a probability."""
        order = np.argsort(self.nodes[axis], kind="stable")
        values, held = self.nodes[axis][order], np.cumsum(self.weights[order])
        tail = (1.0 - confidence) / 2.0
        low, middle, high = (float(np.interp(share, held, values)) for share in (tail, 0.5, 1.0 - tail))
        return middle, low, high


def borne(curve: Curve, shape: Shape, bounds: Sequence[tuple[float, float]], *, cells: int = 0) -> Borne:
    """Weigh a shape over what it leaves open, each uniformly between its bounds.

    The grid of `cells` on each axis closes in, round by round, on where the evidence is.
    """
    count = cells or {0: 1, 1: 96, 2: 56}.get(len(bounds), 20)
    box = list(bounds)
    for number in range(_ROUNDS):
        axes = [low + (np.arange(count) + 0.5) * (high - low) / count for low, high in box]
        nodes = _cells(axes)
        found, growths, chi_squares, fits = _evidence(curve, shape, nodes)
        if number == _ROUNDS - 1 or not box:
            break
        near = nodes[:, found > found.max() - _HELD]
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
    return Borne(
        evidence=top + math.log(float(weights.mean()) * share),
        nodes=nodes,
        weights=weights / weights.sum(),
        growths=growths,
        fit=fits[best],
        chi_square=float(chi_squares[best]),
    )


def with_start(open_share: Floats, logs: Floats, known: Floats) -> Floats:
    """Add a cost that does not depend on x to f: `open_share` in 0..1 says how much, evenly on a log scale.

    `logs` is log f at the xs that are asked for, `known` at those that were measured, both (cells, n).
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
    """Of each cell the evidence's logarithm, the growth over the range, chi-square, and the fitted logarithms."""
    asked = curve.xs if curve.beyond is None else np.append(curve.xs, curve.beyond.x)
    every = shape(tuple(nodes), asked)
    shapes = every[:, : len(curve)]
    variances = curve.errors**2 + LACK**2
    weights = 1.0 / variances
    away = curve.logs - shapes
    level = away @ weights / weights.sum()
    chi_squares = ((away - level[:, None]) ** 2) @ weights
    freedom = len(curve) - 1 + TRUST
    found = -freedom / 2.0 * np.log(TRUST + chi_squares)
    if curve.beyond is not None:
        spread = np.sqrt((TRUST + chi_squares) / freedom * (np.median(variances) + 1.0 / weights.sum()))
        found = found + _above((level + every[:, -1] - math.log(curve.beyond.least)) / spread, freedom)
    return found, shapes.max(axis=1) - shapes.min(axis=1), chi_squares, shapes + level[:, None]


def _above(distances: Floats, freedom: float) -> Floats:
    """The logarithm of the probability that a prediction so many standard errors above a limit exceeds it."""
    from scipy.special import stdtr  # noqa: PLC0415 - a second to import, and seldom needed

    logarithms: Floats = np.log(np.maximum(stdtr(freedom, distances), 1e-300))
    return logarithms
