"""What to measure next: the action that tells most about the side of a revision, per second it costs.

Greedy information gain is within a constant of the best policy for a step in noise (Waeber, Frazier and
Henderson 2013; Jedynak, Frazier and Sznitman 2012); dividing by the expected cost is our addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import references
from perftrail.search.breakage import Breakage
from perftrail.search.noise import OUTLIERS

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.drift import Track
    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

READINGS = np.array([1, 2, 3, 5, 8, 12, 20])
"""How many readings an action may ask for at once."""

MOST_CANDIDATES = 65
"""How many positions inside one gap are weighed against each other."""

DROWNED = 5.0
"""Below so many times tau a build says too little of its side: searching.md section 6, "resolution floor"."""

LEAST_BITS = 1e-3
"""What would tell less than this is not worth doing: twenty more readings, or one more build."""

_HERMITE = np.polynomial.hermite_e.hermegauss(9)
_POINTS = _HERMITE[0]
_POINT_WEIGHTS = _HERMITE[1] / _HERMITE[1].sum()
_BELOW_HALF = np.array([0.0, 0.02, 0.07, 0.15, 0.25, 0.35, 0.43, 0.47])
# With the half itself: between two parts beside it the middle of a gap would look worse than either.
_PARTS = np.concatenate([_BELOW_HALF, [0.5], 1 - _BELOW_HALF[::-1]])
_LOST = np.where(READINGS == 1, OUTLIERS, np.where(READINGS == 2, OUTLIERS / 3, OUTLIERS / 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An action, what it is expected to tell (bits), and what it is expected to cost (seconds).

    `redraw`: in layouts drawn anew. A `reference` is read to know the machine's level now: what it costs and
    tells includes what follows it.
    """

    position: int
    readings: int
    bits: float
    seconds: float
    redraw: bool = False
    reference: bool = False

    @property
    def rate(self) -> float:
        """Bits for each second."""
        return self.bits / self.seconds


def breakage(evidence: Evidence) -> Breakage:
    """Learn from everything tried how likely a revision is to be unusable."""
    usable = evidence.positions
    tried = np.array(sorted({*usable, *evidence.unusable}), dtype=np.int64)
    return Breakage(
        tried, np.array([position in evidence.unusable for position in tried.tolist()], dtype=np.bool_)
    )


def is_drowned(posterior: Posterior) -> bool:
    """Whether builds differ by chance so much that one of them cannot say on which side it is."""
    return abs(posterior.after[0] - posterior.before[0]) < DROWNED * posterior.tau


def readable(evidence: Evidence, posterior: Posterior) -> Indices:
    """Return which built positions can be read again, by their numbers; of equal artefacts one."""
    return np.array(
        [
            row
            for row, position in enumerate(posterior.positions)
            if position not in evidence.unusable and evidence.representative(position) == position
        ],
        dtype=np.int64,
    )


def best_reading(evidence: Evidence, posterior: Posterior, *, redraw: bool = False) -> Choice | None:
    """Choose among more readings of builds that exist, in their own layouts or each in a new one."""
    rows = readable(evidence, posterior)
    if len(rows) == 0:
        return None
    bits = reading_information(evidence, posterior, rows, redraw=redraw)
    if bits[:, -1].max() < LEAST_BITS:
        return None
    seconds = READINGS * evidence.seconds_per_reading
    rates = bits / seconds
    row, best = divmod(int(np.argmax(rates)), rates.shape[1])
    # As good as the best rate in fewer rounds: low signals need many readings whatever the order.
    column = int(np.nonzero(rates[row] >= 0.93 * rates[row, best])[0][-1])
    return Choice(
        position=posterior.positions[int(rows[row])],
        readings=int(READINGS[column]),
        bits=float(bits[row, column]),
        seconds=float(seconds[column]),
        redraw=redraw,
        reference=posterior.track is not None
        and references.on_other_side(posterior, posterior.track)[rows[row]] <= references.SURE_OF_SIDE,
    )


def any_reading(question: Question, evidence: Evidence, posterior: Posterior) -> Choice | None:
    """Choose among readings of what is built, in new layouts too where builds alone cannot decide."""
    reading = best_reading(evidence, posterior)
    if not question.redraws or not is_drowned(posterior):
        return reading
    redraw = best_reading(evidence, posterior, redraw=True)
    if reading is None or (redraw is not None and redraw.rate >= reading.rate):
        return redraw
    return reading


def reading_information(
    evidence: Evidence, posterior: Posterior, rows: Indices, *, redraw: bool = False
) -> Floats:
    """Return the bits that n more readings of builds would tell, shape (rows, n)."""
    known = posterior.hypotheses
    if not redraw:
        means, variances = _given_readings(evidence, posterior, rows)
        return hypothesis_information(posterior, means, variances, known.scatter)
    track = posterior.track
    is_after = rows[:, None] > known.gap[None, :] if track is None else track.after[rows]
    means = np.where(is_after, known.after, known.before)
    variances = np.where(is_after, known.after_variance, known.before_variance)
    return hypothesis_information(posterior, means, variances, known.scatter + known.layout)


def best_build(evidence: Evidence, posterior: Posterior, cumulative_prior: Floats) -> Choice | None:
    """Choose among builds of revisions not tried yet, inside gaps that may hold the culprit."""
    untried, bits = candidates(evidence, posterior, cumulative_prior)
    if len(untried) == 0:
        return None
    fails = breakage(evidence).probability(untried)
    bits *= (1 - fails)[:, None]
    if bits.max() < LEAST_BITS:
        return None
    seconds = evidence.seconds_per_build + (1 - fails)[:, None] * READINGS * evidence.seconds_per_reading
    rates = bits / seconds
    row, column = divmod(int(np.argmax(rates)), rates.shape[1])
    # Readings can be added once the build is there: begin with fewer than would do on average.
    first = max(1, int(READINGS[column]) // 3)
    return Choice(
        position=int(untried[row]),
        readings=first,
        bits=float(bits[row, column]),
        seconds=float(seconds[row, column]),
    )


def candidates(evidence: Evidence, posterior: Posterior, cumulative_prior: Floats) -> tuple[Indices, Floats]:
    """Untried positions worth building (C,), and the bits that n readings of each would tell (C, n)."""
    found: list[Indices] = [np.empty(0, dtype=np.int64)]
    told: list[Floats] = [np.empty((0, len(READINGS)))]
    attempted = evidence.attempted
    for number, gap in enumerate(posterior.hypotheses.gap.tolist()):
        if gap == len(posterior.gaps):
            continue
        low, high = posterior.positions[gap], posterior.positions[gap + 1]
        inside = _spread(low, high, cumulative_prior)
        inside = inside[~np.isin(inside, attempted)]
        mass = cumulative_prior[high] - cumulative_prior[low]
        part = (cumulative_prior[inside] - cumulative_prior[low]) / mass
        splits = (part > 0) & (part < 1)
        if splits.any():
            found.append(inside[splits])
            table = split_information(posterior, number)
            told.append(np.column_stack([np.interp(part[splits], _PARTS, bits) for bits in table.T]))
    return np.concatenate(found), np.concatenate(told)


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
    if posterior.track is not None:
        return _given_track(evidence, posterior, posterior.track, rows)
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


def _given_track(
    evidence: Evidence, posterior: Posterior, track: Track, rows: Indices
) -> tuple[Floats, Floats]:
    """What `_given_readings` gives, where the order of time matters."""
    means, variances = [], []
    for row in rows.tolist():
        made = track.level_of(row, evidence.representative(posterior.positions[row]))
        means.append((made * track.mean).sum(axis=1))
        variances.append(np.einsum("hd,hde,he->h", made, track.covariance, made))
    return np.array(means), np.maximum(np.array(variances), 1e-12)


def hypothesis_information(posterior: Posterior, means: Floats, variances: Floats, scatter: Floats) -> Floats:
    """Return the mutual information (bits) of where the change is and the mean of n readings, shape (C, n).

    `means` and `variances` (C, H) predict the level that is read under each hypothesis, `scatter` (H,) is the
    variance of each reading around it.
    """
    known = posterior.hypotheses
    weight = known.weight / known.weight.sum()
    bits: Floats = _mutual(means, variances, scatter, weight[None])[:, :, 0]
    return bits


def split_information(posterior: Posterior, number: int) -> Floats:
    """Return the bits that a build inside a gap would tell, shape (parts, n).

    `number` is the gap's hypothesis; the build leaves the share `_PARTS` of the gap's probability at or
    before it, so that the hypothesis splits in two: the build is after the change, or before it.
    """
    known = posterior.hypotheses
    is_after = known.gap < known.gap[number]
    mean = np.append(np.where(is_after, known.after, known.before), known.after[number])
    variance = np.append(
        np.where(is_after, known.after_variance, known.before_variance) + known.layout,
        known.after_variance[number] + known.layout[number],
    )
    weight = np.tile(np.append(known.weight, 0.0) / known.weight.sum(), (len(_PARTS), 1))
    weight[:, -1] = _PARTS * weight[:, number]
    weight[:, number] *= 1 - _PARTS
    scatter = np.append(known.scatter, known.scatter[number])
    bits: Floats = _mutual(mean[None], variance[None], scatter, weight)[0].T
    return bits


def _mutual(means: Floats, variances: Floats, scatter: Floats, weights: Floats) -> Floats:
    r"""Return the mutual information (bits) of hypotheses and the mean of n readings, shape (C, n, W).

    ``sum_h w_h E[log p_h(y) / sum_j w_j p_j(y)]`` with normal p, each expectation by Gauss-Hermite
    quadrature, for each of the `weights` (W, H). When most readings are garbage nothing is told.
    """
    sd = np.sqrt(variances[:, None, :] + scatter / (READINGS * (1 - OUTLIERS))[None, :, None])
    mean = means[:, None, :]
    reading = mean[..., None] + sd[..., None] * _POINTS
    distance = (reading[..., None] - mean[..., None, None, :]) / sd[..., None, None, :]
    density = np.exp(-0.5 * distance**2) / sd[..., None, None, :]
    mixed = np.log2(np.maximum(density @ weights.T, 1e-300))
    own = -0.5 * _POINTS**2 / math.log(2) - np.log2(sd)[..., None]
    told = np.einsum("k,cnhkw->cnhw", _POINT_WEIGHTS, own[..., None] - mixed)
    bits: Floats = np.maximum(np.einsum("wh,cnhw->cnw", weights, told), 0.0) * (1 - _LOST)[None, :, None]
    return bits
