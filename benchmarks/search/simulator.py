"""A simulated machine: it builds and runs the revisions of a history, and counts both.

log y = level(revision) + layout(build) + e(run) + outlier + drift, with e = cv * standardised Gamma(4) (skew 1) for
each run, a share of runs twice as slow, and a random walk of drift or one jump. Histories are drawn in `histories`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.histories import Settings, draw

if TYPE_CHECKING:
    import numpy.typing as npt

    from benchmarks.search.histories import History

__all__ = ["Machine", "Settings", "draw"]

SHAPE = 4.0
EARLY = 40


class _State:
    """The state that all views of one machine share: the builds, the drift, the number of runs."""

    def __init__(self) -> None:
        self.built: set[int] = set()
        self.drift = 0.0
        self.invocations = 0
        self.jumps_at: int | None = None
        self.layouts: dict[tuple[int, int], float] = {}


class Machine:
    """Runs benchmarks of a history and counts builds and runs.

    Positions are those in `ids`, the revisions of this view, oldest first. The first view is the main line.
    """

    def __init__(
        self,
        history: History,
        rng: np.random.Generator,
        *,
        ids: npt.NDArray[np.int64] | None = None,
        state: _State | None = None,
    ) -> None:
        self.settings = history.settings
        self.ids = np.arange(history.settings.revisions) if ids is None else ids
        self._history = history
        self._rng = rng
        self._state = _State() if state is None else state

    @property
    def revisions(self) -> int:
        """The number of revisions of this view."""
        return len(self.ids)

    @property
    def prior(self) -> tuple[float, ...] | None:
        """The prior probability of each position of the main line as the culprit; `None` if all are equal."""
        weights = self._history.weights
        return None if weights is None else tuple(weights.tolist())

    @property
    def builds(self) -> int:
        """The number of revisions that were built, with failed builds."""
        return len(self._state.built)

    @property
    def invocations(self) -> int:
        """The number of runs of all views."""
        return self._state.invocations

    def build(self, position: int) -> bool:
        """Build a revision; return whether the build succeeds."""
        revision = int(self.ids[position])
        self._state.built.add(revision)
        return not self._history.broken[revision]

    def run(self, position: int, count: int) -> npt.NDArray[np.float64]:
        """Run a built revision; return the logarithms of its values."""
        return self.run_each(np.full(count, position))

    def run_each(self, positions: npt.NDArray[np.int64], *, layout: int = 0) -> npt.NDArray[np.float64]:
        """Run built revisions one after the other, once for each entry, relinked with this seed (0: not relinked)."""
        count = len(positions)
        state, settings, rng = self._state, self.settings, self._rng
        if settings.jump and state.jumps_at is None:
            state.jumps_at = int(rng.integers(2, EARLY))
        later = np.arange(state.invocations, state.invocations + count) >= (state.jumps_at or 0)
        jump = settings.jump * settings.cv * later
        state.invocations += count
        noise = settings.cv * (rng.gamma(SHAPE, size=count) - SHAPE) / math.sqrt(SHAPE)
        slow = np.where(rng.random(count) < settings.outliers, math.log(2), 0.0)
        walk = state.drift + np.cumsum(rng.normal(0.0, settings.drift * settings.cv, count))
        if count:
            state.drift = float(walk[-1])
        revisions = self.ids[positions]
        layouts = [self._layout(revision, layout) for revision in revisions.tolist()]
        levels = self._history.level[revisions] + np.array(layouts)
        values: npt.NDArray[np.float64] = levels + noise + slow + walk + jump
        return values

    def _layout(self, revision: int, seed: int) -> float:
        if not seed:
            return float(self._history.layout[revision])
        if (revision, seed) not in self._state.layouts:
            drawn = self._rng.normal(0.0, self.settings.layout * self.settings.cv)
            self._state.layouts[revision, seed] = float(drawn)
        return self._state.layouts[revision, seed]

    def is_merge(self, position: int) -> bool:
        """Whether a revision merged the branch."""
        return int(self.ids[position]) == self._history.merge

    def inside(self, position: int) -> Machine:
        """Return a view of a merge: first parent, merge base, the revisions of the branch, and the merge.

        Raises `ValueError` for a revision that is not a merge.
        """
        if not self.is_merge(position):
            raise ValueError(f"position {position}: not a merge")
        merge = int(self.ids[position])
        return self._view(np.concatenate([[merge - 1, self._history.base], self._history.branch, [merge]]))

    def line(self) -> Machine:
        """Return a view of all revisions in one line, a branch before its merge, in the order of git bisect."""
        merge = self._history.merge
        if merge is None:
            return self
        return self._view(np.concatenate([self.ids[:merge], self._history.branch, self.ids[merge:]]))

    def _view(self, ids: npt.NDArray[np.int64]) -> Machine:
        return Machine(self._history, self._rng, ids=ids, state=self._state)
