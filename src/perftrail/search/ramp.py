r"""A change that came little by little: the level moves evenly from one position to another.

With the ramp from a to b, a build at position p has the level ``m0 + f (m1 - m0)``, f = (p - a) / (b - a)
between 0 and 1. The evidence

``sum_{a,b} p(a, b) sum_noise p(noise) integral p(m0) p(m1 | m0) prod_k l_k(m0 + f_k (m1 - m0))``

is compared with that of any number of steps (`steps`) over the same builds. p(a, b) is even in the place and
in the logarithm of the width. Both integrals are sums over a few levels near those of the outermost builds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import EFFECT_CREDIBILITY, Change, Effect, Kind
from perftrail.search.belief import ANY_SIZE, SIZES

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.noise import Likelihoods
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

PRIOR = 0.03
"""How likely a change is a ramp, beforehand."""

LEAST_WIDTH = 8
"""A ramp spans so many revisions at least; what is shorter is a step."""

_KNOTS = 25
_LEVELS = np.linspace(-2.7, 2.7, 7)
_NOISES = 3
_MATTERS = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramps:
    """The belief about one ramp among some builds.

    `log_evidence` is on the scale of `Steps.log_evidence`. `begins` and `ends` (R,) are the positions a and b
    of each hypothesis that matters, `before` and `after` its levels, `weight` its share.
    """

    log_evidence: float
    begins: Floats
    ends: Floats
    before: Floats
    after: Floats
    weight: Floats

    def level(self, positions: Indices) -> tuple[Floats, Floats]:
        """Return mean and variance of the level at positions."""
        part = np.clip((positions[:, None] - self.begins) / (self.ends - self.begins), 0.0, 1.0)
        levels = self.before + part * (self.after - self.before)
        mean = levels @ self.weight
        return mean, (levels - mean[:, None]) ** 2 @ self.weight

    @property
    def smallest_seen(self) -> float:
        """The smallest relative change that the errors of the levels would have let be seen: 2.6 of them."""
        error = math.hypot(_spread(self.before, self.weight), _spread(self.after, self.weight))
        return math.expm1(min(2.6 * error, 50.0))

    def change(self, probability: float) -> Change:
        """Return the change that this ramp is; `probability` that it is one."""
        begin, end = (int(_quantile(values, self.weight, 0.5)) for values in (self.begins, self.ends))
        tail = (1 - EFFECT_CREDIBILITY) / 2
        size = self.after - self.before
        low, middle, high = (math.exp(_quantile(size, self.weight, q)) for q in (tail, 0.5, 1 - tail))
        return Change(
            positions=tuple(range(begin + 1, end + 1)),
            confidence=probability,
            before=math.exp(float(self.before @ self.weight)),
            after=math.exp(float(self.after @ self.weight)),
            effect=Effect(value=middle, low=low, high=high),
            kind=Kind.RAMP,
        )


def find_ramps(
    question: Question,
    likelihoods: Likelihoods,
    levels: Floats,
    positions: Indices,
    noise_weight: Floats,
) -> Ramps | None:
    """Work out the belief about one ramp; `None` where the builds span less than one.

    `levels` (K, S, G) are the logarithms of the builds' likelihoods, `noise_weight` (S,) how likely each noise
    pair is with steps, which says which of them to consider.
    """
    begins, ends, prior = _places(positions)
    if len(begins) == 0:
        return None
    kept = np.argsort(-noise_weight, kind="stable")[:_NOISES]
    first, last = (_levels_of(levels[end], noise_weight, likelihoods) for end in (0, -1))
    before, after = np.repeat(first[0], len(last[0])), np.tile(last[0], len(first[0]))
    part = np.clip((positions - begins[:, None]) / (ends - begins)[:, None], 0.0, 1.0)
    level = before[None, None, :] + part[:, :, None] * (after - before)
    logs = _logs_of_builds(likelihoods, levels[:, kept], level)
    jump = _size_density(question, after - before) * last[1]
    cell = first[1] / likelihoods.lattice.step
    with np.errstate(divide="ignore"):
        logs += np.log(prior)[:, None, None] + np.log(jump * cell)[:, None]
        logs += likelihoods.grid.log_prior.reshape(-1)[kept]
    top = float(logs.max())
    if not math.isfinite(top):
        return None
    # The noise pairs left out take the same share of the ramp's evidence as of that of steps.
    left_out = float(noise_weight[kept].sum())
    weight = np.exp(logs - top).sum(axis=2)
    place_number, level_number = np.nonzero(weight > _MATTERS * weight.max())
    share = weight[place_number, level_number]
    return Ramps(
        log_evidence=top
        + math.log(float(weight.sum()) / left_out)
        + math.log(PRIOR * (1 - question.no_change)),
        begins=begins[place_number],
        ends=ends[place_number],
        before=before[level_number],
        after=after[level_number],
        weight=share / share.sum(),
    )


def _logs_of_builds(likelihoods: Likelihoods, levels: Floats, level: Floats) -> Floats:
    """Return the logarithm of all builds' likelihood for each ramp, pair of levels and noise pair, (R, P, S).

    `levels` (K, S, G) are the logarithms of the builds' likelihoods, `level` (R, K, P) is what each build has.
    """
    place = _nearest(likelihoods, level)
    # What lies off the lattice is as far from the build's readings as anything: its least likelihood.
    table = np.concatenate([levels, levels.min(axis=2, keepdims=True)], axis=2)
    ramps, builds, pairs = place.shape
    logs = np.zeros((ramps, pairs, levels.shape[1]))
    for build in range(builds):
        logs += table[build].T[place[:, build]]
    return logs


def _size_density(question: Question, size: Floats) -> Floats:
    """Return how likely a change of such a size is beforehand, as of a step: none below the smallest."""
    scale = 2 * question.smallest_log
    density = (1 - ANY_SIZE) / (math.pi * scale * (1 + (size / scale) ** 2)) + ANY_SIZE / SIZES
    return np.where(np.abs(size) >= question.smallest_log, density, 0.0)


def _places(positions: Indices) -> tuple[Floats, Floats, Floats]:
    """Return begins, ends and prior of the ramps considered: between knots at and between the builds."""
    low, high = int(positions[0]), int(positions[-1])
    knots = positions.astype(np.float64)
    while len(knots) < _KNOTS:
        apart = np.diff(knots)
        widest = int(np.argmax(apart))
        if apart[widest] < 2:
            break
        knots = np.insert(knots, widest + 1, round((knots[widest] + knots[widest + 1]) / 2))
    if len(knots) > _KNOTS:
        # Where builds crowd, around a culprit, two knots next to each other are as good as ten.
        spread = np.argsort(-np.minimum(np.diff(knots)[1:], np.diff(knots)[:-1]), kind="stable")
        knots = np.sort(np.concatenate([knots[[0, -1]], knots[1:-1][spread[: _KNOTS - 2]]]))
    edges = np.concatenate([[low], (knots[1:] + knots[:-1]) / 2, [high]])
    cells = np.maximum(np.diff(edges), 1e-9)
    one, other = np.triu_indices(len(knots), 1)
    width = knots[other] - knots[one]
    wide = width >= LEAST_WIDTH
    one, other, width = one[wide], other[wide], width[wide]
    prior = cells[one] * cells[other] / width
    return knots[one], knots[other], prior / prior.sum() if len(prior) else prior


def _levels_of(levels: Floats, noise_weight: Floats, likelihoods: Likelihoods) -> tuple[Floats, float]:
    """Return a few levels about that of a build, and how far they are apart."""
    nodes = likelihoods.lattice.nodes
    share = noise_weight @ np.exp(levels - levels.max(axis=1, keepdims=True))
    share /= share.sum()
    peak = nodes[int(np.argmax(share))]
    # Outliers make a second hump: the spread is that around the peak.
    near = np.abs(nodes - peak) < 3 * likelihoods.centre
    mean = float(share[near] @ nodes[near] / share[near].sum())
    spread = math.sqrt(float(share[near] @ (nodes[near] - mean) ** 2 / share[near].sum()))
    spread = max(spread, likelihoods.lattice.step)
    return mean + spread * _LEVELS, spread * float(_LEVELS[1] - _LEVELS[0])


def _nearest(likelihoods: Likelihoods, level: Floats) -> Indices:
    """Return the number of the lattice's node nearest each level, the number of nodes where there is none."""
    index = likelihoods.lattice.index
    wanted = np.rint(level / likelihoods.lattice.step).astype(np.int64)
    number = np.full(int(index[-1] - index[0]) + 1, len(index))
    number[index - index[0]] = np.arange(len(index))
    inside = (wanted >= index[0]) & (wanted <= index[-1])
    found: Indices = np.where(inside, number[np.clip(wanted - index[0], 0, len(number) - 1)], len(index))
    return found


def _quantile(values: Floats, weight: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    ladder = np.cumsum(weight[order])
    return float(values[order][min(int(np.searchsorted(ladder, share * ladder[-1])), len(values) - 1)])


def _spread(values: Floats, weight: Floats) -> float:
    mean = float(values @ weight)
    return math.sqrt(float((values - mean) ** 2 @ weight))
