"""How far two builds lie apart though no change made one faster: estimated from neighbours in a history.

Most neighbouring revisions change nothing that a benchmark measures. What their builds differ by nevertheless is
the linker's placement of code, so the spread of these differences is layout noise.
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
"""A normal variable's median distance from its centre times this is its standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutNoise:
    """The standard deviation of a build's level over layouts, in logarithms, from the pairs of neighbours."""

    value: float
    builds: int


def layout_noise(neighbours: Sequence[Sequence[float]]) -> LayoutNoise | None:
    """Estimate layout noise from the log ratios of the pairs of neighbouring builds, one sequence for each two builds.

    It is robust: fewer than half of the neighbours may be real changes. What the pairs' own scatter explains is
    subtracted. `None` with fewer than `LEAST_NEIGHBOURS` of at least `LEAST_PAIRS` pairs.
    """
    known = [each for each in neighbours if len(each) >= LEAST_PAIRS]
    if len(known) < LEAST_NEIGHBOURS:
        return None
    apart = TO_SIGMA * statistics.median(abs(statistics.fmean(each)) for each in known)
    sampling = statistics.median(statistics.variance(each) / len(each) for each in known)
    return LayoutNoise(value=max(0.0, (apart**2 - sampling) / 2.0) ** 0.5, builds=len(known))
