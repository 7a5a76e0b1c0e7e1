"""Simulated histories, as in searching.md section 0.

log y = mu(revision) + u(revision) + e(run) + outlier + drift: a step of log(1 + effect) at a culprit drawn
evenly, u ~ N(0, layout * cv) once for each build, e = cv * standardised Gamma(4) (skew 1) for each run, a
share of runs twice as slow, a random walk of drift, and unbuildable revisions in clusters of mean length 3.
Both ends build.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

CLUSTER = 3.0
SHAPE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is simulated, and what the searches are asked."""

    revisions: int
    effect: float
    cv: float
    unbuildable: float
    layout: float
    outliers: float
    drift: float
    smallest: float
    confidence: float
    build_cost: float
    most_invocations: int
    most_builds: int

    @property
    def step(self) -> float:
        """The change on the logarithmic scale."""
        return math.log1p(self.effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One history: which revisions are broken, each build's layout, and the culprit (`None`: none)."""

    settings: Settings
    broken: npt.NDArray[np.bool_]
    layout: npt.NDArray[np.float64]
    culprit: int | None

    def levels(self) -> npt.NDArray[np.float64]:
        """Return the logarithm of every revision's own level."""
        if self.culprit is None:
            return self.layout
        after = np.arange(self.settings.revisions) >= self.culprit
        levels: npt.NDArray[np.float64] = self.layout + self.settings.step * after
        return levels


class Machine:
    """Runs benchmarks of a history and counts what that takes."""

    def __init__(self, history: History, rng: np.random.Generator) -> None:
        self.settings = history.settings
        self._broken = history.broken
        self._levels = history.levels()
        self._rng = rng
        self._drift = 0.0
        self._built: set[int] = set()
        self.invocations = 0

    @property
    def builds(self) -> int:
        """How many revisions were tried, broken ones too."""
        return len(self._built)

    def build(self, position: int) -> bool:
        """Try to build a revision; say whether it works."""
        self._built.add(position)
        return not self._broken[position]

    def run(self, position: int, readings: int) -> npt.NDArray[np.float64]:
        """Run a built revision; return the logarithms of its values."""
        return self.run_each(np.full(readings, position))

    def run_each(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Run built revisions one after the other, once for each entry."""
        count = len(positions)
        self.invocations += count
        settings, rng = self.settings, self._rng
        noise = settings.cv * (rng.gamma(SHAPE, size=count) - SHAPE) / math.sqrt(SHAPE)
        slow = np.where(rng.random(count) < settings.outliers, math.log(2), 0.0)
        walk = self._drift + np.cumsum(rng.normal(0.0, settings.drift * settings.cv, count))
        if count:
            self._drift = float(walk[-1])
        values: npt.NDArray[np.float64] = self._levels[positions] + noise + slow + walk
        return values


def draw(settings: Settings, rng: np.random.Generator) -> History:
    """Draw a history."""
    revisions = settings.revisions
    broken = np.zeros(revisions, dtype=np.bool_)
    if settings.unbuildable > 0:
        enter = settings.unbuildable / (1 - settings.unbuildable) / CLUSTER
        state = bool(rng.random() < settings.unbuildable)
        for position, chance in enumerate(rng.random(revisions)):
            broken[position] = state
            state = chance >= 1 / CLUSTER if state else chance < enter
        broken[[0, -1]] = False
    return History(
        settings=settings,
        broken=broken,
        layout=rng.normal(0.0, settings.layout * settings.cv, revisions),
        culprit=int(rng.integers(1, revisions)) if settings.effect else None,
    )
