r"""Where the change is, as far as the evidence says: the posterior over gaps between built revisions.

One step at an unknown position. The hypotheses are the gaps between neighbouring built positions, plus "no change"
(a change outside the built positions looks the same and is kept apart by its prior mass). With A_k(m) the product
of the likelihoods of the builds up to gap k at the level m, and B_k(m) of those after it,

``E_k = sum_noise p(noise) integral A_k(m0) integral p(m1 | m0) B_k(m1) dm1 dm0``

p(m1 | m0) is Cauchy of scale 2 log(1 + smallest), m0 is flat. The cost depends on the number of builds, not of
revisions. Derivation and simulations: searching.md section 6; the idea of a step with unknown levels is
Smith 1975, the search on top of it Waeber, Frazier and Henderson 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import noise

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

_NEGLIGIBLE = 1e-6
_MATTERS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The belief in numbers, for the policy and the answer.

    `positions` are the K built ones; `gaps` (K-1,) the probability that the culprit is in (p_k, p_k+1];
    `outside` that it lies before the first or after the last; `nothing` that there is none, so that the three sum
    to one. `small` is the probability that the change, if any, is smaller than the smallest worth finding.
    `before` and `after` are the levels (mean, standard deviation) on the logarithmic scale. `own` (K, G) is the
    likelihood of each build's own level on `lattice`, relative to its peak. `rows`: see `Rows`.
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

    `gap` is K-1 for "no change", whose two levels are one. `before` and `after` are means, with their variances;
    `scatter` and `layout` are sigma^2 and tau^2.
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
    builds = [evidence.values(position) for position in positions]
    likelihoods = _likelihoods(question, builds, known)
    lattice, grid = likelihoods.lattice, likelihoods.grid
    pairs = [likelihoods.of(values) for values in builds]
    own = np.stack([pair[0] for pair in pairs])
    levels = np.stack([pair[1].reshape(-1, len(lattice.nodes)) for pair in pairs])
    log_noise = grid.log_prior.reshape(-1)

    before = np.cumsum(levels, axis=0)
    after = before[-1][None] - before[:-1]
    jump = _jump_prior(likelihoods, 2 * question.smallest_log)
    left, left_peak = _relative(before)
    right, right_peak = _relative(after)
    pushed = (right @ jump) if len(positions) > 1 else right
    step = lattice.step
    with np.errstate(divide="ignore"):
        change = np.log((left[:-1] * pushed).sum(axis=2) * step) + left_peak[:-1] + right_peak + log_noise
        still = np.log(left[-1].sum(axis=1) * step) + left_peak[-1] + log_noise

    mass = np.diff(cumulative_prior[np.asarray(positions)])
    outside = max(0.0, 1.0 - float(mass.sum()))
    with np.errstate(divide="ignore"):
        joint = change + (np.log(mass) + math.log1p(-question.no_change))[:, None]
    joint_still = still + math.log(question.no_change + (1 - question.no_change) * outside)
    top = max(joint.max(initial=-math.inf), joint_still.max())
    weight = np.exp(joint - top)
    weight_still = np.exp(joint_still - top)
    total = weight.sum() + weight_still.sum()
    weight /= total
    weight_still /= total

    rows, small = _rows(weight, left, right, jump, likelihoods.apart < question.smallest_log)
    level_before, level_after = _levels(rows, left[-1], weight_still, lattice)
    hypotheses = _hypotheses(rows, left[-1], weight_still, likelihoods, len(positions) - 1)
    unmoved = float(weight_still.sum())
    share = (1 - question.no_change) * outside
    noise_weight = (weight.sum(axis=0) + weight_still).reshape(grid.tau.shape)
    sigma_weight = noise_weight.sum(axis=1)
    return Posterior(
        positions=positions,
        gaps=weight.sum(axis=1),
        outside=unmoved * share / (share + question.no_change),
        nothing=unmoved * question.no_change / (share + question.no_change),
        small=small,
        before=level_before,
        after=level_after,
        sigma=math.sqrt(float(sigma_weight @ grid.sigma**2)),
        tau=math.sqrt(float((noise_weight * grid.tau**2).sum())),
        likelihoods=likelihoods,
        own=_own_levels(own, sigma_weight),
        rows=rows,
        hypotheses=hypotheses,
    )


def _likelihoods(
    question: Question, builds: list[Floats], known: noise.Likelihoods | None
) -> noise.Likelihoods:
    medians = np.array([(values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2 for values in builds])
    sigma, freedom = noise.pooled_sigma(builds)
    sigma = max(sigma, question.smallest_log / (2.0 if freedom == 0 else noise.RESOLUTION))
    sigma = noise.on_ladder(sigma)
    most = max(len(values) for values in builds)
    while True:
        lattice = noise.lay_lattice(medians, sigma, most)
        if len(lattice.nodes) <= noise.MOST_NODES:
            break
        # Builds that differ by far more than their readings: the finest noise cannot be what parts them.
        sigma *= 2
    grid = noise.noise_grid(sigma, freedom, question.smallest_log)
    if known is not None and known.fits(lattice, grid):
        return known
    return noise.Likelihoods(lattice, grid, sigma)


def _relative(logs: Floats) -> tuple[Floats, Floats]:
    peak = logs.max(axis=2)
    return np.exp(logs - peak[:, :, None]), peak


def _jump_prior(likelihoods: noise.Likelihoods, scale: float) -> Floats:
    jump: Floats = likelihoods.lattice.step / (math.pi * scale * (1 + (likelihoods.apart / scale) ** 2))
    return jump


def _rows(
    weight: Floats, left: Floats, right: Floats, jump: Floats, near: npt.NDArray[np.bool_]
) -> tuple[Rows, float]:
    """Keep the rows that matter, and work out P(a change, but one smaller than the smallest)."""
    gap, pair = np.nonzero(weight > _NEGLIGIBLE)
    kept: Floats = weight[gap, pair]
    before, after = left[:-1][gap, pair], right[gap, pair]
    joint = before * (after @ jump)
    within = before * (after @ (jump * near))
    small = float((kept * within.sum(axis=1) / joint.sum(axis=1)).sum()) if len(kept) else 0.0
    return Rows(gap=gap, pair=pair, weight=kept, before=before, after=after), small


def _levels(
    rows: Rows, unmoved: Floats, weight_still: Floats, lattice: noise.Lattice
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and standard deviation of both sides' levels if there is a change; of the one level if not."""
    if rows.weight.sum() <= _NEGLIGIBLE:
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
    total = np.bincount(gap, weights=weight, minlength=gaps + 1)

    def mixed(values: Floats) -> Floats:
        summed = np.bincount(gap, weights=weight * values, minlength=gaps + 1)
        return summed[kept] / total[kept]

    kept = np.nonzero(total > _MATTERS)[0]
    levels = []
    for density in (np.concatenate([rows.before, unmoved]), np.concatenate([rows.after, unmoved])):
        part = density / density.sum(axis=1, keepdims=True)
        mean = part @ nodes
        spread = np.maximum(part @ nodes**2 - mean**2, 0.0)
        middle = mixed(mean)
        levels.append((middle, np.maximum(mixed(spread + mean**2) - middle**2, (likelihoods.lattice.step / 4) ** 2)))
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
