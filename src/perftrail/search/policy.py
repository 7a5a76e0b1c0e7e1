"""Choose the next action: the one with the most information about a change's position per second of cost.

Greedy information gain is within a constant of the best policy for a step in noise (Waeber, Frazier and
Henderson 2013; Jedynak, Frazier and Sznitman 2012); dividing by the expected cost is perftrail's addition.

`CostModel` predicts the cost of the next build, and `Breakage` its probability to fail. Broken ranges cluster: a
two-state Markov chain along the history with a share f of unusable revisions and a correlation falling as
``lambda^distance``. f and lambda are marginalised over a small grid, weighted by the chain's likelihood of the tried
positions. Assumes the same f and lambda everywhere, and that the tried positions were chosen at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.posterior import LikelyChange, Posterior
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

ALL_BROKEN = 0.97
"""Untried revisions in a broken range are ignored once all of them are broken with this probability."""

ALREADY_BUILT = 1e-3
"""An existing build costs this share of a sample, above zero so that rates stay finite."""

_LEAST_BUILDS = 4

_SHARES = np.array([0.02, 0.07, 0.15, 0.30, 0.60])
_SHARES_PRIOR = np.array([0.30, 0.25, 0.25, 0.13, 0.07])
_LENGTHS = np.array([0.3, 1.0, 2.0, 4.0, 16.0, 80.0])
_SHARE = np.repeat(_SHARES, len(_LENGTHS))
_FALL = np.tile(-1 / _LENGTHS, len(_SHARES))
_LAMBDA = np.exp(_FALL)
_PRIOR = np.repeat(_SHARES_PRIOR / len(_LENGTHS), len(_LENGTHS))


class Breakage:
    """Probability that a revision is unusable, from the tried positions (ascending) and whether each failed."""

    def __init__(self, positions: npt.NDArray[np.int64], unusable: npt.NDArray[np.bool_]) -> None:
        self._positions = positions
        self._unusable = unusable
        self._weight = self._grid_weights()

    def _grid_weights(self) -> Floats:
        if len(self._positions) == 0:
            return _PRIOR
        fading = _fading(np.diff(self._positions))
        into = _turns_bad(fading, self._unusable[None, :-1])
        steps = np.where(self._unusable[None, 1:], into, 1 - into)
        first = _SHARE if self._unusable[0] else 1 - _SHARE
        log_weight = np.log(_PRIOR) + np.log(first) + np.log(np.maximum(steps, 1e-300)).sum(axis=1)
        weight: Floats = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        return weight

    def probability(self, candidates: npt.NDArray[np.int64]) -> Floats:
        """Return P(unusable) of each untried candidate, given the nearest tried ones on both sides."""
        after = np.searchsorted(self._positions, candidates)
        bad = np.broadcast_to(_SHARE[:, None], (len(_SHARE), len(candidates))).copy()
        good = 1 - bad
        has_left = after > 0
        if has_left.any():
            left = after[has_left] - 1
            fading = _fading(candidates[has_left] - self._positions[left])
            into = _turns_bad(fading, self._unusable[left][None, :])
            bad[:, has_left], good[:, has_left] = into, 1 - into
        has_right = after < len(self._positions)
        if has_right.any():
            right = after[has_right]
            fading = _fading(self._positions[right] - candidates[has_right])
            end = self._unusable[right][None, :]
            bad_on = _turns_bad(fading, np.True_)
            good_on = _turns_bad(fading, np.False_)
            bad[:, has_right] *= np.where(end, bad_on, 1 - bad_on)
            good[:, has_right] *= np.where(end, good_on, 1 - good_on)
        chance: Floats = self._weight @ (bad / np.maximum(bad + good, 1e-300))
        return chance

    def all_between(self, low: int, high: int) -> float:
        """Return P(every untried position strictly between two tried ones is unusable)."""
        inside = (self._positions >= low) & (self._positions <= high)
        positions, unusable = self._positions[inside], self._unusable[inside]
        distances = np.diff(positions)
        stays = _turns_bad(_LAMBDA[:, None], np.True_)
        begins = _turns_bad(_LAMBDA[:, None], unusable[None, :-1])
        ends = np.where(unusable[None, 1:], stays, 1 - stays)
        path = begins * stays ** np.maximum(distances - 2, 0)[None, :] * ends
        into = _turns_bad(_fading(distances), unusable[None, :-1])
        any_way = np.where(unusable[None, 1:], into, 1 - into)
        chance = np.where(distances[None, :] > 1, path / np.maximum(any_way, 1e-300), 1.0)
        return float(self._weight @ chance.prod(axis=1))


def _fading(distances: npt.NDArray[np.int64]) -> Floats:
    """Return ``lambda^d`` for each lambda of the grid and each distance."""
    faded: Floats = np.exp(_FALL[:, None] * distances[None, :])
    return faded


def _turns_bad(fading: Floats, from_bad: npt.NDArray[np.bool_] | np.bool_) -> Floats:
    """Return P(unusable) at a distance, from a known state: ``f + (1-f) lambda^d`` or ``f (1 - lambda^d)``."""
    share = _SHARE[:, None]
    turned: Floats = np.where(from_bad, share + (1 - share) * fading, share * (1 - fading))
    return turned


class CostModel:
    """Predicted seconds of builds and samples.

    An existing build costs almost nothing (`ALREADY_BUILT`). An incremental build costs ``a + b * distance``. The
    distance is to the revision built before it in the same tree, in the question's unit. The fit is by least squares
    over the builds so far, with both numbers at zero or more. Without distances, or before five builds, each costs
    the mean.
    """

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.sample = evidence.seconds_per_sample
        self._built = np.array(sorted(question.built | evidence.built), dtype=np.int64)
        self._mean = evidence.seconds_per_build
        self._distance = None if question.distance is None else np.asarray(question.distance)
        self._fitted = self._fit(evidence.build_log)
        self._last = evidence.build_log[-1][0] if evidence.build_log else None

    def build(self, positions: Indices) -> Floats:
        """Return the expected seconds of building each position next, (C,)."""
        seconds = np.full(len(positions), self._mean)
        if self._fitted is not None and self._distance is not None and self._last is not None:
            start, rate = self._fitted
            seconds = start + rate * np.abs(self._distance[positions] - self._distance[self._last])
        seconds = np.maximum(seconds, 0.05 * self._mean)
        free: Floats = np.where(np.isin(positions, self._built), ALREADY_BUILT * self.sample, seconds)
        return free

    def _fit(self, log: list[tuple[int, float]]) -> tuple[float, float] | None:
        if self._distance is None or len(log) < _LEAST_BUILDS + 1:
            return None
        distances = np.array([self._distance[position] for position, _ in log])
        changes, seconds = np.abs(np.diff(distances)), np.array([cost for _, cost in log[1:]])
        if np.ptp(changes) <= 0:
            return None
        # The mean is a weak prior, so that two different builds alone do not determine a slope.
        rows = np.column_stack([np.append(np.ones(len(changes)), 1.0), np.append(changes, changes.mean())])
        (start, rate), *_ = np.linalg.lstsq(rows, np.append(seconds, seconds.mean()), rcond=None)
        return (float(start), float(rate)) if start >= 0 and rate >= 0 else None


SAMPLES = np.array([1, 2, 3, 5, 8, 12, 20])
"""Numbers of samples that one action may take."""

MOST_SAMPLES_REUSING_REFERENCE = 3
"""Up to this number of samples, a batch reuses the reference samples of the batch before, while the machine is calm."""

MOST_CANDIDATES = 65
"""Number of positions inside one gap that are compared with each other."""

LEAST_BITS = 1e-3
"""Actions with less information are not worth their cost: twenty more samples, or one more build."""

OUTLIERS = 0.03
"""Share of samples that are outliers."""

OUTLIER_DISTANCE = 3.0
ODD_BUILD_DISTANCE = 4.0
"""Distances from the side's level, in standard deviations. One or two samples beyond `OUTLIER_DISTANCE` are outliers.
A build with more samples is odd beyond `ODD_BUILD_DISTANCE`."""

_HERMITE = np.polynomial.hermite_e.hermegauss(9)
_POINTS = _HERMITE[0]
_POINT_WEIGHTS = _HERMITE[1] / _HERMITE[1].sum()
_BELOW_HALF = np.array([0.0, 0.02, 0.07, 0.15, 0.25, 0.35, 0.43, 0.47])
# Includes one half: otherwise the middle of a gap would look worse than both neighbouring parts.
_PARTS = np.concatenate([_BELOW_HALF, [0.5], 1 - _BELOW_HALF[::-1]])
_LOST = np.where(SAMPLES == 1, OUTLIERS, np.where(SAMPLES == 2, OUTLIERS / 3, OUTLIERS / 10))


def references(samples: int) -> int:
    """Return the number of reference samples for `samples` of a build."""
    return max(1, math.ceil(samples / 3) if samples > 3 else 1)


_REFERENCES = np.array([references(count) for count in SAMPLES.tolist()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A number of samples of a position, their expected information (bits) and cost (seconds)."""

    position: int
    samples: int
    bits: float
    seconds: float

    @property
    def rate(self) -> float:
        """Bits per second."""
        return self.bits / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Positions (C,), each with the number of samples that has the most bits per second, its bits and cost.

    `most` are the bits of the largest number of samples. `part` (C,) is the share of the gap's
    probability at or before a position that is not built; `gap` (C,) is that gap, -1 for a built position.
    """

    positions: Indices
    samples: Indices
    bits: Floats
    seconds: Floats
    most: Floats
    gap: Indices
    part: Floats

    def best(self, left: Floats | None = None) -> Choice | None:
        """Return the choice with most bits per second; `left` (C,) is the share of bits left by others."""
        bits = self.bits if left is None else self.bits * left
        useful = (self.most if left is None else self.most * left) >= LEAST_BITS
        if not useful.any():
            return None
        rate = np.where(useful, bits / self.seconds, -1.0)
        best = int(rate.argmax())
        return Choice(
            position=int(self.positions[best]),
            samples=int(self.samples[best]),
            bits=float(bits[best]),
            seconds=float(self.seconds[best]),
        )


def breakage(evidence: Evidence) -> Breakage:
    """Return the probability model of unusable revisions, from everything tried."""
    tried = np.array(sorted({*evidence.positions, *evidence.unusable}), dtype=np.int64)
    return Breakage(
        tried, np.array([position in evidence.unusable for position in tried.tolist()], dtype=np.bool_)
    )


def is_all_broken(evidence: Evidence, low: int, high: int) -> bool:
    """Whether all untried revisions between two tried ones are so probably broken that the search ignores them."""
    return breakage(evidence).all_between(low, high) >= ALL_BROKEN


def more_samples(
    evidence: Evidence, posterior: Posterior, change: LikelyChange, costs: CostModel, *, redrawn: bool = False
) -> Options:
    """Return the options of further samples of existing builds, by their information about one change's position.

    `redrawn`: each batch uses a new layout, so that earlier samples do not predict it.
    """
    rows = [
        row
        for row in range(change.first, change.last + 1)
        if posterior.positions[row] not in evidence.unusable
        and evidence.build_of(posterior.positions[row]) == posterior.positions[row]
    ]
    if not rows:
        return _no_options()
    means, variances = _predicted(evidence, posterior, change, np.array(rows), redrawn=redrawn)
    bits = _mutual_information(means, variances, _scatter_at(change, np.array(rows)), _weights(change)[None])[
        :, :, 0
    ]
    seconds = np.broadcast_to(_seconds(evidence, costs), bits.shape)
    # Nearly the best rate in fewer rounds: weak signals need many samples in any case.
    rates = bits / seconds
    best = np.array([int(np.nonzero(row >= 0.93 * row.max())[0][-1]) for row in rates])
    every = np.arange(len(rows))
    return Options(
        positions=np.asarray(posterior.positions)[rows],
        samples=SAMPLES[best],
        bits=bits[every, best],
        seconds=seconds[every, best],
        most=bits[:, -1],
        gap=np.full(len(rows), -1),
        part=np.zeros(len(rows)),
    )


def new_builds(
    evidence: Evidence, posterior: Posterior, change: LikelyChange, cumulative: Floats, costs: CostModel
) -> Options:
    """Return the options of building untried revisions, inside the gaps that may contain a change."""
    found: list[Options] = []
    resolved = np.array(sorted(evidence.with_result), dtype=np.int64)
    broken = breakage(evidence)
    for number, gap in enumerate(change.kept.tolist()):
        low, high = posterior.positions[gap], posterior.positions[gap + 1]
        inside = _spread(low, high, cumulative)
        inside = inside[~np.isin(inside, resolved)]
        mass = cumulative[high] - cumulative[low]
        part = (cumulative[inside] - cumulative[low]) / max(mass, 1e-300)
        splits = (part > 0) & (part < 1)
        inside, part = inside[splits], part[splits]
        if len(inside) == 0:
            continue
        table = _split_information(posterior, change, number)
        works = 1 - broken.probability(inside)
        bits = works[:, None] * np.column_stack([np.interp(part, _PARTS, each) for each in table.T])
        seconds = costs.build(inside)[:, None] + works[:, None] * _seconds(evidence, costs)
        best = (bits / seconds).argmax(axis=1)
        every = np.arange(len(inside))
        found.append(
            Options(
                positions=inside,
                samples=SAMPLES[best],
                bits=bits[every, best],
                seconds=seconds[every, best],
                most=bits[:, -1],
                gap=np.full(len(inside), gap),
                part=part,
            )
        )
    return _joined(found)


def reuses_reference(evidence: Evidence, samples: int) -> bool:
    """Whether a batch of `samples` reuses the reference samples of the batch before."""
    return samples <= MOST_SAMPLES_REUSING_REFERENCE and evidence.can_reuse_reference


def _seconds(evidence: Evidence, costs: CostModel) -> Floats:
    """Return the cost of each number of samples with its references, (n,)."""
    reused = (SAMPLES <= MOST_SAMPLES_REUSING_REFERENCE) & evidence.can_reuse_reference
    seconds: Floats = (SAMPLES + np.where(reused, 0, _REFERENCES)) * costs.sample
    return seconds


def remaining_share(
    options: Options, begun: Collection[int], posterior: Posterior, cumulative: Floats
) -> Floats:
    """Return the share of each option's bits that is left while other builds are `begun`, (C,).

    In a gap that other builds already split, a build only shows which part of its piece contains the change:
    k parallel builds of one gap give log2(k + 1) bits instead of k.
    """
    left = np.where(np.isin(options.positions, list(begun)), 0.0, 1.0)
    for gap in np.unique(options.gap[options.gap >= 0]).tolist():
        low, high = posterior.positions[gap], posterior.positions[gap + 1]
        mass = max(cumulative[high] - cumulative[low], 1e-300)
        cuts = [float((cumulative[at] - cumulative[low]) / mass) for at in begun if low < at < high]
        if not cuts:
            continue
        edges = np.array(sorted([0.0, 1.0, *cuts]))
        own = options.gap == gap
        piece = np.clip(np.searchsorted(edges, options.part[own]) - 1, 0, len(edges) - 2)
        width = edges[piece + 1] - edges[piece]
        within = (options.part[own] - edges[piece]) / np.maximum(width, 1e-300)
        left[own] *= width * entropy(within) / np.maximum(entropy(options.part[own]), 1e-300)
    return left


def _no_options() -> Options:
    none = np.empty(0)
    whole = np.empty(0, dtype=np.int64)
    return Options(positions=whole, samples=whole, bits=none, seconds=none, most=none, gap=whole, part=none)


def _joined(options: Sequence[Options]) -> Options:
    if not options:
        return _no_options()
    fields: Mapping[str, Floats] = {
        name: np.concatenate([getattr(each, name) for each in options]) for name in Options.__slots__
    }
    return Options(**fields)  # type: ignore[arg-type]  # each field has its own kind of array


def _spread(low: int, high: int, cumulative: Floats) -> Indices:
    """Return the positions strictly between two: all, or a uniform spread of the prior mass over many."""
    if high - low - 1 <= MOST_CANDIDATES:
        return np.arange(low + 1, high)
    targets = np.linspace(cumulative[low], cumulative[high], MOST_CANDIDATES + 2)[1:-1]
    spread = np.searchsorted(cumulative[: high + 1], targets)
    return np.unique(np.clip(spread, low + 1, high - 1))


def _weights(change: LikelyChange) -> Floats:
    share = change.gaps[change.kept]
    weights: Floats = share / share.sum()
    return weights


def _is_after(change: LikelyChange, rows: Indices) -> npt.NDArray[np.bool_]:
    after: npt.NDArray[np.bool_] = rows[:, None] > change.kept[None, :]
    return after


def _scatter_at(change: LikelyChange, rows: Indices) -> Floats:
    return np.where(_is_after(change, rows), change.after.scatter, change.before.scatter)


def _predicted(
    evidence: Evidence, posterior: Posterior, change: LikelyChange, rows: Indices, *, redrawn: bool
) -> tuple[Floats, Floats]:
    """Return mean and variance of each build's own level under each hypothesis, given its samples, (rows, H).

    A few samples far from a side are outliers if the build is on that side, and are then not informative. If
    there are many, the build itself is odd: more samples would be similar, and equally uninformative.
    """
    after = _is_after(change, rows)
    level = np.where(after, change.after.mean, change.before.mean)
    variance = np.where(after, change.after.variance, change.before.variance) + posterior.tau**2
    if redrawn:
        return level, variance
    scatter = _scatter_at(change, rows)
    counts, medians = [], []
    for row in rows.tolist():
        values = evidence.all_samples(posterior.positions[row])
        counts.append(len(values))
        medians.append(float(np.median(values)))
    count, median = np.array(counts)[:, None], np.array(medians)[:, None]
    distances = np.abs(median - level) / np.sqrt(variance + scatter / count)
    from_samples = np.where((distances > OUTLIER_DISTANCE) & (count <= 2), 0.0, count / scatter)
    from_side = np.where((distances > ODD_BUILD_DISTANCE) & (count > 2), 0.0, 1 / variance)
    precision = from_side + from_samples
    return (level * from_side + median * from_samples) / precision, 1 / precision


def _split_information(posterior: Posterior, change: LikelyChange, number: int) -> Floats:
    """Return the bits of a build inside a gap, (parts, n).

    `number` is the gap's hypothesis. The build leaves the share `_PARTS` of the gap's probability at or
    before it, so that the hypothesis splits in two: the build is after the change, or before it.
    """
    layout = posterior.tau**2
    is_after = change.kept < change.kept[number]
    before, after = change.before, change.after
    mean = np.append(np.where(is_after, after.mean, before.mean), after.mean[number])
    variance = layout + np.append(np.where(is_after, after.variance, before.variance), after.variance[number])
    scatter = np.append(np.where(is_after, after.scatter, before.scatter), after.scatter[number])
    share = _weights(change)
    weight = np.tile(np.append(share, 0.0), (len(_PARTS), 1))
    weight[:, -1] = _PARTS * weight[:, number]
    weight[:, number] *= 1 - _PARTS
    bits: Floats = _mutual_information(mean[None], variance[None], scatter[None], weight)[0].T
    return bits


def _mutual_information(means: Floats, variances: Floats, scatter: Floats, weights: Floats) -> Floats:
    r"""Return the mutual information (bits) of hypotheses and the mean of n samples, (C, n, W).

    ``sum_h w_h E[log p_h(y) / sum_j w_j p_j(y)]`` with normal p, each expectation by Gauss-Hermite
    quadrature, for each of the `weights` (W, H); `means`, `variances` and `scatter` are (C, H). If most
    samples are arbitrary the information is zero.
    """
    sd = np.sqrt(variances[:, None, :] + scatter[:, None, :] / (SAMPLES * (1 - OUTLIERS))[None, :, None])
    mean = means[:, None, :]
    values = mean[..., None] + sd[..., None] * _POINTS
    distance = (values[..., None] - mean[..., None, None, :]) / sd[..., None, None, :]
    density = np.exp(-0.5 * distance**2) / sd[..., None, None, :]
    mixed = np.log2(np.maximum(density @ weights.T, 1e-300))
    own = -0.5 * _POINTS**2 / math.log(2) - np.log2(sd)[..., None]
    information = np.einsum("k,cnhkw->cnhw", _POINT_WEIGHTS, own[..., None] - mixed)
    bits: Floats = (
        np.maximum(np.einsum("wh,cnhw->cnw", weights, information), 0.0) * (1 - _LOST)[None, :, None]
    )
    return bits


def entropy(share: Floats) -> Floats:
    """Return the bits of an answer to a question whose two answers have the probabilities share and 1 - share."""
    share = np.clip(share, 1e-12, 1 - 1e-12)
    bits: Floats = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    return bits
