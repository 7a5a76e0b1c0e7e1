"""Bounds for all searches: the fewest runs on average, by information theory, and how often layout permits isolation.

``log2(N) / C + log2(1 / (1 - confidence)) / C1``: C is the capacity of the channel "which of two normal
levels", C1 its Kullback-Leibler divergence (Burnashev and Zigangirov 1974). It ignores layout, outliers, unbuildable
revisions and unknown levels, so no search comes near it. Several changes count as separate searches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

if TYPE_CHECKING:
    from benchmarks.search.histories import Settings

CELLS = 4000
"""Number of quantiles that approximate a normal density."""


def fewest_runs(settings: Settings) -> float | None:
    """Return the bound; `None` without a step or without noise."""
    if not settings.effect or not settings.cv or settings.ramp:
        return None
    distance = settings.distance
    value = np.linspace(-9.0, 9.0 + distance, 20001)
    low = np.exp(-0.5 * value**2) / math.sqrt(2 * math.pi)
    high = np.exp(-0.5 * (value - distance) ** 2) / math.sqrt(2 * math.pi)
    mixed = (low + high) / 2
    information = low * np.log2(np.maximum(low, 1e-300) / np.maximum(mixed, 1e-300))
    capacity = min(float(information.sum() * (value[1] - value[0])), 1.0)
    divergence = distance**2 / 2 / math.log(2)
    # A merge's revisions are candidates like those of the main line.
    bits = math.log2(settings.revisions + settings.branch)
    return settings.changes * (bits / capacity - math.log2(1 - settings.confidence) / divergence)


def most_isolated(settings: Settings) -> float | None:
    """Return how often one revision can be named with the required confidence, from unlimited samples of single builds.

    Known levels, no outliers; the builds on both sides of the culprit then have log-odds that are normal with mean
    ``d^2 / 2 tau^2`` and twice that as variance, and ``exp(-a) + exp(-b)`` must leave the culprit its confidence.
    `None` without a single step, without layout noise, or if relinking gives new layouts.
    """
    if (
        not settings.effect
        or not settings.layout
        or settings.ramp
        or settings.changes > 1
        or settings.relinks
    ):
        return None
    mean = (settings.distance / settings.layout) ** 2 / 2
    odds = norm(mean, math.sqrt(2 * mean))
    left = 1 / settings.confidence - 1 - np.exp(-odds.ppf((np.arange(CELLS) + 0.5) / CELLS))
    return float(odds.sf(-np.log(left[left > 0])).sum() / CELLS)
