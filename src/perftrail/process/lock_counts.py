"""Count locks and waits with a preloaded object, whose threads count into a file of slots."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from perftrail.model.process import LockCounts, Waits
from perftrail.process.preloaded import LOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perftrail.model.process import Command

_KINDS = 5
"""Kinds of waits; each has a count and nanoseconds."""

_SLOT = struct.Struct(f"=3Q{2 * _KINDS}Q2Q8x")
_HEAD = struct.Struct("=QQ112x")
_SLOTS = 65_536
"""Slots of 128 bytes, one for each thread; the file is sparse, so only used slots need memory."""


class LockFile:
    """File with the counts of one invocation's threads; see ``launcher/locks/slots.h``."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def counted(self, *, until: float) -> LockCounts | None:
        """Return the sums over the process tree; `None` if no process loaded the object.

        `until` is the end of the program, in seconds of CLOCK_MONOTONIC: waits that it interrupted lasted until
        then. With several processes, not all of which ended then, interrupted waits are ignored.
        """
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


@contextmanager
def lock_file(
    launcher: Path, command: Command, *, directory: str | None = None
) -> Iterator[tuple[Command, LockFile]]:
    """Yield a command that counts its locks, and the file of its counts.

    The file is created in `directory`, by default in memory.
    """
    size = _SLOTS * _SLOT.size
    with LOCKS.loaded(launcher, command, size=size, directory=directory) as (loading, file):
        yield replace(loading, lock_counter="off"), LockFile(file)
