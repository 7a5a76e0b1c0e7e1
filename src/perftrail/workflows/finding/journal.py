"""What one search has cost, in all its parts, and the record of its steps."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from perftrail.model.build import Failure
from perftrail.model.subject import Subject
from perftrail.model.trail import StepRecord
from perftrail.workflows.events import BuildFinished, Stepped
from perftrail.workflows.finding.ahead import likely
from perftrail.workflows.finding.blocks import NOWHERE, boot_of, kept_boot

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from perftrail.model.measurement import InvocationKey
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json, SearchRecord
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.blocks import Boot
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready

Result = TypeVar("Result")

MOST_LOOKED_AT = 4
"""For each build at once so many revisions that may be asked for are looked at, as some may be built already."""


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
        """Make a cell ready, or say what failed; counts the build, but not one that the study leaves out."""
        result = yield from self._counted(self._session.workshop.ready(cell))
        if not (isinstance(result, Failure) and result.stage == "skipped"):
            self.attempted.add(cell.subject.revision.id)
        return result

    def together(self, revisions: Iterable[Revision], *, variant: str) -> Generator[Event, None, None]:
        """Build some revisions at once; only what is asked for then counts as attempted, and its seconds."""
        yield from self._counted(
            self._session.workshop.ahead(_subject(revision, variant) for revision in revisions)
        )

    def ahead(
        self, position: int, revisions: Sequence[Revision], *, variant: str
    ) -> Generator[Event, None, None]:
        """Build a position that is not built yet along with what may be asked for next, as many as at once.

        Only what is asked for counts as attempted, and its seconds: so the search goes as it would without.
        """
        workshop = self._session.workshop
        if workshop.hands == 1 or workshop.known_build(_subject(revisions[position], variant)) is not None:
            return
        tried = {place for place, each in enumerate(revisions) if each.id in self.attempted}
        named = islice(likely(position, tried, revisions=len(revisions)), MOST_LOOKED_AT * workshop.hands)
        fresh = (
            subject
            for place in named
            if workshop.known_build(subject := _subject(revisions[place], variant)) is None
        )
        chosen = (_subject(revisions[position], variant), *islice(fresh, workshop.hands - 1))
        yield from self._counted(workshop.ahead(chosen))

    def _counted(self, making: Generator[Event, None, Result]) -> Generator[Event, None, Result]:
        """Count what is really built by something that makes."""
        while True:
            try:
                event = next(making)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            self._made += isinstance(event, BuildFinished) and not event.known
            yield event

    def build(self, revision: Revision, variant: str, seconds: float) -> None:
        """Count the seconds of a subject's build, once."""
        name = f"{revision.id} {variant}"
        if name not in self._timed:
            self._timed.add(name)
            self.seconds += seconds


class Journal:
    """Keeps the steps of one search in the store as they are taken, numbered through all its parts.

    `in_blocks`: what the search reads differs from boot to boot, so each step is kept with its own.
    """

    def __init__(self, session: Session, record: SearchRecord, ledger: Ledger, *, in_blocks: bool) -> None:
        self._store = session.store
        self._record = record
        self._ledger = ledger
        self._number = 0
        self._done = ledger.done
        self._store.open_search(record)
        self._now = boot_of(session.machine) if in_blocks else NOWHERE
        kept = self._store.steps(record.key, record.machine) if in_blocks else ()
        self._kept = {step.number: step.action for step in kept}
        self._boots: dict[str, Boot] = {}

    @property
    def seconds(self) -> float:
        """What the search has cost so far, in all its parts."""
        return self._ledger.seconds

    @property
    def boot(self) -> Boot:
        """The boot that the next step is to be taken in, or was where it is kept already."""
        kept = self._kept.get(self._number + 1)
        return self._now if kept is None else kept_boot(kept)

    @property
    def boots(self) -> tuple[Boot, ...]:
        """The boots that the steps so far were taken in, those that are known, the first one first."""
        return tuple(boot for id_, boot in self._boots.items() if id_)

    def agrees(self, measure: str, readings: Json) -> bool:
        """Whether the next step is not kept yet, or kept as one that measured the same.

        Else another version of the search took it: from there on all is new, and `boot` is the present one.
        """
        kept = self._kept.get(self._number + 1)
        if kept is None or (kept.get("measure"), kept.get("readings")) == (measure, readings):
            return True
        self._kept = {}
        return False

    def step(
        self,
        *,
        action: Mapping[str, Json],
        news: Mapping[str, Json],
        belief: Mapping[str, Json],
        words: str,
    ) -> Stepped:
        """Write a step down; give the event that tells of it."""
        boot = self.boot
        if self._boots and boot.id not in self._boots:
            words = f"the machine was started again; {words}"
        self._boots.setdefault(boot.id, boot)
        self._number += 1
        resumed = self._ledger.done == self._done
        self._done = self._ledger.done
        self._store.add_step(
            self._record.key,
            self._record.machine,
            StepRecord(
                number=self._number,
                action={**action, "block": boot.as_json()} if boot.id else action,
                news=news,
                belief=belief,
                words=words,
            ),
        )
        return Stepped(number=self._number, words=words, belief=belief, resumed=resumed)

    def end(self, answer: Mapping[str, Json]) -> None:
        """Write the answer down."""
        self._store.close_search(self._record.key, self._record.machine, answer)


def _subject(revision: Revision, variant: str) -> Subject:
    return Subject(revision=revision, variant=variant)
