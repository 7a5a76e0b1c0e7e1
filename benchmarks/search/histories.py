"""Simulated histories: their changes, unbuildable revisions, and random differences of builds.

Steps of log(1 + effect) at revisions drawn evenly, layout ~ N(0, layout * cv) once for each build, unbuildable
revisions in clusters of mean length 3. Both ends build; so do a merge and its parents if the culprit is inside the
merge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

CLUSTER = 3.0
APART = 20
"""Several steps are at least one twentieth of the history apart."""
LEAD = 20
"""A branch begins less than this number of revisions before the first parent of its merge."""
SUSPECTED = 0.1
"""The share of revisions that a prior favours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The simulation, and the parameters of the searches.

    There are `changes` steps, up (1) or down (-1) as in `signs`. Without `signs`, the direction is random, but a single
    step is up. `ramp` is the number of revisions over which the one change is spread evenly. `branch` is the number of
    revisions of a merged branch that contains the culprit. `suspects` is the weight of a tenth of the revisions in the
    prior of the searches. It is independent of the truth, so above 1 the prior is wrong. With `relinks`, searches can
    link a build in other layouts. `jump` is the size of one jump of the machine's level, in units of the scatter of
    runs, during the first forty runs.
    """

    revisions: int
    effect: float
    cv: float
    unbuildable: float
    layout: float
    outliers: float
    drift: float
    threshold: float
    confidence: float
    build_cost: float
    most_invocations: int
    most_builds: int
    changes: int = 1
    signs: tuple[int, ...] = ()
    ramp: int = 0
    branch: int = 0
    suspects: float = 1.0
    relinks: bool = False
    jump: float = 0.0

    @property
    def step(self) -> float:
        """The change on the logarithmic scale."""
        return math.log1p(self.effect)

    @property
    def distance(self) -> float:
        """The change in units of the scatter of runs, d / sigma."""
        return abs(self.step) / self.cv if self.cv else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One history with numbered revisions: the main line from 0, then those of the merged branch.

    `level` is the logarithm of the level of each revision, to which the layout of its build is added. `culprits` are
    in ascending order; a ramp has one for each of its revisions. `branch` has the numbers of the branch's revisions,
    oldest first, and `base` is the revision of the main line at which it began. `weights` is the prior of the main
    line, `None` for an even one.
    """

    settings: Settings
    broken: npt.NDArray[np.bool_]
    layout: npt.NDArray[np.float64]
    level: npt.NDArray[np.float64]
    culprits: tuple[int, ...]
    merge: int | None
    base: int
    branch: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None


def draw(settings: Settings, rng: np.random.Generator) -> History:
    """Draw a history."""
    revisions = settings.revisions
    broken = _broken(revisions, settings.unbuildable, rng)
    broken[[0, -1]] = False
    layout = rng.normal(0.0, settings.layout * settings.cv, revisions)
    level, merge, base = np.zeros(revisions), None, 0
    culprits: tuple[int, ...] = ()
    branch = np.empty(0, dtype=np.int64)
    if settings.effect and settings.branch:
        merge = int(rng.integers(1, revisions))
        culprit = int(rng.integers(settings.branch))
        base = max(0, merge - 1 - int(rng.integers(LEAD)))
        level[merge:] = settings.step
        branch_level = np.where(np.arange(settings.branch) >= culprit, settings.step, 0.0)
        unbuildable = _broken(settings.branch, settings.unbuildable, rng)
        broken[[merge - 1, merge]] = unbuildable[-1] = False
        branch = revisions + np.arange(settings.branch)
        broken, level = np.append(broken, unbuildable), np.append(level, branch_level)
        layout = np.append(layout, rng.normal(0.0, settings.layout * settings.cv, settings.branch))
        culprits = (revisions + culprit,)
    elif settings.effect and settings.ramp:
        first = int(rng.integers(1, revisions - settings.ramp))
        level = settings.step * np.clip((np.arange(revisions) - first + 1) / settings.ramp, 0.0, 1.0)
        culprits = tuple(range(first, first + settings.ramp))
    elif settings.effect:
        culprits = _apart(settings, rng)
        chance = rng.choice([-1, 1], settings.changes) if settings.changes > 1 else (1,)
        for culprit, sign in zip(culprits, settings.signs or chance, strict=True):
            level[culprit:] += sign * settings.step
    weights = None
    if settings.suspects != 1:
        weights = np.where(rng.random(revisions) < SUSPECTED, settings.suspects, 1.0)
    return History(
        settings=settings,
        broken=broken,
        layout=layout,
        level=level,
        culprits=culprits,
        merge=merge,
        base=base,
        branch=branch,
        weights=weights,
    )


def _broken(revisions: int, share: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw the revisions that do not build: a share of them, in clusters."""
    broken = np.zeros(revisions, dtype=np.bool_)
    if share > 0:
        enter = share / (1 - share) / CLUSTER
        state = bool(rng.random() < share)
        for position, chance in enumerate(rng.random(revisions)):
            broken[position] = state
            state = chance >= 1 / CLUSTER if state else chance < enter
    return broken


def _apart(settings: Settings, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw culprits that are far enough apart."""
    while True:
        culprits = np.sort(rng.integers(1, settings.revisions, settings.changes))
        if settings.changes == 1 or np.diff(culprits).min() >= settings.revisions / APART:
            return tuple(culprits.tolist())
