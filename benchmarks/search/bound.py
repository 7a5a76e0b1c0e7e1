"""How few runs any search could need on average, by information theory.

``log2(N) / C + log2(1 / (1 - confidence)) / C1``: C is the capacity of the channel "which of two normal
levels", C1 its Kullback-Leibler divergence (Burnashev and Zigangirov 1974). Layout, outliers, unbuildable
revisions and unknown levels are left out, so no search comes near it. Several changes are as many searches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.search.histories import Settings


def fewest_runs(settings: Settings) -> float | None:
    """Return the bound; `None` where there is no step to find or no noise."""
    if not settings.effect or not settings.cv or settings.ramp:
        return None
    distance = settings.distance
    reading = np.linspace(-9.0, 9.0 + distance, 20001)
    low = np.exp(-0.5 * reading**2) / math.sqrt(2 * math.pi)
    high = np.exp(-0.5 * (reading - distance) ** 2) / math.sqrt(2 * math.pi)
    mixed = (low + high) / 2
    told = low * np.log2(np.maximum(low, 1e-300) / np.maximum(mixed, 1e-300))
    capacity = min(float(told.sum() * (reading[1] - reading[0])), 1.0)
    divergence = distance**2 / 2 / math.log(2)
    # A merge's revisions are candidates like those of the main line.
    bits = math.log2(settings.revisions + settings.branch)
    return settings.changes * (bits / capacity - math.log2(1 - settings.confidence) / divergence)
