"""Run the subjects of one benchmark in randomised interleaved pairs, and compare them.

A random draw decides for each pair and point which subject starts first. Both invocations of a pair share path,
environment and hash seeds. Where the recipe can relink, each pair, or each few pairs, use a new layout.

`Units` reads the logarithms of metrics from blocks of adjacent invocations. `InterleavedPairs` runs the
pairs. `rule_for` gives the stopping rule of the verdicts, and `Comparisons` reads them from the units at each
interim analysis.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Generic, TypeVar

from perftrail.measure.events import GivenUp, Progress, SameArtefact
from perftrail.measure.invocation_runner import mean_seconds
from perftrail.model.build import Failure, content_key
from perftrail.model.expression import ExpressionError, evaluate
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, seed_of, weight
from perftrail.model.plan import larger
from perftrail.stats.comparison import FAMILY_ERROR, Comparison, Rule, compare

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.invocation_runner import InvocationRunner
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Point
    from perftrail.model.expression import Reference
    from perftrail.model.measurement import Outcome, Phase
    from perftrail.model.study import MeasurePolicy
    from perftrail.model.target import Target


def logarithm(target: Target, measurements: Mapping[Point, Measurement]) -> float | Failure:
    """Return the natural logarithm of a target, from one measurement at each of its points."""

    def lookup(reference: Reference) -> float:
        values = measurements[reference.point].values
        if reference.name not in values:
            raise ExpressionError(0, f"no value of {reference.name} is available")
        return values[reference.name]

    try:
        value = evaluate(target.expression, lookup)
    except ExpressionError as error:
        return Failure(stage="metric", message=f"{target.text}: {error}")
    if not (math.isfinite(value) and value > 0.0):
        return Failure(
            stage="metric", message=f"{target.text} is {value}: only values above zero can be compared"
        )
    return math.log(value)


PAIRS_BEFORE_NOISE_DECISION = 6
"""Number of pairs after which perftrail decides whether the machine is always noisy."""

Side = TypeVar("Side", bound=str)
"""The names of the subjects of a comparison: ``old`` and ``patched``, ``base`` and ``head``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Generic[Side]):
    """The natural logarithm of one metric for each side, and the number of its noisy pairs.

    `layout` is the layout of all its pairs, 0: as the recipe links it.
    """

    logs: Mapping[Side, float]
    pairs: int = 1
    noisy: int = 0
    layout: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The outcomes of one block by side and point."""

    name: str
    layout: int
    outcomes: Mapping[tuple[str, Point], Outcome]


class Units(Generic[Side]):
    """All pairs of one benchmark. Points may be dropped, and are never added again.

    With `relinked`, only pairs of relinked builds count, else only pairs of builds as their recipe links
    them. `pairs_per_layout` is the number of pairs before the next layout.
    """

    def __init__(
        self, runner: InvocationRunner, readies: Mapping[Side, Sequence[Ready]], *, relinked: bool = False
    ) -> None:
        self._runner = runner
        self.relinked = relinked
        self.pairs_per_layout = 1
        self.sides = tuple(readies)
        self._readies = {side: {ready.cell.point: ready for ready in each} for side, each in readies.items()}
        self.points = tuple(
            point
            for point in self._readies[self.sides[0]]
            if all(point in self._readies[side] for side in self.sides)
        )
        self.dropped: dict[Point, Failure | None] = {}
        self._read: tuple[object, tuple[_Block, ...]] = (None, ())
        runner.recall([ready for each in readies.values() for ready in each])

    def ready(self, side: Side, point: Point) -> Ready:
        """Return what a side starts at a point."""
        return self._readies[side][point]

    @property
    def active(self) -> tuple[Ready, ...]:
        """Everything that one pair starts, point by point."""
        return tuple(self._readies[side][point] for point in self.active_points for side in self.sides)

    @property
    def active_points(self) -> tuple[Point, ...]:
        """The points that are not dropped."""
        return tuple(point for point in self.points if point not in self.dropped)

    @property
    def started_pairs(self) -> int:
        """Number of complete pairs that were started."""
        return len(self._blocks())

    @property
    def done(self) -> int:
        """Number of units, if none of their pairs is discarded."""
        return (
            len({each.layout for each in self._complete(self._blocks())})
            if self.relinked
            else self.started_pairs
        )

    def full(self, rule: Rule) -> bool:
        """Whether the rule's maximum number of units was started, including replacements of noisy ones."""
        return self.done >= 2 * rule.most + PAIRS_BEFORE_NOISE_DECISION

    def layouts(self) -> Mapping[int, int]:
        """Number of pairs that were started with each layout."""
        found: dict[int, int] = defaultdict(int)
        for block in self._blocks():
            found[block.layout] += 1
        return found

    def started(self) -> int:
        """Number of invocations in the pairs; those of equal builds count once."""
        return len({ready.runnable.key for ready in self.active}) * self.started_pairs

    def evaluated(self, target: Target) -> list[Unit[Side]]:
        """Evaluate a metric in every unit that has a value for each side.

        A noisy pair is discarded, and another pair replaces it. If more than half of the earlier pairs were
        noisy, the machine is always noisy, and the pair counts. That decision depends only on flags and is
        final. The set of pairs therefore does not depend on their values, or on the time of the call.
        """
        pairs = [unit for unit in self._pair_values(target) if isinstance(unit, Unit)]
        pairs = [
            unit
            for unit, counts in zip(pairs, counted([not each.noisy for each in pairs]), strict=True)
            if counts
        ]
        return [_mean(each) for each in self._by_layout(pairs)] if self.relinked else pairs

    def discarded(self, target: Target) -> int:
        """Number of pairs of a metric that were discarded for noise."""
        quiet = [not unit.noisy for unit in self._pair_values(target) if isinstance(unit, Unit)]
        return len(quiet) - sum(counted(quiet))

    def why_missing(self, target: Target) -> str:
        """Return why a metric has no value in any pair."""
        failures = (each.message for each in self._pair_values(target) if isinstance(each, Failure))
        return next(failures, "could not be measured")

    def failure_of(self, ready: Ready) -> Failure | None:
        """Return why further invocations are pointless: the first one failed, or most did; else `None`."""
        outcomes = self._runner.known(ready).values()
        failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
        return failures[0] if 2 * len(failures) > len(outcomes) else None

    def seconds(self, target: Target) -> float:
        """Return the seconds of the invocations that give a metric, over all sides."""
        wanted = set(target.points)
        return sum(
            each.seconds
            for block in self._blocks()
            for (_, point), each in block.outcomes.items()
            if point in wanted
        )

    def seconds_each(self) -> float:
        """Return the mean seconds of one invocation so far; zero before the first."""
        return mean_seconds([each for ready in self.active for each in self._runner.known(ready).values()])

    def _pair_values(self, target: Target) -> Iterator[Unit[Side] | Failure]:
        gone = any(point in self.dropped for point in target.points)
        return (self._pair(target, block) for block in (() if gone else self._blocks()))

    def _pair(self, target: Target, block: _Block) -> Unit[Side] | Failure:
        """Evaluate a metric in one pair, or return why it has no value."""
        logs: dict[Side, float] = {}
        flags: set[str] = set()
        for side in self.sides:
            found = {point: block.outcomes[side, point] for point in target.points}
            measured = {point: each for point, each in found.items() if isinstance(each, Measurement)}
            if len(measured) < len(found):
                return Failure(stage="metric", message="could not be measured")
            value = logarithm(target, measured)
            if isinstance(value, Failure):
                return value
            logs[side] = value
            flags.update(flag for each in measured.values() for flag in each.flags)
        return Unit(logs=logs, noisy=int(weight(flags) == 0.0), layout=block.layout)

    def _by_layout(self, pairs: Iterable[Unit[Side]]) -> list[list[Unit[Side]]]:
        """Group the pairs of each layout that has all of its pairs."""
        complete = {each.layout for each in self._complete(self._blocks())}
        found: dict[int, list[Unit[Side]]] = defaultdict(list)
        for each in pairs:
            if each.layout in complete:
                found[each.layout].append(each)
        return list(found.values())

    def _complete(self, blocks: Sequence[_Block]) -> list[_Block]:
        """Return the blocks of complete layouts: they have all pairs, or another layout followed."""
        if not blocks or not self.relinked:
            return list(blocks)
        last = blocks[-1].layout
        is_open = sum(each.layout == last for each in blocks) < self.pairs_per_layout
        return [each for each in blocks if not (is_open and each.layout == last)]

    def _blocks(self) -> tuple[_Block, ...]:
        """The complete blocks, in the order of measurement; read again when there are more outcomes."""
        active = [(side, point) for point in self.active_points for side in self.sides]
        known = {at: self._runner.known(self._readies[at[0]][at[1]]) for at in active}
        state = (self.relinked, tuple(active), tuple(map(len, known.values())))
        if self._read[0] != state:
            self._read = (state, tuple(self._complete_blocks(known)) if active else ())
        return self._read[1]

    def _complete_blocks(
        self, known: Mapping[tuple[Side, Point], Mapping[tuple[Phase, int], Outcome]]
    ) -> Iterator[_Block]:
        by_name = {
            at: {
                each.draw.block: each
                for (phase, _), each in sorted(outcomes.items())
                if phase == "sample" and each.draw.block and bool(each.draw.layout) == self.relinked
            }
            for at, outcomes in known.items()
        }
        first, *others = by_name.values()
        for name in first:
            outcomes = {at: each.get(name) for at, each in by_name.items()}
            layouts = {each.draw.layout for each in outcomes.values() if each is not None}
            if all(name in each for each in others) and len(layouts) == 1:
                yield _Block(
                    name=name,
                    layout=layouts.pop(),
                    outcomes={at: each for at, each in outcomes.items() if each},
                )


def counted(quiet: Sequence[bool]) -> list[bool]:
    """Return which pairs count: quiet ones, and noisy ones if most of the earlier pairs, at least 6, were noisy.

    >>> counted([True, False, True]), counted([False] * 8)[-3:]
    ([True, False, True], [False, True, True])
    """
    noisy = 0
    found = []
    for number, each in enumerate(quiet):
        found.append(each or (number >= PAIRS_BEFORE_NOISE_DECISION and 2 * noisy > number))
        noisy += not each
    return found


def _mean(pairs: Sequence[Unit[Side]]) -> Unit[Side]:
    """Return the pairs of one layout as one unit."""
    return Unit(
        logs={side: fmean(each.logs[side] for each in pairs) for side in pairs[0].logs},
        pairs=len(pairs),
        noisy=sum(each.noisy for each in pairs),
        layout=pairs[0].layout,
    )


LAYOUTS_AT_ONCE = 8
"""Number of layouts linked at once; a verdict needs at least nine units."""

PAIRS_PER_LAYOUT = 4
"""Pairs of one layout where relinking costs more than `CHEAP_RELINK_INVOCATIONS` invocations."""

CHEAP_RELINK_INVOCATIONS = 2.0

MOST_FAILED_LAYOUTS = 3
"""After this number of layouts that failed to link, perftrail compares the builds as their recipe links them."""


Clock = Callable[[], float]
"""A monotonic clock, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(Generic[Side]):
    """A subject that could not be measured at a point, and why."""

    side: Side
    ready: Ready
    failure: Failure


class InterleavedPairs(Generic[Side]):
    """Runs every subject at every point in random order, pair after pair.

    Call `begin` once, first. Points at which a subject cannot be measured are dropped, and larger ones where
    the study says so. `clock` returns seconds, to measure the cost of relinking.
    """

    def __init__(
        self,
        session: Session,
        readies: Mapping[Side, Sequence[Ready]],
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        first = next(iter(readies.values()))[0].cell
        self._session = session
        self._clock = clock
        self.benchmark = first.benchmark
        self.variant = first.subject.variant
        can_relink = all(
            session.subject_builder.can_relink(ready.cell) for each in readies.values() for ready in each
        )
        self.units = Units(session.runner, readies, relinked=can_relink)
        self.relink_failure: Failure | None = None
        self._linked: dict[int, Mapping[tuple[Side, Point], Ready]] = {}
        self._failed_layouts: set[int] = set()
        self._cost = 0.0

    @property
    def relink_failure_words(self) -> str:
        """Why builds are not relinked although the study says how; empty if they are."""
        if self.units.relinked or self.relink_failure is None:
            return ""
        why = f"relinking failed ({self.relink_failure.message})"
        return f"{self.benchmark}: {why}; perftrail compares the builds as the recipe links them"

    @property
    def equal(self) -> tuple[tuple[Side, Side], ...]:
        """Subjects with equal builds at every point, measured only once."""
        units = self.units
        numbered = list(enumerate(units.sides))
        return tuple(
            (one, other)
            for number, one in numbered
            for _, other in numbered[number + 1 :]
            if all(
                units.ready(one, point).runnable.key == units.ready(other, point).runnable.key
                for point in units.points
            )
        )

    @property
    def skipped(self) -> int:
        """Number of points skipped after a smaller one failed."""
        return sum(failure is None for failure in self.units.dropped.values())

    def report_equal_builds(self) -> Iterator[Event]:
        """Report subjects with equal builds."""
        for pair in self.equal:
            readies = [self.units.ready(side, self.units.points[0]) for side in pair]
            yield SameArtefact(
                benchmark=self.benchmark, subjects=tuple(each.cell.subject for each in readies)
            )

    def begin(self) -> Generator[Event, None, None]:
        """Run the warm-ups."""
        yield from self._give_up()
        for ordinal in range(self._session.study.measure.warmups):
            yield from self._session.runner.perform(
                self._session.runner.plan(ready, "warmup", ordinal) for ready in self.units.active
            )
        yield from self._give_up()

    def unit(self) -> Generator[Event, None, None]:
        """Run one more pair."""
        layout, readies = yield from self._next_layout()
        ordinal = self._session.runner.next_ordinal(*self.units.active)
        seed = seed_of("pair", self._session.study.measure.seed, self.benchmark, self.variant, ordinal)
        draw = Draw(block=secrets.token_hex(8), seed=seed, layout=layout)
        order = [
            readies.get((side, point), self.units.ready(side, point))
            for point in self.units.active_points
            for side in sorted(self.units.sides, key=lambda side: content_key(seed, str(point), side))
        ]
        yield from self._session.runner.perform(
            self._session.runner.plan(ready, "sample", ordinal, draw=replace(draw, turn=turn))
            for turn, ready in enumerate(order)
        )
        yield from self._give_up()

    def rule_in_units(self, rule: Rule) -> Rule:
        """Return a rule in units; several pairs of one layout are one unit.

        The rule allows at least twice the units that a verdict needs, because layouts scatter.
        """
        if self.units.pairs_per_layout == 1:
            return rule
        return replace(rule, most=max(2 * rule.needed_pairs, -(-rule.most // self.units.pairs_per_layout)))

    def _next_layout(self) -> Generator[Event, None, tuple[int, Mapping[tuple[Side, Point], Ready]]]:
        """Return the layout of the next pair, linked; 0 if there is nothing to relink."""
        while self.units.relinked:
            started = self.units.layouts()
            if started and self._linked:
                self.units.pairs_per_layout = 1 if self._is_cheap() else PAIRS_PER_LAYOUT
            last = max([0, *started, *self._failed_layouts])
            layout = last if 0 < started.get(last, 0) < self.units.pairs_per_layout else last + 1
            if layout not in self._linked:
                yield from self._link(layout)
            if layout in self._linked:
                return layout, self._linked[layout]
            self._failed_layouts.add(layout)
            if len(self._failed_layouts) >= MOST_FAILED_LAYOUTS:
                self.units.relinked = False
        return 0, {}

    def _is_cheap(self) -> bool:
        return self._cost <= CHEAP_RELINK_INVOCATIONS * len(self.units.active) * self.units.seconds_each()

    def _link(self, layout: int) -> Generator[Event, None, None]:
        """Link a layout and those that probably follow, in one pass over the objects of each subject."""
        began = self._clock()
        cells = [ready.cell for ready in self.units.active]
        layouts = range(layout, layout + LAYOUTS_AT_ONCE)
        yield from self._session.subject_builder.relink(cells, layouts)
        for each in layouts:
            found: dict[tuple[Side, Point], Ready] = {}
            for point in self.units.active_points:
                for side in self.units.sides:
                    ready = yield from self._session.subject_builder.ready(
                        self.units.ready(side, point).cell, layout=each
                    )
                    if isinstance(ready, Failure):
                        self.relink_failure = ready
                        break
                    found[side, point] = ready
            if len(found) < len(cells):
                break
            self._linked[each] = found
        self._cost = (self._clock() - began) / LAYOUTS_AT_ONCE

    def broken(self) -> tuple[Broken[Side], ...]:
        """Return the subjects that failed at a point, with the points and reasons."""
        readies = [
            (side, self.units.ready(side, point)) for side in self.units.sides for point in self.units.points
        ]
        return tuple(
            Broken(side=side, ready=ready, failure=failure)
            for side, ready in readies
            if (failure := self.units.failure_of(ready)) is not None
        )

    def progress(self, rule: Rule) -> Progress:
        """Return the progress: at least to the next interim analysis, at most to the last unit of a rule."""
        rule = self.rule_in_units(rule)
        done, each = self.units.done, len(self.units.active) * self.units.pairs_per_layout
        analysis = next((count for count in rule.analyses if count > done), rule.most)
        least, most = max(0, analysis - done) * each, max(0, rule.most - done) * each
        seconds = self.units.seconds_each()
        return Progress(
            done=done * each,
            left_least=least,
            left_most=most,
            seconds_least=least * seconds,
            seconds_most=most * seconds,
        )

    def _give_up(self) -> Generator[Event, None, None]:
        """Drop points at which a subject cannot be measured, and larger ones where the study says so."""
        units, dropped = self.units, self.units.dropped
        for point in units.points:
            readies = [] if point in dropped else [units.ready(side, point) for side in units.sides]
            for ready in readies:
                failure = units.failure_of(ready)
                if failure is None:
                    continue
                dropped[point] = failure
                beyond = [each for each in units.active if self._is_beyond(each, ready, failure)]
                if beyond:
                    dropped.update((each.cell.point, None) for each in beyond)
                    yield GivenUp(cells=tuple(each.cell for each in beyond), because=ready.cell)
                break

    def _is_beyond(self, ready: Ready, broken: Ready, failure: Failure) -> bool:
        benchmark = self._session.study.benchmarks[self.benchmark]
        return benchmark.give_up and failure.is_limit and larger(ready.cell, broken.cell)


def rule_for(
    policy: MeasurePolicy,
    comparisons: int,
    *,
    error: float = FAMILY_ERROR,
    threshold: float | None = None,
    most: int | None = None,
) -> Rule:
    """Return the rule for this number of verdicts, with a common family-wise error rate.

    The rule allows as many units as the study does, or as a verdict needs. `most` units replace the study's
    maximum number of invocations. A difference below `threshold` counts as none; default: the study's
    precision.
    """
    wanted = policy.invocations.most if most is None else most
    return Rule(
        most=max(wanted, units_needed(comparisons, error=error)),
        comparisons=max(1, comparisons),
        threshold=policy.precision if threshold is None else threshold,
        error=error,
    )


def units_needed(comparisons: int, *, error: float = FAMILY_ERROR) -> int:
    """Return the fewest units for one of several verdicts with a common family-wise error rate.

    >>> units_needed(1), units_needed(50)
    (9, 15)
    """
    return Rule(most=1, comparisons=max(1, comparisons), error=error).needed_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedUnits(Generic[Side]):
    """The units that a verdict is based on, and the comparison of the second side with the first."""

    units: Sequence[Unit[Side]]
    comparison: Comparison


class Comparisons(Generic[Side]):
    """Compares metrics, from a set of units that was fixed in advance (see `Units.evaluated`)."""

    def __init__(self, units: Units[Side]) -> None:
        self._units = units
        self._known: dict[tuple[str, Side, Side, int], Comparison] = {}

    def read(self, target: Target, rule: Rule, *, one: Side, other: Side) -> ComparedUnits[Side] | None:
        """Compare a metric at each interim analysis up to the one that settles it; `None` without a value."""
        units = self._units.evaluated(target)
        if not units:
            return None
        found: ComparedUnits[Side] | None = None
        for count in rule.analyses:
            if count > len(units) or (found is not None and found.comparison.settled):
                break
            # Earlier units do not change when later ones are added.
            name = (target.name, one, other, count)
            if name not in self._known:
                self._known[name] = compared(units[:count], rule, one, other)
            found = ComparedUnits(units=units[:count], comparison=self._known[name])
        return found or ComparedUnits(units=units, comparison=compared(units, rule, one, other))

    def settled(self, target: Target, rule: Rule, *, one: Side, other: Side) -> bool:
        """Whether more units cannot change the result: the verdict is final, or there is no ratio after one analysis.

        A metric that is never above zero has no ratio.
        """
        found = self.read(target, rule, one=one, other=other)
        return self._units.done >= rule.analyses[0] if found is None else found.comparison.settled

    def forget(self) -> None:
        """Discard results of a rule that no longer applies."""
        self._known.clear()


def compared(units: Sequence[Unit[Side]], rule: Rule, one: Side, other: Side) -> Comparison:
    """Compare the second side with the first over units."""
    first, second = ([math.exp(unit.logs[side]) for unit in units] for side in (one, other))
    return compare(first, second, rule)
