"""Run the subjects of one benchmark in randomised interleaved pairs, and compare them.

A random draw decides for each pair and point which subject starts first. Both invocations of a pair share path,
environment and hash seeds. Where the recipe can relink, each pair, or each few pairs, use a new layout.

`PairedOutcomes` reads the logarithms of metrics from blocks of adjacent invocations, as independent replicates.
`InterleavedPairs` runs the pairs. `rule_for` gives the stopping rule of the verdicts, and `Comparisons` reads them from
the replicates at each interim analysis.
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
from perftrail.measure.invocation_runner import mean_seconds, most_failed
from perftrail.model.build import Failure, content_key
from perftrail.model.expression import ExpressionError, evaluate
from perftrail.model.measurement import Draw, FailedInvocation, Measurement, seed_of
from perftrail.model.metrics import COUNTED
from perftrail.model.noisy_samples import LEAST_TO_DECIDE, counted, weight
from perftrail.model.plan import larger
from perftrail.model.program import unpinned_words
from perftrail.stats.comparison import FAMILY_ERROR, Comparison, Rule, compare
from perftrail.stats.rates import compare_rates
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.invocation_runner import InvocationRunner
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Point
    from perftrail.model.expression import Reference
    from perftrail.model.measurement import Outcome, Phase
    from perftrail.model.study import MeasurePolicy
    from perftrail.model.target import Target


LARGEST = 1e100
"""Largest absolute value: squares and sums of values stay finite."""


def value_of(target: Target, outcomes: Mapping[Point, Outcome]) -> float | Failure:
    """Return the value of a target, from one outcome at each of its points, or up to the first failure."""
    failed = next((each.failure for each in outcomes.values() if isinstance(each, FailedInvocation)), None)
    if target.works:
        return float(failed is None)
    if failed is not None:
        return target.limit if failed.stage == "timeout" and target.limit is not None else failed
    measurements = {point: each for point, each in outcomes.items() if isinstance(each, Measurement)}

    def lookup(reference: Reference) -> float:
        values = measurements[reference.point].values
        if reference.name not in values:
            reason = f"no value of {reference.name} is available"
            if reference.name in COUNTED["hardware"]:
                reason = (
                    f"this machine provides no hardware counter of {reference.name}; see perftrail doctor"
                )
            raise ExpressionError(0, reason)
        return values[reference.name]

    try:
        value = evaluate(target.expression, lookup)
    except ExpressionError as error:
        return Failure(stage="metric", message=f"{target.text}: {error}")
    if not abs(value) <= LARGEST:
        return Failure(
            stage="metric", message=f"{target.text} is {value}: only values up to {LARGEST:g} can be compared"
        )
    return value


def scaled_value(target: Target, measurements: Mapping[Point, Outcome]) -> float | Failure:
    """Return the value of a target, or why it has none, or none on the scale that the study states."""
    value = value_of(target, measurements)
    if isinstance(value, Failure) or target.scale is None or Scale(target.scale).allows(value):
        return value
    return Failure(
        stage="metric", message=f"{target.text} is {value:g}: not a value for {SCALES[target.scale]}"
    )


SCALES = {
    "ratio": 'ratios, which need values above zero; scale = "difference" compares others',
    "rate": "a rate, which needs 0 or 1",
}
"""What a stated scale needs."""


def positive_value(target: Target, measurements: Mapping[Point, Outcome]) -> float | Failure:
    """Return the value of a target if it is above zero."""
    value = value_of(target, measurements)
    if isinstance(value, Failure) or value > 0.0:
        return value
    return Failure(
        stage="metric", message=f"{target.text} is {value}: only values above zero can be compared"
    )


def logarithm(target: Target, measurements: Mapping[Point, Measurement]) -> float | Failure:
    """Return the natural logarithm of a target, from one measurement at each of its points."""
    value = positive_value(target, measurements)
    return value if isinstance(value, Failure) else math.log(value)


Side = TypeVar("Side", bound=str)
"""The names of the subjects of a comparison: ``old`` and ``patched``, ``base`` and ``head``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate(Generic[Side]):
    """One replicate of a comparison: the level of one metric for each side, for ratios its natural logarithm.

    A replicate is one pair, or the mean of the `pairs` of one layout, of which `noisy` are noisy. `layout` is the
    layout of all its pairs, 0: as the recipe links it.
    """

    levels: Mapping[Side, float]
    scale: Scale = Scale.RATIO
    pairs: int = 1
    noisy: int = 0
    layout: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The outcomes of one block by side and point."""

    name: str
    layout: int
    outcomes: Mapping[tuple[str, Point], Outcome]


class PairedOutcomes(Generic[Side]):
    """All pairs of one benchmark. Points may be dropped, and are never added again.

    With `relinked`, only pairs of relinked builds count, else only pairs of builds as their recipe links
    them. `pairs_per_layout` is the number of pairs before the next layout. `linked`: a linker produced the measured
    program. `adapts`: the study, or else zeros and negative values, may choose another scale than the ratio.
    """

    def __init__(
        self,
        runner: InvocationRunner,
        ready_cells: Mapping[Side, Sequence[Ready]],
        *,
        relinked: bool = False,
        linked: bool = True,
        adapts: bool = False,
    ) -> None:
        self._runner = runner
        self._adapts = adapts
        self.relinked = relinked
        self.linked = linked
        self.pairs_per_layout = 1
        self.sides = tuple(ready_cells)
        self._ready_cells = {
            side: {ready.cell.point: ready for ready in each} for side, each in ready_cells.items()
        }
        self.points = tuple(
            point
            for point in self._ready_cells[self.sides[0]]
            if all(point in self._ready_cells[side] for side in self.sides)
        )
        self.dropped: dict[Point, Failure | None] = {}
        self._read: tuple[object, tuple[_Block, ...]] = (None, ())
        runner.load_outcomes([ready for each in ready_cells.values() for ready in each])

    def ready(self, side: Side, point: Point) -> Ready:
        """Return what a side starts at a point."""
        return self._ready_cells[side][point]

    @property
    def active(self) -> tuple[Ready, ...]:
        """Everything that one pair starts, point by point."""
        return tuple(self._ready_cells[side][point] for point in self.active_points for side in self.sides)

    @property
    def active_points(self) -> tuple[Point, ...]:
        """The points that are not dropped."""
        return tuple(point for point in self.points if point not in self.dropped)

    @property
    def started_pairs(self) -> int:
        """Number of complete pairs that were started."""
        return len(self._blocks())

    @property
    def replicate_count(self) -> int:
        """Number of replicates, if none of their pairs is discarded."""
        return (
            len({each.layout for each in self._complete(self._blocks())})
            if self.relinked
            else self.started_pairs
        )

    @property
    def usable_count(self) -> int:
        """Number of replicates so far, without discarded noisy pairs if nothing is relinked."""
        if self.relinked:
            return self.replicate_count
        flags = (flags_of(block.outcomes.values()) for block in self._blocks())
        return sum(counted([weight(each) > 0.0 for each in flags]))

    def reached_maximum(self, rule: Rule) -> bool:
        """Whether the rule's maximum number of replicates was started, including replacements of noisy ones."""
        return self.replicate_count >= self.maximum(rule)

    @staticmethod
    def maximum(rule: Rule) -> int:
        """Return the maximum number of replicates of a rule, including replacements of noisy ones."""
        return 2 * rule.most + LEAST_TO_DECIDE

    def pairs_by_layout(self) -> Mapping[int, int]:
        """Number of pairs that were started with each layout."""
        found: dict[int, int] = defaultdict(int)
        for block in self._blocks():
            found[block.layout] += 1
        return found

    @property
    def invocations(self) -> int:
        """Number of invocations in the pairs; those of equal builds count once."""
        return len({ready.runnable.key for ready in self.active}) * self.started_pairs

    def replicates(self, target: Target) -> list[Replicate[Side]]:
        """Evaluate a metric in every replicate that has a value for each side.

        A noisy pair is discarded, and another pair replaces it. If more than half of the earlier pairs were
        noisy, the machine is always noisy, and the pair counts. That decision depends only on flags and is
        final. The set of pairs therefore does not depend on their values, or on the time of the call.
        """
        pairs = [pair for pair in self._pair_values(target) if isinstance(pair, Replicate)]
        scale, first = self._scale(target, pairs)
        quiet = counted([not each.noisy for each in pairs])
        pairs = [
            replace(pair, scale=scale, levels={side: scale.level(each) for side, each in pair.levels.items()})
            for number, (pair, counts) in enumerate(zip(pairs, quiet, strict=True))
            if counts and number >= first
        ]
        return [_mean(each) for each in self._by_layout(pairs)] if self.relinked else pairs

    def _scale(self, target: Target, pairs: Sequence[Replicate[Side]]) -> tuple[Scale, int]:
        """Return the scale of a metric's values, and the number of the pair that chose it.

        The pairs before it do not count. The choice does not depend on which side a value is from.
        """
        if not self._adapts:
            return Scale.RATIO, 0
        scale, first = Scale(target.scale or Scale.RATIO), 0
        for number, pair in enumerate(pairs if target.scale is None else ()):
            if not all(map(scale.allows, pair.levels.values())):
                known = (value for each in pairs[: number + 1] for value in each.levels.values())
                scale, first = scale.suited(known), number
        return scale, first

    def discarded(self, target: Target) -> int:
        """Number of pairs of a metric that were discarded for noise."""
        quiet = [not pair.noisy for pair in self._pair_values(target) if isinstance(pair, Replicate)]
        return len(quiet) - sum(counted(quiet))

    def why_missing(self, target: Target) -> str:
        """Return why a metric has no value in any pair."""
        found = list(self._pair_values(target))
        failures = (each.message for each in found if isinstance(each, Failure))
        if found:
            return next(failures, f"other processes disturbed every pair ({len(found)})")
        gone = any(point in self.dropped for point in target.points)
        return "could not be measured" if gone else "the budget ended before its first pair"

    def failure_of(self, ready: Ready) -> Failure | None:
        """Return why further invocations are pointless, because most failed; else `None`."""
        known = self._runner.known(ready).values()
        return most_failed([each for each in known if self.relinked or not each.draw.layout])

    def ran_in_layouts(self, ready: Ready) -> bool:
        """Whether a build was started in a layout."""
        return any(each.draw.layout for each in self._runner.known(ready).values())

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

    def _pair_values(self, target: Target) -> Iterator[Replicate[Side] | Failure]:
        gone = any(point in self.dropped for point in target.points)
        return (self._pair(target, block) for block in (() if gone else self._blocks()))

    def _pair(self, target: Target, block: _Block) -> Replicate[Side] | Failure:
        """Evaluate a metric in one pair, or return why it has no value."""
        values: dict[Side, float] = {}
        flags: set[str] = set()
        for side in self.sides:
            found = {point: block.outcomes[side, point] for point in target.points}
            value = scaled_value(target, found) if self._adapts else positive_value(target, found)
            if isinstance(value, Failure):
                failed = any(isinstance(each, FailedInvocation) for each in found.values())
                return Failure(stage="metric", message="could not be measured") if failed else value
            values[side] = value
            flags |= flags_of(found.values())
        if target.limit is not None and set(values.values()) == {target.limit}:
            return Failure(stage="timeout", message="every side timed out")
        return Replicate(
            levels=values, noisy=int(not target.works and weight(flags) == 0.0), layout=block.layout
        )

    def _by_layout(self, pairs: Iterable[Replicate[Side]]) -> list[list[Replicate[Side]]]:
        """Group the pairs of each layout that has all of its pairs."""
        complete = {each.layout for each in self._complete(self._blocks())}
        found: dict[int, list[Replicate[Side]]] = defaultdict(list)
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
        known = {at: self._runner.known(self._ready_cells[at[0]][at[1]]) for at in active}
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


def flags_of(outcomes: Iterable[Outcome]) -> set[str]:
    """Return the flags of several measurements."""
    return {flag for each in outcomes if isinstance(each, Measurement) for flag in each.flags}


def _mean(pairs: Sequence[Replicate[Side]]) -> Replicate[Side]:
    """Return the pairs of one layout as one replicate."""
    return Replicate(
        levels={side: fmean(each.levels[side] for each in pairs) for side in pairs[0].levels},
        scale=pairs[0].scale,
        pairs=len(pairs),
        noisy=sum(each.noisy for each in pairs),
        layout=pairs[0].layout,
    )


LAYOUTS_AT_ONCE = 8
"""Number of layouts linked at once; a verdict needs at least nine replicates."""

PAIRS_PER_LAYOUT = 4
"""Pairs of one layout where relinking costs more than `CHEAP_RELINK_INVOCATIONS` invocations."""

CHEAP_RELINK_INVOCATIONS = 2.0

MOST_FAILED_LAYOUTS = 3
"""After this number of layouts that failed to link, perftrail compares the builds as their recipe links them."""


Clock = Callable[[], float]
"""A monotonic clock, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSubject(Generic[Side]):
    """A subject that could not be measured at a point, and why."""

    side: Side
    ready: Ready
    failure: Failure


class InterleavedPairs(Generic[Side]):
    """Runs every subject at every point in random order, pair after pair.

    Call `begin` once, first. Points at which a subject cannot be measured are dropped, and larger ones where
    the study says so. `clock` returns seconds, to measure the cost of relinking. `most_per_layout` is the number of
    pairs of a layout if relinking is expensive. `strict_maximum`: the rule's maximum number of pairs also limits
    expensive layouts, because the user set it. `counted_failures` are the stages of failures that are values, with an
    empty text all of them.
    """

    def __init__(
        self,
        session: Session,
        ready_cells: Mapping[Side, Sequence[Ready]],
        *,
        clock: Clock = time.monotonic,
        most_per_layout: int = PAIRS_PER_LAYOUT,
        strict_maximum: bool = False,
        adapts: bool = False,
        counted_failures: Collection[str] = (),
    ) -> None:
        first = next(iter(ready_cells.values()))[0].cell
        self._session = session
        self._clock = clock
        self.benchmark = first.benchmark
        self.variant = first.subject.variant
        can_relink = all(
            session.subject_builder.can_relink(ready.cell) for each in ready_cells.values() for ready in each
        )
        self.outcomes = PairedOutcomes(
            session.runner,
            ready_cells,
            relinked=can_relink,
            linked=session.subject_builder.is_linked(first),
            adapts=adapts,
        )
        self.pins = session.subject_builder.pins(first)
        reasons = (
            session.subject_builder.unpinned(ready.cell) for each in ready_cells.values() for ready in each
        )
        self._unpinned = next(filter(None, reasons), "") if self.pins and self.outcomes.linked else ""
        self.relink_failure: Failure | None = None
        self._linked: dict[int, Mapping[tuple[Side, Point], Ready]] = {}
        self._failed_layouts: set[int] = set()
        self._cost = 0.0
        self._most_per_layout = most_per_layout
        self._counted_failures = counted_failures
        self._strict_maximum = strict_maximum

    @property
    def relink_failure_words(self) -> str:
        """Why builds are not relinked although the study states how, or not pinned; empty if they are."""
        if self._unpinned:
            return f"{self.benchmark}: {unpinned_words(self._unpinned)}"
        if self.outcomes.relinked or self.relink_failure is None:
            return ""
        if self.pins:
            return f"{self.benchmark}: {unpinned_words(self.relink_failure.message)}"
        why = f"relinking failed ({self.relink_failure.message})"
        return f"{self.benchmark}: {why}; perftrail compares the builds as the recipe links them"

    @property
    def equal(self) -> tuple[tuple[Side, Side], ...]:
        """Subjects with equal builds at every point, measured only once."""
        outcomes = self.outcomes
        numbered = list(enumerate(outcomes.sides))
        return tuple(
            (one, other)
            for number, one in numbered
            for _, other in numbered[number + 1 :]
            if all(
                outcomes.ready(one, point).runnable.key == outcomes.ready(other, point).runnable.key
                for point in outcomes.points
            )
        )

    @property
    def skipped(self) -> int:
        """Number of points skipped after a smaller one failed."""
        return sum(failure is None for failure in self.outcomes.dropped.values())

    def report_equal_builds(self) -> Iterator[Event]:
        """Report subjects with equal builds."""
        for pair in self.equal:
            ready_cells = [self.outcomes.ready(side, self.outcomes.points[0]) for side in pair]
            yield SameArtefact(
                benchmark=self.benchmark, subjects=tuple(each.cell.subject for each in ready_cells)
            )

    def begin(self) -> Generator[Event, None, None]:
        """Run the warm-ups."""
        yield from self._give_up()
        for ordinal in range(self._session.study.measure.warmups):
            yield from self._session.runner.perform(
                self._session.runner.plan(ready, "warmup", ordinal) for ready in self.outcomes.active
            )
        yield from self._give_up()

    def run_pair(self) -> Generator[Event, None, None]:
        """Run one more pair."""
        layout, ready_cells = yield from self._next_layout()
        ordinal = self._session.runner.next_ordinal(*self.outcomes.active)
        seed = seed_of("pair", self._session.study.measure.seed, self.benchmark, self.variant, ordinal)
        draw = Draw(block=secrets.token_hex(8), seed=seed, layout=layout)
        order = [
            ready_cells.get((side, point), self.outcomes.ready(side, point))
            for point in self.outcomes.active_points
            for side in sorted(self.outcomes.sides, key=lambda side: content_key(seed, str(point), side))
        ]
        yield from self._session.runner.perform(
            self._session.runner.plan(ready, "sample", ordinal, draw=replace(draw, turn=turn))
            for turn, ready in enumerate(order)
        )
        yield from self._give_up()

    def rule_in_replicates(self, rule: Rule) -> Rule:
        """Return a rule in replicates; several pairs of one layout are one replicate.

        The rule allows at least twice the replicates that a verdict needs, because layouts scatter, unless the user set
        the maximum.
        """
        each = self.outcomes.pairs_per_layout
        if each == 1:
            return rule
        if self._strict_maximum:
            return replace(rule, most=max(rule.needed_pairs, rule.most // each))
        return replace(rule, most=max(2 * rule.needed_pairs, -(-rule.most // each)))

    def _next_layout(self) -> Generator[Event, None, tuple[int, Mapping[tuple[Side, Point], Ready]]]:
        """Return the layout of the next pair, linked; 0 if there is nothing to relink."""
        while self.outcomes.relinked:
            started = self.outcomes.pairs_by_layout()
            if started and self._linked:
                self.outcomes.pairs_per_layout = 1 if self._is_cheap() else self._most_per_layout
            last = max([0, *started, *self._failed_layouts])
            layout = last if 0 < started.get(last, 0) < self.outcomes.pairs_per_layout else last + 1
            if layout not in self._linked:
                yield from self._link(layout)
            if layout in self._linked:
                return layout, self._linked[layout]
            self._failed_layouts.add(layout)
            if len(self._failed_layouts) >= MOST_FAILED_LAYOUTS:
                self.outcomes.relinked = False
        return 0, {}

    def _is_cheap(self) -> bool:
        return (
            self._cost <= CHEAP_RELINK_INVOCATIONS * len(self.outcomes.active) * self.outcomes.seconds_each()
        )

    def _link(self, layout: int) -> Generator[Event, None, None]:
        """Link a layout and those that probably follow, in one pass over the objects of each subject."""
        began = self._clock()
        cells = [ready.cell for ready in self.outcomes.active]
        layouts = range(layout, layout + LAYOUTS_AT_ONCE)
        yield from self._session.subject_builder.relink(cells, layouts)
        for each in layouts:
            found: dict[tuple[Side, Point], Ready] = {}
            for point in self.outcomes.active_points:
                for side in self.outcomes.sides:
                    ready = yield from self._session.subject_builder.ready(
                        self.outcomes.ready(side, point).cell, layout=each
                    )
                    if isinstance(ready, Failure):
                        self.relink_failure = ready
                        break
                    found[side, point] = ready
            if len(found) < len(cells):
                break
            self._linked[each] = found
        self._cost = (self._clock() - began) / LAYOUTS_AT_ONCE

    def broken(self) -> tuple[BrokenSubject[Side], ...]:
        """Return the subjects that failed at a point, with the points and reasons."""
        ready_cells = [
            (side, self.outcomes.ready(side, point))
            for side in self.outcomes.sides
            for point in self.outcomes.points
        ]
        return tuple(
            BrokenSubject(side=side, ready=ready, failure=failure)
            for side, ready in ready_cells
            if (failure := self._broken_by(ready)) is not None
        )

    def _broken_by(self, ready: Ready) -> Failure | None:
        """Return why further invocations are pointless; `None` if they are not, or if such failures are values."""
        failure = self.outcomes.failure_of(ready)
        if failure is None or "" in self._counted_failures:
            return None
        point = ready.cell.point
        others = [self.outcomes.failure_of(self.outcomes.ready(side, point)) for side in self.outcomes.sides]
        return None if failure.stage in self._counted_failures and None in others else failure

    def progress(self, rule: Rule) -> Progress:
        """Return the progress: at least to the next interim analysis, at most to the last replicate of a rule.

        The forecast is without further noisy pairs, which other pairs replace.
        """
        rule = self.rule_in_replicates(rule)
        done, each = self.outcomes.replicate_count, len(self.outcomes.active) * self.outcomes.pairs_per_layout
        usable, allowed = self.outcomes.usable_count, self.outcomes.maximum(rule) - done
        analysis = next((count for count in rule.analyses if count > usable), rule.most)
        least, most = (max(0, min(allowed, wanted - usable)) * each for wanted in (analysis, rule.most))
        seconds = self.outcomes.seconds_each()
        return Progress(
            done=done * each,
            left_least=least,
            left_most=most,
            seconds_least=least * seconds,
            seconds_most=most * seconds,
        )

    def _give_up(self) -> Generator[Event, None, None]:
        """Drop points at which a subject cannot be measured, and larger ones where the study says so."""
        outcomes, dropped = self.outcomes, self.outcomes.dropped
        for point in outcomes.points:
            ready_cells = [] if point in dropped else [outcomes.ready(side, point) for side in outcomes.sides]
            for ready in ready_cells:
                failure = self._broken_by(ready)
                if failure is None:
                    continue
                if self.pins and outcomes.relinked and outcomes.ran_in_layouts(ready):
                    outcomes.relinked = False  # it may run as linked
                    self._unpinned = (
                        f"{ready.cell.subject.revision.short} fails in a layout: {failure.message}"
                    )
                    return
                dropped[point] = failure
                beyond = [each for each in outcomes.active if self._is_beyond(each, ready, failure)]
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

    The rule allows as many replicates as the study does, or as a verdict needs. `most` replicates
    replace the study's maximum number of invocations. A difference below `threshold` counts as none; default:
    the study's precision.
    """
    wanted = policy.invocations.most if most is None else most
    return Rule(
        most=max(wanted, replicates_needed(comparisons, error=error)),
        comparisons=max(1, comparisons),
        threshold=policy.precision if threshold is None else threshold,
        error=error,
    )


def replicates_needed(comparisons: int, *, error: float = FAMILY_ERROR) -> int:
    """Return the fewest replicates for one of several verdicts with a common family-wise error rate.

    >>> replicates_needed(1), replicates_needed(50)
    (9, 15)
    """
    return Rule(most=1, comparisons=max(1, comparisons), error=error).needed_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedReplicates(Generic[Side]):
    """Replicates that a verdict is based on, and the comparison of the second side with the first."""

    replicates: Sequence[Replicate[Side]]
    comparison: Comparison


class Comparisons(Generic[Side]):
    """Compares metrics, from a set of replicates that was fixed in advance (see `PairedOutcomes.replicates`)."""

    def __init__(self, outcomes: PairedOutcomes[Side]) -> None:
        self._outcomes = outcomes
        self._known: dict[tuple[str, Side, Side, int, Scale], Comparison] = {}

    def read(self, target: Target, rule: Rule, *, one: Side, other: Side) -> ComparedReplicates[Side] | None:
        """Compare a metric at each interim analysis up to the one that settles it; `None` without a value."""
        replicates = self._outcomes.replicates(target)
        if not replicates:
            return None
        found: ComparedReplicates[Side] | None = None
        for count in rule.analyses:
            if count > len(replicates) or (found is not None and found.comparison.settled):
                break
            # Earlier replicates do not change when later ones are added.
            name = (target.name, one, other, count, replicates[0].scale)
            if name not in self._known:
                self._known[name] = compared(replicates[:count], rule, one, other)
            found = ComparedReplicates(replicates=replicates[:count], comparison=self._known[name])
        return found or ComparedReplicates(
            replicates=replicates, comparison=compared(replicates, rule, one, other)
        )

    def settled(self, target: Target, rule: Rule, *, one: Side, other: Side) -> bool:
        """Whether the result is final: a final verdict, or no ratio after one analysis.

        A metric that is never above zero has no ratio.
        """
        found = self.read(target, rule, one=one, other=other)
        return (
            self._outcomes.replicate_count >= rule.analyses[0] if found is None else found.comparison.settled
        )

    def forget(self) -> None:
        """Discard results of a rule that no longer applies."""
        self._known.clear()


def compared(replicates: Sequence[Replicate[Side]], rule: Rule, one: Side, other: Side) -> Comparison:
    """Compare the second side with the first over replicates."""
    scale = replicates[0].scale
    first, second = (
        [scale.as_value(replicate.levels[side]) for replicate in replicates] for side in (one, other)
    )
    return compare_rates(first, second, rule) if scale is Scale.RATE else compare(first, second, rule, scale)
