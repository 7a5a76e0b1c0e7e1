"""What to measure next: the action that tells most about the side of a revision, per second it costs.

Greedy information gain is within a constant of the best policy for a step in noise (Waeber, Frazier and
Henderson 2013; Jedynak, Frazier and Sznitman 2012); dividing by the expected cost is our addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.breakage import Breakage
from perftrail.search.noise import OUTLIERS

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import Evidence

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

READINGS = np.array([1, 2, 3, 5, 8, 12, 20])
"""How many readings an action may ask for at once."""

MOST_CANDIDATES = 65
LEAST_BITS = 2e-3
"""Readings that would tell less than this, twenty together, are not worth taking."""

_GATE_GAP = 1e-3
FIRST = 3
_NODES = 40
_LOST = np.where(READINGS == 1, OUTLIERS, np.where(READINGS == 2, OUTLIERS / 3, OUTLIERS / 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An action, what it is expected to tell (bits), and what it is expected to cost (seconds)."""

    position: int
    readings: int
    bits: float
    seconds: float

    @property
    def rate(self) -> float:
        """Bits for each second."""
        return self.bits / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """What a reading is expected to be on either side: mean and variance, without the reading's own noise."""

    low_mean: Floats
    low_variance: Floats
    high_mean: Floats
    high_variance: Floats


def breakage(evidence: Evidence) -> Breakage:
    """Learn from everything tried how likely a revision is to be unusable."""
    usable = evidence.positions
    tried = np.array(sorted({*usable, *evidence.unusable}), dtype=np.int64)
    return Breakage(tried, np.array([position in evidence.unusable for position in tried.tolist()], dtype=np.bool_))


def best_reading(evidence: Evidence, posterior: Posterior) -> Choice | None:
    """Choose among more readings of builds that exist."""
    rows = np.array(
        [row for row, position in enumerate(posterior.positions) if position not in evidence.unusable], dtype=np.int64
    )
    if len(rows) == 0:
        return None
    means, variances = _given_readings(evidence, posterior, rows)
    bits = hypothesis_information(posterior, means, variances)
    if bits[:, -1].max() < LEAST_BITS:
        return None
    seconds = READINGS * evidence.seconds_per_reading
    rates = bits / seconds
    row, column = np.unravel_index(int(np.argmax(rates)), rates.shape)
    # As good as the best rate in fewer rounds: low signals need many readings whatever the order.
    column = int(np.nonzero(rates[row] >= 0.93 * rates[row, column])[0][-1])
    return Choice(
        position=posterior.positions[int(rows[row])],
        readings=int(READINGS[column]),
        bits=float(bits[row, column]),
        seconds=float(seconds[column]),
    )


def best_build(evidence: Evidence, posterior: Posterior, cumulative_prior: Floats) -> Choice | None:
    """Choose among builds of revisions not tried yet, inside gaps that may hold the culprit."""
    candidates, share = _candidates(evidence, posterior, cumulative_prior)
    if len(candidates) == 0:
        return None
    fails = breakage(evidence).probability(candidates)
    layout = posterior.tau**2
    grid = np.linspace(0.0, 1.0, 65)
    whole = np.ones(1)
    sides = _Sides(
        low_mean=whole * posterior.before[0],
        low_variance=whole * (layout + posterior.before[1] ** 2),
        high_mean=whole * posterior.after[0],
        high_variance=whole * (layout + posterior.after[1] ** 2),
    )
    table = side_information(grid, sides, posterior.sigma)
    bits = np.column_stack([np.interp(share, grid, table[:, column]) for column in range(len(READINGS))])
    bits *= (1 - fails)[:, None]
    seconds = evidence.seconds_per_build + (1 - fails)[:, None] * READINGS * evidence.seconds_per_reading
    rates = bits / seconds
    row, column = np.unravel_index(int(np.argmax(rates)), rates.shape)
    # Readings can be added once the build is there: begin with fewer than would do on average.
    first = max(1, int(READINGS[column]) // FIRST)
    return Choice(
        position=int(candidates[row]),
        readings=first,
        bits=float(bits[row, column]),
        seconds=float(seconds[row, column]),
    )


def _candidates(evidence: Evidence, posterior: Posterior, cumulative_prior: Floats) -> tuple[Indices, Floats]:
    """Untried positions worth building, each with P(the culprit is at or before it)."""
    found: list[Indices] = []
    shares: list[Floats] = []
    below = posterior.at_or_before
    for gap in np.nonzero(posterior.gaps > _GATE_GAP)[0].tolist():
        low, high = posterior.positions[gap], posterior.positions[gap + 1]
        inside = _spread(low, high, cumulative_prior)
        untried = np.array([not evidence.is_attempted(position) for position in inside.tolist()], dtype=np.bool_)
        inside = inside[untried]
        mass = cumulative_prior[high] - cumulative_prior[low]
        part = (cumulative_prior[inside] - cumulative_prior[low]) / mass
        splits = (part > 0) & (part < 1)
        found.append(inside[splits])
        shares.append(below[gap] + posterior.gaps[gap] * part[splits])
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return np.concatenate(found), np.concatenate(shares)


def _spread(low: int, high: int, cumulative_prior: Floats) -> Indices:
    """Positions strictly between two: all of them, or of many an even spread of the prior mass."""
    if high - low - 1 <= MOST_CANDIDATES:
        return np.arange(low + 1, high)
    targets = np.linspace(cumulative_prior[low], cumulative_prior[high], MOST_CANDIDATES + 2)[1:-1]
    spread = np.searchsorted(cumulative_prior[: high + 1], targets)
    return np.unique(np.clip(spread, low + 1, high - 1))


def _given_readings(evidence: Evidence, posterior: Posterior, rows: Indices) -> tuple[Floats, Floats]:
    """What each build's own level is under each hypothesis: mean and variance, shape (rows, H).

    A build's own readings are taken out of its side's level first, so that they do not count twice.
    """
    known, nodes = posterior.hypotheses, posterior.lattice.nodes
    is_after = rows[:, None] > known.gap[None, :]
    level = np.where(is_after, known.after, known.before)
    variance = np.where(is_after, known.after_variance, known.before_variance)
    count = np.array([evidence.count(posterior.positions[row]) for row in rows.tolist()])
    peak = nodes[posterior.own[rows].argmax(axis=1)][:, None]
    said = 1 / (known.layout + known.scatter / count[:, None])
    # Garbage never entered the level, and a level that rests on this build alone is not known without it.
    said = np.where(np.abs(peak - level) < 3 / np.sqrt(said), said, 0.0)
    left = np.maximum(1 / variance - said, 0.01 / known.scatter)
    prior_mean = np.where(left > 0.01 / known.scatter, (level / variance - peak * said) / left, level)
    prior_variance = 1 / left + known.layout
    density = np.exp(-0.5 * (nodes - prior_mean[..., None]) ** 2 / prior_variance[..., None]) + 1e-12
    density *= posterior.own[rows][:, None, :]
    density /= density.sum(axis=2, keepdims=True)
    mean = density @ nodes
    spread = (density * (nodes - mean[..., None]) ** 2).sum(axis=2)
    return mean, spread


def hypothesis_information(posterior: Posterior, means: Floats, variances: Floats) -> Floats:
    """Return the mutual information (bits) of where the change is and the mean of n readings, shape (C, n)."""
    known = posterior.hypotheses
    weight = known.weight / known.weight.sum()
    variance = variances[:, None, :] + known.scatter / (READINGS * (1 - OUTLIERS))[None, :, None]
    sd = np.sqrt(variance)
    mean = means[:, None, :]
    begin = (mean - 4 * sd).min(axis=2, keepdims=True)
    end = (mean + 4 * sd).max(axis=2, keepdims=True)
    places = (np.arange(_NODES) + 0.5) / _NODES
    reading = begin + (end - begin) * places
    density = np.exp(-0.5 * ((reading[:, :, None, :] - mean[..., None]) / sd[..., None]) ** 2) / sd[..., None]
    density /= density.sum(axis=3, keepdims=True)
    mixed = np.einsum("cnhy,h->cny", density, weight)
    parts = density * np.log2(np.maximum(density, 1e-300) / np.maximum(mixed, 1e-300)[:, :, None, :])
    bits = np.einsum("cnhy,h->cn", parts, weight)
    kept: Floats = np.maximum(bits, 0.0) * (1 - _LOST)[None, :]
    return kept


def side_information(share: Floats, sides: _Sides, sigma: float) -> Floats:
    """Return the mutual information (bits) of a revision's side and the mean of n readings; shape (C, n).

    Both sides' predictions are normal; with the probability that most readings are garbage nothing is told.
    """
    low_variance = sides.low_variance[:, None] + sigma**2 / (READINGS * (1 - OUTLIERS))[None, :]
    high_variance = sides.high_variance[:, None] + sigma**2 / (READINGS * (1 - OUTLIERS))[None, :]
    low_sd, high_sd = np.sqrt(low_variance), np.sqrt(high_variance)
    low_mean, high_mean = sides.low_mean[:, None], sides.high_mean[:, None]
    begin = np.minimum(low_mean - 4 * low_sd, high_mean - 4 * high_sd)
    end = np.maximum(low_mean + 4 * low_sd, high_mean + 4 * high_sd)
    apart = np.abs(low_mean - high_mean) > 8 * np.maximum(low_sd, high_sd)
    places = (np.arange(_NODES) + 0.5) / _NODES
    reading = begin[..., None] + (end - begin)[..., None] * places
    low = np.exp(-0.5 * ((reading - low_mean[..., None]) / low_sd[..., None]) ** 2) / low_sd[..., None]
    high = np.exp(-0.5 * ((reading - high_mean[..., None]) / high_sd[..., None]) ** 2) / high_sd[..., None]
    odds = share[:, None, None]
    mixed = np.maximum((1 - odds) * low + odds * high, 1e-300)
    density = (1 - odds) * low * np.log2(np.maximum(low, 1e-300) / mixed)
    density += odds * high * np.log2(np.maximum(high, 1e-300) / mixed)
    width = (end - begin) / (_NODES * math.sqrt(2 * math.pi))
    bits = density.sum(axis=-1) * width
    sure = np.clip(share, 1e-15, 1 - 1e-15)[:, None]
    entropy = -sure * np.log2(sure) - (1 - sure) * np.log2(1 - sure)
    kept: Floats = np.clip(np.where(apart, entropy, bits), 0.0, entropy) * (1 - _LOST)[None, :]
    return kept
