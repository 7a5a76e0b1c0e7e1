"""Readings of one figure along a line of revisions, taken as a search asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.search.evidence import Block, Readings, Same, Unusable
from perftrail.workflows import put
from perftrail.workflows.finding.blocks import NOWHERE
from perftrail.workflows.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.model.trail import Json
    from perftrail.search.snapshot import Belief
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.blocks import Boot
    from perftrail.workflows.finding.journal import Ledger
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready

TRIES = 4
"""So many readings that were marked are taken again before it is asked whether that helps here."""

Taken = Readings | Unusable | Same
"""What can come of taking readings."""

HELPS = 0.25
"""The share of those taken again that must have come out quiet for it to be worth going on."""


class Probe:
    """Takes readings of a target, and keeps what could not be had.

    A reading that noise marks is taken once more. If that is quiet it is told instead; if not, the first one
    is. `set_aside` counts the readings that were taken and not told, `marked` those that were told all the
    same.
    """

    def __init__(
        self, session: Session, target: Target, revisions: Sequence[Revision], ledger: Ledger
    ) -> None:
        self.target = target
        self.revisions = revisions
        self._ledger = ledger
        self._bench = session.bench
        self._is_counted = "instructions" in session.study.benchmarks[target.benchmark].counters
        self._boot = NOWHERE
        self._reader = Reader(
            target, session.bench, warmups=session.study.measure.warmups, count=ledger.count
        )
        self._next: dict[int, int] = {}
        self._like: dict[int, int] = {}
        self._stands: dict[tuple[str, ...], int] = {}
        self._told: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._helped = 0
        self.set_aside = 0
        self.marked = 0

    @property
    def usable(self) -> frozenset[int]:
        """The positions that gave readings, or that are built to the same as one that did."""
        return frozenset(self._next) | self._like.keys()

    @property
    def failures(self) -> Mapping[int, Failure]:
        """The positions that were tried and gave no reading, ascending, and why."""
        return {
            position: failure
            for position, failure in sorted(self._failures.items())
            if position not in self.usable
        }

    @property
    def known(self) -> Mapping[str, int | Failure]:
        """What was had of each revision that was tried, by its id: so many readings, or a failure."""
        same = {position: self._told[like] for position, like in self._like.items()}
        had: dict[int, int | Failure] = {**self._failures, **self._told, **same}
        return {self.revisions[position].id: outcome for position, outcome in had.items()}

    def move(self, boot: Boot) -> Block | None:
        """Take what comes in a boot; give the news of that where it is another one than before.

        Instructions are counted alike in every boot.
        """
        if self._is_counted:
            return None
        before, self._boot = self._boot, boot
        return Block(name=boot.id) if boot.id != before.id else None

    def hand_out(self, position: int, readings: int) -> Generator[Event, None, None]:
        """Have readings of a position begun, for `take` to ask for what came of them."""
        readies = yield from self._readies(position)
        if not isinstance(readies, Failure):
            like = self._stands.get(_runnables(readies), position)
            first = self._next.get(like, 0)
            self._reader.hand_out(readies, range(first, first + readings))

    def take(self, position: int, readings: int) -> Generator[Event, None, Taken]:
        """Build a position where that has not been done, take readings of it, and put what came of it as news.

        A revision that was built to the same as one that stands already is told so, and not read: it would be
        the same build twice.
        """
        yield from self._ledger.ahead(position, self.revisions, variant=self.target.variant)
        revision, variant = self.revisions[position], self.target.variant
        readies = yield from self._readies(position)
        if isinstance(readies, Failure):
            self._ledger.build(revision, variant, readies.seconds)
            return self.give_up(position, readies, seconds=readies.seconds)
        build_seconds = readies[0].prepared.built.seconds
        runnables = _runnables(readies)
        like = self._stands.get(runnables, position)
        if like != position and position not in self._like:
            self._like[position] = like
            self._ledger.build(revision, variant, build_seconds)
            return Same(position=position, like=like, seconds=build_seconds)
        fresh = like not in self._next
        values, seconds, failure = yield from self._values(readies, like, readings)
        if not values:
            return self.give_up(position, failure, seconds=seconds)
        self._stands[runnables] = like
        self._ledger.build(revision, variant, build_seconds)
        return Readings(
            position=position,
            values=tuple(values),
            build_seconds=build_seconds if fresh else None,
            seconds=seconds,
        )

    def give_up(self, position: int, failure: Failure, *, seconds: float) -> Unusable:
        """Keep why a position gave nothing, and put it as news."""
        self._failures[position] = failure
        return Unusable(position=position, seconds=seconds)

    def words(self, news: Taken, held: Belief | None) -> str:
        """Say a step."""
        failure = self._failures.get(news.position)
        return put.words(news, failure, held, self.revisions, unit=self.target.unit)

    def plain(self, news: Taken) -> dict[str, Json]:
        """Put what a step found out as plain data."""
        return put.news(news, self._failures.get(news.position), self.revisions)

    def _readies(self, position: int) -> Generator[Event, None, tuple[Ready, ...] | Failure]:
        """Make everything ready that a reading of a position starts."""
        subject = Subject(revision=self.revisions[position], variant=self.target.variant)
        readies: list[Ready] = []
        for point in self.target.points:
            cell = Cell(subject=subject, benchmark=self.target.benchmark, point=point)
            ready = yield from self._ledger.ready(cell)
            if isinstance(ready, Failure):
                return ready
            readies.append(ready)
        return tuple(readies)

    def _values(
        self, readies: Sequence[Ready], position: int, readings: int
    ) -> Generator[Event, None, tuple[list[float], float, Failure]]:
        """Take readings from the first ordinal that is free: their logarithms, what they cost, what failed."""
        ordinal = self._next.get(position, 0)
        values: list[float] = []
        seconds = 0.0
        failure = Failure(stage="metric", message="no reading gave a value")
        for _ in range(readings):
            ordinal = self._next_of_boot(readies, ordinal)
            reading = yield from self._reader.take(readies, ordinal)
            ordinal += 1
            seconds += reading.seconds
            if reading.marked and self._worth_another:
                ordinal = self._next_of_boot(readies, ordinal)
                again = yield from self._reader.take(readies, ordinal)
                ordinal += 1
                seconds += again.seconds
                self.set_aside += 1
                if not again.marked and isinstance(again.result, float):
                    self._helped += 1
                    reading = again
            if isinstance(reading.result, float):
                self.marked += reading.marked
                values.append(reading.result)
            else:
                failure = reading.result
                if position not in self._next and not values:
                    break
        if values:
            self._next[position] = ordinal
            self._told[position] = self._told.get(position, 0) + len(values)
        return values, seconds, failure

    def _next_of_boot(self, readies: Sequence[Ready], ordinal: int) -> int:
        """Pass over what was measured before the boot began that is being read in."""
        while any(self._is_older(ready, ordinal) for ready in readies):
            ordinal += 1
        return ordinal

    def _is_older(self, ready: Ready, ordinal: int) -> bool:
        outcome = self._bench.known(ready).get(("sample", ordinal))
        return isinstance(outcome, Measurement) and outcome.started < self._boot.since

    @property
    def _worth_another(self) -> bool:
        return self.set_aside < TRIES or self._helped >= HELPS * self.set_aside


def _runnables(readies: Sequence[Ready]) -> tuple[str, ...]:
    return tuple(ready.runnable.key for ready in readies)
