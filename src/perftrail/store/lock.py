"""Who may write to a store: one process at a time, told by a lock file beside the database.

The lock is the kernel's (flock), so it goes with its holder, however that ends. What the file says is for
people: who holds it, and since when. The file stays when the lock is gone; removing it would let two hold it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import StoreError, StoreLocked
from perftrail.store.location import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_SECONDS = 0.2
"""How often a waiting process looks whether the lock is free."""

READ_SECONDS = 1.0
"""How long to wait for a new holder to say who it is, which it does within microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that writes to a store; `pid` is 0 when it has not said who it is."""

    pid: int
    command: tuple[str, ...] = ()
    started: str = ""

    def __str__(self) -> str:
        if not self.pid:
            return "another process, which does not say who it is,"
        return f"process {self.pid} ({' '.join(self.command)}), since {self.started},"


def _ignore(_: Holder) -> None:
    """Tell nobody."""


@contextmanager
def hold(path: str, *, wait: bool, on_wait: Callable[[Holder], None] = _ignore) -> Iterator[None]:
    """Be the one who writes to the store at `path` while the block runs.

    When another process is, either wait for it, having told `on_wait` who it is (again whenever that changes;
    Ctrl-C ends the wait), or raise `StoreLocked`. Raises `StoreError` when the lock file cannot be made.
    """
    name = Path(f"{Path(path).resolve()}.lock")
    descriptor = _open(name)
    _held.add(descriptor)
    try:
        _acquire(descriptor, path, wait=wait, on_wait=on_wait)
        try:
            _write(descriptor)
            yield
        finally:
            if descriptor in _held:
                os.ftruncate(descriptor, 0)
    finally:
        if descriptor in _held:  # in a forked child it is not, and the number may be another file's
            _held.remove(descriptor)
            os.close(descriptor)


def writing(path: str) -> Holder | None:
    """Give who writes to the store at `path` now; `None` when nobody does. Takes no lock, so it stops nobody."""
    try:
        holder = _parse(Path(f"{Path(path).resolve()}.lock").read_bytes())
    except OSError:
        return None
    return holder if holder is not None and _lives(holder.pid) else None


def _open(name: Path) -> int:
    try:
        name.parent.mkdir(parents=True, exist_ok=True)
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{name}: the lock file cannot be made: {error.strerror}; may you write there? "
            "Name another place with --store"
        ) from error


def _acquire(descriptor: int, path: str, *, wait: bool, on_wait: Callable[[Holder], None]) -> None:
    told: Holder | None = None
    silent_since: float | None = None
    while not _lock(descriptor, path):
        holder = _parse(os.pread(descriptor, 1 << 20, 0))
        if holder is None or not _lives(holder.pid):
            # It came a moment ago and has not written yet who it is, or it is just leaving.
            silent_since = silent_since or time.monotonic()
            if time.monotonic() - silent_since < READ_SECONDS:
                time.sleep(POLL_SECONDS / 10)
                continue
            holder = Holder(pid=0)
        silent_since = None
        if holder.pid == os.getpid():
            raise StoreLocked(f"{path}: this very process writes to it already; close that store first")
        if not wait:
            raise StoreLocked(
                f"{path}: {holder} writes to it; wait for its end, or name another with --store"
            )
        if holder != told:
            told = holder
            on_wait(holder)
        time.sleep(POLL_SECONDS)


def _lock(descriptor: int, path: str) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreError(
            f"{path}: its file system knows no locks: {error.strerror}; "
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


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_held: set[int] = set()
"""The descriptors of this process's locks."""


def _release_in_child() -> None:
    """Let a forked child forget the locks: it would keep them after its parent is gone."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_release_in_child)
