"""`find`: the search asks, workshop and bench answer, the store remembers each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Failure, content_key
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.model.trail import SearchRecord, StepRecord
from perftrail.search.evidence import Readings, Unusable
from perftrail.search.question import Question
from perftrail.search.search import Search, Settled
from perftrail.workflows import put
from perftrail.workflows.clock import now
from perftrail.workflows.events import BuildFinished, HistoryRead, Stepped
from perftrail.workflows.found import FindAnswer, UnusableRevision
from perftrail.workflows.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.search.evidence import News
    from perftrail.search.question import Budget
    from perftrail.search.search import Measure
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRequest:
    """What to find: in which metric, over which part of the history, how small, how sure, at what cost."""

    target: Target
    range: str | None
    smallest: float
    confidence: float
    budget: Budget


class Find:
    """One search through a history. Resumes by itself: what the store holds is told, not done again."""

    def __init__(self, session: Session, request: FindRequest) -> None:
        self._session = session
        self._request = request
        self._reader = Reader(request.target, session.bench, warmups=session.study.measure.warmups)
        self._revisions: tuple[Revision, ...] = ()
        self._readings: dict[int, int] = {}
        self._unusable: dict[int, Failure] = {}
        self._seconds = 0.0
        self._builds_made = 0

    def events(self) -> Generator[Event, None, FindAnswer]:
        """Search; yields what happens and returns the answer."""
        self._revisions = self._session.source.history(self._request.range)
        yield HistoryRead(revisions=self._revisions)
        search = Search(self._question())
        record = self._record()
        self._session.store.open_search(record)
        number = 0
        while not isinstance(action := search.ask(), Settled):
            number += 1
            done_before = self._done
            news = yield from self._perform(action)
            search.tell(news)
            step = self._step(number, action, news, search)
            self._session.store.add_step(record.key, record.machine, step)
            yield Stepped(
                number=number, words=step.words, belief=step.belief, resumed=self._done == done_before
            )
        answer = self._answer(action)
        self._session.store.close_search(record.key, record.machine, answer.as_json())
        return answer

    @property
    def _done(self) -> tuple[int, int]:
        """What was really done so far, nothing of it known before: builds and invocations."""
        return (self._builds_made, self._session.bench.started)

    def _question(self) -> Question:
        request = self._request
        return Question(
            revisions=len(self._revisions),
            smallest=request.smallest,
            confidence=request.confidence,
            budget=request.budget,
            invocations_per_reading=len(request.target.points),
        )

    def _record(self) -> SearchRecord:
        request = self._request
        ids = [revision.id for revision in self._revisions]
        target = request.target
        return SearchRecord(
            key=content_key(ids, target.name, target.variant, request.smallest, request.confidence),
            machine=self._session.machine.id,
            started=now(),
            question={
                "metric": target.text,
                "variant": target.variant,
                "benchmark": target.benchmark,
                "revisions": len(ids),
                "first": ids[0],
                "last": ids[-1],
                "smallest": request.smallest,
                "confidence": request.confidence,
            },
        )

    def _perform(self, action: Measure) -> Generator[Event, None, News]:
        """Do what the search asked for, and put what came of it as news."""
        position, target = action.position, self._request.target
        subject = Subject(revision=self._revisions[position], variant=target.variant)
        readies: list[Ready] = []
        for point in target.points:
            cell = Cell(subject=subject, benchmark=target.benchmark, point=point)
            ready = yield from self._ready(cell)
            if isinstance(ready, Failure):
                return self._give_up(position, ready, seconds=ready.seconds)
            readies.append(ready)
        return (yield from self._read(action, readies))

    def _ready(self, cell: Cell) -> Generator[Event, None, Ready | Failure]:
        making = self._session.workshop.ready(cell)
        while True:
            try:
                event = next(making)
            except StopIteration as stop:
                result: Ready | Failure = stop.value
                return result
            self._builds_made += isinstance(event, BuildFinished) and not event.known
            yield event

    def _read(self, action: Measure, readies: Sequence[Ready]) -> Generator[Event, None, News]:
        position = action.position
        first = self._readings.get(position, 0)
        values: list[float] = []
        seconds = 0.0
        failure = Failure(stage="metric", message="no reading gave a value")
        for ordinal in range(first, first + action.readings):
            reading = yield from self._reader.take(readies, ordinal)
            seconds += reading.seconds
            if isinstance(reading.result, float):
                values.append(reading.result)
            else:
                failure = reading.result
                if first == 0 and not values:
                    break
        if not values:
            return self._give_up(position, failure, seconds=seconds)
        self._readings[position] = first + action.readings
        build_seconds = readies[0].prepared.built.seconds if first == 0 else None
        self._seconds += seconds + (build_seconds or 0.0)
        return Readings(position=position, values=tuple(values), build_seconds=build_seconds, seconds=seconds)

    def _give_up(self, position: int, failure: Failure, *, seconds: float) -> Unusable:
        self._unusable[position] = failure
        self._seconds += seconds
        return Unusable(position=position, seconds=seconds)

    def _step(self, number: int, action: Measure, news: News, search: Search) -> StepRecord:
        failure = self._unusable.get(action.position)
        held = search.belief
        return StepRecord(
            number=number,
            action={
                "measure": self._revisions[action.position].id,
                "position": action.position,
                "readings": action.readings,
            },
            news=put.news(news, failure),
            belief=put.belief(held, self._revisions),
            words=put.words(news, failure, held, self._revisions, unit=self._request.target.unit),
        )

    def _answer(self, settled: Settled) -> FindAnswer:
        attempted = self._readings.keys() | self._unusable.keys()
        return FindAnswer(
            answer=settled.answer,
            target=self._request.target,
            revisions=self._revisions,
            builds=len(attempted),
            unusable=tuple(
                UnusableRevision(revision=self._revisions[position], failure=failure)
                for position, failure in sorted(self._unusable.items())
            ),
            invocations=len(self._reader.used),
            seconds=self._seconds,
            machine=self._session.machine.id,
        )
