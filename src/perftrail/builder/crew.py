"""Several builds at once: a builder that has subjects made by others like it, and how they are stopped."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING, Protocol, TypedDict

from perftrail.builder.local import LocalBuilder
from perftrail.builder.rota import Rota
from perftrail.errors import StaleBuilds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from perftrail.model.build import Built, Failure, Recipe
    from perftrail.model.process import Command, Ran
    from perftrail.model.study import Phase
    from perftrail.model.subject import Subject
    from perftrail.ports import Enclosing, Source, Starter

SECONDS_BETWEEN_STOPS = 0.05
"""How often a hand is told to stop: it may just have been about to start something."""


class Hand(Protocol):
    """One who builds beside others, with a launcher of its own; used by one thread at a time."""

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Make a subject, as `ports.Builder` says."""
        ...

    def confirm(self) -> None:
        """Check what was made here, as `ports.Builder` says."""
        ...

    def news(self) -> tuple[str, ...]:
        """Give what was done beside making subjects."""
        ...

    def stop(self) -> None:
        """Kill what runs here, from any thread and for good; may be called again."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Crew:
    """Hands that build at once, each in a thread of its own; nothing is left running when it is closed."""

    def __init__(self, hands: Sequence[Hand], *, said: str) -> None:
        self._hands = tuple(hands)
        self._said = said
        self._news: list[str] = []
        self._idle = list(range(len(hands)))
        self._rota: Rota[tuple[Future[Built | Failure], Subject, Recipe]] = Rota()
        self._taking = Lock()
        self._pool = ThreadPoolExecutor(len(hands), thread_name_prefix="build")
        self._begun: dict[str, Future[Built | Failure]] = {}
        self._running: set[Future[None]] = set()

    def __len__(self) -> int:
        return len(self._hands)

    def begin(self, asked: Sequence[tuple[str, Subject, Recipe]]) -> None:
        """Begin to make subjects, each with its key, as hands are free, but for those that were begun already."""
        fresh = [each for each in asked if each[0] not in self._begun]
        if fresh and self._said:
            self._news.append(self._said)
            self._said = ""
        with self._taking:
            for key, subject, recipe in fresh:
                self._begun[key] = Future()
                self._rota.add((self._begun[key], subject, recipe))
        for _ in fresh:
            self._submit(self._make_one)

    def outcome(self, key: str) -> Built | Failure | None:
        """Wait for what was begun, and give what came of it; `None` of what was not, or was given already.

        Raises `StaleBuilds` when a check on the way found builds to be dubious; nothing is built any more then.
        """
        future = self._begun.pop(key, None)
        if future is None:
            return None
        try:
            return future.result()
        except StaleBuilds as stale:
            others = list(self._begun.values())
            self._begun.clear()
            for other in others:
                other.cancel()
            raise StaleBuilds(_keys(stale.keys, others)) from stale

    def confirm(self) -> tuple[str, ...]:
        """Have every hand check what it made, all at once; give the builds that may be wrong."""
        return _keys((), [self._submit(hand.confirm) for hand in self._hands])

    def news(self) -> tuple[str, ...]:
        """Give what the hands did beside making subjects, and once that there are several."""
        news = [*self._news, *(text for hand in self._hands for text in hand.news())]
        self._news.clear()
        return tuple(dict.fromkeys(news))

    def close(self) -> None:
        """Kill what is being built and wait until all of it is gone."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        while self._running:
            for hand in self._hands:
                hand.stop()
            wait(tuple(self._running), timeout=SECONDS_BETWEEN_STOPS)
        self._pool.shutdown(wait=True)
        for hand in self._hands:
            hand.close()

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        future = self._pool.submit(work)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def _make_one(self) -> None:
        with self._taking:
            number = self._idle.pop()
            outcome, subject, recipe = self._rota.take(number)
        try:
            if outcome.set_running_or_notify_cancel():
                outcome.set_result(self._hands[number].make(subject, recipe))
        except BaseException as problem:  # told to whoever waits for the outcome
            outcome.set_exception(problem)
        finally:
            with self._taking:
                self._idle.append(number)


class Places(TypedDict):
    """What a builder is told of the machine and the study, as `LocalBuilder` names it."""

    builds: str
    logs: str
    study_directory: str
    cpus: int
    others: Mapping[str, Source]
    folders: Mapping[str, Source]
    enclosing: Enclosing | None
    disk_bytes: float | None


class LeadingBuilder(LocalBuilder):
    """A builder who has a crew make what is begun, and makes by itself what is only asked for."""

    def __init__(self, source: Source, starter: Starter, *, crew: Crew, **places: Unpack[Places]) -> None:
        super().__init__(source, starter, **places)
        self._crew = crew

    @property
    def hands(self) -> int:
        """How many subjects are made at once."""
        return len(self._crew)

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Have the crew make those of some subjects that are not there yet."""
        keyed = {self.key(subject, recipe): (subject, recipe) for subject, recipe in subjects}
        self._crew.begin([(key, *each) for key, each in keyed.items() if not self.is_made(key)])

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Give what the crew made of a subject, or make it."""
        outcome = self._crew.outcome(self.key(subject, recipe))
        return outcome if outcome is not None else super().make(subject, recipe)

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Check what was made in used trees, by the crew too, and all witnesses."""
        stale = self._crew.confirm()
        try:
            super().confirm(() if stale else witnesses)
        except StaleBuilds as own:
            stale = (*stale, *own.keys)
        if stale:
            raise StaleBuilds(tuple(dict.fromkeys(stale)))

    def news(self) -> tuple[str, ...]:
        """Give what was done beside making subjects, by the crew too."""
        return tuple(dict.fromkeys((*super().news(), *self._crew.news())))


class Stoppable:
    """A starter that starts nothing any more once it is stopped: `run` raises `KeyboardInterrupt` then."""

    def __init__(self, starter: Starter, stop: Event) -> None:
        self._starter = starter
        self._stop = stop

    def run(self, command: Command) -> Ran:
        """Start a process, as `ports.Starter` says."""
        self._look()
        ran = self._starter.run(command)
        self._look()
        return ran

    def _look(self) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt


class StoppableEnclosing:
    """Sandboxes in which nothing is started any more once they are stopped."""

    def __init__(self, enclosing: Enclosing, stop: Event) -> None:
        self._enclosing = enclosing
        self._stop = stop

    @contextmanager
    def around(self, phase: Phase, writable: Sequence[str]) -> Iterator[Starter]:
        """Give a starter in a sandbox, as `ports.Enclosing` says."""
        with self._enclosing.around(phase, writable) as starter:
            yield Stoppable(starter, self._stop)

    def sees(self, phase: Phase) -> Sequence[object]:
        """Say for a content key what can be seen in there."""
        return self._enclosing.sees(phase)


def _keys(known: Sequence[str], futures: Iterable[Future[Built | Failure] | Future[None]]) -> tuple[str, ...]:
    """Wait for all; give the builds that may be wrong by what any of them raises. Raises whatever else they do."""
    keys = list(known)
    for future in futures:
        try:
            future.result()
        except StaleBuilds as stale:
            keys += stale.keys
        except CancelledError:
            continue
    return tuple(dict.fromkeys(keys))
