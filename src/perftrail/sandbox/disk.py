"""Sees to it that what runs in a sandbox does not fill the disk."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

SECONDS_BETWEEN_LOOKS = 0.25
"""A look asks for the free space, which takes 2 µs; at 2 GB/s it lets half a gigabyte pass."""

ENTRY_BYTES = 4096
"""What a file counts at least, whatever is in it: names fill a disk too."""


class DiskWatch:
    """While it is entered, calls `stop` once when its directories were filled with more than so many bytes.

    It asks how much free space went, which costs nothing, and only when that is more than allowed looks who has
    it: others write too.
    """

    def __init__(self, directories: Sequence[str], *, most_bytes: int, stop: Callable[[], None]) -> None:
        self._directories = tuple(directories)
        self._most_bytes = most_bytes
        self._stop = stop
        self._ended = threading.Event()
        self._free_before = 0
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)
        self.exceeded = False

    def __enter__(self) -> Self:
        self._free_before = _free_bytes(self._directories)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            gone = self._free_before - _free_bytes(self._directories)
            if gone > self._most_bytes and _held_bytes(self._directories) > self._most_bytes:
                self.exceeded = True
                self._stop()
                return


def _free_bytes(directories: Sequence[str]) -> int:
    """What is free on the file systems of directories, an unused name counted as an entry."""
    systems = {(status := os.statvfs(path)).f_fsid: status for path in directories}
    return sum(each.f_bfree * each.f_frsize + each.f_ffree * ENTRY_BYTES for each in systems.values())


def _held_bytes(directories: Sequence[str]) -> int:
    return sum(size for directory in directories for size in _sizes(directory))


def _sizes(directory: str) -> Iterator[int]:
    """The sizes on disk of what is below a directory, links not followed; what goes meanwhile is left out."""
    try:
        with os.scandir(directory) as entries:
            inside = list(entries)
    except OSError:
        return
    for entry in inside:
        try:
            yield max(ENTRY_BYTES, entry.stat(follow_symlinks=False).st_blocks * 512)
        except OSError:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _sizes(entry.path)
