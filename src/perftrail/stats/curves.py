"""Curves: levels of a metric along a numeric axis, the comparison of two curves, and their crossings.

A level is the median of the logarithms of a point's values. Its variance is that of a median of n normal values,
``sigma^2 pi / (2 n + pi - 2)``. `sigma` is the point's own, shrunk towards the pooled one with the weight of `PRIOR`
values: the scatter of three values alone is too uncertain.

At each common value of the axis, two levels differ at an error of `ERROR`, shared by all values (Bonferroni). A
crossing is between the last value with one curve clearly lower and the first with the other. Between measured values,
difference and error are linear in the logarithm of the axis. The interval of a crossing is where that band contains
zero (Fieller 1954, for a line). Assumes that no curve turns between two values of the axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

PRIOR = 4.0
"""Weight of the pooled scatter, as a number of values of a point."""

AxisValues = Sequence[tuple[float, Sequence[float]]]
"""Values of the axis, each with the values measured there, in the metric's unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A point that was given up: at this value of the axis, the metric is at least `least`, in its unit."""

    x: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Levels along an axis. All arrays have shape (n,), `xs` ascends.

    `logs` are natural logarithms of levels. `errors` are their standard errors, zero if no point was `repeated`.
    `beyond` is the first point that was given up, if it bounds the metric. `effective_points` is the number of
    independent points; None if all are.
    """

    xs: Floats
    logs: Floats
    errors: Floats
    beyond: Bound | None = None
    repeated: bool = False
    effective_points: float | None = None

    def __len__(self) -> int:
        return len(self.xs)

    def part(self, first: int, last: int) -> Curve:
        """Return the points of a range of indices, with `beyond` only if the range reaches the end."""
        cut = slice(first, last)
        return Curve(
            xs=self.xs[cut],
            logs=self.logs[cut],
            errors=self.errors[cut],
            beyond=self.beyond if last >= len(self) else None,
            repeated=self.repeated,
            effective_points=self.effective_points,
        )


def curve_of(values_by_x: AxisValues, *, resolution: float = 0.0, beyond: Bound | None = None) -> Curve:
    """Return the curve of measured values; values that are not finite and positive are ignored.

    `resolution` is the possible error of each value, in the metric's unit.
    """
    usable = [
        (float(x), np.log(kept))
        for x, values in sorted(values_by_x, key=lambda each: each[0])
        if math.isfinite(x) and (kept := [value for value in values if 0.0 < value < math.inf])
    ]
    xs = np.array([x for x, _ in usable], dtype=np.float64)
    logs = np.array([float(np.median(values)) for _, values in usable], dtype=np.float64)
    errors = np.sqrt(_variances([values for _, values in usable]) + (resolution * np.exp(-logs)) ** 2 / 3.0)
    repeated = any(len(values) > 1 for _, values in usable)
    return Curve(xs=xs, logs=logs, errors=errors, beyond=beyond, repeated=repeated)


def _variances(samples: Sequence[Floats]) -> Floats:
    """Return the variance of each sample's median."""
    counts = np.array([len(values) for values in samples], dtype=np.float64)
    squares = np.array([float(((values - values.mean()) ** 2).sum()) for values in samples])
    if (counts - 1.0).sum() <= 0.0:
        return np.zeros(len(samples))
    pooled = squares.sum() / (counts - 1.0).sum()
    own = (squares + PRIOR * pooled) / (counts - 1.0 + PRIOR)
    variances: Floats = own * math.pi / (2.0 * counts + math.pi - 2.0)
    return variances


ERROR = 0.01
"""Probability that two equal curves differ anywhere."""

MODEL_ERROR = 0.005
"""Relative error of every level: two programs always differ by their layout."""

_SURE = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRange:
    """Neighbouring values of the axis with one answer: the lower curve, 0 or 1, or `None` if neither is clearly lower.

    `ratio` is the geometric mean of second/first in this range.
    """

    first: float
    last: float
    lower: int | None
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Position of a crossing, with its 95 % interval; `lower` is the lower curve beyond it."""

    x: float
    low: float
    high: float
    lower: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveComparison:
    """Which of two curves is lower, by range of the axis."""

    ranges: tuple[CurveRange, ...]
    crossings: tuple[Crossing, ...]


def crossings(first: Curve, second: Curve) -> CurveComparison | None:
    """Compare two curves at their common positive values; `None` if there are none."""
    xs, at, other_at = np.intersect1d(first.xs, second.xs, return_indices=True)
    usable = xs > 0.0
    xs, at, other_at = xs[usable], at[usable], other_at[usable]
    if len(xs) == 0:
        return None
    differences = second.logs[other_at] - first.logs[at]
    errors = np.sqrt(_variance(first)[at] + _variance(second)[other_at])
    bound = NormalDist().inv_cdf(1.0 - ERROR / 2.0 / len(xs))
    signs = np.where(np.abs(differences) > bound * errors, np.sign(differences), 0.0).astype(np.int64)
    return CurveComparison(
        ranges=_ranges(xs, differences, signs), crossings=_crossings(np.log(xs), differences, errors, signs)
    )


def _variance(curve: Curve) -> Floats:
    """Return the variance of each level; without repeated values, it is estimated from the second differences."""
    variances = curve.errors**2
    if not variances.any() and len(curve) > 2:
        bends = np.diff(curve.logs, 2)
        variances = np.full(len(curve), float((bends**2).mean()) / 6.0)
    elif not variances.any():
        variances = np.full(len(curve), math.inf)
    summed: Floats = variances + MODEL_ERROR**2
    return summed


def _ranges(xs: Floats, differences: Floats, signs: npt.NDArray[np.int64]) -> tuple[CurveRange, ...]:
    cuts = [0, *(np.flatnonzero(np.diff(signs)) + 1).tolist(), len(signs)]
    return tuple(
        CurveRange(
            first=float(xs[start]),
            last=float(xs[end - 1]),
            lower={1: 0, -1: 1, 0: None}[int(signs[start])],
            ratio=math.exp(float(differences[start:end].mean())),
        )
        for start, end in pairwise(cuts)
    )


def _crossings(
    logs: Floats, differences: Floats, errors: Floats, signs: npt.NDArray[np.int64]
) -> tuple[Crossing, ...]:
    clear = np.flatnonzero(signs)
    return tuple(
        _crossing(
            logs[start : end + 1],
            differences[start : end + 1] * -signs[start],
            errors[start : end + 1],
            int(signs[end]),
        )
        for start, end in pairwise(clear.tolist())
        if signs[start] != signs[end]
    )


def _crossing(logs: Floats, rising: Floats, errors: Floats, sign: int) -> Crossing:
    """Return the crossing in a bracket where the difference rises from clearly negative to clearly positive."""
    low = _roots(logs, rising + _SURE * errors)[0]
    high = _roots(logs, rising - _SURE * errors)[-1]
    roots = _roots(logs, rising)
    x = (roots[0] + roots[-1]) / 2.0
    return Crossing(x=math.exp(x), low=math.exp(low), high=math.exp(high), lower=0 if sign > 0 else 1)


def _roots(logs: Floats, heights: Floats) -> list[float]:
    """Return the zeros of a piecewise linear function; there is at least one, since its ends differ in sign."""
    return [
        float(logs[at] + (logs[at + 1] - logs[at]) * heights[at] / (heights[at] - heights[at + 1]))
        for at in range(len(logs) - 1)
        if heights[at] * heights[at + 1] <= 0.0 and heights[at] != heights[at + 1]
    ]
