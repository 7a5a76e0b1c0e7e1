"""Start processes in a sandbox within its limits, and report refused operations.

`DiskWatch` stops a program before it fills the disk.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self

from perftrail.model.process import Cancelled, Exited, OutOfMemory, Signalled
from perftrail.model.study import refused_by
from perftrail.model.wording import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from perftrail.model.process import Command, Ran, Resource
    from perftrail.model.study import Phase, Sandbox
    from perftrail.process.sandbox.view import PrivateDirectories, View


POLL_SECONDS = 0.25
"""Time between two checks of the free space, which take 2 µs; at 2 GB/s, half a gigabyte can pass."""

ENTRY_BYTES = 4096
"""Minimum size of a file: names fill a disk, too."""


class DiskWatch:
    """While entered, calls `stop` once if its directories grew by more than a number of bytes.

    It checks the free space, which is cheap, and measures the directories only if more than that is gone, because
    other programs write, too.
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
        while not self._ended.wait(POLL_SECONDS):
            gone = self._free_before - _free_bytes(self._directories)
            if gone > self._most_bytes and _held_bytes(self._directories) > self._most_bytes:
                self.exceeded = True
                self._stop()
                return


def _free_bytes(directories: Sequence[str]) -> int:
    """Return the free bytes on the file systems of directories; each unused name counts as an entry."""
    systems = {(status := os.statvfs(path)).f_fsid: status for path in directories}
    return sum(each.f_bfree * each.f_frsize + each.f_ffree * ENTRY_BYTES for each in systems.values())


def _held_bytes(directories: Sequence[str]) -> int:
    return sum(size for directory in directories for size in _sizes(directory))


def _sizes(directory: str) -> Iterator[int]:
    """Return the sizes on disk of the files below a directory, without following links; missing files are ignored."""
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


_KILLED = 9
_FILE_TOO_LARGE = 25
_SAID_BYTES = 1 << 16
_PROXIES = frozenset({"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"})
"""Proxy variables: without a network they are useless, and their addresses may contain passwords."""

_ONLY_READ_CACHE = {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
"""Settings that make the compiler cache read-only: other builds would use what a sandboxed build writes."""


class Cancelling(Protocol):
    """A starter whose run another thread can end."""

    def run(self, command: Command) -> Ran:
        """Start a process, as in `ports.Starter`."""
        ...

    def cancel(self) -> None:
        """Kill the running command, whose `run` then returns `Cancelled`."""
        ...

    def close(self) -> None:
        """End the launcher and its sandbox; the next `run` starts both again."""
        ...


class Contained:
    """Implements `ports.Starter` with a launcher that runs in a sandbox."""

    def __init__(
        self,
        starter: Cancelling,
        room: PrivateDirectories,
        *,
        sandbox: Sandbox,
        phase: Phase,
        view: View,
        default_memory_bytes: int | None,
    ) -> None:
        self._starter = starter
        self._room = room
        self._sandbox = sandbox
        self._phase: Phase = phase
        self._mounted = view.mount_points(room)
        self._filled = (*view.writable, *(str(directory) for directory in room.directories))
        self._default_memory_bytes = default_memory_bytes

    def run(self, command: Command) -> Ran:
        """Run one process with an empty /tmp and home and within the limits, and account for it."""
        if not self._room.empty(but=self._mounted):
            self._starter.close()
        limited = self._limited(command)
        with DiskWatch(self._filled, most_bytes=self._sandbox.disk_bytes, stop=self._starter.cancel) as disk:
            ran = self._starter.run(limited)
        if disk.exceeded and isinstance(ran.ended, Cancelled):
            ran = replace(ran, ended=Signalled(signal=_KILLED))
        refused = (*ran.refused, *self._refused(limited, ran, disk_full=disk.exceeded))
        return replace(ran, refused=tuple(dict.fromkeys(refused)))

    def _limited(self, command: Command) -> Command:
        memory = self._memory(command)
        limits: Mapping[Resource, int | None] = {
            "core": 0,
            "fsize": self._sandbox.disk_bytes,
            "nproc": self._sandbox.processes,
            **command.limits,
        }
        return replace(
            command,
            environment=self._environment(command),
            memory_limit_bytes=memory,
            process_limit=self._sandbox.processes,
            limits=limits,
            # Without a cgroup the memory of a tree could not be limited; where none may be made, none is asked for.
            tree_memory=command.tree_memory if self._default_memory_bytes is None else "auto",
        )

    def _memory(self, command: Command) -> int | None:
        said = (command.memory_limit_bytes, self._sandbox.memory_bytes)
        return min((each for each in said if each is not None), default=self._default_memory_bytes)

    def _environment(self, command: Command) -> Mapping[str, str]:
        given = dict(command.environment)
        if not self._sandbox.has_network(self._phase):
            given = {name: value for name, value in given.items() if name.lower() not in _PROXIES}
        return {**given, **_ONLY_READ_CACHE} if "CCACHE_DIR" in given else given

    def _refused(self, command: Command, ran: Ran, *, disk_full: bool) -> tuple[str, ...]:
        """Return the operations that were refused, certainly or probably; empty after a success."""
        if ran.ended == Exited(code=0):
            return ()
        known = []
        if disk_full or ran.ended == Signalled(signal=_FILE_TOO_LARGE):
            known.append(f"more than {format_size(self._sandbox.disk_bytes)} on disk (sandbox.disk)")
        if isinstance(ran.ended, OutOfMemory) and command.memory_limit_bytes is not None:
            known.append(f"more than {format_size(command.memory_limit_bytes)} of memory (sandbox.memory)")
        if ran.refused_processes:
            known.append(f"more than {self._sandbox.processes} processes (sandbox.processes)")
        return (*known, *refused_by(self._sandbox, self._phase, _said(command)))


def _said(command: Command) -> str:
    """Return the end of a program's output: hostile text, only searched for words."""
    parts = []
    for path in dict.fromkeys((command.stdout, command.stderr)):
        if path is None:
            continue
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a path as text
                file.seek(max(0, file.seek(0, 2) - _SAID_BYTES))
                parts.append(file.read().decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(parts)
