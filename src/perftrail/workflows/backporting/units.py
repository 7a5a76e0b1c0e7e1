"""Units of a back-port: one start each of old, patched and fixed at each point, close together in time.

Units that the store holds count when their starts lie together; what earlier runs of the study measured at
different hours does not.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.conditions import weight
from perftrail.model.measurement import FailedInvocation, Measurement
from perftrail.workflows.backporting.report import Role
from perftrail.workflows.reading import logarithm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.measurement import Outcome
    from perftrail.model.parameters import Point
    from perftrail.model.target import Target
    from perftrail.workflows.bench import Bench
    from perftrail.workflows.workshop import Ready

SLACK_SECONDS = 60.0
"""How long after each other starts of one unit may have begun, beyond the time that they took themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The natural logarithm of one figure of each, and whether no start of it was marked as taken in noise."""

    logs: Mapping[Role, float]
    quiet: bool


class Units:
    """Everything that is known of one benchmark's units; points may be dropped, never taken back."""

    def __init__(self, bench: Bench, readies: Mapping[Role, Sequence[Ready]]) -> None:
        self._bench = bench
        self.roles = tuple(readies)
        self._readies = {role: {ready.cell.point: ready for ready in each} for role, each in readies.items()}
        self.points = tuple(
            point
            for point in self._readies[Role.OLD]
            if all(point in self._readies[role] for role in self.roles)
        )
        self.dropped: dict[Point, Failure | None] = {}
        self._own: set[int] = set()
        bench.recall([ready for each in readies.values() for ready in each])

    def ready(self, role: Role, point: Point) -> Ready:
        """What is started for somebody at a point."""
        return self._readies[role][point]

    @property
    def alive(self) -> tuple[Ready, ...]:
        """Everything that one unit starts, point by point."""
        points = [point for point in self.points if point not in self.dropped]
        return tuple(self._readies[role][point] for point in points for role in self.roles)

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

    def of(self, target: Target) -> list[Unit]:
        """Evaluate a figure in every whole unit that has one of each."""
        if any(point in self.dropped for point in target.points):
            return []
        found = (self.evaluated(target, ordinal) for ordinal in self.whole())
        return [unit for unit in found if isinstance(unit, Unit)]

    def evaluated(self, target: Target, ordinal: int) -> Unit | Failure:
        """Evaluate a figure in one unit, or say why it has none."""
        logs: dict[Role, float] = {}
        flags: set[str] = set()
        for role in self.roles:
            found = {point: self._sample(self._readies[role][point], ordinal) for point in target.points}
            measured = {point: each for point, each in found.items() if isinstance(each, Measurement)}
            if len(measured) < len(found):
                return Failure(stage="metric", message="could not be measured")
            value = logarithm(target, measured)
            if isinstance(value, Failure):
                return value
            logs[role] = value
            flags.update(flag for each in measured.values() for flag in each.flags)
        return Unit(logs=logs, quiet=weight(flags) > 0.0)

    def why_broken(self, ready: Ready) -> Failure | None:
        """Why starting something again is pointless: its first start failed, or most did."""
        outcomes = self._bench.known(ready).values()
        failures = [each.failure for each in outcomes if isinstance(each, FailedInvocation)]
        return failures[0] if 2 * len(failures) > len(outcomes) else None

    def seconds_each(self) -> float:
        """What one start takes, from those there are; zero when there is none yet."""
        seconds = [each.seconds for ready in self.alive for each in self._bench.known(ready).values()]
        return sum(seconds) / len(seconds) if seconds else 0.0

    def _together(self, point: Point, ordinal: int) -> bool:
        outcomes = [
            each
            for role in self.roles
            if (each := self._sample(self._readies[role][point], ordinal)) is not None
        ]
        begun = [datetime.datetime.fromisoformat(each.started).timestamp() for each in outcomes]
        return max(begun) - min(begun) <= sum(each.seconds for each in outcomes) + SLACK_SECONDS

    def _sample(self, ready: Ready, ordinal: int) -> Outcome | None:
        return self._bench.known(ready).get(("sample", ordinal))
