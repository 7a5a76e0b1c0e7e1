"""Build several subjects in parallel, with build workers here or on other machines.

`BuildQueue` assigns waiting builds to workers: neighbouring revisions in one tree, where little must be built again.
Workers of other machines build in clean trees, because a check of a reused tree could come too late: the machine
may be gone by then.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING, Generic, Protocol, TypedDict, TypeVar

from perftrail.builds.artefact import read_finished
from perftrail.builds.builder import LocalBuilder
from perftrail.errors import StaleBuilds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from perftrail.builds.build_runner import Workspace
    from perftrail.model.build import Built, Failure, Recipe
    from perftrail.model.process import Command, Ran
    from perftrail.model.sandbox import Phase
    from perftrail.model.subject import Subject
    from perftrail.ports import Isolation, Pending, Source, Starter


Work = TypeVar("Work")


class BuildQueue(Generic[Work]):
    """Assigns waiting builds to workers, in ranges of neighbouring revisions: each worker continues in its range.

    A worker without a range takes the beginning of the longest waiting range, or its middle if another worker is
    about to reach the beginning.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Work] = {}
        self._added = 0
        self._positions: dict[int, int] = {}

    def add(self, work: Work) -> None:
        """Add work at the end."""
        self._waiting[self._added] = work
        self._added += 1

    def take(self, number: int) -> Work:
        """Return the next work of a worker, by its number. Raises `LookupError` if nothing waits."""
        following = self._positions.get(number, self._added) + 1
        index = following if following in self._waiting else self._next_range()
        self._positions[number] = index
        return self._waiting.pop(index)

    def _next_range(self) -> int:
        if not self._waiting:
            raise LookupError("nothing waits")
        ranges: list[list[int]] = []
        for index in self._waiting:
            if ranges and index == ranges[-1][-1] + 1:
                ranges[-1].append(index)
            else:
                ranges.append([index])
        longest = max(ranges, key=len)
        return longest[len(longest) // 2 if longest[0] - 1 in self._positions.values() else 0]


SECONDS_BETWEEN_STOPS = 0.05
"""Time between two attempts to stop a worker, which may be about to start a process."""


class BuildWorker(Protocol):
    """A build worker with its own launcher; one thread at a time uses it."""

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Build a subject, as in `ports.Builder`."""
        ...

    def confirm(self) -> None:
        """Check builds of this worker, as in `ports.Builder`."""
        ...

    def messages(self) -> tuple[str, ...]:
        """Return messages about work other than builds."""
        ...

    def stop(self) -> None:
        """Kill running processes, from any thread and for good; may be called again."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class BuildWorkers:
    """Parallel build workers, each in a thread; `close` leaves no process behind."""

    def __init__(self, workers: Sequence[BuildWorker], *, announcement: str) -> None:
        self._workers = tuple(workers)
        self._announcement = announcement
        self._messages: list[str] = []
        self._idle = list(range(len(workers)))
        self._queue: BuildQueue[tuple[Future[Built | Failure], Subject, Recipe]] = BuildQueue()
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(len(workers), thread_name_prefix="build")
        self._started: dict[str, Future[Built | Failure]] = {}
        self._running: set[Future[None]] = set()

    def __len__(self) -> int:
        return len(self._workers)

    def begin(self, subjects: Sequence[tuple[str, Subject, Recipe]]) -> None:
        """Start building subjects, each with its key, unless they were started before."""
        fresh = [each for each in subjects if each[0] not in self._started]
        if fresh and self._announcement:
            self._messages.append(self._announcement)
            self._announcement = ""
        with self._lock:
            for key, subject, recipe in fresh:
                self._started[key] = Future()
                self._queue.add((self._started[key], subject, recipe))
        for _ in fresh:
            self._submit(self._build_next)

    def outcome(self, key: str) -> Built | Failure | None:
        """Wait for a started build and return its outcome; `None` if it was not started, or was returned before.

        Raises `StaleBuilds` if a check found wrong builds; then nothing is built any more.
        """
        future = self._started.pop(key, None)
        if future is None:
            return None
        try:
            return future.result()
        except StaleBuilds as stale:
            others = list(self._started.values())
            self._started.clear()
            for other in others:
                other.cancel()
            raise StaleBuilds(_keys(stale.keys, others)) from stale

    def confirm(self) -> tuple[str, ...]:
        """Let all workers check their builds in parallel; return the builds that may be wrong."""
        return _keys((), [self._submit(worker.confirm) for worker in self._workers])

    def messages(self) -> tuple[str, ...]:
        """Return the workers' messages; the first one says how many workers there are."""
        messages = [*self._messages, *(text for worker in self._workers for text in worker.messages())]
        self._messages.clear()
        return tuple(dict.fromkeys(messages))

    def close(self) -> None:
        """Kill running builds and wait until all processes have ended."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        while self._running:
            for worker in self._workers:
                worker.stop()
            wait(tuple(self._running), timeout=SECONDS_BETWEEN_STOPS)
        self._pool.shutdown(wait=True)
        for worker in self._workers:
            worker.close()

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        future = self._pool.submit(work)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def _build_next(self) -> None:
        with self._lock:
            number = self._idle.pop()
            outcome, subject, recipe = self._queue.take(number)
        try:
            if outcome.set_running_or_notify_cancel():
                outcome.set_result(self._workers[number].build(subject, recipe))
        except BaseException as problem:  # raised again in the thread that waits for the outcome
            outcome.set_exception(problem)
        finally:
            with self._lock:
                self._idle.append(number)


class BuilderOptions(TypedDict):
    """Parameters of a builder about the machine and the study, as in `LocalBuilder`."""

    builds: str
    logs: str
    study_directory: str
    cpus: int
    others: Mapping[str, Source]
    folders: Mapping[str, Source]
    isolation: Isolation | None
    disk_bytes: float | None


class ParallelBuilder(LocalBuilder):
    """A builder whose workers build the started subjects; it builds the others itself."""

    def __init__(
        self, source: Source, starter: Starter, *, workers: BuildWorkers, **options: Unpack[BuilderOptions]
    ) -> None:
        super().__init__(source, starter, **options)
        self._workers = workers

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds."""
        return len(self._workers)

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Let the workers build the subjects that do not exist yet."""
        keyed = {self.key(subject, recipe): (subject, recipe) for subject, recipe in subjects}
        self._workers.begin([(key, *each) for key, each in keyed.items() if not self.is_built(key)])

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Return the workers' build of a subject, or build it."""
        outcome = self._workers.outcome(self.key(subject, recipe))
        return outcome if outcome is not None else super().build(subject, recipe)

    def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Check incremental builds, also those of the workers, and all `decisive` ones."""
        stale = self._workers.confirm()
        try:
            super().confirm(() if stale else decisive)
        except StaleBuilds as own:
            stale = (*stale, *own.keys)
        if stale:
            raise StaleBuilds(tuple(dict.fromkeys(stale)))

    def messages(self) -> tuple[str, ...]:
        """Return messages about work other than builds, also those of the workers."""
        return tuple(dict.fromkeys((*super().messages(), *self._workers.messages())))


class Stoppable:
    """A starter that starts no process after `stop`: `run` then raises `KeyboardInterrupt`."""

    def __init__(self, starter: Starter, stop: Event) -> None:
        self._starter = starter
        self._stop = stop

    def run(self, command: Command) -> Ran:
        """Start a process, as in `ports.Starter`."""
        self._check()
        ran = self._starter.run(command)
        self._check()
        return ran

    def _check(self) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt


class StoppableIsolation:
    """Sandboxes that start no process after `stop`."""

    def __init__(self, isolation: Isolation, stop: Event) -> None:
        self._isolation = isolation
        self._stop = stop

    @contextmanager
    def sandboxed(self, phase: Phase, writable: Sequence[str]) -> Iterator[Starter]:
        """Yield a starter in a sandbox, as in `ports.Isolation`."""
        with self._isolation.sandboxed(phase, writable) as starter:
            yield Stoppable(starter, self._stop)

    def visible_settings(self, phase: Phase) -> Sequence[object]:
        """Return what a program in the sandbox can see, as a part of content keys."""
        return self._isolation.visible_settings(phase)


def _keys(known: Sequence[str], futures: Iterable[Future[Built | Failure] | Future[None]]) -> tuple[str, ...]:
    """Wait for all futures; return the builds that may be wrong, and raise any other error."""
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
    """A builder that always uses clean trees, also for incremental recipes, for a machine that asks for builds."""

    _observes = False
    _records_links = False

    def _build_in_reused_tree(
        self,
        key: str,  # noqa: ARG002 - the signature of the base class
        workspace: Workspace,  # noqa: ARG002
        subject: Subject,  # noqa: ARG002
        recipe: Recipe,  # noqa: ARG002
    ) -> str | Failure | None:
        return None


class RemoteBuildWorkers(Protocol):
    """Build workers of other machines, with clean trees; their builds count as built here."""

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds."""
        ...

    def begin(self, key: str, subject: Subject, recipe: Recipe) -> Pending[Built | Failure]:
        """Build a subject as soon as a worker is free; `key` is its content key here."""
        ...

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        """Relink a built subject with some seeds on the worker that has its objects, or builds it again.

        `layouts` maps the seeds to their content keys here.
        """
        ...


class RemoteBuilder(LocalBuilder):
    """A builder whose subjects are all built on other machines; it runs benchmark builds here."""

    _observes = False
    _records_links = False

    def __init__(
        self,
        source: Source,
        starter: Starter,
        *,
        workers: RemoteBuildWorkers,
        **options: Unpack[BuilderOptions],
    ) -> None:
        super().__init__(source, starter, **options)
        self._workers = workers
        self._started: dict[str, Pending[Built | Failure]] = {}

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds."""
        return self._workers.parallel_builds

    def begin(self, subjects: Iterable[tuple[Subject, Recipe]]) -> None:
        """Start building subjects that do not exist yet; protect all of them from removal."""
        for subject, recipe in subjects:
            key = self.key(subject, recipe)
            self._builds_in_use.claim(key)
            if key not in self._started and not self.is_built(key):
                self._started[key] = self._workers.begin(key, subject, recipe)

    def build(self, subject: Subject, recipe: Recipe) -> Built | Failure:
        """Return the build of a subject, or wait for it."""
        self.begin([(subject, recipe)])
        key = self.key(subject, recipe)
        pending = self._started.pop(key, None)
        if pending is None:
            return super().build(subject, recipe)
        outcome = pending.outcome()
        finished = read_finished(self._workspace(key).marker)
        self._messages += self._quota.enforce(finished.bytes if finished is not None else 0.0)
        return outcome

    def _relink(
        self, subject: Subject, recipe: Recipe, built: Built, missing: Mapping[int, str]
    ) -> Mapping[int, Built | Failure]:
        """Relink on the other machines: a tree from there may contain another directory's name."""
        return self._workers.relink(built, subject, recipe, missing).outcome()

    def confirm(self, decisive: Iterable[tuple[Subject, Recipe]] = ()) -> None:
        """Do nothing: every tree was clean."""
