r"""How readings scatter: the noise model, laid on a lattice, and each build's likelihood under it.

A reading of revision i is ``x = level + u_i + e``: ``u ~ N(0, tau)`` once for each build (memory layout, link
order), ``e ~ N(0, sigma)`` for each reading. With probability `OUTLIERS` a reading is garbage of a flat density,
half the height of the peak of e: two-sided, and it bounds what any one reading can say (Huber 1964; weights from
searching.md section 6). Assumes that readings of one build are independent given u.

sigma and tau are not known: both are marginalised over a small grid around a robust estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

WIDE=1.0
OUTLIERS = 0.03
"""The prior share of readings that are garbage."""

GARBAGE = 0.5
"""The height of the garbage's density, as a share of the peak of the noise's."""

SIGMA_OFFSETS = (-1.5, -0.5, 0.5, 1.5)
"""Where the grid of sigma lies, in standard errors of the estimate's logarithm."""

TAU_RATIOS = (0.1, 0.3, 0.7)
"""tau over sigma; a last, absolute one is comparable to the smallest change worth finding."""

TAU_PRIOR = (0.30, 0.45, 0.20, 0.05)

RESOLUTION = 40.0
"""No noise is taken to be smaller than the smallest change over this: deterministic values have sigma 0."""

MOST_NODES = 640
_PAIRS_FROM = 96
_SPREADS = (0.6, 0.42, 0.3, 0.21, 0.15, 0.1, 0.07)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """Levels on which densities are held: equal steps, only near where readings are. `nodes` has shape (G,)."""

    nodes: Floats
    index: npt.NDArray[np.int64]
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseGrid:
    """Pairs of sigma and tau with their prior: `sigma` (P,), `tau` (P, T), `log_prior` (P, T)."""

    sigma: Floats
    tau: Floats
    log_prior: Floats


def pooled_sigma(builds: Sequence[Floats]) -> tuple[float, int]:
    """Estimate sigma from differences within builds; also says how many degrees of freedom it rests on.

    The median of all pair differences over 0.954 (Shamos 1976): consistent for normal noise at every number of
    readings, 86 % efficient, and unmoved by up to 29 % of outliers. Zero with no pair.
    """
    pairs = []
    freedom = 0
    for values in builds:
        freedom += len(values) - 1
        thinned = values[:: 1 + len(values) // _PAIRS_FROM]
        if len(thinned) > 1:
            above = np.triu_indices(len(thinned), 1)
            pairs.append(np.abs(thinned[above[0]] - thinned[above[1]]))
    if not pairs:
        return 0.0, 0
    return float(np.median(np.concatenate(pairs))) / 0.9539, freedom


def noise_grid(sigma: float, freedom: int, smallest_log: float) -> NoiseGrid:
    """Lay the grid of sigma and tau around an estimate; it narrows as the degrees of freedom grow."""
    error = 0.9 / math.sqrt(max(freedom, 1))
    spread = min(_SPREADS, key=lambda candidate: abs(math.log(candidate / error)))
    sigmas = sigma * np.exp(spread * np.asarray(SIGMA_OFFSETS))
    wide = max(WIDE*sigma, smallest_log / 3)
    tau = np.column_stack([sigmas * ratio for ratio in TAU_RATIOS] + [np.full_like(sigmas, wide)])
    prior = np.log(np.asarray(TAU_PRIOR) / len(sigmas))
    return NoiseGrid(sigma=sigmas, tau=tau, log_prior=np.broadcast_to(prior, tau.shape))


def lay_lattice(medians: Floats, sigma: float, most_readings: int) -> Lattice:
    """Lay nodes within 4.5 sigma of every build's median, at a step that resolves the best known build."""
    step = sigma / (8.0 if most_readings <= 64 else 16.0)
    reach = 4.5 * sigma
    first = np.floor((np.sort(medians) - reach) / step).astype(np.int64)
    last = np.ceil((np.sort(medians) + reach) / step).astype(np.int64)
    runs: list[npt.NDArray[np.int64]] = []
    begin, end = int(first[0]), int(last[0])
    for low, high in zip(first[1:].tolist(), last[1:].tolist(), strict=True):
        if low > end:
            runs.append(np.arange(begin, end + 1))
            begin = low
        end = max(end, high)
    runs.append(np.arange(begin, end + 1))
    index = np.concatenate(runs)
    return Lattice(nodes=index * step, index=index, step=step)


def build_log_likelihoods(builds: Sequence[Floats], lattice: Lattice, sigmas: Floats, centre: float) -> Floats:
    r"""Return log p(readings | the build's own level b, sigma), shape (builds, P, G).

    ``sum_r log((1-pi) N(x_r; b, sigma) + pi g)`` with the flat g fixed by `centre`, the estimate of sigma, so that
    garbage does not speak for a smaller sigma.
    """
    garbage = math.log(OUTLIERS * GARBAGE / (centre * math.sqrt(2 * math.pi)))
    likelihoods = np.empty((len(builds), len(sigmas), len(lattice.nodes)))
    scale = np.log((1 - OUTLIERS) / (sigmas * math.sqrt(2 * math.pi)))
    for number, values in enumerate(builds):
        squares = -0.5 * (values[:, None] - lattice.nodes[None, :]) ** 2
        inlier = scale[:, None, None] + squares[None] / (sigmas**2)[:, None, None]
        likelihoods[number] = np.logaddexp(inlier, garbage).sum(axis=1)
    return likelihoods


def level_log_likelihoods(own: Floats, lattice: Lattice, tau: Floats) -> Floats:
    r"""Return log p(readings | the side's level m, sigma, tau), shape (builds, P, T, G).

    ``integral p(readings | b) N(b; m, tau) db``: the layout term of each build, integrated out.
    """
    peak = own.max(axis=2, keepdims=True)
    relative = np.exp(own - peak)
    distance = np.abs(lattice.index[:, None] - lattice.index[None, :])
    reach = np.arange(int(lattice.index[-1] - lattice.index[0]) + 1) * lattice.step
    levels = np.empty((own.shape[0], *tau.shape, own.shape[2]))
    for row in range(tau.shape[0]):
        for column in range(tau.shape[1]):
            width = tau[row, column]
            kernel = np.exp(-0.5 * (reach / width) ** 2) * (lattice.step / (width * math.sqrt(2 * math.pi)))
            mixed = relative[:, row] @ kernel[distance]
            levels[:, row, column] = np.log(np.maximum(mixed, 1e-300)) + peak[:, row]
    return levels
