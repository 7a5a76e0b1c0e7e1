"""Count heap allocations with a preloaded object, whose threads count into a file of slots."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from perftrail.model.process import AllocationCounts
from perftrail.process.preloaded import ALLOCATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perftrail.model.process import Command

_SLOT_BYTES = 128
_HEAD = struct.Struct("=3Q104x")
_THREAD, _PROCESS = 1, 2
_OF_THREAD = struct.Struct("=4Q")
_OF_PROCESS = struct.Struct("=2qQ")
_SLOTS = 65_536
"""Slots, one for each thread and process; the file is sparse, so only used slots need memory."""


class AllocationFile:
    """File with the counts of one invocation's threads; see ``launcher/allocations/counts.h``."""

    def __init__(self, file: IO[bytes], *, slots: int = _SLOTS) -> None:
        self._file = file
        self._slots = slots

    def counted(self) -> AllocationCounts | None:
        """Return the counts of the process tree; `None` if no process loaded the object.

        The program may have written anything to the file.
        """
        self._file.seek(0)
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        taken, images, started = _HEAD.unpack(head)
        if not images:
            return None
        slots = self._file.read(min(taken, self._slots - 1) * _SLOT_BYTES)
        threads: list[tuple[int, ...]] = []
        peaks: list[int] = []
        other_allocators = 0
        for start in range(0, len(slots) - _SLOT_BYTES + 1, _SLOT_BYTES):
            kind = int.from_bytes(slots[start : start + 8], "little")
            if kind == _THREAD:
                threads.append(_OF_THREAD.unpack_from(slots, start + 8))
            elif kind == _PROCESS:
                _, peak, other = _OF_PROCESS.unpack_from(slots, start + 8)
                peaks.append(peak)
                other_allocators += other != 0
        allocations, allocated, mappings, mapped = (
            (sum(column) for column in zip(*threads, strict=True)) if threads else (0, 0, 0, 0)
        )
        return AllocationCounts(
            allocations=allocations,
            bytes=allocated,
            heap_peak_bytes=max(0, *peaks) if peaks else 0,
            mappings=mappings,
            mapped_bytes=mapped,
            processes=len(peaks),
            other_allocators=other_allocators,
            uncounted_programs=max(0, 1 + started - images),
            uncounted_threads=max(0, taken - (self._slots - 1)),
        )


@contextmanager
def allocation_file(
    launcher: Path, command: Command, *, directory: str | None = None
) -> Iterator[tuple[Command, AllocationFile]]:
    """Yield a command that counts its allocations, and the file of its counts.

    The file is created in `directory`, by default in memory.
    """
    size = _SLOTS * _SLOT_BYTES
    with ALLOCATIONS.loaded(launcher, command, size=size, directory=directory) as (loading, file):
        yield replace(loading, allocation_counter="off"), AllocationFile(file)
