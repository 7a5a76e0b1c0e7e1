r"""Where the change is, as far as the evidence says: the posterior over gaps between built revisions.

One step at an unknown position. The hypotheses are the gaps between neighbouring built positions, plus "no
change" (a change outside the built positions looks the same and is kept apart by its prior mass). With
A_k(m) the product of the likelihoods of the builds up to gap k at the level m, and B_k(m) of those after
it,

``E_k = sum_noise p(noise) integral A_k(m0) integral p(m1 | m0) B_k(m1) dm1 dm0``

p(m1 | m0) is Cauchy of scale 2 log(1 + smallest), with one tenth flat over 40 units; m0 is flat. The cost
depends on the number of builds, not of revisions. Derivation and simulations: searching.md section 6; the
idea of a step with unknown levels is Smith 1975, the search on top of it Waeber, Frazier and Henderson
2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import noise
from perftrail.search.levels import all_likelihoods, between_equals, side_levels

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.drift import Track
    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

NEGLIGIBLE = 1e-6
"""A gap and noise pair less likely than this is left out of `Rows`."""

MATTERS = 1e-3
"""A gap less likely than this is left out of `Hypotheses`."""

ANY_SIZE = 0.1
SIZES = 40.0
"""A change is of any size at all with probability `ANY_SIZE`: evenly over so many units of the logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The belief in numbers, for the policy and the answer.

    `positions` are the K built ones; `gaps` (K-1,) the probability that the culprit is in (p_k, p_k+1];
    `outside` that it lies before the first or after the last; `nothing` that there is none, so that the
    three sum to one. `small` is the probability that the change, if any, is smaller than the smallest worth
    finding. `before` and `after` are the levels (mean, standard deviation) on the logarithmic scale. `own`
    (K, G) is the likelihood of each build's own level on `lattice`, relative to its peak. `rows`: see
    `Rows`. `drift` is the probability that the machine's level wanders; `track` is where it is now, `None`
    where the order of time does not matter.
    """

    positions: tuple[int, ...]
    gaps: Floats
    outside: float
    nothing: float
    small: float
    before: tuple[float, float]
    after: tuple[float, float]
    sigma: float
    tau: float
    likelihoods: noise.Likelihoods
    own: Floats
    rows: Rows
    hypotheses: Hypotheses
    drift: float = 0.0
    track: Track | None = None

    @property
    def lattice(self) -> noise.Lattice:
        """The levels on which densities are held."""
        return self.likelihoods.lattice

    @property
    def at_or_before(self) -> Floats:
        """P(the culprit is at or before each built position), shape (K,)."""
        return np.concatenate([[0.0], np.cumsum(self.gaps)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The combinations of gap and noise pair that matter, (R,), and their sides' densities, (R, G)."""

    gap: npt.NDArray[np.int64]
    pair: npt.NDArray[np.int64]
    weight: Floats
    before: Floats
    after: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypotheses:
    """What the levels are if the change is in one gap, for the gaps that matter; all arrays have shape (H,).

    `gap` is K-1 for "no change", whose two levels are one. `before` and `after` are means, with their
    variances; `scatter` and `layout` are sigma^2 and tau^2.
    """

    gap: npt.NDArray[np.int64]
    weight: Floats
    before: Floats
    before_variance: Floats
    after: Floats
    after_variance: Floats
    scatter: Floats
    layout: Floats


def infer(
    question: Question, evidence: Evidence, cumulative_prior: Floats, known: noise.Likelihoods | None = None
) -> Posterior:
    """Work out the posterior from all readings; needs at least one usable position.

    `known` are the likelihoods of an earlier posterior: reused where they fit, which changes no number.
    """
    positions = evidence.positions
    builds = [evidence.layouts(position) for position in positions]
    likelihoods = all_likelihoods(question, builds, known)
    grid = likelihoods.grid
    levels = side_levels(evidence, positions, likelihoods)
    jump = jump_prior(likelihoods, 2 * question.smallest_log)
    evidences = _evidences(levels, jump, likelihoods)

    mass = np.diff(cumulative_prior[np.asarray(positions)])
    outside = max(0.0, 1.0 - float(mass.sum())) * (1 - question.no_change)
    mass[between_equals(evidence, positions)] = 0.0
    weight, still = _weigh(evidences, mass * (1 - question.no_change), question.no_change + outside)
    rows = _rows(weight, evidences)
    unmoved = float(still.sum())
    noise_weight = (weight.sum(axis=0) + still).reshape(grid.tau.shape)
    sigma_weight = noise_weight.sum(axis=1)
    before, after = _levels(rows, evidences.left[-1], still, likelihoods.lattice)
    return Posterior(
        positions=positions,
        gaps=weight.sum(axis=1),
        outside=unmoved * outside / (outside + question.no_change),
        nothing=unmoved * question.no_change / (outside + question.no_change),
        small=_small(rows, jump, likelihoods.apart < question.smallest_log),
        before=before,
        after=after,
        sigma=math.sqrt(float(sigma_weight @ grid.sigma**2)),
        tau=math.sqrt(float((noise_weight * grid.tau**2).sum())),
        likelihoods=likelihoods,
        own=_own_levels(np.stack([likelihoods.of(layouts[0])[0] for layouts in builds]), sigma_weight),
        rows=rows,
        hypotheses=_hypotheses(rows, evidences.left[-1], still, likelihoods, len(positions) - 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidences:
    """log E of each gap and noise pair (K-1, S), of no change (S,); the sides' densities (K or K-1, S, G)."""

    change: Floats
    still: Floats
    left: Floats
    right: Floats


def _evidences(levels: Floats, jump: Floats, likelihoods: noise.Likelihoods) -> _Evidences:
    before = np.cumsum(levels, axis=0)
    left, left_peak = _relative(before)
    right, right_peak = _relative(before[-1][None] - before[:-1])
    log_noise = likelihoods.grid.log_prior.reshape(-1)
    with np.errstate(divide="ignore"):
        change = np.log((left[:-1] * (right @ jump)).sum(axis=2)) + left_peak[:-1] + right_peak + log_noise
        still = np.log(left[-1].sum(axis=1)) + left_peak[-1] + log_noise
    return _Evidences(change=change, still=still, left=left, right=right)


def _weigh(evidences: _Evidences, mass: Floats, still_mass: float) -> tuple[Floats, Floats]:
    """Posterior weights of gaps and noise pairs, and of no change (or one outside) and noise pairs."""
    with np.errstate(divide="ignore"):
        change = evidences.change + np.log(mass)[:, None]
    still = evidences.still + math.log(still_mass)
    top = max(change.max(initial=-math.inf), still.max())
    change, still = np.exp(change - top), np.exp(still - top)
    total = change.sum() + still.sum()
    return change / total, still / total


def _relative(logs: Floats) -> tuple[Floats, Floats]:
    peak = logs.max(axis=2)
    return np.exp(logs - peak[:, :, None]), peak


def jump_prior(likelihoods: noise.Likelihoods, scale: float) -> Floats:
    """Return p(m1 | m0) times the lattice's step, (G, G): Cauchy of a scale, with a tenth flat over `SIZES`."""
    cauchy = 1 / (math.pi * scale * (1 + (likelihoods.apart / scale) ** 2))
    jump: Floats = likelihoods.lattice.step * ((1 - ANY_SIZE) * cauchy + ANY_SIZE / SIZES)
    return jump


def _rows(weight: Floats, evidences: _Evidences) -> Rows:
    gap, pair = np.nonzero(weight > NEGLIGIBLE)
    return Rows(
        gap=gap,
        pair=pair,
        weight=weight[gap, pair],
        before=evidences.left[:-1][gap, pair],
        after=evidences.right[gap, pair],
    )


def _small(rows: Rows, jump: Floats, near: npt.NDArray[np.bool_]) -> float:
    """P(there is a change, but its two levels are `near` each other)."""
    if len(rows.weight) == 0:
        return 0.0
    joint = (rows.before * (rows.after @ jump)).sum(axis=1)
    within = (rows.before * (rows.after @ (jump * near))).sum(axis=1)
    return float((rows.weight * within / joint).sum())


def _levels(
    rows: Rows, unmoved: Floats, weight_still: Floats, lattice: noise.Lattice
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and standard deviation of both sides' levels if there is a change; of the one level if not."""
    if rows.weight.sum() <= NEGLIGIBLE:
        level = _moments(unmoved, weight_still, lattice.nodes)
        return level, level
    return _moments(rows.before, rows.weight, lattice.nodes), _moments(rows.after, rows.weight, lattice.nodes)


def _moments(densities: Floats, weight: Floats, nodes: Floats) -> tuple[float, float]:
    mixed = (weight / weight.sum() / densities.sum(axis=1)) @ densities
    mean = float(mixed @ nodes)
    return mean, math.sqrt(max(float(mixed @ (nodes - mean) ** 2), 0.0))


def _own_levels(own: Floats, sigma_weight: Floats) -> Floats:
    relative = np.exp(own - own.max(axis=2, keepdims=True))
    relative /= relative.sum(axis=2, keepdims=True)
    mixed: Floats = np.einsum("kpg,p->kg", relative, sigma_weight)
    return mixed


def _hypotheses(
    rows: Rows, unmoved: Floats, weight_still: Floats, likelihoods: noise.Likelihoods, gaps: int
) -> Hypotheses:
    """Merge the noise pairs of each gap by their moments."""
    nodes = likelihoods.lattice.nodes
    scatter = np.broadcast_to((likelihoods.grid.sigma**2)[:, None], likelihoods.grid.tau.shape).reshape(-1)
    layout = (likelihoods.grid.tau**2).reshape(-1)
    gap = np.concatenate([rows.gap, np.full(len(weight_still), gaps)])
    pair = np.concatenate([rows.pair, np.arange(len(weight_still))])
    weight = np.concatenate([rows.weight, weight_still])
    total: Floats = np.bincount(gap, weights=weight, minlength=gaps + 1).astype(np.float64)

    def mixed(values: Floats) -> Floats:
        summed = np.bincount(gap, weights=weight * values, minlength=gaps + 1)
        return summed[kept] / total[kept]

    kept = np.nonzero(total > MATTERS)[0]
    finest = (likelihoods.lattice.step / 4) ** 2
    levels = []
    for density in (np.concatenate([rows.before, unmoved]), np.concatenate([rows.after, unmoved])):
        part = density / density.sum(axis=1, keepdims=True)
        mean = part @ nodes
        spread = np.maximum(part @ nodes**2 - mean**2, 0.0)
        middle = mixed(mean)
        levels.append((middle, np.maximum(mixed(spread + mean**2) - middle**2, finest)))
    return Hypotheses(
        gap=kept,
        weight=total[kept],
        before=levels[0][0],
        before_variance=levels[0][1],
        after=levels[1][0],
        after_variance=levels[1][1],
        scatter=mixed(scatter[pair]),
        layout=mixed(layout[pair]),
    )
