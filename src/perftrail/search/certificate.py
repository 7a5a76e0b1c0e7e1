r"""Test by fresh randomised blocks whether a claimed change is real, where it is, and whether it is the only one.

A block runs four builds once each, in random order: the old end O, the last build before the change L, the first
after it H, the new end N. If two builds have equal effects, exchanging their names only changes the sign of their
difference in a block. The machine's state does not matter. So bets on that sign are a test martingale
(`stats.comparison`), and an interim analysis after each block does not increase the error. Simulated error rates and
costs: benchmarks/results/searching.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.comparison import STAKES, Bounds, bounds, centre, current_log_wealth, log_wealth
from perftrail.stats.ratios import compare_unpaired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

EFFECT_CONFIDENCE = 0.95
"""The confidence of the interval of a change's size."""

ALONE_LEVEL = 0.05
"""The error allowed to each of the four statements that make a change the only one."""

REJECTION_LEVEL = 0.005
"""The error allowed to the statement that another change exists between an end and the claimed one."""

SMALL_LEVEL = 0.01
"""The error allowed to the statement that a change without visible effect is below the threshold."""

PROMISING = 20.0
"""Evidence above which a few more blocks are likely to be enough."""

MOST_FOR_SMALL = 20
"""Maximum number of blocks spent to show a real difference below the threshold."""

MOST_BLOCKS = 64
"""Maximum number of blocks of a claim."""

MOST_BLOCKS_ONCE_LOCATED = 12
"""Maximum number of blocks to exclude further changes, once the change is located."""

FORECAST_FROM = 16
FORECAST_NONE_FROM = 32
"""From this block on, a claim of a change, or of equal ends, is given up if it would need twice `MOST_BLOCKS` at its
present pace."""

EXACT_BLOCKS = 3
"""Number of blocks of a counted metric, which is deterministic."""

EXACT_SPREAD = 0.1
"""A counted metric decides if its values scatter by less than this share of the difference."""

FEWEST_FOR_SPREAD = 6
SPREAD_ERROR = 0.01
"""Probability to claim that two builds' samples scatter differently if they do not."""


class State(StrEnum):
    """Status of a claim after the blocks so far."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    """The claim holds: the change is between the inner two builds, or the ends are equal within the threshold."""
    REJECTED = "rejected"
    """Another change is outside the inner two builds, or the inner two differ by less than the threshold."""
    FUTILE = "futile"
    """The allowed number of blocks has not decided it."""


NO_BOUNDS = Bounds(low=-math.inf, high=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The evidence of a certificate, for the answer.

    `error` bounds the probability of such strong evidence if the inner two builds are equal (for ends that
    are equal: if they differ by the threshold). `layouts` counts the drawn layouts, 1 if the builds were
    measured as linked. `is_only_change`: no other change of the threshold, or of half the claimed change, is left
    between the ends; `possible` is the largest one that is not excluded, as a ratio minus one. `spread` is the ratio of
    the later build's spread to the earlier's, `None` unless they certainly differ.
    """

    blocks: int
    invocations: int
    error: float
    layouts: int
    is_only_change: bool
    possible: float
    spread: float | None


class Certificate:
    """The blocks of one claim, and their test.

    `builds` are the positions O, L, H, N in this order, a position twice if two of them are one build. For
    the claim that nothing changed they are the two ends. `direction` is +1 or -1: the claimed sign of the
    change. `level` is the error allowed to the claim. `threshold` is the smallest change worth finding and
    `scale` the spread of samples, layouts included if they are drawn, both in logarithms. No sample shows a
    change of at most `resolution`, the metric's own step. A `counted` metric is deterministic and needs no
    bets.
    """

    def __init__(
        self,
        builds: Sequence[int],
        *,
        direction: int,
        level: float,
        threshold: float,
        scale: float,
        resolution: float = 0.0,
        counted: bool = False,
    ) -> None:
        if len(builds) not in (2, 4):
            raise ValueError(f"builds = {tuple(builds)!r}: a certificate needs two ends, or O, L, H and N")
        self.builds = tuple(builds)
        self.level = level
        self._direction = direction
        self._threshold = threshold
        self._scale = scale
        self._resolution = resolution
        self._counted = counted
        self._pairs = tuple(pairwise(self.builds))
        self._differences: dict[tuple[int, int], list[float]] = {pair: [] for pair in self._pairs}
        self._values: dict[int, list[float]] = {build: [] for build in self.builds}
        self._layouts: set[int] = set()
        self._blocks = 0
        self._invocations = 0
        self._allowed = MOST_BLOCKS
        self._assessment: _Assessment | None = None
        self._known_bounds: dict[tuple[tuple[int, int], float], Bounds] = {}

    @property
    def claims_equal_ends(self) -> bool:
        """Whether the claim is that the two ends are equal within the threshold."""
        return len(self.builds) == 2

    @property
    def blocks(self) -> int:
        """Number of blocks so far."""
        return self._blocks

    @property
    def evidence(self) -> float:
        """The wealth of the bets that the claimed change exists; ``1 / level`` is needed."""
        inner = self._differences_of(self.inner) * self._direction
        return math.exp(min(current_log_wealth(inner, self._scale), 50.0)) if len(inner) else 1.0

    @property
    def inner(self) -> tuple[int, int]:
        """The two builds that the claim places the change between, or the two ends."""
        return self._pairs[len(self._pairs) // 2]

    def tell(self, values: Mapping[int, float], *, layout: int = 0, invocations: int = 0) -> None:
        """Record one block: the logarithms of the builds' values, without those that failed or were noisy.

        `layout` is the seed of its layout, `invocations` the number of its runs.
        """
        self._assessment = None
        self._known_bounds.clear()
        self._blocks += 1
        self._invocations += invocations
        self._layouts.add(layout)
        for build in set(values) & set(self._values):
            self._values[build].append(values[build])
        for one, other in self._pairs:
            if one != other and one in values and other in values:
                self._differences[one, other].append(values[other] - values[one])

    def extend(self) -> None:
        """Allow the same number of blocks again, for a repeated claim."""
        self._allowed = 2 * MOST_BLOCKS
        self._assessment = None

    @property
    def state(self) -> State:
        """Status after the blocks so far."""
        return self._assess().state

    @property
    def needed(self) -> tuple[int, ...]:
        """The builds that the next block runs, each once; empty when the claim is decided."""
        return self._assess().needed

    @property
    def change(self) -> Bounds:
        """The interval of log(H) - log(L), or of the ends' difference, at `EFFECT_CONFIDENCE`."""
        return self._bounds(self.inner, (1 - EFFECT_CONFIDENCE) / 2)

    @property
    def size(self) -> float:
        """The estimate of log(H) - log(L): the median of the pairs' averages (Hodges and Lehmann 1963)."""
        return centre(self._differences_of(self.inner))

    @property
    def levels(self) -> tuple[float, float]:
        """Estimates of the inner two builds' levels, in logarithms; their difference is `size`.

        The middle is that of the two medians.
        """
        middle = sum(float(np.median(self._values[build])) for build in self.inner) / 2.0
        return middle - self.size / 2.0, middle + self.size / 2.0

    def bounds_at_level(self) -> Bounds:
        """Return the interval of log(H) - log(L), or of the ends' difference, at the claim's own level."""
        return self._bounds(self.inner, self.level)

    def shows_small_change(self) -> bool:
        """Whether the builds certainly differ, by less than the threshold."""
        found = self._bounds(self.inner, self.level)
        return found.within(self._threshold) and not found.low <= 0.0 <= found.high

    def outside(self) -> Bounds:
        """Return the widest bounds of a further change between an end and the inner two builds."""
        if self.claims_equal_ends:
            return self._bounds(self.inner, ALONE_LEVEL)
        outer = [self._bounds(pair, ALONE_LEVEL) for pair in (self._pairs[0], self._pairs[2])]
        return Bounds(low=min(each.low for each in outer), high=max(each.high for each in outer))

    def summary(self) -> Summary:
        """Return the evidence of the claim."""
        assessment = self._assess()
        other = self.outside()
        return Summary(
            blocks=self._blocks,
            invocations=self._invocations,
            error=min(self.level, math.exp(-assessment.log_evidence)),
            layouts=max(1, len(self._layouts - {0})),
            is_only_change=assessment.is_only_change,
            possible=math.expm1(min(max(-other.low, other.high), 50.0)),
            spread=self._spread_ratio(),
        )

    def blocks_left(self) -> int | None:
        """Forecast the number of further blocks until the claim is certified; `None` if its evidence does not grow."""
        evidence = math.exp(min(self._assess().log_evidence, 50.0))
        return blocks_left(evidence, self._blocks, self.level)

    def _differences_of(self, pair: tuple[int, int]) -> Floats:
        return np.array(self._differences[pair], dtype=np.float64)

    def _bounds(self, pair: tuple[int, int], level: float) -> Bounds:
        if (pair, level) not in self._known_bounds:
            self._known_bounds[pair, level] = self._find_bounds(pair, level)
        return self._known_bounds[pair, level]

    def _find_bounds(self, pair: tuple[int, int], level: float) -> Bounds:
        if pair[0] == pair[1]:
            return Bounds(low=0.0, high=0.0)
        differences = self._differences_of(pair)
        if not self._counted:
            return bounds(differences, self._scale, level)
        if len(differences) < EXACT_BLOCKS:
            return NO_BOUNDS
        return Bounds(low=float(differences.min()), high=float(differences.max()))

    def _assess(self) -> _Assessment:
        if self._assessment is None:
            self._assessment = self._assess_none() if self.claims_equal_ends else self._assess_change()
        return self._assessment

    def _assess_none(self) -> _Assessment:
        pair = self.inner
        equal = self._bounds(pair, self.level).within(self._threshold)
        pace = 0.0
        if pair[0] != pair[1] and not self._counted:
            differences = self._differences_of(pair)
            pace = min(
                current_log_wealth(self._threshold + sign * differences, self._scale)
                if len(differences)
                else 0.0
                for sign in (1, -1)
            )
        if equal and self._may_show_small_change():
            state = State.OPEN
        else:
            state = State.CONFIRMED if equal else State.FUTILE if self._is_futile(pace) else State.OPEN
        return _Assessment(
            state=state,
            needed=tuple(dict.fromkeys(self.builds)) if state is State.OPEN else (),
            is_only_change=equal,
            log_evidence=max(pace, math.log(1 / self.level)) if equal else pace,
        )

    def _may_show_small_change(self) -> bool:
        """Whether a few more blocks are likely to show a difference of the ends below the threshold."""
        differences = self._differences_of(self.inner)
        if self._counted or not 0 < len(differences) < MOST_FOR_SMALL:
            return False
        shown = max(log_wealth(sign * differences, self._scale, np.zeros(1))[0] for sign in (1, -1))
        return bool(math.log(PROMISING) <= shown < math.log(1 / self.level))

    def _assess_change(self) -> _Assessment:
        left, inner, right = self._pairs
        change = self._differences_of(inner) * self._direction
        log_evidence = current_log_wealth(change, self._scale) if len(change) else 0.0
        located, smaller = self._is_located(change), self._is_smaller(change, log_evidence)
        least = self._bounds(inner, self.level)
        least_change = max(least.low if self._direction > 0 else -least.high, 0.0)
        margin = max(self._threshold, least_change / 2)
        sides = {pair: self._bounds(pair, ALONE_LEVEL).within(margin) for pair in (left, right)}
        elsewhere = any(not sides[pair] and self._differs(pair, margin / 2) for pair in (left, right))
        is_only_change = all(sides.values())
        if elsewhere or (smaller and not located):
            state = State.REJECTED
        elif located and (is_only_change or self._blocks >= min(self._allowed, MOST_BLOCKS_ONCE_LOCATED)):
            state = State.CONFIRMED
        elif not located and self._is_futile(log_evidence):
            state = State.FUTILE
        else:
            state = State.OPEN
        needed: dict[int, None] = {}
        if state is State.OPEN:
            for pair, is_open in ((left, not sides[left]), (inner, not located), (right, not sides[right])):
                if is_open and pair[0] != pair[1]:
                    needed |= dict.fromkeys(pair)
        return _Assessment(
            state=state,
            needed=tuple(build for build in dict.fromkeys(self.builds) if build in needed),
            is_only_change=is_only_change,
            log_evidence=max(log_evidence, math.log(1 / self.level)) if located else log_evidence,
        )

    def _is_located(self, change: Floats) -> bool:
        if self._counted:
            return len(change) >= EXACT_BLOCKS and bool(
                np.ptp(change) <= EXACT_SPREAD * abs(float(np.median(change))) and change.min() > 0
            )
        if len(change) == 0:
            return False
        shown = log_wealth(change, self._scale, np.array([self._resolution]))[0]
        return bool(shown >= math.log(1 / self.level))

    def _is_smaller(self, change: Floats, log_evidence: float) -> bool:
        """Whether the claimed change has no visible effect, and is below the threshold."""
        if self._counted:
            return len(change) >= EXACT_BLOCKS and float(change.max()) < self._threshold
        if len(change) == 0 or log_evidence >= 0:
            return False
        less = log_wealth(self._threshold - change, self._scale, np.zeros(1))[0]
        return bool(less >= math.log(1 / SMALL_LEVEL))

    def _differs(self, pair: tuple[int, int], by: float) -> bool:
        found = self._bounds(pair, REJECTION_LEVEL / 2)
        return found.low > by or found.high < -by

    def _is_futile(self, log_evidence: float) -> bool:
        if self._blocks >= self._allowed:
            return True
        if self._blocks < (FORECAST_NONE_FROM if self.claims_equal_ends else FORECAST_FROM):
            return False
        pace = (log_evidence + math.log(len(STAKES))) / self._blocks
        return pace * 2 * MOST_BLOCKS < math.log(len(STAKES) / self.level)

    def _spread_ratio(self) -> float | None:
        """Return the ratio of the later build's spread to the earlier's; `None` unless they certainly differ.

        The ratio of two estimated spreads exceeds 2 by chance in a third of cases with six values each. So the
        distances of the values from their median are compared by the rank-sum test.
        """
        one, other = (np.array(self._values[build]) for build in self.inner)
        if self.inner[0] == self.inner[1] or min(len(one), len(other)) < FEWEST_FOR_SPREAD:
            return None
        before, after = (np.abs(each - np.median(each)) for each in (one, other))
        before, after = before[before > 0.0], after[after > 0.0]
        if not len(before) or not len(after):
            return None
        found = compare_unpaired(before.tolist(), after.tolist(), level=SPREAD_ERROR)
        return found.effect if found.low > 1.0 or found.high < 1.0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assessment:
    """The status of a claim, and the builds of its next block."""

    state: State
    needed: tuple[int, ...]
    is_only_change: bool
    log_evidence: float


def blocks_left(evidence: float, blocks: int, level: float) -> int | None:
    """Forecast the number of further blocks at the present pace; `None` if the evidence does not grow."""
    pace = (math.log(max(evidence, 1e-300)) + math.log(len(STAKES))) / max(blocks, 1)
    if pace <= 0:
        return None
    return max(1, math.ceil(math.log(len(STAKES) / level) / pace) - blocks)
