"""Detect a gradual change: the level changes evenly from one position to another.

With a ramp from a to b, a build at position p has the level ``m0 + f (m1 - m0)``, f = (p - a) / (b - a)
between 0 and 1. The evidence

``sum_{a,b} p(a, b) sum_noise p(noise) integral p(m0) p(m1) prod_k l_k(m0 + f_k (m1 - m0))``

is compared with that of any number of changes (`posterior`) between the same builds. p(a, b) is uniform in
the position and in the logarithm of the width. Both integrals are sums over a few levels near those of the
outermost builds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.noise import SHAPES_PRIOR

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.noise import Grid, Lattice
    from perftrail.search.posterior import Posterior
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

PRIOR = 0.03
"""The prior probability that a change is a ramp."""

LEAST_WIDTH = 8
"""Minimum number of revisions of a ramp; a shorter one is a step."""

LEAST_BUILDS = 5
"""Minimum number of builds to distinguish a ramp from steps."""

MOST_SAMPLES = 12
"""Maximum samples of a build to distinguish a ramp from steps."""

SAMPLES = 2
"""Number of samples of a build in one batch that separates a ramp from steps."""

LEAST_GAIN = 0.05
"""Minimum expected change of the log odds for which more samples are taken."""

_KNOTS = 25
"""Maximum number of positions at which a ramp may begin or end."""

_LEVELS = np.linspace(-2.7, 2.7, 7)
"""The levels at both ends of a ramp, in standard deviations around the outermost build's level."""

_NOISES = 3
"""Number of combinations of sigma and tau that are considered, the likeliest ones."""

_MATTERS = 1e-2
"""Hypotheses with less than this share of the likeliest one's weight are dropped."""

_CANDIDATES = 33
"""Number of evenly spread positions that are considered for further samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """The belief about one ramp among some builds.

    `probability` is that of a ramp instead of steps. `begins` and `ends` (R,) are the positions a and b of
    each hypothesis that matters, `before` and `after` its levels, `weight` its share.
    """

    probability: float
    begins: Floats
    ends: Floats
    before: Floats
    after: Floats
    weight: Floats

    @property
    def span(self) -> tuple[int, int]:
        """The median positions of the beginning and the end of the ramp."""
        return int(_quantile(self.begins, self.weight)), int(_quantile(self.ends, self.weight))

    @property
    def direction(self) -> int:
        """The sign of the change."""
        return 1 if float((self.after - self.before) @ self.weight) > 0 else -1

    def level(self, positions: Indices) -> tuple[Floats, Floats]:
        """Return mean and variance of the level at positions."""
        part = np.clip((positions[:, None] - self.begins) / (self.ends - self.begins), 0.0, 1.0)
        levels = self.before + part * (self.after - self.before)
        mean = levels @ self.weight
        return mean, (levels - mean[:, None]) ** 2 @ self.weight

    def most_informative_position(self, evidence: Evidence, posterior: Posterior) -> int | None:
        """Return the position that best separates a ramp from steps per second of cost; `None` if no gain suffices.

        The gain is the expected change of the log odds by samples there, if the level were the mean of the
        ramp:
        ``sum over segments P(segment) (level - mean)^2 / (2 variance)``.
        """
        built = np.asarray(posterior.positions)
        spread = np.rint(np.linspace(built[0], built[-1], _CANDIDATES)).astype(np.int64)
        fresh = [position for position in dict.fromkeys(spread.tolist()) if not evidence.has_result(position)]
        again = [
            position
            for position in built.tolist()
            if evidence.is_usable(position) and evidence.count(position) < MOST_SAMPLES
        ]
        candidates = np.array(fresh + again, dtype=np.int64)
        if len(candidates) == 0:
            return None
        mean, variance = self.level(candidates)
        squares = _square_distance_from_steps(posterior, candidates, mean)
        counts = np.array([evidence.count(position) for position in candidates.tolist()])
        scatter, layout = posterior.sigma**2, posterior.tau**2
        gain = squares / (2 * (layout + variance + scatter / (counts + SAMPLES)))
        gain -= np.where(
            counts > 0, squares / (2 * (layout + variance + scatter / np.maximum(counts, 1))), 0.0
        )
        seconds = (
            np.where(counts > 0, 0.0, evidence.seconds_per_build) + SAMPLES * evidence.seconds_per_sample
        )
        if gain.max() < LEAST_GAIN:
            return None
        return int(candidates[int(np.argmax(np.where(gain >= LEAST_GAIN, gain / seconds, -1.0)))])


def find_ramp(posterior: Posterior, question: Question) -> Ramp | None:
    """Return the belief that one even ramp explains the samples better than any number of steps.

    `None` with too few builds, or if they span fewer revisions than a ramp. The noises considered are the
    most likely ones with steps.
    """
    chain = posterior.chain
    lattice, grid = chain.lattice, chain.grid
    noise = posterior.noise[posterior.kept]
    positions = np.asarray(posterior.positions)
    _, firsts, builds = np.unique(chain.builds, return_index=True, return_inverse=True)
    begins, ends, prior = _possible_ramps(positions)
    part = np.clip((positions - begins[:, None]) / (ends - begins)[:, None], 0.0, 1.0)
    # A build has one level, so no ramp lies between two positions of it. Its samples count once.
    possible = np.all(part == part[:, firsts[builds]], axis=1)
    begins, ends, prior, part = begins[possible], ends[possible], prior[possible], part[possible][:, firsts]
    if len(firsts) < LEAST_BUILDS or len(begins) == 0:
        return None
    kept = np.argsort(-noise, kind="stable")[:_NOISES]
    plain = np.logaddexp.reduce(chain.levels[:, kept] + np.log(SHAPES_PRIOR)[None, None, :, None], axis=2)
    share = noise[kept] / noise[kept].sum()
    first, last = (_levels_near(plain[end], share, lattice, grid) for end in (0, -1))
    before, after = np.repeat(first[0], len(last[0])), np.tile(last[0], len(first[0]))
    logs = _logs_of_builds(lattice, plain[firsts], part, before, after)
    reach = lattice.reach
    density = np.where(np.abs(after - before) >= question.threshold_log, first[1] * last[1] / reach**2, 0.0)
    with np.errstate(divide="ignore"):
        logs = logs + np.log(prior)[:, None, None] + np.log(density)[None, :, None]
        logs = logs + grid.log_prior[kept]
    top = float(logs.max())
    if not math.isfinite(top):
        return None
    # Divided by this share, the evidence includes the omitted noises, as the evidence of the steps does.
    kept_share = float(noise[kept].sum() / noise.sum())
    weight = np.exp(logs - top).sum(axis=2)
    segment, number = np.nonzero(weight > _MATTERS * weight.max())
    kept_weight = weight[segment, number]
    evidence = top + math.log(float(weight.sum()) / kept_share) + math.log(PRIOR * (1 - question.no_change))
    odds = min(max(evidence - chain.log_evidence, -50.0), 50.0)
    return Ramp(
        probability=1 / (1 + math.exp(-odds)),
        begins=begins[segment],
        ends=ends[segment],
        before=before[number],
        after=after[number],
        weight=kept_weight / kept_weight.sum(),
    )


def _square_distance_from_steps(posterior: Posterior, positions: Indices, mean: Floats) -> Floats:
    """Return the mean square distance of the ramp's level at each position from that of the steps there."""
    changes = posterior.guesses
    bounds = [np.ones(len(positions))]
    for change in changes:
        cumulative = np.concatenate([[0.0], np.cumsum(change.gaps)])
        bounds.append(np.interp(positions, posterior.positions, cumulative))
    bounds.append(np.zeros(len(positions)))
    levels = [float(changes[0].before.mean[0]), *(float(change.after.mean[-1]) for change in changes)]
    share = np.maximum(np.array(bounds[:-1]) - np.array(bounds[1:]), 0.0)
    squares: Floats = (share * (np.array(levels)[:, None] - mean[None, :]) ** 2).sum(axis=0)
    return squares


def _logs_of_builds(lattice: Lattice, levels: Floats, part: Floats, before: Floats, after: Floats) -> Floats:
    """Return the log likelihood of all builds for each ramp, pair of levels and noise, (R, P, S).

    `levels` (K, S, G) are the logarithms of the builds' likelihoods. `part` (R, K) is the share of each ramp that is
    before each build. `before` and `after` (P,) are the pairs of levels.
    """
    # A level off the lattice is far from the build's samples: use the smallest likelihood.
    table = np.concatenate([levels, levels.min(axis=2, keepdims=True)], axis=2)
    by_node = np.ascontiguousarray(table.swapaxes(1, 2))
    logs = np.zeros((len(part), len(before), levels.shape[1]))
    for build, parts in enumerate(part.T):
        # Most builds are before or after most ramps: their levels are the same for all of these.
        distinct, which = np.unique(parts, return_inverse=True)
        nodes = _nearest_nodes(lattice, before + distinct[:, None] * (after - before))
        logs += by_node[build].take(nodes, axis=0)[which]
    return logs


def _nearest_nodes(lattice: Lattice, level: Floats) -> Indices:
    """Return the lattice's node nearest to each level; the number of nodes for a level off the lattice."""
    nodes = lattice.nodes
    right = np.clip(np.searchsorted(nodes, level), 1, len(nodes) - 1)
    nearest = np.where(level - nodes[right - 1] < nodes[right] - level, right - 1, right)
    inside = (level >= nodes[0]) & (level <= nodes[-1])
    return np.where(inside, nearest, len(nodes))


def _possible_ramps(positions: Indices) -> tuple[Floats, Floats, Floats]:
    """Return begins, ends and prior of the ramps considered: between knots at and between the builds."""
    low, high = int(positions[0]), int(positions[-1])
    knots = positions.astype(np.float64)
    while len(knots) < _KNOTS:
        widths = np.diff(knots)
        widest = int(np.argmax(widths))
        if widths[widest] < 2:
            break
        knots = np.insert(knots, widest + 1, round((knots[widest] + knots[widest + 1]) / 2))
    if len(knots) > _KNOTS:
        # Where builds are dense, around a culprit, two neighbouring knots are as good as ten.
        isolated = np.argsort(-np.minimum(np.diff(knots)[1:], np.diff(knots)[:-1]), kind="stable")
        knots = np.sort(np.concatenate([knots[[0, -1]], knots[1:-1][isolated[: _KNOTS - 2]]]))
    edges = np.concatenate([[low], (knots[1:] + knots[:-1]) / 2, [high]])
    cells = np.maximum(np.diff(edges), 1e-9)
    one, other = np.triu_indices(len(knots), 1)
    width = knots[other] - knots[one]
    wide = width >= LEAST_WIDTH
    one, other, width = one[wide], other[wide], width[wide]
    prior = cells[one] * cells[other] / width
    return knots[one], knots[other], prior / prior.sum() if len(prior) else prior


def _levels_near(levels: Floats, share: Floats, lattice: Lattice, grid: Grid) -> tuple[Floats, float]:
    """Return a few levels around that of a build, and their distance."""
    nodes, weights = lattice.nodes, lattice.weights
    density = share @ np.exp(levels - levels.max(axis=1, keepdims=True)) * weights
    density /= density.sum()
    # Outliers add a second mode: the spread is that around the peak.
    centre = grid.centre
    near = np.abs(nodes - nodes[int(np.argmax(density))]) < 3 * centre
    mean = float(density[near] @ nodes[near] / density[near].sum())
    spread = math.sqrt(float(density[near] @ (nodes[near] - mean) ** 2 / density[near].sum()))
    spread = max(spread, centre / 20)
    return mean + spread * _LEVELS, spread * float(_LEVELS[1] - _LEVELS[0])


def _quantile(values: Floats, weight: Floats) -> float:
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    return float(values[order][min(int(np.searchsorted(cumulative, 0.5 * cumulative[-1])), len(values) - 1)])
