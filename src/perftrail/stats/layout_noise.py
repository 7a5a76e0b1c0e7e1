"""Estimate layout noise: how much builds differ without any change of the code.

The estimate is from neighbouring revisions: most of them change nothing measurable.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_NEIGHBOURS = 5
LEAST_PAIRS = 3

TO_SIGMA = 1.4826
"""Ratio of a normal variable's standard deviation to its median absolute deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutNoise:
    """Standard deviation of a build's level over layouts, in logarithms, estimated from pairs of neighbours."""

    value: float
    builds: int


def layout_noise(neighbours: Sequence[Sequence[float]]) -> LayoutNoise | None:
    """Estimate layout noise from log ratios of neighbouring builds, one sequence for each two builds.

    The estimate is robust: fewer than half of the neighbours may be real changes. The pairs' own scatter is
    subtracted. `None` with fewer than `LEAST_NEIGHBOURS` sequences of at least `LEAST_PAIRS` pairs.
    """
    known = [each for each in neighbours if len(each) >= LEAST_PAIRS]
    if len(known) < LEAST_NEIGHBOURS:
        return None
    distance = TO_SIGMA * statistics.median(abs(statistics.fmean(each)) for each in known)
    sampling = statistics.median(statistics.variance(each) / len(each) for each in known)
    return LayoutNoise(value=max(0.0, (distance**2 - sampling) / 2.0) ** 0.5, builds=len(known))
