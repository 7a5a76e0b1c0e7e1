"""Count heap allocations with a preloaded object, whose threads count into a file of slots."""

from __future__ import annotations

import os
import secrets
import struct
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from perftrail.model.process import AllocationCounts, AllocationStack
from perftrail.process.preloaded import ALLOCATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from perftrail.model.process import Command

_SLOT_BYTES, _STACK_BYTES, _MODULE_BYTES = 128, 256, 512
_HEAD = struct.Struct("=9Q56x")
_THREAD, _PROCESS = 1, 2
_OF_THREAD = struct.Struct("=4Q")
_OF_PROCESS = struct.Struct("=2qQ")
_STACK = struct.Struct("=5Q")
_MODULE = struct.Struct("=4Q480s")
_MOST_FRAMES = 27


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Numbers of entries. The file is sparse, so only used entries need memory."""

    slots: int = 65_536
    stacks: int = 0
    modules: int = 0

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.slots * _SLOT_BYTES + self.stacks * _STACK_BYTES + self.modules * _MODULE_BYTES


COUNTS = Tables()
STACKS = Tables(stacks=65_536, modules=8_192)


class AllocationFile:
    """File with the counts of one invocation's threads; see ``launcher/allocations/counts.h``."""

    def __init__(self, file: IO[bytes], tables: Tables = COUNTS) -> None:
        self._file = file
        self._tables = tables

    def prepare(self) -> None:
        """Write the head, with a random seed, so that samples vary between invocations as much as from the truth."""
        tables = self._tables
        self._file.seek(0)
        self._file.write(
            _HEAD.pack(0, 0, 0, tables.slots, tables.stacks, tables.modules, secrets.randbits(63), 0, 0)
        )
        self._file.flush()

    def counted(self) -> AllocationCounts | None:
        """Return the counts of the process tree; `None` if no process loaded the object.

        The program may have written anything to the file.
        """
        head = self._read(0, _HEAD.size)
        if len(head) < _HEAD.size:
            return None
        taken, images, started, *_, lost, modules = _HEAD.unpack(head)
        if not images:
            return None
        most = self._tables.slots - 1
        slots = self._read(_SLOT_BYTES, min(taken, most) * _SLOT_BYTES)
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
            uncounted_threads=max(0, taken - most),
            stacks=tuple(self._stacks(modules)),
            lost_stacks=lost,
        )

    def _stacks(self, modules: int) -> Iterator[AllocationStack]:
        tables = self._tables
        start = tables.slots * _SLOT_BYTES
        stacks = self._read(start, tables.stacks * _STACK_BYTES)
        found = self._modules(start + len(stacks), min(modules, tables.modules))
        for position in range(0, len(stacks) - _STACK_BYTES + 1, _STACK_BYTES):
            used, process, allocations, allocated, depth = _STACK.unpack_from(stacks, position)
            if not used:
                continue
            addresses = struct.unpack_from(f"={min(depth, _MOST_FRAMES)}Q", stacks, position + _STACK.size)
            frames = (_frame(found.get(process, ()), address) for address in addresses)
            yield AllocationStack(allocations=allocations, bytes=allocated, frames=tuple(frames))

    def _modules(self, start: int, number: int) -> dict[int, list[_Module]]:
        """Return the programs and libraries of each process."""
        content = self._read(start, number * _MODULE_BYTES)
        found: dict[int, list[_Module]] = {}
        for process, base, first, last, path in _MODULE.iter_unpack(
            content[: len(content) - len(content) % _MODULE_BYTES]
        ):
            name = os.fsdecode(path.partition(b"\0")[0])
            found.setdefault(process, []).append(_Module(base=base, first=first, last=last, path=name))
        return found

    def _read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    base: int
    first: int
    last: int
    path: str


def _frame(modules: Sequence[_Module], address: int) -> tuple[str, int]:
    """Return the file and the position in it of an address; an unknown address, of generated code, has no file."""
    for each in modules:
        if each.first <= address <= each.last:
            return each.path, address - each.base
    return "", address


@contextmanager
def allocation_file(
    launcher: Path, command: Command, *, directory: str | None = None
) -> Iterator[tuple[Command, AllocationFile]]:
    """Yield a command that counts its allocations, and the file of its counts.

    The file is created in `directory`, by default in memory.
    """
    tables = STACKS if command.allocation_counter == "stacks" else COUNTS
    with ALLOCATIONS.loaded(launcher, command, size=tables.size, directory=directory) as (loading, file):
        counting = AllocationFile(file, tables)
        counting.prepare()
        yield replace(loading, allocation_counter="off"), counting
