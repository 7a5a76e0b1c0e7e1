"""Simulated histories: where they change, what does not build, how builds differ by chance.

Steps of log(1 + effect) at revisions drawn evenly, layout ~ N(0, layout * cv) once for each build, unbuildable
revisions in clusters of mean length 3. Both ends build; so do a merge and its parents where the culprit is
inside one.
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
"""Several steps are at least this part of the history apart, one twentieth."""
LEAD = 20
"""A branch begins less than so many revisions before its merge's first parent."""
SUSPECTED = 0.1
"""The share of revisions that a prior suspects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is simulated, and what the searches are asked.

    `changes` steps, up (1) or down (-1) as `signs` says, by chance where it is empty, but a single one up.
    `ramp` spreads the one change evenly over so many revisions. `branch` hides the culprit among so many
    revisions that one merge brings. `suspects` is the weight of a tenth of the revisions in the prior that
    the searches are given; it says nothing about the truth, so above 1 it is a wrong prior. `relinks` lets
    them link a build in other layouts. `jump` is how far the machine's level jumps, in units of the scatter of
    runs, once, somewhere among the first forty runs.
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
    """One history, its revisions numbered: the main line from 0, then those that the merge brought.

    `level` is the logarithm of each revision's own level, to which the layout of its build comes. `culprits`
    are ascending; of a ramp there are as many as it has revisions. `branch` are the numbers of the merge's
    own revisions, oldest first, `base` the revision of the main line at which it began. `weights` is the
    prior of the main line, `None` for an even one.
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
        brought = np.where(np.arange(settings.branch) >= culprit, settings.step, 0.0)
        unbuildable = _broken(settings.branch, settings.unbuildable, rng)
        broken[[merge - 1, merge]] = unbuildable[-1] = False
        branch = revisions + np.arange(settings.branch)
        broken, level = np.append(broken, unbuildable), np.append(level, brought)
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
    """Say which revisions do not build: a share of them, in clusters."""
    broken = np.zeros(revisions, dtype=np.bool_)
    if share > 0:
        enter = share / (1 - share) / CLUSTER
        state = bool(rng.random() < share)
        for position, chance in enumerate(rng.random(revisions)):
            broken[position] = state
            state = chance >= 1 / CLUSTER if state else chance < enter
    return broken


def _apart(settings: Settings, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw the culprits, until they are far enough apart."""
    while True:
        culprits = np.sort(rng.integers(1, settings.revisions, settings.changes))
        if settings.changes == 1 or np.diff(culprits).min() >= settings.revisions / APART:
            return tuple(culprits.tolist())
