"""Units of a comparison: one start each of several subjects at each point, close together in time.

Units that the store holds count when their starts lie together in the order of a turn; what other runs of the study
measured at different hours does not.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from perftrail.model.build import Failure
from perftrail.model.conditions import enough_quiet, weight
from perftrail.model.measurement import FailedInvocation, Measurement
from perftrail.workflows.reading import logarithm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.analysis.compare import Rule
    from perftrail.model.measurement import Outcome
    from perftrail.model.parameters import Point
    from perftrail.model.target import Target
    from perftrail.workflows.bench import Bench
    from perftrail.workflows.workshop import Ready

SLACK_SECONDS = 60.0
"""How long after each other starts of one unit may have begun, beyond the time that they took themselves."""

Side = TypeVar("Side", bound=str)
"""What tells the subjects of a comparison from each other: ``old`` and ``patched``, ``base`` and ``head``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Generic[Side]):
    """The natural logarithm of one figure of each side, and whether no start of it was marked as taken in noise."""

    logs: Mapping[Side, float]
    quiet: bool


class Units(Generic[Side]):
    """Everything that is known of one benchmark's units; points may be dropped, never taken back."""

    def __init__(self, bench: Bench, readies: Mapping[Side, Sequence[Ready]]) -> None:
        self._bench = bench
        self.sides = tuple(readies)
        self._readies = {side: {ready.cell.point: ready for ready in each} for side, each in readies.items()}
        self.points = tuple(
            point
            for point in self._readies[self.sides[0]]
            if all(point in self._readies[side] for side in self.sides)
        )
        self.dropped: dict[Point, Failure | None] = {}
        self._own: set[int] = set()
        bench.recall([ready for each in readies.values() for ready in each])

    def ready(self, side: Side, point: Point) -> Ready:
        """What is started for somebody at a point."""
        return self._readies[side][point]

    @property
    def alive(self) -> tuple[Ready, ...]:
        """Everything that one unit starts, point by point."""
        points = [point for point in self.points if point not in self.dropped]
        return tuple(self._readies[side][point] for point in points for side in self.sides)

    def next(self) -> int:
        """Give the ordinal of a new unit, which nothing in it has had."""
        known = [
            ordinal
            for ready in self.alive
            for phase, ordinal in self._bench.known(ready)
            if phase == "sample"
        ]
        self._own.add(max(known, default=-1) + 1)
        return max(self._own)

    def whole(self) -> list[int]:
        """The ordinals at which all that is not dropped was started, at each point together."""
        if not self.alive:
            return []
        ordinals = [
            {ordinal for phase, ordinal in self._bench.known(ready) if phase == "sample"}
            for ready in self.alive
        ]
        points = [point for point in self.points if point not in self.dropped]
        return [
            ordinal
            for ordinal in sorted(set.intersection(*ordinals))
            if ordinal in self._own or all(self._together(point, ordinal) for point in points)
        ]

    def started(self) -> int:
        """How many starts the whole units are made of; one build's count once."""
        keys = {ready.runnable.key for ready in self.alive}
        return len(keys) * len(self.whole())

    def of(self, target: Target) -> list[Unit[Side]]:
        """Evaluate a figure in every whole unit that has one of each."""
        if any(point in self.dropped for point in target.points):
            return []
        found = (self.evaluated(target, ordinal) for ordinal in self.whole())
        return [unit for unit in found if isinstance(unit, Unit)]

    def evaluated(self, target: Target, ordinal: int) -> Unit[Side] | Failure:
        """Evaluate a figure in one unit, or say why it has none."""
        logs: dict[Side, float] = {}
        flags: set[str] = set()
        for side in self.sides:
            found = {point: self._sample(self._readies[side][point], ordinal) for point in target.points}
            measured = {point: each for point, each in found.items() if isinstance(each, Measurement)}
            if len(measured) < len(found):
                return Failure(stage="metric", message="could not be measured")
            value = logarithm(target, measured)
            if isinstance(value, Failure):
                return value
            logs[side] = value
            flags.update(flag for each in measured.values() for flag in each.flags)
        return Unit(logs=logs, quiet=weight(flags) > 0.0)

    def why_nothing(self, target: Target) -> str:
        """Say why a figure has no value in any unit."""
        failures = (self.evaluated(target, ordinal) for ordinal in self.whole())
        return next((each.message for each in failures if isinstance(each, Failure)), "could not be measured")

    def why_broken(self, ready: Ready) -> Failure | None:
        """Why starting something again is pointless: its first start failed, or most did."""
        outcomes = self._bench.known(ready).values()
        failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
        return failures[0] if 2 * len(failures) > len(outcomes) else None

    def seconds(self, target: Target) -> float:
        """What the starts took that a figure is read from, all sides together."""
        outcomes = (
            self._sample(self._readies[side][point], ordinal)
            for ordinal in self.whole()
            for side in self.sides
            for point in target.points
        )
        return sum(each.seconds for each in outcomes if each is not None)

    def seconds_each(self) -> float:
        """What one start takes, from those there are; zero when there is none yet."""
        seconds = [each.seconds for ready in self.alive for each in self._bench.known(ready).values()]
        return sum(seconds) / len(seconds) if seconds else 0.0

    def _together(self, point: Point, ordinal: int) -> bool:
        """Whether the starts of a stored unit follow each other as in a turn, without a long pause."""
        turned = self.sides if ordinal % 2 == 0 else self.sides[::-1]
        outcomes = [
            each for side in turned if (each := self._sample(self._readies[side][point], ordinal)) is not None
        ]
        begun = [datetime.datetime.fromisoformat(each.started).timestamp() for each in outcomes]
        seconds = sum(each.seconds for each in outcomes)
        return begun == sorted(begun) and begun[-1] - begun[0] <= seconds + SLACK_SECONDS

    def _sample(self, ready: Ready, ordinal: int) -> Outcome | None:
        return self._bench.known(ready).get(("sample", ordinal))


def usable(units: Sequence[Unit[Side]], rule: Rule, *, least: int) -> Sequence[Unit[Side]]:
    """Choose the units that a verdict is read from: only the unmarked ones where these are enough for one."""
    quiet = [unit for unit in units if unit.quiet]
    return quiet if enough_quiet(len(quiet), least=least) and len(quiet) >= rule.looks[0] else units
