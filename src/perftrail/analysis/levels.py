"""From samples along a history to one level for each revision, with how far each may be off.

A revision's level is the median of its log values. It scatters by layout (tau, once for each build) and by
readings (sigma, less with more of them): ``tau^2 + sigma^2 pi / (2 n + pi - 2)``, the last factor that of a
median of n normal values. Both are estimated from differences of neighbours, which steps leave alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Samples = Sequence[tuple[int, Sequence[float]]]
"""Positions in the history, each with the natural logarithms of the values measured there."""

OUTLIERS = 0.03
"""The share of readings that are garbage, as in a search."""

ODD_BUILDS = 1e-4
"""The share of builds that are garbage however often they are read."""

FINEST = 1e-4
"""No level is taken to be surer than a hundredth of a percent: deterministic values do not scatter at all."""

USUAL_TAU = 1.0
"""Builds of one program seldom differ by more than this share of sigma; believed while few builds are known."""

USUAL_LAYOUT = 0.01
"""Nor is the difference that layout makes believed to be below this, however quiet the readings are."""

FEW = 4
"""Of fewer differences between neighbours a single step spoils the median."""

DOUBT = 2.0
"""A spread of m differences may be larger than estimated, by a logarithm of this over sqrt(m)."""

_MEDIAN_SQUARE = 0.4549364
"""The median of the square of a standard normal variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Samples by columns: how many `logs` each of the `positions` has, which stand one position's after another's."""

    positions: Whole
    counts: Whole
    logs: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """One level for each measured revision, in the order of history; all arrays have shape (n,).

    `errors` are standard errors of the levels, `bounds` the largest that these may really be. `garbage` is
    the probability that a level has nothing to do with its revision.
    """

    positions: Whole
    values: Floats
    errors: Floats
    bounds: Floats
    garbage: Floats

    def __len__(self) -> int:
        return len(self.positions)


def by_columns(samples: Samples) -> Readings:
    """Put samples into columns."""
    return Readings(
        positions=np.array([position for position, _ in samples], dtype=np.int64),
        counts=np.array([len(each) for _, each in samples], dtype=np.int64),
        logs=np.fromiter(chain.from_iterable(each for _, each in samples), np.float64),
    )


def levels_of(readings: Readings) -> Levels | None:
    """Estimate levels and their errors; `None` when nothing tells how much levels scatter.

    Positions ascend. Values that are not finite, and positions without any other, are left out.
    """
    usable = np.isfinite(readings.logs)
    values, owners = (
        readings.logs[usable],
        np.repeat(np.arange(len(readings.counts)), readings.counts)[usable],
    )
    counts = np.bincount(owners, minlength=len(readings.counts))
    positions = readings.positions[counts > 0]
    within = np.diff(values)[np.diff(owners) == 0]
    values, counts = _medians(values, counts), counts[counts > 0]
    if len(values) < 2 or (len(within) < FEW and len(values) <= FEW):
        return None
    share = math.pi / (2.0 * counts + math.pi - 2.0)
    sigma = spread(within) / math.sqrt(2.0) if len(within) >= FEW else 0.0
    usual = max(USUAL_TAU * sigma, USUAL_LAYOUT)
    differences = np.diff(values)
    tau = layout_spread(differences, sigma**2 * (share[1:] + share[:-1]))
    if len(differences) < FEW:
        tau = min(tau, usual)
    errors = np.sqrt(np.maximum(tau, 0.1 * sigma) ** 2 + sigma**2 * share)
    bounds = errors * math.exp(DOUBT / math.sqrt(len(differences)))
    if len(within) >= FEW:
        surest = math.exp(DOUBT / math.sqrt(len(within))) * np.sqrt(usual**2 + sigma**2 * share)
        bounds = np.where(errors < surest, np.minimum(bounds, surest), bounds)
    return Levels(
        positions=positions,
        values=values,
        errors=errors,
        bounds=bounds,
        garbage=np.fromiter(map(garbage, counts.tolist()), np.float64, len(counts)),
    )


def spread(differences: Floats) -> float:
    """Estimate the standard deviation of differences from the median of their sizes.

    Where more than half are zero, as of counts that seldom change, the mean size has to do; the largest tenth
    of the sizes, at least one, may be steps and is left out.
    """
    sizes = np.sort(np.abs(differences))
    middle = float(np.median(sizes)) / math.sqrt(_MEDIAN_SQUARE)
    if middle == 0.0:
        kept = sizes[: len(sizes) - math.ceil(len(sizes) / 10)]
        middle = float(np.sum(kept)) / len(sizes) * math.sqrt(math.pi / 2.0)
    return max(middle, FINEST)


def layout_spread(differences: Floats, known: Floats) -> float:
    """Estimate tau from differences of neighbouring levels, the variance by readings (`known`) taken off.

    It is the tau for which half of the squares lie below the median that normal ones would have.
    """
    low, high = 0.0, spread(differences)
    squares = differences**2
    if np.median(squares) == 0.0:
        return high / math.sqrt(2.0)
    for _ in range(20):
        middle = (low + high) / 2.0
        if np.median(squares / (2.0 * middle**2 + known)) > _MEDIAN_SQUARE:
            low = middle
        else:
            high = middle
    return max(high, FINEST)


@cache
def garbage(count: int) -> float:
    """Tell how likely the median of so many readings is garbage: when half of them are, or the build is odd.

    >>> round(garbage(1), 4), round(garbage(2), 4), round(garbage(5), 4)
    (0.0301, 0.0592, 0.0004)
    """
    clean = sum(
        math.comb(count, bad) * OUTLIERS**bad * (1.0 - OUTLIERS) ** (count - bad)
        for bad in range((count + 1) // 2)
    )
    return 1.0 - clean + ODD_BUILDS


def _medians(values: Floats, counts: Whole) -> Floats:
    """Give the median of each owner's values, which stand together, of those that have any."""
    firsts, middles = np.cumsum(counts) - counts, np.empty(len(counts))
    for count in np.unique(counts[counts > 0]).tolist():
        those = np.flatnonzero(counts == count)
        ordered = np.sort(values[firsts[those, None] + np.arange(count)], axis=1)
        middles[those] = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2.0
    return middles[counts > 0]
