"""Locate a change of time by the instructions of builds: one or two counts for each build, because counts hardly vary.

The counts are a prior only (`instruction_priors`). The search still measures the requested metric at the ends, at the
revision that the counts name, and at its parent; rounds compare these by the requested metric. If the step in
instructions is not the step in time, the search continues by the requested metric.

perftrail counts only where instructions plausibly explain the difference of the ends (`explains`), and where the
forecast cost is below the forecast saving (`Forecast`).
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer
from perftrail.find.end_profiles import LONGEST_SECONDS, built_ends, limited
from perftrail.find.priors import RevisionPriors
from perftrail.measure.events import BuildCounted, Counting, TooLongForBudget
from perftrail.measure.function_profilers import under
from perftrail.measure.instructions import SLOWDOWN, START_SECONDS
from perftrail.model.build import Failure
from perftrail.model.expression import ExpressionError, evaluate
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from perftrail.find.journal import Ledger
    from perftrail.measure.events import Event
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target

PAIRS = 3
"""Plain pairs of both ends, to compare the requested metric with instructions."""

MOST_FACTOR = 3.0
"""Largest factor between the change of instructions and that of the requested metric, as logarithms."""

MOST_SCATTER = 0.1
"""Largest difference of two counts of one build, relative to the change."""

FOLLOWED_SHARE = 1 / 3
"""A range with this share of the change is narrowed down."""

COUNTED_SHARE = 0.9
"""Share of the prior that follows the counts; the rest is even."""

SAVED_BUILDS = 0.3
"""Builds that counts save for each halving of a history: the mean of the cases of `benchmarks.instruction_search`.

Counts saved none where layouts vary little, and 10 of 23 where they vary by a quarter of the change.
"""

SAVED_INVOCATIONS, SAVED_BY_NOISE, MOST_SAVED = 2.6, 45.0, 20.0
"""Invocations that counts save for each halving: at least, more by the squared noise relative to the change, at most.

In simulations of 200 revisions, counts saved 18 of 73 runs with little noise, and 55 of 130 with noise of a third of
the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionCounts:
    """The instructions of counted builds, as (position, count) in ascending order; empty if counting does not apply."""

    metric: str = ""
    counts: tuple[tuple[int, float], ...] = ()
    unusable: tuple[int, ...] = ()

    def located(self) -> tuple[int, ...]:
        """Return the positions where instructions change much from the counted build directly before, ascending."""
        counts = dict(self.counts)
        return tuple(
            high
            for low, high in _followed(counts)
            if all(position in self.unusable for position in range(low + 1, high))
        )


NO_COUNTS = InstructionCounts()


def explains(pairs: Sequence[float], *, instructions: float, scatter: float, threshold: float) -> bool:
    """Return whether a change of instructions plausibly explains that of the requested metric.

    All are logarithms of ratios: `pairs` of the requested metric in interleaved pairs of both ends, `instructions` of
    their counts, `scatter` of two counts of one build, `threshold` the smallest change worth finding.

    >>> explains([0.3, 0.26, 0.28], instructions=0.33, scatter=0.0, threshold=0.05)
    True
    >>> explains([0.3, 0.26, 0.28], instructions=0.02, scatter=0.0, threshold=0.05)
    False
    >>> explains([0.3, -0.1, 0.28], instructions=0.33, scatter=0.0, threshold=0.05)
    False
    """
    direction = math.copysign(1.0, instructions)
    if abs(instructions) < threshold / 2 or abs(scatter) > MOST_SCATTER * abs(instructions):
        return False
    if any(pair * direction <= 0.0 for pair in pairs):
        return False
    factor = abs(instructions) / abs(statistics.fmean(pairs))
    return 1 / MOST_FACTOR <= factor <= MOST_FACTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What counting costs and saves, from the seconds of a build, an invocation and the counts of a build.

    `change` is that of the requested metric between the ends, as a logarithm; `noise` that of one invocation, relative
    to it.
    """

    revisions: int
    build_seconds: float
    count_seconds: float
    invocation_seconds: float = 0.0
    change: float = 0.0
    noise: float = 0.0

    @property
    def cost(self) -> float:
        """Seconds of all counts."""
        return (math.log2(self.revisions) + 3) * self.count_seconds

    @property
    def saving(self) -> float:
        """Seconds of the builds and invocations that counts save."""
        invocations = min(max(SAVED_INVOCATIONS, SAVED_BY_NOISE * self.noise**2), MOST_SAVED)
        return math.log2(self.revisions) * (
            SAVED_BUILDS * self.build_seconds + invocations * self.invocation_seconds
        )

    def pays(self, limit: float | None) -> bool:
        """Return whether it costs less than it saves, and at most `limit` seconds."""
        return self.cost < self.saving and (limit is None or self.cost <= limit)


def next_to_count(
    counts: Mapping[int, float], unusable: Collection[int], weights: Sequence[float] | None = None
) -> int | None:
    """Return the position that splits the range with the largest change, by prior weight; `None` if none is left.

    >>> next_to_count({0: 10.0, 8: 20.0}, ())
    4
    >>> next_to_count({0: 10.0, 4: 10.0, 8: 20.0}, {6})
    5
    >>> next_to_count({4: 10.0, 5: 20.0, 8: 20.0}, ())
    """
    for low, high in sorted(_followed(counts), key=lambda gap: -_change(counts, *gap)):
        untried = [position for position in range(low + 1, high) if position not in unusable]
        if untried:
            candidates = range(low + 1, high + 1)
            mass = [1.0 if weights is None else weights[position] for position in candidates]
            half, total, middle = sum(mass) / 2, 0.0, low + 1
            for position, weight in zip(candidates, mass, strict=True):
                total += weight
                if total >= half:
                    middle = position
                    break
            return min(untried, key=lambda position: (abs(position - middle), position))
    return None


def _change(counts: Mapping[int, float], low: int, high: int) -> float:
    """Return the change between two positions as the logarithm of a ratio, positive in the direction of the ends."""
    change = math.log(counts[high] / counts[low])
    return change if counts[max(counts)] > counts[min(counts)] else -change


def _followed(counts: Mapping[int, float]) -> list[tuple[int, int]]:
    """Return the neighbouring counted positions with much of the change between the ends."""
    positions = sorted(counts)
    if len(positions) < 2 or counts[positions[0]] == counts[positions[-1]]:
        return []
    least = FOLLOWED_SHARE * _change(counts, positions[0], positions[-1])
    return [gap for gap in pairwise(positions) if _change(counts, *gap) >= least]


def instruction_priors(found: InstructionCounts, revisions: Sequence[Revision]) -> RevisionPriors:
    """Return prior weights: each range has the share of its change in instructions, and all revisions the rest."""
    counts, length = dict(found.counts), len(revisions)
    gaps = [(gap, max(_change(counts, *gap), 0.0)) for gap in pairwise(sorted(counts))]
    whole = sum(change for _, change in gaps)
    if whole <= 0.0:
        return RevisionPriors(weights=None, reasons=())
    weights = [1.0 - COUNTED_SHARE] * length
    for (low, high), change in gaps:
        for position in range(low + 1, high + 1):
            weights[position] += COUNTED_SHARE * (length - 1) * change / whole / (high - low)
    weights[0] = 1.0
    steps = [
        f"{revisions[at].short} ({100 * (counts[at] / counts[_before(counts, at)] - 1):+.2g} %)"
        for at in found.located()
    ]
    reason = f"counted the instructions of {len(counts)} builds" + (
        f": they change at {', '.join(steps)}" if steps else ", which change at no single revision"
    )
    return RevisionPriors(weights=tuple(weights), reasons=(reason,))


def _before(counts: Mapping[int, float], position: int) -> int:
    return max(each for each in counts if each < position)


def count_builds(
    session: Session,
    targets: Sequence[Target],
    revisions: Sequence[Revision],
    ledger: Ledger,
    *,
    weights: Sequence[float] | None,
    threshold: float,
    limit: float | None,
) -> Generator[Event, None, InstructionCounts]:
    """Locate the change of the first time among `targets` by instructions; no counts if that does not apply or pay.

    `weights` are the prior weights of the revisions, `threshold` is the smallest relative change worth finding, and
    `limit` that of the time of all counts in seconds.
    """
    target = next((each for each in targets if _applies(session, each)), None)
    if target is None:
        return NO_COUNTS
    ends = yield from built_ends(target, revisions, ledger)
    if ends is None:
        return NO_COUNTS
    search = _InstructionSearch(session.runner.invoker, target, revisions, ledger, weights)
    return (yield from search.run(*ends, threshold=math.log1p(threshold), limit=limit))


def _applies(session: Session, target: Target) -> bool:
    """Return whether a target is the time of one invocation, which perftrail starts itself."""
    benchmark = session.study.benchmarks[target.benchmark]
    return (
        target.unit == "s"
        and target.better == "lower"
        and len(target.points) == 1
        and benchmark.counted_alone is None
        and not benchmark.server
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """Logarithms of the ratio of both ends in interleaved pairs, and the seconds of the longest invocation."""

    logs: tuple[float, ...]
    longest: float

    @property
    def noise(self) -> float:
        """The standard deviation of one invocation, relative to the change."""
        return statistics.stdev(self.logs) / math.sqrt(2) / max(abs(statistics.fmean(self.logs)), 1e-9)


class _InstructionSearch:
    """The comparison of the ends, and the search by counts between them."""

    def __init__(
        self,
        invoker: Invoker,
        target: Target,
        revisions: Sequence[Revision],
        ledger: Ledger,
        weights: Sequence[float] | None,
    ) -> None:
        self._invoker = invoker
        self._target = target
        self._revisions = revisions
        self._ledger = ledger
        self._weights = weights
        self._counts: dict[int, float] = {}
        self._counts_of: dict[str, float] = {}
        self._counts_per_build = 1
        self._unusable: set[int] = set()
        self._count_seconds: list[float] = []

    def run(
        self, before: Ready, after: Ready, *, threshold: float, limit: float | None
    ) -> Generator[Event, None, InstructionCounts]:
        """Compare the ends, and count builds between them if that helps; `threshold` is a logarithm."""
        forecast = yield from self._forecast(before, after, threshold=threshold, limit=limit)
        if forecast is None or (yield from self._refused(forecast, limit)):
            return NO_COUNTS
        yield Counting(
            metric=self._target.text,
            instructions=math.log(self._counts[len(self._revisions) - 1] / self._counts[0]),
            requested=forecast.change,
            seconds=forecast.cost,
        )
        yield from self._narrow()
        return InstructionCounts(
            metric=self._target.text,
            counts=tuple(sorted(self._counts.items())),
            unusable=tuple(sorted(self._unusable)),
        )

    def _refused(self, forecast: Forecast, limit: float | None) -> Generator[Event, None, bool]:
        """Return whether counting does not pay; yield an event if only the budget forbids it."""
        if limit is not None and forecast.pays(None) and not forecast.pays(limit):
            phase = f"search by the instructions of {self._target.benchmark}"
            yield TooLongForBudget(phase=phase, seconds=forecast.cost, limit=limit)
        return not forecast.pays(limit)

    def _forecast(
        self, before: Ready, after: Ready, *, threshold: float, limit: float | None
    ) -> Generator[Event, None, Forecast | None]:
        """Measure and count both ends; `None` as soon as counting does not apply, cannot pay, or takes too long."""
        try:
            method = self._invoker.counting_method()
        except NoAnswer:
            return None
        start, slowdown = START_SECONDS[method], SLOWDOWN[method]
        forecast = Forecast(
            revisions=len(self._revisions),
            build_seconds=max(each.prepared.built.seconds for each in (before, after)),
            count_seconds=start,
        )
        if (yield from self._refused(forecast, limit)):
            return None
        pairs = self._plain_pairs(before, after, math.inf if limit is None else limit)
        if pairs is None:
            return None
        forecast = replace(
            forecast,
            invocation_seconds=pairs.longest,
            count_seconds=start + slowdown * pairs.longest,
            change=statistics.fmean(pairs.logs),
            noise=pairs.noise,
        )
        if (yield from self._refused(forecast, limit)):
            return None
        if not self._explained(before, after, pairs, threshold):
            return None
        count_seconds = self._counts_per_build * statistics.fmean(self._count_seconds)
        return replace(forecast, count_seconds=count_seconds)

    def _explained(self, before: Ready, after: Ready, pairs: _Pairs, threshold: float) -> bool:
        """Count both ends, the newer one twice; return whether that explains the pairs."""
        old, new, again = (self._count(each) for each in (before, after, after))
        if old is None or new is None or again is None:
            return False
        self._counts = {0: old, len(self._revisions) - 1: new}
        self._counts_of = {before.runnable.key: old, after.runnable.key: new}
        self._counts_per_build = 1 if new == again else 2
        instructions, scatter = math.log(new / old), math.log(again / new)
        return explains(pairs.logs, instructions=instructions, scatter=scatter, threshold=threshold)

    def _narrow(self) -> Generator[Event, None, None]:
        """Count builds until every large change is between two neighbours."""
        most = 2 * math.ceil(math.log2(len(self._revisions))) + 4
        while len(self._counts) + len(self._unusable) < most:
            position = next_to_count(self._counts, self._unusable, self._weights)
            if position is None:
                return
            revision = self._revisions[position]
            subject = Subject(revision=revision, variant=self._target.variant)
            cell = Cell(subject=subject, benchmark=self._target.benchmark, point=self._target.points[0])
            ready = yield from self._ledger.ready(cell)
            count = None
            if not isinstance(ready, Failure):
                count = self._counts_of.get(ready.runnable.key)
                if count is None:
                    found = [self._count(ready) for _ in range(self._counts_per_build)]
                    good = [each for each in found if each is not None]
                    count = statistics.fmean(good) if good else None
            if count is None or isinstance(ready, Failure):
                self._unusable.add(position)
                continue
            self._counts[position] = self._counts_of[ready.runnable.key] = count
            yield BuildCounted(revision=revision, change=math.log(count / self._counts[0]))

    def _count(self, ready: Ready) -> float | None:
        """Count one invocation; `None` without a count."""
        counted = self._invoker.count_instructions(
            ready,
            f"instructions-{len(self._count_seconds)}",
            lambda command: under((), command, slowdown=2 * max(SLOWDOWN.values())),
        )
        if isinstance(counted.result, Failure):
            return None
        self._count_seconds.append(counted.ran.wall_seconds)
        return counted.result.get("instructions") or None

    def _plain_pairs(self, before: Ready, after: Ready, most: float) -> _Pairs | None:
        """Measure the requested metric of both ends in pairs, for at most `most` seconds; `None` after a failure."""
        longest_run = min(LONGEST_SECONDS, most / (2 * PAIRS))
        found: list[float] = []
        longest = 0.0
        for number in range(PAIRS):
            values: dict[str, float] = {}
            for side in ("after", "before") if number % 2 == 0 else ("before", "after"):
                ready = before if side == "before" else after
                plain = self._invoker.observe(
                    ready, f"pair-{number}", lambda command: limited(command, longest_run)
                )
                value = None if isinstance(plain.result, Failure) else self._value(plain.result)
                if value is None:
                    return None
                values[side] = value
                longest = max(longest, plain.ran.wall_seconds)
            found.append(math.log(values["after"] / values["before"]))
        return _Pairs(logs=tuple(found), longest=longest)

    def _value(self, values: Mapping[str, float]) -> float | None:
        """Return the requested metric of an invocation, if it is above zero."""
        try:
            value = evaluate(self._target.expression, lambda reference: values[reference.name])
        except (ExpressionError, KeyError):
            return None
        return value if value > 0.0 else None
