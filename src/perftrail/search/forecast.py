r"""Forecast the cost of the next build, and its probability to fail, from the builds so far.

Broken ranges cluster: a two-state Markov chain along the history with a share f of unusable revisions and a
correlation falling as ``lambda^distance``. f and lambda are marginalised over a small grid, weighted by the
chain's likelihood of the tried positions. Assumes the same f and lambda everywhere, and that the tried
positions were chosen at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

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
        self._weight = self._learn()

    def _learn(self) -> Floats:
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
        """P(unusable) of each untried candidate, given the nearest tried ones on both sides."""
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
        """P(every untried position strictly between two tried ones is unusable)."""
        inside = (self._positions >= low) & (self._positions <= high)
        places, unusable = self._positions[inside], self._unusable[inside]
        apart = np.diff(places)
        stays = _turns_bad(_LAMBDA[:, None], np.True_)
        begins = _turns_bad(_LAMBDA[:, None], unusable[None, :-1])
        ends = np.where(unusable[None, 1:], stays, 1 - stays)
        path = begins * stays ** np.maximum(apart - 2, 0)[None, :] * ends
        into = _turns_bad(_fading(apart), unusable[None, :-1])
        any_way = np.where(unusable[None, 1:], into, 1 - into)
        chance = np.where(apart[None, :] > 1, path / np.maximum(any_way, 1e-300), 1.0)
        return float(self._weight @ chance.prod(axis=1))


def _fading(apart: npt.NDArray[np.int64]) -> Floats:
    """``lambda^d`` for each lambda of the grid and each distance."""
    faded: Floats = np.exp(_FALL[:, None] * apart[None, :])
    return faded


def _turns_bad(fading: Floats, from_bad: npt.NDArray[np.bool_] | np.bool_) -> Floats:
    """P(unusable) at a distance, from a known state: ``f + (1-f) lambda^d`` or ``f (1 - lambda^d)``."""
    share = _SHARE[:, None]
    turned: Floats = np.where(from_bad, share + (1 - share) * fading, share * (1 - fading))
    return turned


class Costs:
    """Predicted seconds of builds and samples.

    An existing build costs nothing. An incremental build costs ``a + b * distance``, with the distance to the
    revision built before it in the same tree, as the question measures it. The fit is by least squares over
    the builds so far, with both numbers at zero or more. Without distances, or before four builds, each costs
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
        places = np.array([self._distance[position] for position, _ in log])
        apart, seconds = np.abs(np.diff(places)), np.array([cost for _, cost in log[1:]])
        if np.ptp(apart) <= 0:
            return None
        # The mean is a weak prior, so that two different builds alone do not determine a slope.
        rows = np.column_stack([np.append(np.ones(len(apart)), 1.0), np.append(apart, apart.mean())])
        (start, rate), *_ = np.linalg.lstsq(rows, np.append(seconds, seconds.mean()), rcond=None)
        return (float(start), float(rate)) if start >= 0 and rate >= 0 else None
