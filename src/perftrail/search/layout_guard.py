"""Separate changes of the source from layouts: the places of code in memory, which every build draws again.

Rounds show that two builds differ, and not why. Two builds of equal source differ by their layouts, too. If builds are
not linked again in other layouts, the levels of the builds between changes show how much.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.guide import most_builds
from perftrail.search.rounds import FLAT_ERRORS, MOST_ROUNDS, Finding
from perftrail.stats.student import t_cdf

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question
    from perftrail.search.rounds import Gap, Rounds, Run

USUAL_TAU = 0.005
USUAL_FREEDOM = 3
"""Layout noise before any build was compared, a share of the values, and the number of builds that it counts as: 0.4
to 0.9 % were measured for C and Rust."""

LEAST_TAU = 1e-12
"""Smallest layout noise before any build was compared, for values of zero."""

ALONE_FREEDOM = 2.5
"""Degrees of freedom for a change with one build on a side: nothing averages the tails of its layout, which are
heavier than normal."""

PENALTY = 1.5
"""Each edge costs this many logarithms of the number of builds: its place and its size."""

FREEDOM_OF_DIFFERENCE = 2 / 3
"""The degrees of freedom of each squared difference of neighbours."""

FEWEST_FOR_TREND = 5
"""Fewest gaps of a gradual change."""

HIDDEN = 0.5
"""With more builds than a guided search needs, rounds end if layout noise exceeds this share of the threshold."""

LEAST_BESIDE = 3
MOST_BESIDE = 6
"""Least and most builds on one side of a change that are measured to separate it from layouts."""

CLEAR = 0.01
"""Below this share of the allowed error, layouts do not explain a change, whichever builds were chosen."""

HOPELESS = 0.3
"""Above this probability that layouts explain a change, more builds seldom separate them."""


class LayoutGuard:
    """Which changes may be named although layouts may explain them, and what separates both.

    The search divides where builds differ, and stops where they look alike: so the builds that it has chosen show
    too little of layouts. Each side of a change needs `LEAST_BESIDE` builds, and one that was chosen without regard
    to levels; or layouts must be far from an explanation, with a probability of at most `CLEAR` of the allowed error.
    """

    def __init__(self, question: Question, evidence: Evidence, rounds: Rounds) -> None:
        self._question, self._evidence, self._rounds = question, evidence, rounds
        self._allowed = 1 - question.confidence
        self._chosen_blindly: frozenset[int] = frozenset()
        self._state: object = None
        self._separation: Separation | None = None

    @property
    def is_needed(self) -> bool:
        """Whether layouts may explain a difference of two builds."""
        return self._question.has_layouts and not self._evidence.relinks

    @property
    def hidden(self) -> float:
        """The layout noise if builds without a change differ too much for the threshold; else zero.

        It is known once the map has more builds than a search for a change needs.
        """
        if not self.is_needed or len(self._rounds.gaps()) <= most_builds(self._question):
            return 0.0
        tau = self._separate().tau
        return tau if tau > HIDDEN * self._question.threshold_on_scale else 0.0

    def chance(self, change: Gap) -> float | None:
        """Return how probably layouts alone explain a certain change; `None` if they cannot."""
        return self._separate().chances.get(change.last, 0.0) if self.is_needed else None

    def allows(self, change: Gap) -> bool:
        """Whether a certain change is separated from layouts; for one below the threshold, no build is added."""
        chance = self.chance(change)
        if chance is None:
            return True
        sides = self._separate().groups(change.last) if change.finding is Finding.CHANGED else ()
        is_blind = self.hidden or any(map(self._is_short, sides))
        return chance <= self._allowed * (CLEAR if is_blind else 1.0)

    def chance_for(self, run: Run) -> float:
        """Return how probably layouts alone explain the trend of a run's builds."""
        return chance_for_gradual(run) if self.is_needed else 0.0

    def wanted(self) -> tuple[int, ...]:
        """Return the builds of a round that helps to separate a change from layouts; empty if none does."""
        if not self.is_needed:
            return ()
        separation = self._separate()
        added: set[int] = set()
        again: set[int] = set()
        for change in self._rounds.gaps():
            chance = separation.chances.get(change.last, 1.0)
            if change.finding is not Finding.CHANGED or not CLEAR * self._allowed < chance < HOPELESS:
                continue
            sides = separation.groups(change.last)
            for side in sides:
                may_help = chance > self._allowed and len(side) < MOST_BESIDE
                build = self._build_on(side) if may_help or self._is_short(side) else None
                added |= set() if build is None else {build, change.first, change.last}
            if (
                chance > self._allowed
                and change.error > separation.tau
                and len(change.differences) < MOST_ROUNDS
            ):
                again |= {*sides[0][-MOST_BESIDE:], *sides[1][:MOST_BESIDE]}
        self._chosen_blindly |= added - set(self._rounds.positions)
        return tuple(sorted(added or again))

    def _is_short(self, side: Sequence[int]) -> bool:
        """Whether a side needs a build that was not chosen by its level, and one can be built."""
        is_short = len(side) < LEAST_BESIDE or self._chosen_blindly.isdisjoint(side)
        return is_short and self._build_on(side) is not None

    def _build_on(self, side: Sequence[int]) -> int | None:
        """Return a build inside the widest gap of a side that can be divided."""
        near = [at for at in self._rounds.positions if side[0] <= at <= side[-1]]
        wide = sorted(pairwise(near), key=lambda pair: pair[0] - pair[1])
        return next((at for pair in wide if (at := self._rounds.middle(*pair)) is not None), None)

    def _separate(self) -> Separation:
        """Return the separation of the present rounds, computed once."""
        if self._separation is None or self._state != self._rounds.state:
            self._state, self._separation = self._rounds.state, Separation(self._rounds)
        return self._separation


class Separation:
    """Which certain changes are separated from layouts.

    The certain changes, and gaps that may soon be one, are edges between the builds' levels. The largest are chosen
    that explain the levels best: with k of them, the least ``n / 2 log(squares) + k PENALTY log(n)``, as in Schwarz's
    criterion. The other differences of neighbours show the layout noise: half of their squares (von Neumann 1941), so
    that small true changes count little. Layouts alone explain the edge between builds L and H, with up to
    `MOST_BESIDE` builds on each side until the next edge, with a probability of at most the sum of three by Student's
    t, times the number of possible edges, because it is the best of them:

    - that both sides have equal means;
    - that L belongs to the side of H, and that H belongs to that of L: then the edge is another one.

    A build above or below both of its neighbours may have an unusual layout: it is no side by itself.
    """

    def __init__(self, rounds: Rounds) -> None:
        levels, errors = rounds.build_levels()
        self._usual = max(USUAL_TAU * rounds.magnitude, LEAST_TAU)
        gaps, positions = rounds.gaps(), rounds.positions
        # Neighbours with the same artefact have one layout: more of them are no evidence that layouts differ little.
        kept = [
            0,
            *(at for at in range(1, len(positions)) if not rounds.is_same(positions[at - 1], positions[at])),
        ]
        self._levels, self._errors = levels[kept], errors[kept]
        self._positions = tuple(positions[at] for at in kept)
        self._squares = (np.diff(self._levels) ** 2 - self._errors[1:] ** 2 - self._errors[:-1] ** 2) / 2
        threshold = rounds.threshold
        edges = [at for at, build in enumerate(kept) if at and _may_be_edge(gaps[build - 1], threshold)]
        self._chosen = self._best_edges(edges)
        chances = {edge: self._chance(edge) for edge in edges}
        self.chances = {self._positions[edge]: chance for edge, chance in chances.items()}
        """For each change, by its last position, a bound of the probability that layouts alone explain it."""
        self._edge_of = {self._positions[edge]: edge for edge in edges}

    @property
    def tau(self) -> float:
        """The standard deviation of the layout of one build, on the metric's scale."""
        return self._noise(self._chosen)[0]

    def groups(self, last: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the builds on both sides of the change with this last position."""
        start, edge, stop = self._around(self._edge_of[last])
        return self._positions[start:edge], self._positions[edge:stop]

    def _noise(self, edges: Collection[int]) -> tuple[float, float]:
        """Return the layout noise and its degrees of freedom, from the differences of neighbours without an edge."""
        rest = np.delete(self._squares, [edge - 1 for edge in edges])
        squares = self._usual**2 * USUAL_FREEDOM + max(float(rest.sum()), 0.0)
        counted = USUAL_FREEDOM + len(rest)
        return math.sqrt(squares / counted), USUAL_FREEDOM + FREEDOM_OF_DIFFERENCE * len(rest)

    def _best_edges(self, edges: Sequence[int]) -> frozenset[int]:
        """Return the edges that explain the levels best, without a build above or below both of its neighbours."""
        n, steps = len(self._levels) + USUAL_FREEDOM, np.diff(self._levels)
        chosen: list[int] = []
        best, found = math.inf, frozenset[int]()
        for edge in (None, *sorted(edges, key=lambda edge: -self._squares[edge - 1])):
            if edge is not None:
                beside = [steps[other - 1] for other in (edge - 1, edge + 1) if other in chosen]
                if any(step * steps[edge - 1] < 0 for step in beside):
                    continue
                chosen.append(edge)
            score = n * math.log(self._noise(chosen)[0]) + len(chosen) * PENALTY * math.log(n)
            if score < best:
                best, found = score, frozenset(chosen)
        return found

    def _around(self, edge: int) -> tuple[int, int, int]:
        start = max((at for at in self._chosen if at < edge), default=0)
        stop = min((at for at in self._chosen if at > edge), default=len(self._levels))
        return max(start, edge - MOST_BESIDE), edge, min(stop, edge + MOST_BESIDE)

    def _chance(self, edge: int) -> float:
        start, _, stop = self._around(edge)
        tau, freedom = self._noise(self._chosen)
        means = [float(self._levels[start:edge].mean()), float(self._levels[edge:stop].mean())]
        counts = [edge - start, stop - edge]
        at_end = edge in (1, len(self._levels) - 1)
        freedom = ALONE_FREEDOM if 1 in counts else freedom
        error = float(self._errors[start:stop].mean())
        size = means[1] - means[0]
        spread = math.sqrt((tau**2 + error**2) * (1 / counts[0] + 1 / counts[1]))
        edges = len(self._levels) - 1
        total = edges * _two_sided(size / spread, freedom)
        looks = 1 if at_end else edges
        for build, other, direction in ((edge - 1, 1, 1.0), (edge, 0, -1.0)):
            distance = direction * (means[other] - float(self._levels[build])) * math.copysign(1.0, size)
            spread = math.sqrt((tau**2 + error**2) * (1 + 1 / counts[other]))
            total += looks * _two_sided(distance / spread, freedom) if distance > 0 else 1.0
        return min(1.0, total)


def _may_be_edge(gap: Gap, threshold: float) -> bool:
    """Whether a change in a gap is certain, or one of the threshold is not unlikely."""
    return gap.is_named or (gap.finding is Finding.OPEN and not gap.is_flat(threshold, FLAT_ERRORS))


def chance_for_gradual(run: Run) -> float:
    """Return the probability that layouts alone give the levels of a run's builds such a trend.

    By the least-squares line of the levels over the positions, and Student's t of its slope, times the number of gaps:
    the search chose the builds. 1 with too few builds.
    """
    if len(run.gaps) < FEWEST_FOR_TREND:
        return 1.0
    levels = np.concatenate([[0.0], np.cumsum([each.size for each in run.gaps])])
    positions = np.array(run.positions, dtype=np.float64) - np.mean(run.positions)
    squares, freedom = float(positions @ positions), len(levels) - 2
    slope = float(positions @ levels) / squares
    rest = levels - levels.mean() - slope * positions
    error = math.sqrt(float(rest @ rest) / freedom / squares)
    return min(1.0, len(run.gaps) * _two_sided(slope / max(error, 1e-12), freedom))


def _two_sided(distance: float, freedom: float) -> float:
    return float(2 * t_cdf(freedom, -abs(distance)))
