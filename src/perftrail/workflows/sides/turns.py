"""Starts the subjects of one benchmark in turns: units of adjacent starts, every second one backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from perftrail.model.plan import larger
from perftrail.workflows.events import GivenUp, Progress, SameArtefact
from perftrail.workflows.sides.units import Side, Units
from perftrail.workflows.workshop import Start

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.analysis.compare import Rule
    from perftrail.model.build import Failure
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(Generic[Side]):
    """A side that could not be measured at a point, and why."""

    side: Side
    ready: Ready
    failure: Failure


class Turns(Generic[Side]):
    """Starts every side at every point, ABC and then CBA, so that drift hits all alike.

    `begin` comes first, once. Points at which a side cannot be measured are dropped, and larger ones where the
    study says so.
    """

    def __init__(self, session: Session, readies: Mapping[Side, Sequence[Ready]]) -> None:
        first = next(iter(readies.values()))[0].cell
        self._session = session
        self.benchmark = first.benchmark
        self.variant = first.subject.variant
        self.units = Units(session.bench, readies)

    @property
    def equal(self) -> tuple[tuple[Side, Side], ...]:
        """Who is one build with whom at every point, and so measured once."""
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
        """How many points were given up without a start, after a smaller one failed."""
        return sum(failure is None for failure in self.units.dropped.values())

    def tell_equals(self) -> Iterator[Event]:
        """Tell who is one build."""
        for pair in self.equal:
            readies = [self.units.ready(side, self.units.points[0]) for side in pair]
            yield SameArtefact(
                benchmark=self.benchmark, subjects=tuple(each.cell.subject for each in readies)
            )

    def begin(self) -> Generator[Event, None, None]:
        """Start the warm-ups."""
        yield from self._give_up()
        for ordinal in range(self._session.study.measure.warmups):
            yield from self._start(
                Start(ready=ready, key=self._session.bench.key(ready, "warmup", ordinal))
                for ready in self.units.alive
            )
        yield from self._give_up()

    def unit(self) -> Generator[Event, None, None]:
        """Start one unit more."""
        ordinal = self.units.next()
        turned = self.units.alive if ordinal % 2 == 0 else self.units.alive[::-1]
        yield from self._start(
            Start(ready=ready, key=self._session.bench.key(ready, "sample", ordinal)) for ready in turned
        )
        yield from self._give_up()

    def broken(self) -> tuple[Broken[Side], ...]:
        """Who could not be measured at which point, and why."""
        readies = [
            (side, self.units.ready(side, point)) for side in self.units.sides for point in self.units.points
        ]
        return tuple(
            Broken(side=side, ready=ready, failure=failure)
            for side, ready in readies
            if (failure := self.units.why_broken(ready)) is not None
        )

    def progress(self, rule: Rule) -> Progress:
        """Say how far it is: to the next look at least, to the most units of a rule at most."""
        done, each = len(self.units.whole()), len(self.units.alive)
        look = next((count for count in rule.looks if count > done), rule.most)
        least, most = max(0, look - done) * each, max(0, rule.most - done) * each
        seconds = self.units.seconds_each()
        return Progress(
            done=done * each,
            left_least=least,
            left_most=most,
            seconds_least=least * seconds,
            seconds_most=most * seconds,
        )

    def _start(self, starts: Iterable[Start]) -> Generator[Event, None, None]:
        """Perform the starts that are not known; those of one build are one start."""
        for start in starts:
            if (start.key.phase, start.key.ordinal) not in self._session.bench.known(start.ready):
                yield from self._session.bench.perform((start,))

    def _give_up(self) -> Generator[Event, None, None]:
        """Drop points at which somebody cannot be measured, and larger ones where the study says so."""
        units, dropped = self.units, self.units.dropped
        for point in units.points:
            readies = [] if point in dropped else [units.ready(side, point) for side in units.sides]
            for ready in readies:
                failure = units.why_broken(ready)
                if failure is None:
                    continue
                dropped[point] = failure
                beyond = [each for each in units.alive if self._is_beyond(each, ready, failure)]
                if beyond:
                    dropped.update((each.cell.point, None) for each in beyond)
                    yield GivenUp(cells=tuple(each.cell for each in beyond), because=ready.cell)
                break

    def _is_beyond(self, ready: Ready, broken: Ready, failure: Failure) -> bool:
        benchmark = self._session.study.benchmarks[self.benchmark]
        return benchmark.give_up and failure.is_limit and larger(ready.cell, broken.cell)
