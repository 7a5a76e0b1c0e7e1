"""Count locks and waits with a preloaded object, whose threads count into a file of slots."""

from __future__ import annotations

import struct
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from perftrail.errors import LauncherError
from perftrail.file_tree import claimed_file, remove_left_over
from perftrail.model.process import LockCounts, Waits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.process import Command

_OBJECT = "perftrail-locks.so"
_KINDS = 5
"""Kinds of waits; each has a count and nanoseconds."""

_SLOT = struct.Struct(f"=3Q{2 * _KINDS}Q2Q8x")
_HEAD = struct.Struct("=QQ112x")
_SLOTS = 65_536
"""Slots of 128 bytes, one for each thread; the file is sparse, so only used slots need memory."""

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - mkstemp creates the file
_FILE = "perftrail-locks-"


class LockFile:
    """File with the counts of one invocation's threads; see ``launcher/preload/slots.h``."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def counted(self, *, until: float) -> LockCounts | None:
        """Return the sums over the process tree; `None` if no process loaded the object.

        `until` is the end of the program, in seconds of CLOCK_MONOTONIC: waits that it interrupted lasted until
        then. With several processes, not all of which ended then, interrupted waits are ignored.
        """
        # Through the open file: the program may have replaced the file of this name.
        self._file.seek(0)
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        threads, processes = _HEAD.unpack(head)
        slots = self._file.read(min(threads, _SLOTS - 1) * _SLOT.size)
        slots = slots[: len(slots) - len(slots) % _SLOT.size]
        if not processes:
            return None
        until_ns = round(until * 1e9) if processes == 1 else 0
        rows = [_ended(row, until_ns=until_ns) for row in _SLOT.iter_unpack(slots)]
        sums = [sum(column) for column in zip(*rows, strict=True)] or [0] * (3 + 2 * _KINDS)
        conditions, barriers, semaphores, joins, spins = (
            Waits(number=number, seconds=nanoseconds / 1e9)
            for number, nanoseconds in zip(sums[3::2], sums[4::2], strict=True)
        )
        return LockCounts(
            locks=sums[0],
            contended=sums[1],
            wait_seconds=sums[2] / 1e9,
            conditions=conditions,
            barriers=barriers,
            semaphores=semaphores,
            joins=joins,
            spins=spins,
            threads=threads,
            processes=processes,
            method="preload",
        )


def _ended(row: tuple[int, ...], *, until_ns: int) -> list[int]:
    """Return a slot's counts, with the wait that the program's end interrupted. The slot may contain anything."""
    *counts, since_ns, kind = row
    if 0 < since_ns < until_ns and kind < _KINDS:
        counts[4 + 2 * kind] += until_ns - since_ns
    return counts


def locks_object(launcher: Path) -> Path:
    """Return the preloaded object of a launcher; raises `LauncherError` if it was not built."""
    path = launcher.with_name(_OBJECT)
    if not path.is_file():
        raise LauncherError(
            f"{path} — missing, and needed to count locks; the installation of perftrail builds it if cc can link "
            "shared objects for glibc: install gcc, and perftrail again"
        )
    return path


@contextmanager
def lock_file(
    launcher: Path, command: Command, *, directory: str | None = None
) -> Iterator[tuple[Command, LockFile]]:
    """Yield a command that counts its locks, and the file of its counts.

    The file is created in `directory`, by default in memory.
    """
    preloaded = str(locks_object(launcher))
    with (
        claimed_file(_FILE, below=Path(directory) if directory else _shared()) as path,
        path.open("r+b") as file,
    ):
        file.truncate(_SLOTS * _SLOT.size)
        others = command.environment.get("LD_PRELOAD")
        environment = {
            **command.environment,
            "LD_PRELOAD": f"{preloaded}:{others}" if others else preloaded,
            "PERFTRAIL_LOCKS": str(path),
        }
        yield replace(command, environment=environment, lock_counter="off"), LockFile(file)


def remove_left_over_lock_files() -> None:
    """Remove files that killed perftrail processes left in memory."""
    remove_left_over(_FILE, below=_shared())


def _shared() -> Path:
    return _IN_MEMORY if _IN_MEMORY.is_dir() else Path(tempfile.gettempdir())
