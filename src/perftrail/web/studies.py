"""The studies of the server, with the newest snapshot of each.

Snapshots are renewed in the background, and rarely if they are expensive.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perftrail import studyfile
from perftrail.errors import PerftrailError, StoreError, UsageError
from perftrail.opening import current_writer, open_results, results_directory
from perftrail.present.dashboard.live import observe
from perftrail.present.dashboard.snapshot import take
from perftrail.present.report.words import slug
from perftrail.results.measured import free_piecewise

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from perftrail.model.store_records import RegressionNote, StoreProgress
    from perftrail.ports import Store
    from perftrail.present.dashboard.live import Live
    from perftrail.present.dashboard.snapshot import Snapshot
    from perftrail.store import Holder


QueryResult = TypeVar("QueryResult")

FIRST_WAIT_SECONDS = 0.1
"""Time that a page waits for the first snapshot, before it says that one is being taken."""

REST = 19.0
"""Pause after a snapshot, as a multiple of its time: this machine may be the one that measures."""

SHORTEST_REST_SECONDS = 2.0

TROUBLE_SECONDS = 5.0
"""Pause after a failed read; it doubles with every further failure."""

LONGEST_TROUBLE_SECONDS = 60.0
"""Longest pause after a failed read, so that a restored store is noticed."""

OPEN_SECONDS = 30.0
"""Time that a store stays open; afterwards, for example, a restored copy is noticed."""

LOOK_SECONDS = 1.0
"""Time between two checks of the store, for any number of watchers."""

STILL_SECONDS = 5.0
"""Time until an unchanged store is read again: the page also says that nothing ended for a while."""

KEEP_SECONDS = 15.0
"""Time between two messages to a watcher, so that lost ones are noticed."""

AGED_SECONDS = 60.0
"""Imported samples are in files without notifications: they are read again after this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A study at a glance: its question, whether it is being measured, and why it cannot be read."""

    title: str
    running: bool
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    """The last observation of a study: the state of its store, and the time."""

    seen: tuple[StoreProgress, Holder | None, str]
    at: float
    live: Live


class ServedStudy:
    """A study by its file. `readers` is the executor of snapshots, one after the other for all studies.

    `seconds` is the CPU time of the last snapshot, `trouble` why none is possible, or empty.
    """

    def __init__(self, name: str, file: str, *, store: str | None, readers: Executor) -> None:
        self.name = name
        self.file = file
        self.trouble = ""
        self.seconds = 0.0
        self._store = store
        self._readers = readers
        self._snapshot: Snapshot | None = None
        self._task: asyncio.Task[None] | None = None
        self._resting_until = 0.0
        self._changed = asyncio.Condition()
        self._watchers = 0
        self._looking: asyncio.Task[None] | None = None
        self._live: Live | None = None
        self._looked: _Observation | None = None
        self._asked_at = 0.0
        self._opening = threading.Lock()
        self._closing = ExitStack()
        self._kept: Store | None = None
        self._kept_until = 0.0
        self._failures = 0
        self._store_error = ""
        self._retry_at = 0.0

    @property
    def known(self) -> Snapshot | None:
        """The newest snapshot, of any age; `None` before the first."""
        return self._snapshot

    @property
    def reading(self) -> bool:
        """Whether a snapshot is being taken."""
        return self._task is not None

    @property
    def watchers(self) -> int:
        """Number of watchers."""
        return self._watchers

    def about(self) -> About:
        """Return what is known of the study without reading its store."""
        try:
            study = studyfile.load(self.file, to_read=True)
            running = current_writer(study, store=self._store) is not None
        except PerftrailError as error:
            return About(title="", running=False, trouble=str(error))
        return About(title=study.title, running=running, trouble=self.trouble)

    async def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot, and start another one if the store has changed; `None` before the first."""
        rested = time.monotonic() >= max(self._resting_until, self._retry_at)
        if self._task is None and rested and await self._moved() and self._task is None:
            self._task = asyncio.create_task(self._renew())
        if self._snapshot is None and self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._task), FIRST_WAIT_SECONDS)
        return self._snapshot

    async def _moved(self) -> bool:
        known = self._snapshot
        if known is None:
            return True
        if time.monotonic() - self._asked_at < LOOK_SECONDS:
            return False
        self._asked_at = time.monotonic()
        if known.gathered.view.study.searched_source.kind == "samples":
            return time.monotonic() - self._resting_until > AGED_SECONDS
        try:
            mark: StoreProgress = await self.query(lambda store: store.progress())
        except PerftrailError as error:
            self._back_off(error)
            return False
        if mark == known.mark:
            self._recovered()
        return mark != known.mark

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            taken, before = await loop.run_in_executor(self._readers, self._take), self._snapshot
            pieces = [] if before is None else before.pieces()
            self._snapshot, before = taken, None
            loop.run_in_executor(self._readers, free_piecewise, pieces)
            self._recovered()
            self._resting_until = time.monotonic() + max(SHORTEST_REST_SECONDS, REST * self.seconds)
        except PerftrailError as error:
            self._back_off(error)
        except Exception as error:
            self._back_off(PerftrailError(f"this is a defect of perftrail ({error!r}); please report it"))
            raise
        finally:
            self._task = None

    def _recovered(self) -> None:
        self.trouble = self._store_error = ""
        self._failures, self._retry_at = 0, 0.0

    def _back_off(self, error: PerftrailError) -> None:
        """Show an error, and wait longer after every failure: a damaged store may be large."""
        self.trouble = str(error)
        self._store_error = str(error) if isinstance(error, StoreError) else ""
        self._failures += 1
        pause = min(LONGEST_TROUBLE_SECONDS, TROUBLE_SECONDS * 2.0 ** min(self._failures - 1, 10))
        self._retry_at = time.monotonic() + pause

    def _take(self) -> Snapshot:
        began = time.thread_time()
        taken = take(self.file, store=self._store)
        self.seconds = time.thread_time() - began
        return taken

    async def query(self, read: Callable[[Store], QueryResult]) -> QueryResult:
        """Query the store, in parallel to requests. Raises `StoreError` if it cannot be read."""
        return await asyncio.to_thread(self._queried, read)

    def _queried(self, read: Callable[[Store], QueryResult]) -> QueryResult:
        try:
            return read(self._opened())
        except StoreError:
            self._kept_until = 0.0  # the next query opens the store again
            raise

    def _opened(self) -> Store:
        """Return the open store; it stays open for a while, because opening takes longer than most queries."""
        known = self._snapshot
        if known is not None and known.gathered.view.study.searched_source.kind == "samples":
            return known.gathered.view.store
        with self._opening:
            if self._kept is None or time.monotonic() > self._kept_until:
                self.close()
                study = (
                    studyfile.load(self.file, to_read=True) if known is None else known.gathered.view.study
                )
                self._kept = self._closing.enter_context(open_results(study, store=self._store))
                in_use = bool(self._kept.machines())
                self._kept_until = time.monotonic() + (OPEN_SECONDS if in_use else 0.0)
            return self._kept

    def close(self) -> None:
        """Close the store; the next query opens it again."""
        self._kept = None
        self._closing.close()

    async def add(self, note: RegressionNote) -> None:
        """Store a note about a regression. Raises `UsageError` or `StoreError`."""
        await asyncio.to_thread(self._add, note)

    def _add(self, note: RegressionNote) -> None:
        with open_results(
            studyfile.load(self.file, to_read=True), store=self._store, access="write"
        ) as store:
            store.add_note(note)

    def results(self, snapshot: Snapshot) -> Path:
        """Return the directory of the study's logs."""
        return results_directory(snapshot.gathered.view.study, self._store)

    async def live(self) -> Live | None:
        """Observe what runs on the study; `None` before the first snapshot."""
        snapshot = await self.snapshot()
        if snapshot is None:
            return None
        return await asyncio.to_thread(self._look, snapshot)

    def _look(self, snapshot: Snapshot) -> Live:
        if self._store_error and time.monotonic() < self._retry_at:
            raise StoreError(self._store_error)
        try:
            return self._queried(lambda store: self._observe(store, snapshot))
        except StoreError as error:
            self._back_off(error)
            raise

    def _observe(self, store: Store, snapshot: Snapshot) -> Live:
        holder = current_writer(snapshot.gathered.view.study, store=self._store)
        seen = (store.progress(), holder, snapshot.taken)
        known = self._looked
        if known is None or known.seen != seen or time.monotonic() - known.at > STILL_SECONDS:
            known = _Observation(seen=seen, at=time.monotonic(), live=observe(store, snapshot, holder))
            self._looked = known
        return known.live

    async def watch(self) -> AsyncGenerator[Live | None]:
        """Yield what runs on the study whenever it changes, and `None` after a while without a change."""
        self._watchers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking())
        known: Live | None = None
        try:
            while True:
                result = await self._other_than(known)
                yield result if result is not known else None
                known = result
        finally:
            self._watchers -= 1

    async def _other_than(self, known: Live | None) -> Live | None:
        """Wait a while until the observation differs from the known one; return the present one."""
        async with self._changed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait_for(lambda: self._live is not known), KEEP_SECONDS)
            return self._live

    async def _keep_looking(self) -> None:
        try:
            while self._watchers:
                with suppress(PerftrailError):
                    found = await self.live()
                    if found != self._live:
                        async with self._changed:
                            self._live = found
                            self._changed.notify_all()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._looking = None
            self._live = None


DEEPEST = 3
"""Maximum depth of studies below the served directory."""

MOST = 200


def find_studies(named: str | None) -> tuple[str, ...]:
    """Return the file of a study, or of every study below a directory. Raises `UsageError` if there is none."""
    if named is None:
        found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - a path as text, as the study file gives them
        if found is None:
            raise UsageError(
                "no perftrail.toml in this directory or above; name a study, or a directory of studies"
            )
        return (found,)
    path = Path(named)
    if path.is_file():
        return (str(path),)
    if (path / studyfile.FILE_NAME).is_file():
        return (str(path / studyfile.FILE_NAME),)
    found_below = sorted(_below(path, DEEPEST))
    if not found_below:
        raise UsageError(f"{named}: no {studyfile.FILE_NAME} in or below this directory; name a study")
    if len(found_below) > MOST:
        raise UsageError(
            f"{named}: {len(found_below)} studies, more than {MOST}; name a directory with fewer"
        )
    return tuple(str(file) for file in found_below)


def _below(directory: Path, depth: int) -> Iterator[Path]:
    """Yield studies below a directory, except in hidden directories and below a study."""
    if depth == 0 or not directory.is_dir():
        return
    for each in directory.iterdir():
        if each.is_dir() and not each.is_symlink() and not each.name.startswith("."):
            if (each / studyfile.FILE_NAME).is_file():
                yield each / studyfile.FILE_NAME
            else:
                yield from _below(each, depth - 1)


@contextmanager
def served_studies(files: Sequence[str], *, store: str | None) -> Iterator[Mapping[str, ServedStudy]]:
    """Yield each study by a name that is valid in an address; their executor ends with the block."""
    found: dict[str, ServedStudy] = {}
    readers = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
    readers.submit(import_module, "ruptures")  # takes seconds; loaded before the first snapshot
    try:
        for file in files:
            name = slug(Path(file).resolve().parent.name, found)
            found[name] = ServedStudy(name, file, store=store, readers=readers)
        yield found
    finally:
        readers.shutdown(wait=False, cancel_futures=True)
        for each in found.values():
            each.close()
