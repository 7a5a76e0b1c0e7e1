"""What one search has cost, in all its parts, and the record of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.trail import StepRecord
from perftrail.workflows.events import BuildFinished, Stepped

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from perftrail.model.build import Failure
    from perftrail.model.measurement import InvocationKey
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json, SearchRecord
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready


class Ledger:
    """Counts each invocation and each build once, whichever parts of a search make use of it.

    `seconds` are those that were spent on them, whenever that was.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made = 0
        self._timed: set[str] = set()
        self.invocations: set[InvocationKey] = set()
        self.attempted: set[str] = set()
        self.seconds = 0.0

    @property
    def done(self) -> tuple[int, int]:
        """What was really done so far, nothing of it known before: builds and invocations."""
        return (self._made, self._session.bench.started)

    def count(self, key: InvocationKey, seconds: float) -> None:
        """Count an invocation."""
        if key not in self.invocations:
            self.invocations.add(key)
            self.seconds += seconds

    def ready(self, cell: Cell) -> Generator[Event, None, Ready | Failure]:
        """Make a cell ready, or say what failed; counts the build."""
        making = self._session.workshop.ready(cell)
        while True:
            try:
                event = next(making)
            except StopIteration as stop:
                result: Ready | Failure = stop.value
                break
            self._made += isinstance(event, BuildFinished) and not event.known
            yield event
        self.attempted.add(cell.subject.revision.id)
        return result

    def build(self, revision: Revision, variant: str, seconds: float) -> None:
        """Count the seconds of a subject's build, once."""
        name = f"{revision.id} {variant}"
        if name not in self._timed:
            self._timed.add(name)
            self.seconds += seconds


class Journal:
    """Keeps the steps of one search in the store as they are taken, numbered through all its parts."""

    def __init__(self, session: Session, record: SearchRecord, ledger: Ledger) -> None:
        self._store = session.store
        self._record = record
        self._ledger = ledger
        self._number = 0
        self._done = ledger.done
        self._store.open_search(record)

    @property
    def seconds(self) -> float:
        """What the search has cost so far, in all its parts."""
        return self._ledger.seconds

    def step(
        self,
        *,
        action: Mapping[str, Json],
        news: Mapping[str, Json],
        belief: Mapping[str, Json],
        words: str,
    ) -> Stepped:
        """Write a step down; give the event that tells of it."""
        self._number += 1
        resumed = self._ledger.done == self._done
        self._done = self._ledger.done
        self._store.add_step(
            self._record.key,
            self._record.machine,
            StepRecord(number=self._number, action=action, news=news, belief=belief, words=words),
        )
        return Stepped(number=self._number, words=words, belief=belief, resumed=resumed)

    def end(self, answer: Mapping[str, Json]) -> None:
        """Write the answer down."""
        self._store.close_search(self._record.key, self._record.machine, answer)
