"""Locks: one writing process for each store file, one measuring process of each machine for a server's database."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import sys
import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import StoreError, StoreLocked
from perftrail.file_tree import real_path
from perftrail.results_directory import create_parent
from perftrail.store.location import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg


POLL_SECONDS = 0.2
"""Time between two attempts of a waiting process, in seconds."""

READ_SECONDS = 1.0
"""Time to wait until the process with the lock writes its name, which takes microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that writes to a store; `pid` is 0 if it is unknown."""

    pid: int
    command: tuple[str, ...] = ()
    started: str = ""

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        return f"process {self.pid} ({' '.join(self.command)}), started {self.started},"


def _ignore(_: Holder) -> None:
    """Do nothing."""


@contextmanager
def lock_for_writing(path: str, *, wait: bool, on_wait: Callable[[Holder], None] = _ignore) -> Iterator[None]:
    """Lock the store at `path` for writing while the block runs.

    If another process has the lock, wait and call `on_wait` with it (again whenever it changes; Ctrl-C ends the
    wait), or raise `StoreLocked`. Raises `StoreError` if the lock file cannot be created.
    """
    name = Path(f"{real_path(path)}.lock")
    descriptor = _open(name)
    _locks.add(descriptor)
    try:
        _acquire(descriptor, path, wait=wait, on_wait=on_wait)
        try:
            _write(descriptor)
            yield
        finally:
            if descriptor in _locks:
                os.ftruncate(descriptor, 0)
    finally:
        if descriptor in _locks:  # a forked child has no locks, and the number may be another file's
            _locks.remove(descriptor)
            os.close(descriptor)


def current_writer(path: str) -> Holder | None:
    """Return the process that writes to the store at `path` now; `None` without one. Locks nothing."""
    try:
        holder = _parse(Path(f"{real_path(path)}.lock").read_bytes())
    except OSError:
        return None
    return holder if holder is not None and _is_alive(holder.pid) else None


def _open(name: Path) -> int:
    try:
        create_parent(name.with_suffix(""))
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise StoreError(
            f"{name}: the lock file cannot be created: {error.strerror}; check the permissions, or "
            "name another place with --store"
        ) from error


def _acquire(descriptor: int, path: str, *, wait: bool, on_wait: Callable[[Holder], None]) -> None:
    reported: Holder | None = None
    silent_since: float | None = None
    while not _lock(descriptor, path):
        holder = _parse(os.pread(descriptor, 1 << 20, 0))
        if holder is None or not _is_alive(holder.pid):
            # The holder has not written its name yet, or it is ending.
            silent_since = silent_since or time.monotonic()
            if time.monotonic() - silent_since < READ_SECONDS:
                time.sleep(POLL_SECONDS / 10)
                continue
            holder = Holder(pid=0)
        silent_since = None
        if holder.pid == os.getpid():
            raise StoreLocked(f"{path}: this process already writes to it; close that store first")
        if not wait:
            raise StoreLocked(
                f"{path}: {holder} writes to it; wait until it ends, or name another store with --store"
            )
        if holder != reported:
            reported = holder
            on_wait(holder)
        time.sleep(POLL_SECONDS)


def _lock(descriptor: int, path: str) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreError(
            f"{path}: its file system does not support locks: {error.strerror}; "
            "name a store on a local disk with --store"
        ) from error
    return True


def _write(descriptor: int) -> None:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    command = [without_secrets(word) for word in sys.argv]
    words = {"pid": os.getpid(), "command": command, "started": started}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(words).encode(), 0)


def _parse(content: bytes) -> Holder | None:
    try:
        words = json.loads(content)
        return Holder(
            pid=int(words["pid"]), command=tuple(map(str, words["command"])), started=str(words["started"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_locks: set[int] = set()
"""File descriptors of this process's locks."""


def _release_in_child() -> None:
    """Close the locks in a forked child, which would keep them after its parent ended."""
    for descriptor in _locks:
        os.close(descriptor)
    _locks.clear()


os.register_at_fork(after_in_child=_release_in_child)


LOCK_FAMILY = 0x7065_7266
"""First half of the keys of perftrail's advisory locks; other programs may use such locks, too."""

SERVER_POLL_SECONDS = 0.5
"""Time between two attempts of a waiting process, in seconds."""

CONNECTION_NAME = re.compile(r"perftrail (\d+) since (\S+) \S+")

TRY_LOCK = "SELECT pg_try_advisory_lock(%s, %s)"

HOLDER_QUERY = """
SELECT activity.pid, activity.application_name
FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid)
WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 2
  AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND lock.classid = %s::bigint::oid AND lock.objid = %s::bigint::oid
"""


def application_name() -> str:
    """Return the unique name of this process's connections in the server's lists."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return f"perftrail {os.getpid()} since {started} {secrets.token_hex(4)}"


class MachineLock:
    """A machine's lock, which each new connection of its process acquires again.

    The first connection waits for the process that has the lock and calls `on_wait` with it, or raises
    `StoreLocked`. A later one raises `StoreLocked` if another process got the lock while the server did not answer,
    because samples of two processes that measure at once are useless.
    """

    def __init__(self, machine: str, *, where: str, wait: bool, on_wait: Callable[[Holder], None]) -> None:
        self.name = application_name()
        self._key = zlib.crc32(machine.encode()) & 0x7FFF_FFFF
        self._where = where
        self._wait = wait
        self._on_wait = on_wait
        self._acquired_before = False

    def acquire(self, connection: psycopg.Connection) -> None:
        """Acquire the lock, on a connection that commits each statement."""
        reported: Holder | None = None
        while not self._try_acquire(connection):
            current = self._holder(connection)
            if current is None:  # the lock was released between the two queries
                time.sleep(SERVER_POLL_SECONDS / 10)
                continue
            backend, name = current
            holder = _parse_name(name)
            if name == self.name:
                # This process's own dead connection, which the server has not noticed yet.
                connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
            elif self._acquired_before:
                raise StoreLocked(
                    f"{self._where}: while the server did not answer, {holder} began to measure on this machine; "
                    "all samples so far are stored; repeat the command when that process has ended"
                )
            elif not self._wait:
                raise StoreLocked(
                    f"{self._where}: {holder} measures on this machine into the same store; wait until it ends, "
                    "or name another store with --store"
                )
            elif holder != reported:
                reported = holder
                self._on_wait(holder)
            time.sleep(SERVER_POLL_SECONDS)
        self._acquired_before = True

    def _try_acquire(self, connection: psycopg.Connection) -> bool:
        row = connection.execute(TRY_LOCK, (LOCK_FAMILY, self._key)).fetchone()
        return row is not None and bool(row[0])

    def _holder(self, connection: psycopg.Connection) -> tuple[int, str] | None:
        """Return the server process of the lock's holder, and its connection's name."""
        row = connection.execute(HOLDER_QUERY, (LOCK_FAMILY, self._key)).fetchone()
        return None if row is None else (row[0], row[1] or "")


def _parse_name(name: str) -> Holder:
    found = CONNECTION_NAME.fullmatch(name)
    if found is None:
        return Holder(pid=0)
    return Holder(pid=int(found[1]), command=("perftrail",), started=found[2])
