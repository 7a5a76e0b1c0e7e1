"""A metric along a numeric axis: one level for each value of the axis, and how far each may be off.

A level is the median of the logarithms of a point's values, with the variance of a median of n normal values,
``sigma^2 pi / (2 n + pi - 2)``. `sigma` is each point's own, drawn towards what all points have together as if
that were `PRIOR` values more: the scatter of three values says little by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

PRIOR = 4.0
"""The common scatter weighs as much as so many values of a point."""

Readings = Sequence[tuple[float, Sequence[float]]]
"""Values of the axis, each with the values measured there, in the metric's own unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A point that was given up: at this value of the axis the metric is at least `least`, in its own unit."""

    x: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Levels along an axis; all arrays have shape (n,), `xs` ascends.

    `logs` are natural logarithms of levels, `errors` their standard errors, zero where no point was `repeated`.
    `beyond` is the first point that was given up, where that bounds the metric. `worth` is the number of
    independent points that all of them are worth, None for as many as there are.
    """

    xs: Floats
    logs: Floats
    errors: Floats
    beyond: Bound | None = None
    repeated: bool = False
    worth: float | None = None

    def __len__(self) -> int:
        return len(self.xs)

    def part(self, first: int, last: int) -> Curve:
        """The points of a range of indices, without what lies beyond unless it reaches the end."""
        cut = slice(first, last)
        return Curve(
            xs=self.xs[cut],
            logs=self.logs[cut],
            errors=self.errors[cut],
            beyond=self.beyond if last >= len(self) else None,
            repeated=self.repeated,
            worth=self.worth,
        )


def curve_of(readings: Readings, *, resolution: float = 0.0, beyond: Bound | None = None) -> Curve:
    """Make a curve of what was measured; values that are not finite or not above zero are left out.

    `resolution`: how far each value may be off by the way it is taken, in the metric's unit.
    """
    usable = [
        (float(x), np.log(kept))
        for x, values in sorted(readings, key=lambda each: each[0])
        if math.isfinite(x) and (kept := [value for value in values if 0.0 < value < math.inf])
    ]
    xs = np.array([x for x, _ in usable], dtype=np.float64)
    logs = np.array([float(np.median(values)) for _, values in usable], dtype=np.float64)
    errors = np.sqrt(_variances([values for _, values in usable]) + (resolution * np.exp(-logs)) ** 2 / 3.0)
    repeated = any(len(values) > 1 for _, values in usable)
    return Curve(xs=xs, logs=logs, errors=errors, beyond=beyond, repeated=repeated)


def _variances(samples: Sequence[Floats]) -> Floats:
    """The variance of each sample's median."""
    counts = np.array([len(values) for values in samples], dtype=np.float64)
    squares = np.array([float(((values - values.mean()) ** 2).sum()) for values in samples])
    if (counts - 1.0).sum() <= 0.0:
        return np.zeros(len(samples))
    pooled = squares.sum() / (counts - 1.0).sum()
    own = (squares + PRIOR * pooled) / (counts - 1.0 + PRIOR)
    variances: Floats = own * math.pi / (2.0 * counts + math.pi - 2.0)
    return variances
