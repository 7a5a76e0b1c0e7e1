"""Where a curve's exponent changes, as at the size of a cache or at the limit of memory.

A break is weighed as a shape like any other: a power law, a cost that does not depend on the axis, and from
some value of the axis on another exponent (Muggeo 2003 calls it broken-line regression). Only one break is
told of a stretch; the parts on its two sides are looked at in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.orders import EXPONENTS
from perftrail.analysis.shapes import borne, with_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.analysis.curve import Curve
    from perftrail.analysis.shapes import Borne

    Floats = npt.NDArray[np.float64]

SIDE = 3
"""At least so many points lie on either side of a break."""

NOTABLE = 0.1
"""A change of the exponent by less is no break."""

_CELLS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A value of the axis at which the exponent changes, with the interval that holds it with 95 %.

    `before` and `after` are the exponents on its two sides, a cost that does not depend on the axis taken off.
    """

    x: float
    low: float
    high: float
    before: float
    after: float


def break_point(curve: Curve, least: float) -> Break | None:
    """Find the break whose evidence, averaged over where it may be, exceeds `least`; `None` where none does."""
    places = _places(curve)
    if not places:
        return None
    found = [_broken(curve, place) for place in places]
    top = max(each.evidence for each in found)
    weights = np.exp(np.array([each.evidence - top for each in found]))
    if top + math.log(float(weights.mean())) <= least:
        return None
    best = found[int(np.argmax(weights))]
    before, after = (best.interval(axis)[0] for axis in (1, 2))
    if abs(after - before) < NOTABLE:
        return None
    held = np.cumsum(weights / weights.sum())
    first, last = int(np.searchsorted(held, 0.025)), int(np.searchsorted(held, 0.975))
    return Break(
        x=places[int(np.argmax(weights))],
        low=_neighbour(curve, places[first], below=True),
        high=_neighbour(curve, places[min(last, len(places) - 1)], below=False),
        before=before,
        after=after,
    )


def _places(curve: Curve) -> list[float]:
    """Where a break may be: at points, and half-way between them, with enough points on either side."""
    xs = curve.xs.tolist()
    halves = [math.sqrt(one * other) for one, other in pairwise(xs)]
    return [
        place
        for place in sorted((*xs, *halves))
        if sum(x < place for x in xs) >= SIDE and sum(x > place for x in xs) >= SIDE
    ]


def _broken(curve: Curve, place: float) -> Borne:
    def logs(before: Floats, after: Floats, xs: Floats) -> Floats:
        beyond = np.log(xs / place)
        bent: Floats = np.where(beyond < 0.0, before[:, None] * beyond, after[:, None] * beyond)
        return bent

    def shape(nodes: Sequence[Floats], xs: Floats) -> Floats:
        share, before, after = nodes
        return with_start(share, logs(before, after, xs), logs(before, after, curve.xs))

    return borne(curve, shape, [(0.0, 1.0), EXPONENTS, EXPONENTS], cells=_CELLS)


def _neighbour(curve: Curve, place: float, *, below: bool) -> float:
    """The point next to a place: a break is known no better than the axis was measured."""
    if below:
        return float(curve.xs[curve.xs < place].max())
    return float(curve.xs[curve.xs > place].min())
