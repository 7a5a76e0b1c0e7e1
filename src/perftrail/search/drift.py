r"""Readings in order of time: a machine whose level wanders or jumps, and machines that follow each other.

The model is that of `noise` and `belief`, and a random walk besides: reading number t of block b is
``x_b(t) + d [after the culprit] + u_i + e``, where x_b moves by ``N(0, omega)`` from one reading to the next,
or holds still and now and then jumps (another processor clock, a neighbour on the core that comes or goes).
For each hypothesis (where the culprit is) and each noise (sigma, tau, omega; omega 0 is no drift) the
unknowns ``d, x_b, u_i`` are jointly normal, so that each reading is one step of a Kalman filter. A reading may
be garbage, or the first after a jump: the cases are mixed and matched by their moments (the probabilistic data
association of Bar-Shalom and Tse 1975), which makes the evidence of a hypothesis the product of what it predicted.

The cost is O(hypotheses x noises x builds^2) a reading; hypotheses that have become hopeless are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.jump import Jump, log_normal
from perftrail.search.noise import OUTLIERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.search.blocks import Timed

    Floats = npt.NDArray[np.float64]

WALKS = (0.0, 0.12, 0.3, 0.7, 0.0)
"""omega over sigma: how far the machine's level moves from one reading to the next."""

JUMPS = (0.0, 0.0, 0.0, 0.0, 0.02)
"""For each of the walks, the probability that the level jumps before a reading."""

WALKS_PRIOR = (0.87, 0.03, 0.05, 0.02, 0.03)
"""Most machines hold still over the hours of a search."""

LAYOUTS = (0.15, 0.5)
"""tau over sigma; a last, absolute one is the frame's, for builds that differ more than readings do."""

LAYOUTS_PRIOR = (0.58, 0.38, 0.04)
"""How likely each tau is beforehand, the frame's included."""

HOPELESS = 25.0
"""A hypothesis, or a noise, whose evidence is e^-25 of the best is followed no further."""

NEVER = np.iinfo(np.int64).max
"""The culprit's place where there is none: no position is after it."""

_UNKNOWN_BLOCK = 0.3
_HERMITE = np.polynomial.hermite_e.hermegauss(9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the filter starts from, on the logarithmic scale; its numbers are round, so that they last.

    `level` is where the first reading's build lies and `change` how far apart the sides are, both with a
    wide standard deviation; `blocks` is how far each block lies from the first, `None` where not known.
    `sigma` (P,) is the grid of the scatter, `layout` the largest tau, `garbage` the flat density of outliers.
    """

    level: float
    level_spread: float
    change: float
    change_spread: float
    blocks: tuple[tuple[str, float | None], ...]
    sigma: tuple[float, ...]
    layout: float
    garbage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Where the unknowns are now under each hypothesis that matters, in the order of `Hypotheses` (H).

    `mean` (H, D) and `covariance` (H, D, D); unknown 0 is the change, `level` the machine's level now, and
    `builds` gives the unknown of each build's own layout. `after` (K, H) says which positions are after the
    culprit, `walk` (H,) is omega^2.
    """

    mean: Floats
    covariance: Floats
    level: int
    builds: dict[int, int]
    after: npt.NDArray[np.bool_]
    walk: Floats

    def level_of(self, row: int, representative: int) -> Floats:
        """Return the weights (H, D) with which the unknowns make a position's level: its row, and its build."""
        made = np.zeros_like(self.mean)
        made[:, self.level] = 1.0
        made[:, 0] = self.after[row]
        if representative in self.builds:
            made[:, self.builds[representative]] = 1.0
        return made


class Drift:
    """The filter: one state for each hypothesis (H) and noise (S), of D unknowns.

    `last_before` (H,) is the last position before the culprit, `NEVER` without one. `log_evidence` (H, S).
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        sigma, layout, walk = np.meshgrid(np.asarray(frame.sigma), [*LAYOUTS, math.nan], WALKS, indexing="ij")
        self.sigma: Floats = sigma.ravel()
        self.layout: Floats = np.where(np.isnan(layout), frame.layout, sigma * layout).ravel()
        self.walk: Floats = (sigma * walk).ravel()
        self.jump: Floats = np.broadcast_to(np.asarray(JUMPS), sigma.shape).ravel()
        prior = np.asarray(LAYOUTS_PRIOR)[None, :, None] * np.asarray(WALKS_PRIOR)[None, None, :]
        noises = len(self.sigma)
        self.last_before: npt.NDArray[np.int64] = np.array([NEVER])
        self.log_evidence: Floats = (
            np.broadcast_to(np.log(prior / len(frame.sigma)), sigma.shape).reshape(1, noises).copy()
        )
        self.mean: Floats = np.zeros((1, noises, 1))
        self.covariance: Floats = np.zeros((1, noises, 1, 1))
        self.builds: dict[int, int] = {}
        self.blocks: dict[str, int] = {}
        self.block = ""
        self.positions: set[int] = set()
        self.followed = 0

    def follow(self, readings: Sequence[Timed]) -> None:
        """Take in further readings, in order of time."""
        for reading in readings:
            self._make_room(reading)
            self._update(reading)
            self.followed += 1
            self._drop_the_hopeless()

    @property
    def moves(self) -> npt.NDArray[np.bool_]:
        """Whether the machine's level moves at all under each noise (S,)."""
        moves: npt.NDArray[np.bool_] = (self.walk > 0) | (self.jump > 0)
        return moves

    def after(self, position: int) -> npt.NDArray[np.bool_]:
        """Whether a position is after the culprit, under each hypothesis (H,)."""
        return position > self.last_before

    def _make_room(self, reading: Timed) -> None:
        if reading.block not in self.blocks:
            self._new_block(reading.block)
        self.block = reading.block
        if reading.position not in self.positions:
            self._new_position(reading.position)
        if not reading.redraw and reading.position not in self.builds:
            self.builds[reading.position] = self._new_unknown(np.zeros(1), self.layout**2)

    def _new_unknown(self, mean: Floats, variance: Floats) -> int:
        hypotheses, noises = self.mean.shape[:2]
        size = int(self.mean.shape[2])
        grown = np.zeros((hypotheses, noises, size + 1))
        grown[:, :, :size] = self.mean
        grown[:, :, size] = mean
        wider = np.zeros((hypotheses, noises, size + 1, size + 1))
        wider[:, :, :size, :size] = self.covariance
        wider[:, :, size, size] = variance
        self.mean, self.covariance = grown, wider
        return size

    def _new_block(self, name: str) -> None:
        offset = dict(self.frame.blocks).get(name)
        spread = self.frame.level_spread
        if self.blocks and offset is None:
            spread = max(spread, _UNKNOWN_BLOCK)
        level = self.frame.level + (offset or 0.0)
        self.blocks[name] = self._new_unknown(np.array([level]), np.array([spread**2]))

    def _new_position(self, position: int) -> None:
        """Add the hypotheses that a new position tells apart; each has the past of the one it comes from."""
        if self.positions:
            low, high = min(self.positions), max(self.positions)
            below = max((other for other in self.positions if other < position), default=None)
            if position > high:
                self._add_change(high)
            elif position < low:
                self._add_change(position)
                self._lower_the_levels()
            else:
                came_from = np.nonzero(self.last_before == below)[0]
                self._copy(came_from, position)
        self.positions.add(position)

    def _copy(self, rows: npt.NDArray[np.int64], last_before: int) -> None:
        self.last_before = np.concatenate([self.last_before, np.full(len(rows), last_before)])
        self.log_evidence = np.concatenate([self.log_evidence, self.log_evidence[rows]])
        self.mean = np.concatenate([self.mean, self.mean[rows]])
        self.covariance = np.concatenate([self.covariance, self.covariance[rows]])

    def _add_change(self, last_before: int) -> None:
        """Add a hypothesis under which everything so far is on one side: nothing is known of the change."""
        self._copy(np.nonzero(self.last_before == NEVER)[0], last_before)
        self.mean[-1, :, 0] = self.frame.change
        self.covariance[-1, :, 0, 0] = self.frame.change_spread**2

    def _lower_the_levels(self) -> None:
        """Make the last hypothesis one under which everything so far is after the change."""
        levels = list(self.blocks.values())
        self.mean[-1][:, levels] -= self.frame.change
        variance = self.frame.change_spread**2
        self.covariance[-1][:, levels, 0] -= variance
        self.covariance[-1][:, 0, levels] -= variance
        for level in levels:
            self.covariance[-1][:, level, levels] += variance

    def _update(self, reading: Timed) -> None:
        level = self.blocks[reading.block]
        after = self.after(reading.position)[:, None].astype(np.float64)
        told = self.covariance[:, :, :, level] + after[:, :, None] * self.covariance[:, :, :, 0]
        expected = self.mean[:, :, level] + after * self.mean[:, :, 0]
        noise = self.sigma**2
        if reading.redraw:
            noise = noise + self.layout**2
        else:
            build = self.builds[reading.position]
            told += self.covariance[:, :, :, build]
            expected = expected + self.mean[:, :, build]
        variance = told[:, :, level] + after * told[:, :, 0] + noise
        if not reading.redraw:
            variance = variance + told[:, :, build]
        error = reading.value - expected
        inlier = math.log(1 - OUTLIERS) + np.log1p(-self.jump) + log_normal(error, variance)
        total = np.logaddexp(inlier, math.log(OUTLIERS * self.frame.garbage))
        jumping = np.nonzero(self.jump > 0)[0]
        jumped = Jump(error[:, jumping], variance[:, jumping], told[:, jumping], level, self.jump[jumping])
        total[:, jumping] = np.logaddexp(total[:, jumping], jumped.log_weight)
        share = np.exp(inlier - total)
        self.log_evidence = self.log_evidence + total
        gain = share * error / variance
        self.mean += gain[:, :, None] * told
        factor = share * ((1 - share) * (error / variance) ** 2 - 1 / variance)
        self.covariance += (factor[:, :, None] * told)[:, :, :, None] * told[:, :, None, :]
        if len(jumping):
            mean, covariance = jumped.moments(total[:, jumping], gain[:, jumping], told[:, jumping])
            self.mean[:, jumping] += mean
            self.covariance[:, jumping] += covariance
        self.covariance[:, :, level, level] += self.walk**2

    def _drop_the_hopeless(self) -> None:
        best = self.log_evidence.max()
        kept = (self.log_evidence.max(axis=1) > best - HOPELESS) | (self.last_before == NEVER)
        noises = self.log_evidence.max(axis=0) > best - HOPELESS
        if kept.all() and noises.all():
            return
        self.last_before = self.last_before[kept]
        pick = np.ix_(kept, noises)
        self.log_evidence, self.mean, self.covariance = (
            self.log_evidence[pick],
            self.mean[pick],
            self.covariance[pick],
        )
        self.sigma, self.layout = self.sigma[noises], self.layout[noises]
        self.walk, self.jump = self.walk[noises], self.jump[noises]
