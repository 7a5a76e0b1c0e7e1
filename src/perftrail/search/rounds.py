"""Search all of a history by rounds: a map of builds, of which each round runs some once each in random order.

Between two neighbours of the map is a *gap* of revisions. The rounds that ran both of its builds test it: it is
equal within the threshold; or it differs, and a build inside divides it; or nothing is left to divide, and the
difference is a change of its last revision. If two builds have equal effects, exchanging their names in a round only
changes the sign of their difference, whatever the machine does meanwhile. So bets on that sign are a test martingale
(`stats.comparison`), and a test after each round has no cost. No level, noise or drift is modelled. What stays with a
build for the whole search is a difference of the builds: its layout (`layout_guard`), or where its pages are cached.

Between changes, neighbouring gaps are a *run*. If the ends of a run are equal within the threshold, gaps
inside that look flat need no further rounds: a change there would show at the ends, unless another one cancels it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import policy
from perftrail.search.answer import Measure, Purpose
from perftrail.search.drift import pooled_spread
from perftrail.stats.comparison import Bounds, bounds, centre, log_wealth, scales
from perftrail.stats.rates import rate_bounds, rate_error, rate_evidence
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

PART_LEVEL = 0.05
"""The error allowed to the statement that a part of the history is equal within the threshold, for each of its bounds.
For both ends of the history, and so for the answer that nothing changed, it is that of the question's confidence."""

FEWEST_ROUNDS = 2
FEWEST_FLAT = 3
"""Rounds before a gap is divided, and before it looks flat."""

LIKELY = 3.0
"""A change is likely if the difference exceeds this many standard errors. It decides what is measured, not what is
named."""

FLAT_ERRORS = 1.5
STRICT_ERRORS = 3.0
"""A gap looks flat if its difference plus this many standard errors is below the threshold. The second value
applies if the ends of its run differ."""

FEW = 8
FEW_EXCESS = 1.3
"""With fewer rounds, the standard error is not below that of their own spread over this factor: one disturbed run among
a few is not visible otherwise."""

LEAST_TO_GIVE_UP = 16
MOST_ROUNDS = 64
MOST_PROMISING = 1024
USUALLY_PROMISING = 256
"""Rounds after which the comparison of two builds is given up: of ends without any sign that they differ; of others;
while it is forecast to be decided within the last number, or within the third one once nothing else is left and no
change is named."""

SIZE_ROUNDS = 24
"""Rounds after which a certain change is below the threshold only if it hardly reaches it, and is named otherwise."""

EXACT_ROUNDS = 3
EXACT_SPREAD = 0.1
EXACT_STEP = 0.02
"""A counted metric is exact after this many rounds if all runs of each build scatter by less than this share of the
difference, or of the threshold."""

TRIED = 4
LIKELY_PLACE = 0.7
"""Rounds of two builds before their bets begin, unless the change is between them with this probability."""

LEAST_SHARE = 0.4
MOST_SHARE = 0.9
"""Bounds of the share of what is left of a claim's error that the next two builds have which the guide proposes."""

FITS = 6
CLIPPED = 3.0
"""Steps of the fit of levels, and the standard deviations beyond which a value loses weight (Huber 1964); in the first
step, all values have the same weight."""

SINGULAR = 1e-9
"""Smaller eigenvalues of the fit, relative to the largest one, are zero: only differences of levels are known."""

COARSE = 0.5
"""Steps of a metric above this share of the threshold are coarse."""

BUILT_BONUS = 1.25
"""An existing build may divide a gap this much worse than a new one."""

SAMPLES_PER_LAYOUT = 4
"""Number of runs of each build in a round's layout if linking costs more than samples."""

EFFICIENCY = 1.05
"""At most the standard error of the median of pairwise averages, relative to that of the mean, for normal noise: 1.02
with many differences, more with few."""


class Finding(StrEnum):
    """What the rounds say about two builds."""

    OPEN = "open"
    EQUAL = "equal"
    """Equal within the threshold."""
    CHANGED = "changed"
    """A certain change, perhaps of the threshold or more, without a build left to divide it."""
    BELOW = "below"
    """A certain change that hardly reaches the threshold, without a build left to divide it."""
    UNDECIDED = "undecided"
    """Neither, after `MOST_ROUNDS`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gap:
    """Two builds, at the positions `first` and `last`, and the rounds that ran both. Equal only to itself.

    `differences` (n,) are on the metric's scale, later minus earlier. `size` is their centre and `error` its standard
    error; `limits` exclude other sizes with an error of at most `PART_LEVEL` for each bound. `evidence` is the
    logarithm of the wealth of bets on a difference.
    """

    first: int
    last: int
    finding: Finding
    differences: Floats
    size: float
    error: float
    limits: Bounds
    evidence: float

    @property
    def is_named(self) -> bool:
        """Whether it is a certain change, of any size."""
        return self.finding in (Finding.CHANGED, Finding.BELOW)

    @property
    def is_likely(self) -> bool:
        """Whether a change is likely."""
        return len(self.differences) >= FEWEST_ROUNDS and abs(self.size) > LIKELY * self.error

    def reaches(self, threshold: float) -> float:
        """Return the probability of a difference of the threshold or more, if the noise of the centre is normal."""
        if not 0 < self.error < math.inf:
            return float(abs(self.size) >= threshold) if len(self.differences) else 0.5
        normal = NormalDist(self.size, self.error)
        return 1.0 - normal.cdf(threshold) + normal.cdf(-threshold)

    def rounds_to_equality(self, threshold: float) -> float:
        """Forecast all rounds until the builds are equal within a threshold; infinite if their difference is larger.

        The width of the interval falls with the square root of the number of rounds; its centre stays.
        """
        width = (self.limits.high - self.limits.low) / 2
        centre = self.limits.low + width if width < math.inf else self.size
        room = threshold - max(abs(centre), abs(self.size))
        return len(self.differences) * (width / room) ** 2 if room > 0 else math.inf

    def rounds_to_certainty(self, level: float) -> float:
        """Forecast all rounds until the builds certainly differ; infinite without evidence that they do.

        The evidence grows in proportion to the number of rounds.
        """
        return len(self.differences) * math.log(1 / level) / self.evidence if self.evidence > 0 else math.inf

    def is_flat(self, threshold: float, errors: float) -> bool:
        """Whether a difference of the threshold is unlikely."""
        return len(self.differences) >= FEWEST_FLAT and abs(self.size) + errors * self.error < threshold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Neighbouring gaps between changes, and the comparison of the builds at both ends."""

    gaps: tuple[Gap, ...]
    ends: Gap

    @property
    def is_equal(self) -> bool:
        """Whether the ends are equal within the threshold."""
        return self.ends.finding is Finding.EQUAL

    @property
    def positions(self) -> tuple[int, ...]:
        """The builds, ascending."""
        return (self.gaps[0].first, *(each.last for each in self.gaps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bets:
    """Bets on the direction of a change of a rate, from one of its rounds on. They share less error than usual ones.

    `bonus` is the logarithm of the factor by which they need less wealth.
    """

    direction: float
    start: int = 0
    bonus: float = 0.0


class Rounds:
    """The map of a history, and the rounds over it."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self._question = question
        self._evidence = evidence
        self._map: set[int] = set()
        self._divided: set[tuple[int, int]] = set()
        self._now = (-1, -1)
        self._gaps: list[Gap] = []
        self._compared: dict[tuple[int, int], Gap] = {}
        self._known_bounds: dict[tuple[int, int], tuple[tuple[bytes, bool, float], Bounds]] = {}
        self._cumulative = np.cumsum(question.weights())
        self.spread = 0.0
        self._is_coarse = False
        self._most_promising = USUALLY_PROMISING
        self.is_persistent = False
        self.focus: tuple[int, int] | None = None
        """The only gap that the rounds of a rate run until it is decided."""
        self._guess = (1.0, 0.0)
        self._bets: dict[tuple[int, int], _Bets] = {}
        self._left = 1.0

    def focus_on(self, first: int, last: int, *, direction: float, chance: float) -> None:
        """Run only two builds, between which the rate changes in a `direction`, 1 or -1, with this `chance`."""
        self.focus = (first, last)
        self._guess = direction, chance

    def _begin_bets(self) -> None:
        """Bet on the direction of the focus from its next round on, unless it may soon be elsewhere.

        All gaps of such rounds share the error of one claim: each has its chance of what is left.
        """
        if self.focus is None or self.focus in self._bets:
            return
        count, (direction, chance) = len(self.differences(*self.focus)), self._guess
        if count >= TRIED or chance >= LIKELY_PLACE:
            share = self._left * min(max(chance, LEAST_SHARE), MOST_SHARE)
            self._left -= share
            self._bets[self.focus] = _Bets(start=count, direction=direction, bonus=math.log(2.0 * share))

    def add(self, positions: Iterable[int]) -> None:
        """Put builds on the map."""
        self._map |= set(positions)

    def keep_measured(self) -> None:
        """Remove builds from the map that no round ran: a budget refused them. The outermost ones stay."""
        measured = {build for each in self._evidence.rounds for build in each}
        ends = {*self.positions[:1], *self.positions[-1:]}
        self._map = {at for at in self._map if at in ends or self._evidence.build_of(at) in measured}

    @property
    def positions(self) -> tuple[int, ...]:
        """The builds of the map that are not known to be unusable, ascending."""
        return tuple(sorted(self._map - self._evidence.unusable))

    @property
    def state(self) -> tuple[int, int]:
        """Another value after each observation and with each new build on the map."""
        return self._evidence.version, len(self._map)

    @property
    def threshold(self) -> float:
        """The smallest difference that is of interest, on the metric's scale."""
        return self._question.threshold_on_scale

    @property
    def magnitude(self) -> float:
        """A relative difference of 1 on the metric's scale: for differences the mean distance of values from zero."""
        if self._question.scale is not Scale.DIFFERENCE:
            return 1.0
        values = [each for found in self._evidence.rounds for each in found.values()]
        return float(np.abs(values).mean()) if values else 0.0

    @property
    def level(self) -> float:
        """The error allowed to the claim of a change in one direction."""
        return (1 - self._question.confidence) / 2

    def persist(self) -> None:
        """Compare builds for up to `MOST_PROMISING` rounds, while no change is named."""
        self.is_persistent, self._now = True, (-1, -1)

    def gaps(self) -> list[Gap]:
        """Return the gaps of the map, in the order of the history."""
        self._refresh()
        return self._gaps

    def _refresh(self) -> None:
        """Compare again after a new observation, or with a new build on the map."""
        if self.state != self._now:
            self._now, self._compared = self.state, {}
            self._gaps = self._find_gaps()

    def _find_gaps(self) -> list[Gap]:
        pairs = list(pairwise(self.positions))
        found = [np.sort(self.differences(*pair)) for pair in pairs]
        spread, freedom = pooled_spread([each for each in found if len(each) > 1])
        self.spread = spread if freedom > 2 else 0.0
        self._is_coarse = (
            self._is_rate or self._evidence.resolution > COARSE * self._question.threshold_on_scale
        )
        self._most_promising = MOST_PROMISING if self.is_persistent else USUALLY_PROMISING
        gaps = [self.compare(*pair) for pair in pairs]
        if any(each.finding is Finding.CHANGED for each in gaps):
            self._most_promising = USUALLY_PROMISING
            gaps = [self._judged_as_usual(each) for each in gaps]
        return gaps

    def _judged_as_usual(self, gap: Gap) -> Gap:
        if gap.finding is Finding.OPEN and len(gap.differences) >= USUALLY_PROMISING:
            gap = replace(gap, finding=self._finding(gap))
            self._compared[gap.first, gap.last] = gap
        return gap

    def runs(self, gaps: Sequence[Gap]) -> list[Run]:
        """Return the runs between certain and likely changes; a likely change is a run by itself.

        The parts of a divided gap are a run, too, until one of them explains its difference.
        """
        named = {(each.first, each.last) for each in gaps if each.is_named or self._may_be_change(each)}
        edges = {end for pair in named for end in pair}
        for low, high in sorted(self._divided, key=lambda pair: pair[1] - pair[0]):
            explained = any(low <= first and last <= high for first, last in named)
            if not explained and not any(low < edge < high for edge in edges):
                edges |= {low, high}
        found: list[list[Gap]] = [[]]
        for each in gaps:
            if each.first in edges:
                found.append([])
            if not each.is_named:
                found[-1].append(each)
        return [self._run(each) for each in found if each]

    def between_changes(self, gaps: Sequence[Gap]) -> list[Run]:
        """Return the runs between the changes that reach the threshold."""
        found: list[list[Gap]] = [[]]
        for each in gaps:
            if each.finding is Finding.CHANGED:
                found.append([])
            else:
                found[-1].append(each)
        return [self._run(each) for each in found if each]

    def _run(self, gaps: Sequence[Gap]) -> Run:
        return Run(gaps=tuple(gaps), ends=self.compare(gaps[0].first, gaps[-1].last))

    def _may_be_change(self, gap: Gap) -> bool:
        return gap.finding is Finding.OPEN and gap.is_likely

    def ask(self) -> Measure | None:
        """Return the next round; `None` once nothing is open. Divides what is worth it."""
        self._begin_bets()
        while True:
            runs = [] if self._has_focus() else self.runs(self.gaps())
            divided = {
                (each.first, each.last): middle
                for run in runs
                for each in self._open_gaps(run)
                if (middle := self._division(each)) is not None
            }
            if not divided:
                break
            self._divided |= divided.keys()
            self._map |= set(divided.values())
        ends = {end for each in self.open_pairs() for end in (each.first, each.last)}
        return self.round_of(ends, Purpose.ROUND) if ends else None

    def _has_focus(self) -> bool:
        """Whether the rounds only run one gap now."""
        return any(
            (each.first, each.last) == self.focus and (each.finding is Finding.OPEN or each.is_named)
            for each in self.gaps()
        )

    def round_of(self, builds: Iterable[int], purpose: Purpose) -> Measure:
        """Return a round of builds: once each in random order, in a new layout where builds can be linked again."""
        active = sorted({self._evidence.build_of(each) for each in builds})
        expensive = self._evidence.relinks and self._evidence.relinking_is_expensive
        active *= SAMPLES_PER_LAYOUT if expensive else 1
        rng = np.random.default_rng([self._question.seed, self._evidence.batches, *active])
        rng.shuffle(active)
        layout = self._evidence.batches + 1 if self._evidence.relinks else 0
        return Measure(order=tuple(active), certificate=True, layout=layout, purpose=purpose)

    def undecided(self) -> list[Gap]:
        """Return the comparisons that are not decided, those that are given up included.

        Inside a run with equal ends, only a likely change counts: another one would show at the ends.
        """
        gaps = self.gaps()
        runs = self.between_changes(gaps)
        given_up = [
            each for each in (*gaps, *(run.ends for run in runs)) if each.finding is Finding.UNDECIDED
        ]
        hardly = [each for run in runs if run.is_equal for each in run.gaps if not each.is_likely]
        return [each for each in (*self.open_pairs(), *given_up) if each not in hardly]

    def open_pairs(self) -> list[Gap]:
        """Return the comparisons that are not decided: of gaps first, then of everything between two changes."""
        gaps = self.gaps()
        for each in gaps:
            if (each.first, each.last) == self.focus and (each.finding is Finding.OPEN or each.is_named):
                return [] if each.is_named else [each]
        found = [each for run in self.runs(gaps) for each in self.left(run)]
        return found or [each for run in self.between_changes(gaps) for each in self.left(run)]

    def left(self, run: Run) -> list[Gap]:
        """Return the comparisons of a run that the next round needs: its open gaps, and its ends."""
        inside = self._open_gaps(run)
        if run.is_equal or len(run.gaps) == 1:
            return inside
        if not inside and run.ends.is_likely:
            # Many small steps: each is certified to be below the threshold, and their sum to be real.
            inside = [each for each in run.gaps if each.finding is Finding.OPEN]
            inside = inside or [each for each in run.gaps if self._may_hide(each, run)]
            return (
                inside
                if self.is_certain(run.ends) or run.ends.finding is not Finding.OPEN
                else [*inside, run.ends]
            )
        return [*inside, run.ends] if run.ends.finding is Finding.OPEN else inside

    def _may_hide(self, gap: Gap, run: Run) -> bool:
        """Whether a gap that seems equal may have half of the certain difference of its run: one of many may err."""
        seems_equal = gap.finding is Finding.EQUAL and len(gap.differences) < MOST_ROUNDS
        most = abs(gap.size) + 2 * gap.error
        return seems_equal and self.is_certain(run.ends) and most >= abs(run.ends.size) / 2

    def _open_gaps(self, run: Run) -> list[Gap]:
        errors = STRICT_ERRORS if run.ends.is_likely else FLAT_ERRORS
        threshold, alone = self._question.threshold_on_scale, len(run.gaps) == 1
        return [
            each
            for each in run.gaps
            if each.finding is Finding.OPEN and (alone or not each.is_flat(threshold, errors))
        ]

    # Two builds.

    def is_same(self, one: int, other: int) -> bool:
        """Whether two revisions have the same artefact."""
        return self._evidence.build_of(one) == self._evidence.build_of(other)

    def differences(self, one: int, other: int) -> Floats:
        """Return the differences of two builds in the rounds that ran both, (n,), in the order of measurement."""
        low, high = self._evidence.build_of(one), self._evidence.build_of(other)
        found = [each[high] - each[low] for each in self._evidence.rounds if low in each and high in each]
        return np.array(found, dtype=np.float64)

    def build_levels(self) -> tuple[Floats, Floats]:
        """Return the level of each build of the map and its standard error, (K,), in logarithms around a common one.

        By weighted least squares over all rounds: a value is the sum of its build's level and its round's. Residuals
        beyond `CLIPPED` standard deviations have less weight.
        """
        number = {
            build: at for at, build in enumerate(dict.fromkeys(map(self._evidence.build_of, self.positions)))
        }
        table = np.full((len(self._evidence.rounds), len(number)), np.nan)
        for row, each in zip(table, self._evidence.rounds, strict=True):
            for build in number.keys() & each.keys():
                row[number[build]] = each[build]
        table = table[np.isfinite(table).sum(axis=1) > 1]
        known = np.isfinite(table)
        self._refresh()
        spread, fitted = self.spread / math.sqrt(2), np.zeros(len(number))
        for step in range(FITS):
            rest = table - fitted
            rest = np.abs(rest - np.nanmedian(rest, axis=1, keepdims=True))
            weights = np.minimum(1.0, CLIPPED * spread / np.maximum(rest, 1e-12))
            weights = np.where(known, weights if step and spread else 1.0, 0.0)
            share = weights / weights.sum(axis=1, keepdims=True)
            means = np.nansum(share * table, axis=1, keepdims=True)
            joined = np.diag(weights.sum(axis=0)) - weights.T @ share
            inverse = np.linalg.pinv(joined, rcond=SINGULAR, hermitian=True)
            fitted = inverse @ np.nansum(weights * (table - means), axis=0)
        which = [number[self._evidence.build_of(position)] for position in self.positions]
        return fitted[which], spread * np.sqrt(np.maximum(np.diag(inverse), 0.0))[which]

    def compare(self, first: int, last: int) -> Gap:
        """Compare two builds by the rounds that ran both."""
        self._refresh()
        if (first, last) not in self._compared:
            self._compared[first, last] = self._compare(first, last)
        return self._compared[first, last]

    def _compare(self, first: int, last: int) -> Gap:
        found = self.differences(first, last)
        count, size = len(found), self._size(found)
        spread = self.spread or (float(np.ptp(found)) if count > 1 else math.inf)
        if 1 < count < FEW:
            spread = max(spread, float(np.std(found, ddof=1)) / FEW_EXCESS)
        error = spread * EFFICIENCY / math.sqrt(count) if count else math.inf
        error = rate_error(found) if self._is_rate else error
        limits, evidence = Bounds(low=-math.inf, high=math.inf), 0.0
        same = self.is_same(first, last)
        if same:
            size, error, limits = 0.0, 0.0, Bounds(low=0.0, high=0.0)
        elif count >= EXACT_ROUNDS and self._is_exact(size):
            error, limits = 0.0, Bounds(low=float(found.min()), high=float(found.max()))
            evidence = math.inf if (limits.low > 0) | (limits.high < 0) else 0.0
        elif count:
            whole = (first, last) == (self.positions[0], self.positions[-1])
            level = 1 - self._question.confidence if whole else PART_LEVEL
            limits, evidence = self._tested(first, last, found, level, size)
        gap = Gap(
            first=first,
            last=last,
            finding=Finding.EQUAL if same else Finding.OPEN,
            differences=found,
            size=size,
            error=error,
            limits=limits,
            evidence=evidence,
        )
        return gap if same else replace(gap, finding=self._finding(gap))

    def _tested(
        self, first: int, last: int, found: Floats, level: float, size: float
    ) -> tuple[Bounds, float]:
        """Return the sizes that bets do not exclude, and the log-wealth of those on a difference."""
        if self._is_rate:
            # Equal outcomes of a pair are ties, on which the bets on its sign stake nothing.
            limits = self._known((first, last), found, level, rate_bounds)
            # Without a guess before the rounds, all gaps of the map share the error, and both directions do.
            bets = self._bets.get((first, last)) or _Bets(
                direction=math.copysign(1.0, size),
                bonus=-math.log(max(1, len(self.positions) - 1)),
            )
            return limits, max(0.0, rate_evidence(bets.direction * found[bets.start :]) + bets.bonus)
        signed = math.copysign(1.0, size) * found
        scale = scales(found, robust=not self._is_coarse)
        builds = self._evidence.build_of(first), self._evidence.build_of(last)
        step = np.array([self._evidence.undithered_step(self.spread, *builds)])
        limits = self._known((first, last), found, level, lambda found, level: bounds(found, scale, level))
        return limits, float(log_wealth(signed, scale, step)[0])

    def _known(
        self, pair: tuple[int, int], found: Floats, level: float, bound: Callable[[Floats, float], Bounds]
    ) -> Bounds:
        """Return the bounds of a pair's differences: the known ones while these are the same, as they cost the most."""
        made_of = found.tobytes(), self._is_coarse, level
        if self._known_bounds.get(pair, (None,))[0] != made_of:
            self._known_bounds[pair] = made_of, bound(found, level)
        return self._known_bounds[pair][1]

    @property
    def _is_rate(self) -> bool:
        return self._question.scale is Scale.RATE

    def _size(self, differences: Floats) -> float:
        """Return the centre of differences; of a metric with coarse steps their mean: the centre is a step."""
        if not len(differences):
            return 0.0
        return float(differences.mean()) if self._is_coarse else centre(differences)

    def _is_exact(self, size: float) -> bool:
        """Whether no build has shown two values whose distance matters: a metric with two values may repeat one."""
        tolerance = max(EXACT_SPREAD * abs(size), EXACT_STEP * self._question.threshold_on_scale)
        return self._question.counted and self._evidence.largest_scatter <= tolerance

    def _finding(self, gap: Gap) -> Finding:
        threshold, count = self._question.threshold_on_scale, len(gap.differences)
        divisible, certain = self._is_divisible(gap.first, gap.last), self.is_certain(gap)
        if gap.limits.within(threshold) and abs(gap.size) < threshold:
            soon_certain = not certain and gap.is_likely and count < SIZE_ROUNDS
            if divisible or not (certain or soon_certain):
                return Finding.EQUAL
            return Finding.BELOW if certain else Finding.OPEN
        are_ends = any(gap.first < at < gap.last for at in self.positions)
        may_differ = gap.is_likely or gap.evidence > 0 or not are_ends
        most = MOST_ROUNDS if may_differ else LEAST_TO_GIVE_UP
        if (
            min(gap.rounds_to_equality(threshold), gap.rounds_to_certainty(self.level))
            <= self._most_promising
        ):
            most = self._most_promising
        if (are_ends or not certain) and count >= most:
            return Finding.UNDECIDED
        if are_ends or divisible or not certain:
            return Finding.OPEN
        if max(gap.limits.low, -gap.limits.high) < threshold and count < SIZE_ROUNDS:
            return Finding.OPEN
        # A coarse step can be larger than the change of the levels behind it: it is named only if it surely reaches it.
        needed = 1 - PART_LEVEL if self._is_coarse and not self._is_rate else PART_LEVEL
        return Finding.CHANGED if gap.reaches(threshold) > needed else Finding.BELOW

    def is_certain(self, gap: Gap) -> bool:
        """Whether two builds certainly differ."""
        return gap.evidence >= math.log(1 / self.level)

    # Dividing.

    def _division(self, gap: Gap) -> int | None:
        """Return where to divide a gap now; `None` while more rounds are better, or nothing is left to divide."""
        if len(gap.differences) == 0:
            return None
        soon_equal = gap.is_flat(self._question.threshold_on_scale, 2.0)
        exact = self._question.counted and gap.error == 0.0 and gap.size != 0.0
        return self.middle(gap.first, gap.last) if exact or (gap.is_likely and not soon_equal) else None

    def _is_divisible(self, first: int, last: int) -> bool:
        """Whether a gap has revisions inside that are not known, or as good as known, to be unusable."""
        candidates, unusable = self._question.candidates(first, last), self._evidence.unusable
        inside = sum(candidates[0] <= at < candidates[-1] for at in unusable)
        if candidates[-1] - candidates[0] <= inside:
            return False
        return not inside or not policy.is_all_broken(self._evidence, first, last)

    def middle(self, first: int, last: int) -> int | None:
        """Return the revision whose build divides the candidates of a gap best; `None` if none does."""
        if not self._is_divisible(first, last):
            return None
        candidates, evidence = self._question.candidates(first, last), self._evidence
        inside = np.setdiff1d(np.arange(candidates[0], candidates[-1]), list(evidence.unusable))
        low, high = self._cumulative[first], self._cumulative[last]
        bits = policy.entropy((self._cumulative[inside] - low) / (high - low))
        worth = bits * (1 - policy.breakage(evidence).probability(inside)) if evidence.unusable else bits
        built = np.isin(inside, list(evidence.built))
        return int(inside[np.argmax(worth * np.where(built, BUILT_BONUS, 1.0))])

    def longest_unseen(self) -> list[tuple[int, int]]:
        """Return the neighbours of the map with the most untried revisions between them, the longest pair first.

        None is shorter than half of the longest.
        """
        pairs = [pair for pair in pairwise(self.positions) if self._is_divisible(*pair)]
        pairs = [pair for pair in pairs if not self.is_same(*pair)] or pairs
        longest = max((high - low for low, high in pairs), default=0)
        pairs = [pair for pair in pairs if 2 * (pair[1] - pair[0]) >= longest]
        return sorted(pairs, key=lambda pair: pair[0] - pair[1])
