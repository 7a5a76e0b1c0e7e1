"""Units of a comparison: log metrics of several subjects from blocks of adjacent invocations.

One pair is a block: each subject starts once at each point, directly after another, with one draw. Other
samples in the store, of a search or of another run, are not pairs. Without relinking, a pair is a unit. With
relinking, all pairs of a layout are one unit: more of them give information about that layout, not about the
change. `logarithm` evaluates a target from one measurement at each point that it needs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Generic, TypeVar

from perftrail.model.build import Failure
from perftrail.model.expression import ExpressionError, evaluate
from perftrail.model.measurement import FailedInvocation, Measurement, weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.bench import Bench
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Point
    from perftrail.model.expression import Reference
    from perftrail.model.measurement import Outcome, Phase
    from perftrail.model.target import Target
    from perftrail.stats.comparison import Rule


def logarithm(target: Target, found: Mapping[Point, Measurement]) -> float | Failure:
    """Return the natural logarithm of a target, from one measurement at each of its points."""

    def lookup(reference: Reference) -> float:
        values = found[reference.point].values
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


PATIENCE = 6
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
        self, bench: Bench, readies: Mapping[Side, Sequence[Ready]], *, relinked: bool = False
    ) -> None:
        self._bench = bench
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
        bench.recall([ready for each in readies.values() for ready in each])

    def ready(self, side: Side, point: Point) -> Ready:
        """Return what a side starts at a point."""
        return self._readies[side][point]

    @property
    def alive(self) -> tuple[Ready, ...]:
        """Everything that one pair starts, point by point."""
        return tuple(self._readies[side][point] for point in self.alive_points for side in self.sides)

    @property
    def alive_points(self) -> tuple[Point, ...]:
        """The points that are not dropped."""
        return tuple(point for point in self.points if point not in self.dropped)

    def next(self) -> int:
        """Return an unused ordinal for a new pair."""
        known = (
            ordinal
            for ready in self.alive
            for phase, ordinal in self._bench.known(ready)
            if phase == "sample"
        )
        return max(known, default=-1) + 1

    @property
    def taken(self) -> int:
        """Number of complete pairs that were started."""
        return len(self._blocks())

    @property
    def done(self) -> int:
        """Number of units, if none of their pairs is cancelled."""
        return len({each.layout for each in self._complete(self._blocks())}) if self.relinked else self.taken

    def full(self, rule: Rule) -> bool:
        """Whether the rule's maximum number of units was started, including replacements of noisy ones."""
        return self.done >= 2 * rule.most + PATIENCE

    def layouts(self) -> Mapping[int, int]:
        """Number of pairs that were started with each layout."""
        found: dict[int, int] = defaultdict(int)
        for block in self._blocks():
            found[block.layout] += 1
        return found

    def started(self) -> int:
        """Number of starts in the pairs; those of equal builds count once."""
        return len({ready.runnable.key for ready in self.alive}) * self.taken

    def of(self, target: Target) -> list[Unit[Side]]:
        """Evaluate a metric in every unit that has a value for each side.

        A noisy pair is cancelled, and another pair replaces it. If more than half of the earlier pairs were
        noisy, the machine is always noisy, and the pair counts. That decision depends only on flags and is
        final. The set of pairs therefore does not depend on their values, or on the time of the call.
        """
        pairs = [unit for unit in self._evaluated(target) if isinstance(unit, Unit)]
        pairs = [
            unit
            for unit, counts in zip(pairs, counted([not each.noisy for each in pairs]), strict=True)
            if counts
        ]
        return [_mean(each) for each in self._by_layout(pairs)] if self.relinked else pairs

    def discarded(self, target: Target) -> int:
        """Number of pairs of a metric that were cancelled for noise."""
        quiet = [not unit.noisy for unit in self._evaluated(target) if isinstance(unit, Unit)]
        return len(quiet) - sum(counted(quiet))

    def why_nothing(self, target: Target) -> str:
        """Return why a metric has no value in any pair."""
        failures = (each.message for each in self._evaluated(target) if isinstance(each, Failure))
        return next(failures, "could not be measured")

    def why_broken(self, ready: Ready) -> Failure | None:
        """Return why further starts are pointless: the first start failed, or most did."""
        outcomes = self._bench.known(ready).values()
        failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
        return failures[0] if 2 * len(failures) > len(outcomes) else None

    def seconds(self, target: Target) -> float:
        """Return the seconds of the starts that give a metric, over all sides."""
        wanted = set(target.points)
        return sum(
            each.seconds
            for block in self._blocks()
            for (_, point), each in block.outcomes.items()
            if point in wanted
        )

    def seconds_each(self) -> float:
        """Return the mean seconds of one start so far; zero before the first."""
        seconds = [each.seconds for ready in self.alive for each in self._bench.known(ready).values()]
        return sum(seconds) / len(seconds) if seconds else 0.0

    def _evaluated(self, target: Target) -> Iterator[Unit[Side] | Failure]:
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
        alive = [(side, point) for point in self.alive_points for side in self.sides]
        known = {at: self._bench.known(self._readies[at[0]][at[1]]) for at in alive}
        state = (self.relinked, tuple(alive), tuple(map(len, known.values())))
        if self._read[0] != state:
            self._read = (state, tuple(self._whole(known)) if alive else ())
        return self._read[1]

    def _whole(
        self, known: Mapping[tuple[Side, Point], Mapping[tuple[Phase, int], Outcome]]
    ) -> Iterator[_Block]:
        held = {
            at: {
                each.draw.block: each
                for (phase, _), each in sorted(outcomes.items())
                if phase == "sample" and each.draw.block and bool(each.draw.layout) == self.relinked
            }
            for at, outcomes in known.items()
        }
        first, *others = held.values()
        for name in first:
            outcomes = {at: each.get(name) for at, each in held.items()}
            layouts = {each.draw.layout for each in outcomes.values() if each is not None}
            if all(name in each for each in others) and len(layouts) == 1:
                yield _Block(
                    name=name,
                    layout=layouts.pop(),
                    outcomes={at: each for at, each in outcomes.items() if each},
                )


def counted(quiet: Sequence[bool]) -> list[bool]:
    """Return which pairs count: quiet ones, and noisy ones after `PATIENCE` pairs or more, mostly noisy.

    >>> counted([True, False, True]), counted([False] * 8)[-3:]
    ([True, False, True], [False, True, True])
    """
    noisy = 0
    found = []
    for number, each in enumerate(quiet):
        found.append(each or (number >= PATIENCE and 2 * noisy > number))
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
