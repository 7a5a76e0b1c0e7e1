"""Several builds at once: a builder that has subjects made by others like it, and how they are stopped.

Which of the subjects that wait each hand makes next: neighbours in one tree, where little is to be made again.

Builders for many machines: those that build make every tree anew, and who leads them builds nothing itself.

A used tree is checked against a clean one by whoever used it, later. A machine of others may be gone by then.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING, Generic, Protocol, TypedDict, TypeVar

from perftrail.builds.builder import LocalBuilder
from perftrail.errors import StaleBuilds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from perftrail.builds.workbench import Place
    from perftrail.model.build import Built, Failure, Recipe
    from perftrail.model.process import Command, Ran
    from perftrail.model.study import Phase
    from perftrail.model.subject import Subject
    from perftrail.ports import Enclosing, Pending, Source, Starter


Work = TypeVar("Work")


class Rota(Generic[Work]):
    """Work in the order it came, given out to hands in stretches: each goes on where it was.

    A hand that cannot takes the beginning of the longest stretch that waits, or its middle where another hand is
    about to come to the beginning.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Work] = {}
        self._came = 0
        self._at: dict[int, int] = {}

    def add(self, work: Work) -> None:
        """Let work wait, after all that came before."""
        self._waiting[self._came] = work
        self._came += 1

    def take(self, hand: int) -> Work:
        """Give a hand, by its number, what it makes next. Raises `LookupError` when nothing waits."""
        following = self._at.get(hand, self._came) + 1
        place = following if following in self._waiting else self._elsewhere()
        self._at[hand] = place
        return self._waiting.pop(place)

    def _elsewhere(self) -> int:
        if not self._waiting:
            raise LookupError("nothing waits")
        stretches: list[list[int]] = []
        for place in self._waiting:
            if stretches and place == stretches[-1][-1] + 1:
                stretches[-1].append(place)
            else:
                stretches.append([place])
        longest = max(stretches, key=len)
        return longest[len(longest) // 2 if longest[0] - 1 in self._at.values() else 0]


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


class CleanBuilder(LocalBuilder):
    """A builder that makes each subject in a clean tree, also where its recipe could go on in a used one."""

    def _reusing(
        self,
        key: str,  # noqa: ARG002 - as the builder that it is calls it
        place: Place,  # noqa: ARG002
        subject: Subject,  # noqa: ARG002
        recipe: Recipe,  # noqa: ARG002
    ) -> str | Failure | None:
        return None


class Makers(Protocol):
    """Others who make subjects, in clean trees; what they made is then there as if it had been made here."""

    @property
    def hands(self) -> int:
        """How many they make at once."""
        ...

    def begin(self, key: str, subject: Subject, recipe: Recipe) -> Pending[Built | Failure]:
        """Have a subject made as soon as one of them is free; `key` is the name that the build has here."""
        ...

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        """Have a built subject relinked with some seeds, by the builder that has its objects, or builds it again.

        `layouts` gives the name that each has here.
        """
        ...


class AwayBuilder(LocalBuilder):
    """A builder who has all subjects made by others; a benchmark's own lines it runs here."""

    def __init__(self, source: Source, starter: Starter, *, makers: Makers, **places: Unpack[Places]) -> None:
        super().__init__(source, starter, **places)
        self._makers = makers
        self._begun: dict[str, Pending[Built | Failure]] = {}

    @property
    def hands(self) -> int:
        """How many subjects are made at once."""
        return self._makers.hands

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Have those of some subjects made that are not there yet; all of them are used from now on."""
        for subject, recipe in subjects:
            key = self.key(subject, recipe)
            self._users.claim(key)
            if key not in self._begun and not self.is_made(key):
                self._begun[key] = self._makers.begin(key, subject, recipe)

    def make(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Give what was made of a subject, or have it made."""
        self.begin([(subject, recipe)])
        begun = self._begun.pop(self.key(subject, recipe), None)
        if begun is None:
            return super().make(subject, recipe)
        outcome = begun.outcome()
        self._news += self._room.make()
        return outcome

    def _relink(
        self, subject: Subject, recipe: Recipe, built: Built, missing: Mapping[int, str]
    ) -> Mapping[int, Built | Failure]:
        """Have layouts made by others: a tree that came from another machine may name another directory."""
        return self._makers.relink(built, subject, recipe, missing).outcome()

    def confirm(self, witnesses: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Check nothing: no tree was used twice."""
