"""The studies of the server, with the newest snapshot of each.

A background thread takes new snapshots, with long pauses if they are expensive.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perftrail import studyfile
from perftrail.errors import PerftrailError, StoreError, UsageError
from perftrail.file_tree import real_path
from perftrail.opening import current_writer, open_results, results_directory
from perftrail.present.dashboard.live import observe
from perftrail.present.dashboard.snapshot import take_snapshot
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
"""Time that a page waits for the first snapshot, before it shows that perftrail is reading the store."""

PAUSE_FACTOR = 19.0
"""Pause after a snapshot, as a multiple of its time: this machine may be the one that measures."""

SHORTEST_PAUSE_SECONDS = 2.0

TROUBLE_SECONDS = 5.0
"""Pause after a failed read; it doubles with every further failure."""

LONGEST_TROUBLE_SECONDS = 60.0
"""Longest pause after a failed read, so that a restored store is noticed."""

OPEN_SECONDS = 30.0
"""Time that a store stays open; afterwards, for example, a restored copy is noticed."""

CHECK_SECONDS = 1.0
"""Time between two checks of the store, for any number of watchers."""

UNCHANGED_SECONDS = 5.0
"""Time until an unchanged store is read again: the page also shows how long no invocation has ended."""

HEARTBEAT_SECONDS = 15.0
"""Longest time between two messages to a browser, so that it notices a lost connection."""

IMPORTED_SECONDS = 60.0
"""Time after which the files of imported samples are read again, because no store reports their changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Summary of a study: its question, whether it is being measured, and why it cannot be read, or empty."""

    title: str
    running: bool
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    """The last observation of a study, the state of its store, and the time."""

    seen: tuple[StoreProgress, Holder | None, str]
    at: float
    live: Live


class ServedStudy:
    """A study with its newest snapshot. The executor `readers` takes one snapshot at a time, for all studies.

    `seconds` is the CPU time of the last snapshot. `trouble` is the reason why none is possible, or empty.
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
        self._paused_until = 0.0
        self._changed = asyncio.Condition()
        self._watchers = 0
        self._check_task: asyncio.Task[None] | None = None
        self._live: Live | None = None
        self._observation: _Observation | None = None
        self._checked_at = 0.0
        self._opening = threading.Lock()
        self._closing = ExitStack()
        self._open_store: Store | None = None
        self._open_until = 0.0
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
        """Return the summary of the study, from its file and the lock of its store."""
        try:
            study = studyfile.load(self.file, to_read=True)
            running = current_writer(study, store=self._store) is not None
        except PerftrailError as error:
            return About(title="", running=False, trouble=str(error))
        return About(title=study.title, running=running, trouble=self.trouble)

    async def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot, and start another one if the store has changed; `None` before the first."""
        rested = time.monotonic() >= max(self._paused_until, self._retry_at)
        if self._task is None and rested and await self._has_changed() and self._task is None:
            self._task = asyncio.create_task(self._renew())
        if self._snapshot is None and self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._task), FIRST_WAIT_SECONDS)
        return self._snapshot

    async def _has_changed(self) -> bool:
        known = self._snapshot
        if known is None:
            return True
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = time.monotonic()
        if known.report_data.view.study.searched_source.kind == "samples":
            return time.monotonic() - self._paused_until > IMPORTED_SECONDS
        try:
            progress: StoreProgress = await self.query(lambda store: store.progress())
        except PerftrailError as error:
            self._back_off(error)
            return False
        if progress == known.store_progress:
            self._recovered()
        return progress != known.store_progress

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            snapshot, before = await loop.run_in_executor(self._readers, self._take_snapshot), self._snapshot
            pieces = [] if before is None else before.large_collections()
            self._snapshot, before = snapshot, None
            loop.run_in_executor(self._readers, free_piecewise, pieces)
            self._recovered()
            self._paused_until = time.monotonic() + max(SHORTEST_PAUSE_SECONDS, PAUSE_FACTOR * self.seconds)
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

    def _take_snapshot(self) -> Snapshot:
        began = time.thread_time()
        snapshot = take_snapshot(self.file, store=self._store)
        self.seconds = time.thread_time() - began
        return snapshot

    async def query(self, read: Callable[[Store], QueryResult]) -> QueryResult:
        """Query the store in another thread. Raises `StoreError` if it cannot be read."""
        return await asyncio.to_thread(self._queried, read)

    def _queried(self, read: Callable[[Store], QueryResult]) -> QueryResult:
        try:
            return read(self._opened())
        except StoreError:
            self._open_until = 0.0  # the next query opens the store again
            raise

    def _opened(self) -> Store:
        """Return the open store; it stays open for a while, because opening takes longer than most queries."""
        known = self._snapshot
        if known is not None and known.report_data.view.study.searched_source.kind == "samples":
            return known.report_data.view.store
        with self._opening:
            if self._open_store is None or time.monotonic() > self._open_until:
                self.close()
                study = (
                    studyfile.load(self.file, to_read=True) if known is None else known.report_data.view.study
                )
                self._open_store = self._closing.enter_context(open_results(study, store=self._store))
                in_use = bool(self._open_store.machines())
                self._open_until = time.monotonic() + (OPEN_SECONDS if in_use else 0.0)
            return self._open_store

    def close(self) -> None:
        """Close the store; the next query opens it again."""
        self._open_store = None
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
        return results_directory(snapshot.report_data.view.study, self._store)

    async def live(self) -> Live | None:
        """Return an observation of the running command; `None` before the first snapshot."""
        snapshot = await self.snapshot()
        if snapshot is None:
            return None
        return await asyncio.to_thread(self._present_observation, snapshot)

    def _present_observation(self, snapshot: Snapshot) -> Live:
        if self._store_error and time.monotonic() < self._retry_at:
            raise StoreError(self._store_error)
        try:
            return self._queried(lambda store: self._observe(store, snapshot))
        except StoreError as error:
            self._back_off(error)
            raise

    def _observe(self, store: Store, snapshot: Snapshot) -> Live:
        holder = current_writer(snapshot.report_data.view.study, store=self._store)
        seen = (store.progress(), holder, snapshot.time)
        known = self._observation
        if known is None or known.seen != seen or time.monotonic() - known.at > UNCHANGED_SECONDS:
            known = _Observation(seen=seen, at=time.monotonic(), live=observe(store, snapshot, holder))
            self._observation = known
        return known.live

    async def watch(self) -> AsyncGenerator[Live | None]:
        """Yield an observation of the study after each change, and `None` after a while without a change."""
        self._watchers += 1
        if self._check_task is None:
            self._check_task = asyncio.create_task(self._check_repeatedly())
        known: Live | None = None
        try:
            while True:
                result = await self._other_than(known)
                yield result if result is not known else None
                known = result
        finally:
            self._watchers -= 1

    async def _other_than(self, known: Live | None) -> Live | None:
        """Wait until the observation differs from the known one, for a limited time; return the present one."""
        async with self._changed:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._changed.wait_for(lambda: self._live is not known), HEARTBEAT_SECONDS
                )
            return self._live

    async def _check_repeatedly(self) -> None:
        try:
            while self._watchers:
                with suppress(PerftrailError):
                    found = await self.live()
                    if found != self._live:
                        async with self._changed:
                            self._live = found
                            self._changed.notify_all()
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            self._check_task = None
            self._live = None


DEEPEST = 3
"""Maximum depth of studies below the served directory."""

MOST = 200


def find_studies(named: str | None) -> tuple[str, ...]:
    """Return the file of a study, or of every study below a directory. Raises `UsageError` if there is none."""
    if named is None:
        found = studyfile.find_upwards(os.getcwd())  # noqa: PTH109 - a path as text, as the study file gives them
        if found is None:
            raise studyfile.no_study(Path.cwd(), remedy="name a study, or a directory of studies")
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
    """Yield each study by a name that is valid in an address. Their executor ends with the block."""
    found: dict[str, ServedStudy] = {}
    readers = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
    try:
        for file in files:
            name = slug(studyfile.directory_of(real_path(file)).name, found)
            found[name] = ServedStudy(name, file, store=store, readers=readers)
        yield found
    finally:
        readers.shutdown(wait=False, cancel_futures=True)
        for each in found.values():
            each.close()
