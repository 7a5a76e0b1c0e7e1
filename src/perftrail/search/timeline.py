"""The belief when the order of time matters: readings under drift, or of several machines.

`belief` takes readings to have no order, `drift` follows them one by one. This module decides which of the two
is believed, and puts what the second finds into the form of the first.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import noise
from perftrail.search.belief import (
    ANY_SIZE,
    MATTERS,
    NEGLIGIBLE,
    SIZES,
    Hypotheses,
    Posterior,
    Rows,
)
from perftrail.search.drift import NEVER, Drift, Frame, Track
from perftrail.search.levels import between_equals

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

SHOWN = 0.25
"""The order of time is believed to matter once drift is this likely."""

ROUND_TO = 4.0
"""A frame's levels are rounded to so many sigma: less than they are doubted by, `Frame`'s spreads."""

_PAIRS = 6
_WIDER = 1.5
_SIGMAS = 4
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)


class Timeline:
    """The filter of a search: followed further while its frame lasts, begun anew when it does not."""

    def __init__(self) -> None:
        self._drift: Drift | None = None
        self._spans: tuple[tuple[int, int], ...] = ()

    def judge(
        self, question: Question, evidence: Evidence, cumulative_prior: Floats, still: Posterior
    ) -> Posterior:
        """Return the posterior by the order of time if that matters, else `still`, which has no order."""
        sequence = evidence.sequence
        frame = _frame(evidence, still)
        drift = self._drift
        if drift is None or frame != drift.frame or evidence.spans != self._spans:
            drift = self._drift = Drift(frame)
            self._spans = evidence.spans
        drift.follow(sequence[drift.followed :])
        weighed = _weigh(question, evidence, cumulative_prior, still, drift)
        wanders = float(weighed.weight.sum(axis=0)[drift.moves].sum())
        if len(drift.blocks) == 1 and wanders < SHOWN:
            return replace(still, drift=wanders)
        return replace(_believe(question, evidence, still, drift, weighed), drift=wanders)


def _frame(evidence: Evidence, still: Posterior) -> Frame:
    """Lay the frame around the belief without order: wide, and on numbers so round that they seldom change.

    Each time they do, everything has to be followed anew.
    """
    pooled = still.likelihoods.centre
    sigma = noise.on_ladder(pooled, 1)
    first = evidence.sequence[0]
    likely = noise.likely_levels(evidence.values(first.position))
    change = still.after[0] - still.before[0]
    blocks = evidence.offsets
    return Frame(
        level=_round(float(np.median(likely)) + (blocks[first.block] or 0.0), ROUND_TO * sigma),
        level_spread=max(5 * sigma, noise.on_ladder(max(float(np.ptp(likely)), sigma), 1)),
        change=_round(change, ROUND_TO * sigma),
        change_spread=max(
            6 * sigma, noise.on_ladder(max(2 * math.hypot(still.before[1], still.after[1]), sigma), 1)
        ),
        blocks=tuple(
            (name, None if offset is None else _round(offset, ROUND_TO * sigma))
            for name, offset in blocks.items()
        ),
        sigma=_scatters(evidence, pooled),
        layout=noise.on_ladder(float(still.likelihoods.grid.tau[0, -1]), 1),
        garbage=noise.garbage_density(sigma),
    )


def _scatters(evidence: Evidence, pooled: float) -> tuple[float, ...]:
    """Return the grid of sigma: from what neighbours in time say, to what all readings of a build do.

    Drift makes readings of one build differ the more, the further apart in time they were taken.
    """
    told = evidence.sequence
    pairs = [
        abs(later.value - earlier.value)
        for earlier, later in itertools.pairwise(told)
        if (earlier.position, earlier.block) == (later.position, later.block)
    ]
    apart = float(np.median(pairs)) / 0.9539 if len(pairs) >= _PAIRS else pooled / 2
    # Four within a factor of 1.5 of the two: coarse, but each costs as much as all of the rest.
    low = noise.on_ladder(min(max(apart, pooled / 4), pooled), 1) / _WIDER
    high = noise.on_ladder(pooled, 1) * _WIDER
    return tuple(np.geomspace(low, high, _SIGMAS).tolist())


def _round(value: float, step: float) -> float:
    return round(value / step) * step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """The weight of each hypothesis and noise (H, S), and each hypothesis' gap (H,), K-1 for no change.

    `outside` is the prior probability that the change is outside what was built.
    """

    weight: Floats
    gap: Indices
    outside: float


def _weigh(
    question: Question, evidence: Evidence, cumulative_prior: Floats, still: Posterior, drift: Drift
) -> _Weighed:
    positions = still.positions
    masses = np.diff(cumulative_prior[np.asarray(positions)]) * (1 - question.no_change)
    outside = max(0.0, 1 - question.no_change - float(masses.sum()))
    masses[between_equals(evidence, positions)] = 0.0
    first = np.maximum.accumulate([evidence.representative(position) for position in positions])
    gap = np.full(len(drift.last_before), len(positions) - 1)
    mass = np.zeros(len(drift.last_before))
    mass[drift.last_before == NEVER] = question.no_change + outside
    for number in np.nonzero(masses)[0].tolist():
        gap[drift.last_before == first[number]] = number
        mass[drift.last_before == first[number]] = masses[number]
    with np.errstate(divide="ignore"):
        logs = drift.log_evidence + _size_prior(question, drift) + np.log(mass)[:, None]
    weight = np.exp(logs - logs.max())
    return _Weighed(weight=weight / weight.sum(), gap=gap, outside=outside)


def _believe(
    question: Question, evidence: Evidence, still: Posterior, drift: Drift, weighed: _Weighed
) -> Posterior:
    weight, gap, outside = weighed.weight, weighed.gap, weighed.outside
    level = drift.blocks.get(evidence.block, drift.blocks[drift.block])
    moved = drift.last_before != NEVER
    unmoved = float(weight[~moved].sum())
    gaps = np.zeros(len(still.positions) - 1)
    placed = moved & (gap < len(gaps))  # between two equal builds there is no culprit, and no weight
    np.add.at(gaps, gap[placed], weight[placed].sum(axis=1))
    spread = np.sqrt(np.maximum(drift.covariance[:, :, 0, 0], 1e-30))
    within = _normal(question.smallest_log, drift.mean[:, :, 0], spread)
    noise_weight = weight.sum(axis=0)
    hypotheses, track = _merge(
        weight, gap, drift, level, [evidence.representative(p) for p in still.positions]
    )
    before, after = _sides(weight if unmoved > 1 - NEGLIGIBLE else weight * moved[:, None], drift, level)
    return replace(
        still,
        gaps=gaps,
        outside=unmoved * outside / (outside + question.no_change),
        nothing=unmoved * question.no_change / (outside + question.no_change),
        small=float((weight * within)[moved].sum()),
        before=before,
        after=after,
        sigma=math.sqrt(float(noise_weight @ drift.sigma**2)),
        tau=math.sqrt(float(noise_weight @ drift.layout**2)),
        # The lattice holds the levels of the first block, whichever is being measured in.
        rows=_rows(weight, gap, moved, drift, drift.blocks[evidence.sequence[0].block], still),
        hypotheses=hypotheses,
        track=track,
    )


def _size_prior(question: Question, drift: Drift) -> Floats:
    """Return the logarithm by which the prior of the change's size differs from the frame's, (H, S)."""
    frame = drift.frame
    mean = drift.mean[:, :, 0]
    spread = np.sqrt(np.maximum(drift.covariance[:, :, 0, 0], 1e-30))
    size = mean[..., None] + spread[..., None] * _POINTS
    scale = 2 * question.smallest_log
    wanted = (1 - ANY_SIZE) / (math.pi * scale * (1 + (size / scale) ** 2)) + ANY_SIZE / SIZES
    # Beyond four standard deviations of the frame its normal density would make up what was never seen.
    away = np.minimum(np.abs(size - frame.change) / frame.change_spread, 4.0)
    had = np.exp(-0.5 * away**2) / (frame.change_spread * math.sqrt(2 * math.pi))
    ratio: Floats = np.log((wanted / had) @ (_WEIGHTS / _WEIGHTS.sum()))
    return np.where((drift.last_before == NEVER)[:, None], 0.0, ratio)


def _normal(bound: float, mean: Floats, spread: Floats) -> Floats:
    """P(-bound < a normal < bound), by the logistic approximation of Bowling et al. 2009 (error < 2e-4)."""

    def below(value: Floats) -> Floats:
        chance: Floats = 1 / (1 + np.exp(-np.clip(1.5976 * value + 0.07056 * value**3, -50, 50)))
        return chance

    return below((bound - mean) / spread) - below((-bound - mean) / spread)


def _sides(weight: Floats, drift: Drift, level: int) -> tuple[tuple[float, float], tuple[float, float]]:
    share = weight / weight.sum()
    found = []
    for parts in ((level,), (level, 0)):
        mean = sum(drift.mean[:, :, part] for part in parts)
        variance = sum(drift.covariance[:, :, one, other] for one in parts for other in parts)
        middle = float((share * mean).sum())
        found.append((middle, math.sqrt(max(float((share * (variance + (mean - middle) ** 2)).sum()), 0.0))))
    return found[0], found[1]


def _merge(
    weight: Floats, gap: Indices, drift: Drift, level: int, representatives: list[int]
) -> tuple[Hypotheses, Track]:
    """Merge the noises of each hypothesis that matters by their moments, in the order of gaps."""
    total = weight.sum(axis=1)
    kept = np.nonzero(total > MATTERS)[0]
    kept = kept[np.argsort(gap[kept], kind="stable")]
    share = weight[kept] / total[kept, None]
    mean = np.einsum("hs,hsd->hd", share, drift.mean[kept])
    off = drift.mean[kept] - mean[:, None, :]
    covariance = np.einsum("hs,hsde->hde", share, drift.covariance[kept])
    covariance += np.einsum("hs,hsd,hse->hde", share, off, off)
    after = np.array(representatives)[:, None] > drift.last_before[kept][None, :]
    variance = covariance[:, level, level]
    both = variance + 2 * covariance[:, level, 0] + covariance[:, 0, 0]
    finest = (drift.sigma.min() / 40) ** 2
    hypotheses = Hypotheses(
        gap=gap[kept],
        weight=total[kept],
        before=mean[:, level],
        before_variance=np.maximum(variance, finest),
        after=mean[:, level] + mean[:, 0],
        after_variance=np.maximum(both, finest),
        scatter=share @ drift.sigma**2,
        layout=share @ drift.layout**2,
    )
    track = Track(
        mean=mean,
        covariance=covariance,
        level=level,
        builds=dict(drift.builds),
        after=after,
        walk=share @ drift.walk**2,
    )
    return hypotheses, track


def _rows(
    weight: Floats, gap: Indices, moved: npt.NDArray[np.bool_], drift: Drift, level: int, still: Posterior
) -> Rows:
    """Lay the levels of both sides on the lattice, so that their difference has its true spread."""
    lattice = still.lattice
    hypothesis, pair = np.nonzero((weight > NEGLIGIBLE) & moved[:, None])
    before = drift.mean[hypothesis, pair, level]
    change = drift.mean[hypothesis, pair, 0]
    spread = np.maximum(np.sqrt(np.maximum(drift.covariance[hypothesis, pair, 0, 0], 0.0) / 2), lattice.step)

    def density(middle: Floats) -> Floats:
        away = (lattice.nodes[None, :] - middle[:, None]) / spread[:, None]
        relative: Floats = np.exp(-0.5 * (away**2 - (away**2).min(axis=1, keepdims=True)))
        return relative

    return Rows(
        gap=gap[hypothesis],
        pair=pair,
        weight=weight[hypothesis, pair],
        before=density(before),
        after=density(before + change),
    )
