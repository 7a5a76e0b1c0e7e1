"""Start processes in a sandbox within its limits, and report refused operations.

`DiskWatch` stops a program before it fills the disk.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from perftrail.file_tree import entries_below
from perftrail.model.notation import format_size
from perftrail.model.process import Cancelled, Exited, OutOfMemory, Signalled
from perftrail.model.sandbox import refused_by

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import TracebackType

    from perftrail.model.process import Command, Ran, Resource
    from perftrail.model.sandbox import Phase, Sandbox
    from perftrail.process.protocol import Capabilities
    from perftrail.process.sandbox.view import PrivateDirectories, View


SECONDS_BETWEEN_CHECKS = 0.25
"""Time between two checks of the free space, which take 2 µs; at 2 GB/s, half a gigabyte can pass."""

ENTRY_BYTES = 4096
"""Minimum size of a file: names fill a disk, too."""


class DiskWatch:
    """While entered, calls `stop` once if its directories grew by more than a number of bytes.

    It checks the free space, which is cheap. Other programs write, too, so it measures the directories only if too
    much space is gone, together with the deleted files that processes below `root` still have open. Files that it
    cannot measure count as too much.
    """

    def __init__(
        self, directories: Sequence[str], *, root: int, limit_bytes: int, stop: Callable[[], None]
    ) -> None:
        self._directories = tuple(directories)
        self._root = root
        self._limit_bytes = limit_bytes
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
        while not self._ended.wait(SECONDS_BETWEEN_CHECKS):
            if self._is_too_much():
                self.exceeded = True
                self._stop()
                return

    def _is_too_much(self) -> bool:
        try:
            gone = self._free_before - _free_bytes(self._directories)
            if gone <= self._limit_bytes:
                return False
            devices = {Path(path).stat().st_dev for path in self._directories}
            used = sum(map(_used_bytes, self._directories))
            processes = processes_below(self._root)
            return used + _deleted_bytes(
                processes, devices
            ) > self._limit_bytes or _have_files_without_descriptor(processes)
        except OSError:
            return True


def _free_bytes(directories: Sequence[str]) -> int:
    """Return the free bytes on the file systems of directories; each unused name counts as an entry."""
    systems = {(status := os.statvfs(path)).f_fsid: status for path in directories}
    return sum(each.f_bfree * each.f_frsize + each.f_ffree * ENTRY_BYTES for each in systems.values())


def _used_bytes(directory: str) -> int:
    """Return the size on disk of everything below a directory. Raises `TreeTooDeep`."""
    return sum(max(ENTRY_BYTES, entry.status.st_blocks * 512) for entry in entries_below(Path(directory)))


def _deleted_bytes(processes: Collection[int], devices: Collection[int]) -> int:
    """Return the size on disk of the deleted files on some devices that processes have open or mapped."""
    found: dict[tuple[int, int], int] = {}
    for process in processes:
        for kind in ("fd", "map_files"):
            for status in _open_files(f"/proc/{process}/{kind}"):
                if status.st_nlink == 0 and status.st_dev in devices:
                    found[status.st_dev, status.st_ino] = max(ENTRY_BYTES, status.st_blocks * 512)
    return sum(found.values())


_FILES_WITHOUT_DESCRIPTOR = re.compile(r"^(?:scm_fds|UserFiles):\s*[1-9]", re.MULTILINE)


def _have_files_without_descriptor(processes: Collection[int]) -> bool:
    """Whether files of processes are open only in messages of a socket, or in an io_uring, which cannot be measured."""
    for process in processes:
        with suppress(OSError):
            for file in Path(f"/proc/{process}/fdinfo").iterdir():
                with suppress(OSError):
                    if _FILES_WITHOUT_DESCRIPTOR.search(file.read_text(errors="replace")):
                        return True
    return False


def _open_files(directory: str) -> Iterator[os.stat_result]:
    try:
        files = list(Path(directory).iterdir())
    except OSError:
        return  # the process has ended; only root sees mapped files
    for file in files:
        with suppress(OSError):
            yield file.stat()


def processes_below(root: int) -> set[int]:
    """Return the ids of a process and of all its descendants."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # The name in parentheses may contain anything.
                fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(process.name))
    found, left = {root}, [root]
    while left:
        below = [child for child in children.get(left.pop(), ()) if child not in found]
        found.update(below)
        left.extend(below)
    return found


_KILLED = 9
_FILE_TOO_LARGE = 25
_OUTPUT_BYTES = 1 << 16
_PROXIES = frozenset({"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"})
"""Proxy variables: without a network they are useless, and their addresses may contain passwords."""

_READ_ONLY_CACHE = {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
"""Settings that make the compiler cache read-only: other builds would use what a sandboxed build writes."""


class CancellableStarter(Protocol):
    """A starter whose run another thread can end."""

    def run(self, command: Command) -> Ran:
        """Start a process, as in `ports.Starter`."""
        ...

    def start(self) -> Capabilities:
        """Start the launcher, unless it runs, and return what it can do."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to the program that runs."""
        ...

    def cancel(self) -> None:
        """Kill the running command, whose `run` then returns `Cancelled`."""
        ...

    def close(self) -> None:
        """End the launcher and its sandbox; the next `run` starts both again."""
        ...


class SandboxedStarter:
    """Implements `ports.Starter` with a launcher that runs in a sandbox."""

    def __init__(
        self,
        starter: CancellableStarter,
        private: PrivateDirectories,
        *,
        sandbox: Sandbox,
        phase: Phase,
        view: View,
        default_memory_bytes: int | None,
    ) -> None:
        self._starter = starter
        self._private = private
        self._sandbox = sandbox
        self._phase: Phase = phase
        self._mount_points = view.mount_points(private)
        self._watched = (*view.writable, *(str(directory) for directory in private.directories))
        self._default_memory_bytes = default_memory_bytes

    def run(self, command: Command) -> Ran:
        """Run one process with an empty /tmp and home and within the limits, and account for it."""
        if not self._private.empty(keep=self._mount_points):
            self._starter.close()
        limited = self._limited(command)
        with DiskWatch(
            self._watched,
            root=self._starter.start().server_pid,
            limit_bytes=self._sandbox.disk_bytes,
            stop=self._starter.cancel,
        ) as disk:
            ran = self._starter.run(limited)
        if disk.exceeded and isinstance(ran.ended, Cancelled):
            ran = replace(ran, ended=Signalled(signal=_KILLED))
        refused = (*ran.refused, *self._refused(limited, ran, disk_full=disk.exceeded))
        return replace(ran, refused=tuple(dict.fromkeys(refused)))

    def start(self) -> Capabilities:
        """Start the launcher, unless it runs, and return what it can do."""
        return self._starter.start()

    def signal(self, number: int) -> None:
        """Send a signal to the program of another thread's `run`."""
        self._starter.signal(number)

    def cancel(self) -> None:
        """Kill the command of another thread's `run` with all its descendants."""
        self._starter.cancel()

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
            # A memory limit of a tree needs a cgroup; without a default limit, perftrail may not create one.
            tree_memory=command.tree_memory if self._default_memory_bytes is None else "auto",
        )

    def _memory(self, command: Command) -> int | None:
        limits = (command.memory_limit_bytes, self._sandbox.memory_bytes)
        return min((each for each in limits if each is not None), default=self._default_memory_bytes)

    def _environment(self, command: Command) -> Mapping[str, str]:
        variables = dict(command.environment)
        if not self._sandbox.has_network(self._phase):
            variables = {name: value for name, value in variables.items() if name.lower() not in _PROXIES}
        return {**variables, **_READ_ONLY_CACHE} if "CCACHE_DIR" in variables else variables

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
        return (*known, *refused_by(self._sandbox, self._phase, _output_end(command)))


def _output_end(command: Command) -> str:
    """Return the end of a program's output: hostile text, only searched for words."""
    parts = []
    for path in dict.fromkeys((command.stdout, command.stderr)):
        if path is None:
            continue
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a path as text
                file.seek(max(0, file.seek(0, 2) - _OUTPUT_BYTES))
                parts.append(file.read().decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(parts)
