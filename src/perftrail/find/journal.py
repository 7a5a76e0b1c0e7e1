"""What one search has cost, in all its parts, and the record of its steps.

Each step is kept with the boot of the machine that it was taken in, as levels of one say nothing of those of another.
A search that goes on after a reboot learns of it before it asks for anything there.

Which revisions a search is likely to ask for next, so that they are built along with the one it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from perftrail.measure.events import BuildFinished, Stepped
from perftrail.model.build import Failure
from perftrail.model.search_record import StepRecord
from perftrail.model.subject import Subject
from perftrail.process.machine.facts import FINGERPRINT

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.measure.subjects import Ready
    from perftrail.model.measurement import InvocationKey, Machine
    from perftrail.model.plan import Cell
    from perftrail.model.search_record import Json, SearchRecord
    from perftrail.model.subject import Revision
    from perftrail.ports import Store


def likely(position: int, tried: Collection[int], *, revisions: int) -> Iterator[int]:
    """Give the positions that may be asked for after one, the likeliest first; none of them was tried.

    That is the other end of the history where it was not tried yet, and then, whatever comes of the position,
    the middle of what is left on one of its sides, and the middles of what those leave.
    """
    before = max((each for each in tried if each < position), default=-1)
    after = min((each for each in tried if each > position), default=revisions)
    pieces = [(before, position), (position, after)]
    if before == -1 and position > 0:
        yield 0
        pieces[0] = (0, position)
    if after == revisions and position < revisions - 1:
        yield revisions - 1
        pieces[1] = (position, revisions - 1)
    while True:
        low, high = max(pieces, key=lambda piece: piece[1] - piece[0])
        if high - low < 2:
            return
        middle = (low + high) // 2
        yield middle
        pieces.remove((low, high))
        pieces += [(low, middle), (middle, high)]


Result = TypeVar("Result")

MOST_LOOKED_AT = 4
"""For each build at once so many revisions that may be asked for are looked at, as some may be built already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One boot of the machine: its id, its kernel, and when it began (ISO 8601, as the store writes it).

    All are empty where the machine does not tell, or where it makes no difference.
    """

    id: str = ""
    kernel: str = ""
    since: str = ""

    def as_json(self) -> dict[str, Json]:
        """Put it as a step keeps it."""
        return {"boot": self.id, "kernel": self.kernel, "since": self.since}


NOWHERE = Boot()
"""The boot of what is the same in every boot, as counted instructions are."""


def boot_of(machine: Machine) -> Boot:
    """Give the boot that a machine is in."""
    facts = machine.facts
    return Boot(id=facts.get("boot_id", ""), kernel=facts.get("kernel", ""), since=facts.get("booted", ""))


def kept_boot(action: Mapping[str, Json]) -> Boot:
    """Read the boot of a step that is kept; steps of versions that kept none were taken nowhere known."""
    kept = action.get("block")
    if not isinstance(kept, dict):
        return NOWHERE
    return Boot(
        id=str(kept.get("boot", "")), kernel=str(kept.get("kernel", "")), since=str(kept.get("since", ""))
    )


def other_machines(store: Store, machine: Machine, record: SearchRecord) -> tuple[str, ...]:
    """Say of each other machine on which the same question was asked what it differs in from this one."""
    known = store.machines()
    others = [each.machine for each in store.searches() if each.key == record.key]
    return tuple(
        f"The same question was asked on another machine before ({_differing(known[other], machine)}): "
        "nothing that was measured there was used"
        for other in dict.fromkeys(others)
        if other != machine.id and other in known
    )


def _differing(there: Machine, here: Machine) -> str:
    said = [
        f"{name.replace('_', ' ')} {there.facts.get(name, 'unknown')} there, {here.facts.get(name, 'unknown')} here"
        for name in FINGERPRINT
        if there.facts.get(name) != here.facts.get(name)
    ]
    return "; ".join(said) or f"{there.id} there, {here.id} here"


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
        self._invoking = 0.0

    @property
    def done(self) -> tuple[int, int]:
        """What was really done so far, nothing of it known before: builds and invocations."""
        return (self._made, self._session.bench.started)

    def count(self, key: InvocationKey, seconds: float) -> None:
        """Count an invocation."""
        if key not in self.invocations:
            self.invocations.add(key)
            self.seconds += seconds
            self._invoking += seconds

    @property
    def mean_build(self) -> float:
        """What a build took on average, in seconds."""
        return (self.seconds - self._invoking) / max(len(self._timed), 1)

    @property
    def mean_invocation(self) -> float:
        """What an invocation took on average, in seconds."""
        return self._invoking / max(len(self.invocations), 1)

    def ready(self, cell: Cell, *, layout: int = 0) -> Generator[Event, None, Ready | Failure]:
        """Make a cell ready, or say what failed; counts the build, but not one that the study leaves out."""
        result = yield from self._counted(self._session.workshop.ready(cell, layout=layout))
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
    def name(self) -> str:
        """The name of the search in the blocks of its draws."""
        return self._record.key[:12]

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

    @property
    def next_step(self) -> int:
        """The number of the next step."""
        return self._number + 1

    def agrees(self, order: Sequence[str], layout: int) -> bool:
        """Whether the next step is not kept yet, or kept as one that ran the same.

        Else it was taken on other grounds: from there on all is new, and `boot` is the present one.
        """
        kept = self._kept.get(self._number + 1)
        if kept is None or (kept.get("order"), kept.get("layout", 0)) == (list(order), layout):
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
