"""Units of a comparison: what pairs of adjacent invocations say of several subjects.

One pair is a block: each subject started once at each point, one directly after another, with one draw. Whatever the
store holds from elsewhere, as samples of a search, of a run at another hour, or from before there were blocks, is no
pair. Without relinking, a pair is a unit. With relinking, all pairs of a layout are one unit: more of them say more of
that layout, not of the change.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Generic, TypeVar

from perftrail.measure.target_value import logarithm
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation, Measurement, weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.bench import Bench
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Point
    from perftrail.model.measurement import Outcome, Phase
    from perftrail.model.target import Target
    from perftrail.stats.comparison import Rule

PATIENCE = 6
"""Number of pairs after which it is known whether the machine is always busy."""

Side = TypeVar("Side", bound=str)
"""What tells the subjects of a comparison from each other: ``old`` and ``patched``, ``base`` and ``head``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Generic[Side]):
    """The natural logarithm of one figure of each side, and how many of its pairs were taken in noise.

    `layout` is the one of all its pairs, 0: as the recipe links it.
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
    """Everything that is known of one benchmark's pairs; points may be dropped, never added again.

    `relinked`: only pairs of relinked builds count, else only those of builds as their recipe links them.
    `pairs_per_layout` is how many pairs a layout has before the next one comes.
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
        """What is started for somebody at a point."""
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
        """Give the ordinal of a new pair, which nothing in it has had."""
        known = (
            ordinal
            for ready in self.alive
            for phase, ordinal in self._bench.known(ready)
            if phase == "sample"
        )
        return max(known, default=-1) + 1

    @property
    def taken(self) -> int:
        """How many pairs were started, as a whole."""
        return len(self._blocks())

    @property
    def done(self) -> int:
        """How many units there are, if none of their pairs is cancelled."""
        return len({each.layout for each in self._complete(self._blocks())}) if self.relinked else self.taken

    def full(self, rule: Rule) -> bool:
        """Whether a rule's most units were started, those that replace noisy ones too."""
        return self.done >= 2 * rule.most + PATIENCE

    def layouts(self) -> Mapping[int, int]:
        """How many pairs were started of each layout."""
        found: dict[int, int] = defaultdict(int)
        for block in self._blocks():
            found[block.layout] += 1
        return found

    def started(self) -> int:
        """How many starts the pairs are made of; one build's count once."""
        return len({ready.runnable.key for ready in self.alive}) * self.taken

    def of(self, target: Target) -> list[Unit[Side]]:
        """Evaluate a figure in every unit that has one of each side.

        A noisy pair is cancelled, and another one takes its place. Where more than half of the pairs before it were
        noisy, the machine is busy all the time, and it counts. Flags alone decide that, when the pair was taken, and
        never again: the set of pairs does not depend on what they say, or on when somebody asks.
        """
        pairs = [unit for unit in self._evaluated(target) if isinstance(unit, Unit)]
        pairs = [
            unit
            for unit, counts in zip(pairs, counted([not each.noisy for each in pairs]), strict=True)
            if counts
        ]
        return [_mean(each) for each in self._by_layout(pairs)] if self.relinked else pairs

    def discarded(self, target: Target) -> int:
        """How many pairs of a figure were cancelled for noise."""
        quiet = [not unit.noisy for unit in self._evaluated(target) if isinstance(unit, Unit)]
        return len(quiet) - sum(counted(quiet))

    def why_nothing(self, target: Target) -> str:
        """Say why a figure has no value in any pair."""
        failures = (each.message for each in self._evaluated(target) if isinstance(each, Failure))
        return next(failures, "could not be measured")

    def why_broken(self, ready: Ready) -> Failure | None:
        """Why starting something again is pointless: its first start failed, or most did."""
        outcomes = self._bench.known(ready).values()
        failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
        return failures[0] if 2 * len(failures) > len(outcomes) else None

    def seconds(self, target: Target) -> float:
        """What the starts took that a figure is read from, all sides together."""
        wanted = set(target.points)
        return sum(
            each.seconds
            for block in self._blocks()
            for (_, point), each in block.outcomes.items()
            if point in wanted
        )

    def seconds_each(self) -> float:
        """What one start takes, from those there are; zero when there is none yet."""
        seconds = [each.seconds for ready in self.alive for each in self._bench.known(ready).values()]
        return sum(seconds) / len(seconds) if seconds else 0.0

    def _evaluated(self, target: Target) -> Iterator[Unit[Side] | Failure]:
        gone = any(point in self.dropped for point in target.points)
        return (self._pair(target, block) for block in (() if gone else self._blocks()))

    def _pair(self, target: Target, block: _Block) -> Unit[Side] | Failure:
        """Evaluate a figure in one pair, or say why it has none."""
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
        """Group the pairs of each layout that has all that it gets."""
        complete = {each.layout for each in self._complete(self._blocks())}
        found: dict[int, list[Unit[Side]]] = defaultdict(list)
        for each in pairs:
            if each.layout in complete:
                found[each.layout].append(each)
        return list(found.values())

    def _complete(self, blocks: Sequence[_Block]) -> list[_Block]:
        """The blocks of layouts that have their pairs: more of them, or another layout came after."""
        if not blocks or not self.relinked:
            return list(blocks)
        last = blocks[-1].layout
        is_open = sum(each.layout == last for each in blocks) < self.pairs_per_layout
        return [each for each in blocks if not (is_open and each.layout == last)]

    def _blocks(self) -> tuple[_Block, ...]:
        """The whole blocks, in the order in which they were taken; read again when there are more outcomes."""
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
    """Say which pairs count: quiet ones, and noisy ones after at least `PATIENCE` of which more than half were noisy.

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
    """The pairs of one layout as one unit."""
    return Unit(
        logs={side: fmean(each.logs[side] for each in pairs) for side in pairs[0].logs},
        pairs=len(pairs),
        noisy=sum(each.noisy for each in pairs),
        layout=pairs[0].layout,
    )
