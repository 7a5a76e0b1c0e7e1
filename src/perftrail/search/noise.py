r"""Model how samples scatter: a robust noise model on a lattice of levels, and each build's likelihood under it.

A sample of build i is ``x = m + u_i + e``: m is the level of the build's segment of the history, ``u_i ~ N(0,
tau)`` once for each layout of a build (code placement), ``e`` the noise of the sample. With a small
probability a build has an arbitrary level, and a share g of samples is arbitrary (flat density; Huber 1964),
so that neither one build nor one sample can decide. The shape of e (its spread relative to sigma, and g)
belongs to the segment: a change may make a program noisier, or slower in some of its invocations only. sigma
and tau are common to all builds, unknown, and marginalised over a grid; tau goes up to ten times the
threshold. Assumes that samples of one build in one layout are independent given u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.drift import pooled_spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

SPREADS = np.array([1.0, 1.0, 1.0, 4.0])
CONTAMINATION = np.array([0.03, 0.2, 0.5, 0.05])
SHAPES_PRIOR = np.array([0.96, 0.015, 0.01, 0.015])
"""The shapes of a segment's noise: spread relative to sigma, share of arbitrary samples, prior."""

PLAIN = 0
HALVED = 2
"""The indices of the usual shape, and of the shape with half of the samples elsewhere: its level is not its mean."""

CONTAMINATION_HEIGHT = 0.5
"""The density of arbitrary samples under the usual shape, as a share of the shape's peak. It bounds the influence of
one sample.

If a large share of all samples is arbitrary, the density is that of an arbitrary level.
"""

MOST_CONTAMINATION = 20.0
"""The largest density of arbitrary samples, for each unit of the logarithm."""

ODD_BUILDS = 0.002
"""The prior share of builds whose level is unrelated to their segment's."""

SIGMA_OFFSETS = np.array([-1.3, 0.0, 1.3])
"""The grid of sigma, in standard errors of the estimate's logarithm."""

USUAL_LAYOUT = 0.003
LAYOUT_SPREAD = 1.0
"""Median and standard deviation of the logarithm of tau in its prior: 0.4 to 0.9 % were measured for C and Rust."""

ANY_LAYOUT = 0.1
"""The share of the prior that is uniform over the whole grid: 6 % were measured for Go."""

TAU_STEP = 2.5
MOST_TAU = 10.0
"""tau goes up to this many thresholds, in a grid of this ratio."""

RESOLUTION = 40.0
"""Noise is assumed to be at least the threshold divided by this."""

MOST_NODES = 320
"""Maximum number of closely spaced levels of a lattice."""

_STEPS_PER_DOUBLING = 8
"""The grid is rounded to this many values for each doubling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The combinations of sigma and tau, (S,), with the logarithm of their prior; sigma varies slowest."""

    sigma: Floats
    tau: Floats
    log_prior: Floats
    centre: float

    @property
    def sigmas(self) -> Floats:
        """The different values of sigma, (P,)."""
        return np.unique(self.sigma)

    @property
    def taus(self) -> Floats:
        """The different values of tau, (T,)."""
        return np.unique(self.tau)

    def only(self, kept: npt.NDArray[np.int64]) -> Grid:
        """Return some of the combinations."""
        return Grid(
            sigma=self.sigma[kept], tau=self.tau[kept], log_prior=self.log_prior[kept], centre=self.centre
        )

    def is_like(self, other: Grid) -> bool:
        """Whether another grid has the same combinations."""
        return np.array_equal(self.sigma, other.sigma) and np.array_equal(self.tau, other.tau)


def build_grid(question: Question, evidence: Evidence) -> Grid:
    """Return the grid of sigma and tau around a robust estimate of the samples' spread."""
    spread, freedom = pooled_spread(_comparable(evidence))
    least = question.threshold_on_scale / (4.0 if freedom == 0 else RESOLUTION)
    centre = _rounded(max(spread, least, 0.3 * evidence.resolution))
    error = min(0.9 / math.sqrt(max(freedom, 1)), 0.6)
    offsets = SIGMA_OFFSETS if error > 0.1 else np.zeros(1)
    sigmas = centre * np.exp(_rounded(error) * offsets)
    most = MOST_TAU * question.threshold_on_scale
    least_tau = _rounded(max(0.1 * centre, 1e-4), 4)
    count = 1 + max(0, math.ceil(math.log(most / least_tau) / math.log(TAU_STEP)))
    taus = least_tau * TAU_STEP ** np.arange(count)
    unusual = np.log(np.maximum(taus, USUAL_LAYOUT) / USUAL_LAYOUT) / LAYOUT_SPREAD
    prior = np.exp(-0.5 * unusual**2)
    share = ANY_LAYOUT if question.has_layouts else 0.0
    prior = (1 - share) * prior / prior.sum() + share / count
    sigma, tau = np.repeat(sigmas, count), np.tile(taus, len(sigmas))
    return Grid(
        sigma=sigma, tau=tau, log_prior=np.log(np.tile(prior, len(sigmas)) / len(sigmas)), centre=centre
    )


def _comparable(evidence: Evidence) -> list[Floats]:
    """Return the samples of each build in each layout.

    The reference's samples are omitted if possible: the corrections removed their spread.
    """
    builds = {evidence.build_of(position) for position in evidence.positions}
    groups = {build: evidence.samples(build) for build in sorted(builds)}
    others = [values for build, each in groups.items() if build != evidence.reference for values in each]
    enough = sum(len(values) - 1 for values in others) > 1
    return others if enough else [values for each in groups.values() for values in each]


def _rounded(value: float, steps: int = _STEPS_PER_DOUBLING) -> float:
    """Round to the nearest power of 2^(1/steps), so that one more sample seldom moves the whole grid."""
    return math.exp2(round(steps * math.log2(value)) / steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """Levels at which densities are evaluated, ascending (G,), with the weights of integrals over them (G,)."""

    nodes: Floats
    weights: Floats
    reach: float


def build_lattice(question: Question, grid: Grid, groups: Sequence[Floats]) -> Lattice:
    """Return nodes that are close together near every build's likely levels, and further apart in between.

    `reach` is the length of the prior range of levels: the density of a segment's level is 1/reach.
    """
    likely = np.unique(np.concatenate([likely_levels(values) for values in groups]))
    most = max(map(len, groups))
    step = grid.centre / (4.0 if most <= 12 else 7.0 if most <= 48 else 12.0)
    while True:
        near = np.rint(likely / step).astype(np.int64)
        around = np.arange(-math.ceil(3.5 * grid.centre / step), math.ceil(3.5 * grid.centre / step) + 1)
        index = np.unique(near[:, None] + around[None, :])
        if len(index) <= MOST_NODES:
            break
        step *= 1.5
    low, high = float(likely[0]), float(likely[-1])
    margin = max(4 * grid.centre, question.threshold_on_scale)
    between = np.linspace(low - margin, high + margin, 48)
    fine = index * step
    gaps = np.min(np.abs(between[:, None] - fine[None, :]), axis=1) > step
    nodes = np.sort(np.concatenate([fine, between[gaps]]))
    edges = np.concatenate([[nodes[0] - step / 2], (nodes[1:] + nodes[:-1]) / 2, [nodes[-1] + step / 2]])
    reach = max(1.5 * (high - low), 10 * question.threshold_on_scale)
    return Lattice(nodes=nodes, weights=np.diff(edges), reach=reach)


def likely_levels(values: Floats) -> Floats:
    """Return the likely own levels of a build: middle samples and quartiles, or all of a few samples.

    The mean of the two middle ones is not suitable: with as many outliers as good samples it is near neither.
    """
    count = len(values)
    return values[[count // 4, (count - 1) // 2, count // 2, count - 1 - count // 4]]


class Likelihoods:
    """The likelihoods of builds on one lattice under one grid, each computed once."""

    def __init__(self, lattice: Lattice, grid: Grid) -> None:
        self.lattice = lattice
        self.grid = grid
        self._sigmas, self._taus = grid.sigmas, grid.taus
        distances = lattice.nodes[:, None] - lattice.nodes[None, :]
        self._kernels = [_kernel(distances, float(tau), lattice.weights) for tau in self._taus]
        self._known: dict[tuple[bytes, float], Floats] = {}

    def fits(self, lattice: Lattice, grid: Grid) -> bool:
        """Whether these likelihoods belong to that lattice and grid."""
        return np.array_equal(lattice.nodes, self.lattice.nodes) and grid.is_like(self.grid)

    def of_segment(self, layouts: Sequence[Floats], *, odd: float = ODD_BUILDS) -> Floats:
        """Return log p(a build's samples | its segment's level and shape), (S, Q, G); one array per layout.

        `odd` is the prior probability that the build's level is unrelated to its segment's.
        """
        return sum((self._of_layout(values, odd) for values in layouts), np.zeros(()))

    def _of_layout(self, values: Floats, odd: float) -> Floats:
        key = values.tobytes(), odd
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._integrate(self._own(values), odd)
        return known

    def _own(self, values: Floats) -> Floats:
        """Return log p(samples | the layout's own level), (P, Q, G)."""
        spread = (self._sigmas[:, None] * SPREADS)[:, :, None]
        variance = spread**2
        bounding = min(CONTAMINATION_HEIGHT / (self.grid.centre * math.sqrt(2 * math.pi)), MOST_CONTAMINATION)
        flat = np.full(len(SPREADS), 1 / self.lattice.reach)
        flat[PLAIN] = max(bounding, 1 / self.lattice.reach)
        peak = np.log((1 - CONTAMINATION)[None, :, None] / (spread * math.sqrt(2 * math.pi)))
        contamination = (CONTAMINATION * flat)[None, :, None]
        total = np.zeros((len(self._sigmas), len(SPREADS), len(self.lattice.nodes)))
        distinct, counts = np.unique(values, return_counts=True)
        for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            squares = (value - self.lattice.nodes) ** 2
            # The density of arbitrary samples keeps the sum above zero, and log and exp are much faster than logaddexp.
            total += count * np.log(np.exp(peak - 0.5 * squares[None, None, :] / variance) + contamination)
        return total

    def _integrate(self, own: Floats, odd: float) -> Floats:
        """Integrate a layout's own level out: ``(1 - odd) integral p(x | b) N(b; m, tau) db + odd mean(p(x | b))``."""
        top = own.max(axis=2, keepdims=True)
        relative = np.exp(own - top)
        anywhere = odd * (relative @ self.lattice.weights) / self.lattice.reach
        found = [
            np.log((1 - odd) * (relative @ kernel) + anywhere[:, :, None] + 1e-300) + top
            for kernel in self._kernels
        ]
        # (P, T, Q, G) with sigma varying slowest, as in the grid
        together = np.stack(found, axis=1)
        return together.reshape(-1, *together.shape[2:])


def _kernel(distances: Floats, width: float, weights: Floats) -> Floats:
    """Return the weights of levels b in the density at m, (b, m): a normal kernel around m."""
    kernel = np.exp(-0.5 * (distances / width) ** 2) * weights[:, None]
    # A kernel narrower than the nodes' distance stays complete; the part beyond the lattice is lost.
    whole = np.maximum(kernel.sum(axis=0), width * math.sqrt(2 * math.pi))
    scaled: Floats = kernel / whole[None, :]
    return scaled
