"""Record which living processes use which builds, so that no build in use is removed."""

from __future__ import annotations

import fcntl
import os
import uuid
import weakref
from typing import TYPE_CHECKING

from perftrail.file_tree import exclusive_lock

if TYPE_CHECKING:
    from pathlib import Path


class BuildsInUse:
    """One file for each process that uses builds, locked while the process lives, with the keys of its builds."""

    def __init__(self, builds: Path) -> None:
        self._home = builds / "locks" / "users"
        self._lock = builds / "locks" / "users.lock"
        self._file: int | None = None
        self._release: weakref.finalize[[int], BuildsInUse] | None = None
        self._claimed_here: set[str] = set()

    def claim(self, key: str) -> None:
        """Record that this process uses a build until it ends."""
        if key in self._claimed_here:
            return
        if self._file is None:
            self._file = self._open()
        os.write(self._file, f"{key}\n".encode())
        self._claimed_here.add(key)

    def claimed(self) -> frozenset[str]:
        """Return the keys that living processes use; remove the files of dead ones."""
        keys = set(self._claimed_here)
        with exclusive_lock(self._lock):
            for path in self._home.glob("*.keys"):
                keys.update(_keys_of_living(path))
        return frozenset(keys)

    def close(self) -> None:
        """Release all builds; the end of the process does so, too."""
        if self._release is not None:
            self._release()
        self._file, self._release, self._claimed_here = None, None, set()

    def _open(self) -> int:
        self._home.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self._lock):
            file = os.open(self._home / f"{uuid.uuid4().hex}.keys", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            fcntl.flock(file, fcntl.LOCK_EX)
        self._release = weakref.finalize(self, os.close, file)
        return file


def _keys_of_living(path: Path) -> list[str]:
    with path.open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().decode(errors="replace").split()
        path.unlink()
        return []
