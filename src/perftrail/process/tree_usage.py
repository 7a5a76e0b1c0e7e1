"""CPU time and peak memory of a launcher's command and all its descendants, while they run.

The launcher reports both at the end of a command. A server does not end with a measurement, so this module reads its
usage meanwhile: from the launcher's cgroups if there are any, else from /proc.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from perftrail.process.machine.counters import TICK_SECONDS
from perftrail.process.machine.load import descendants, read_process_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.process.protocol import Capabilities

_USAGE = re.compile(r"^usage_usec ([0-9]+)", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+([0-9]+) kB", re.MULTILINE)

SHORTEST_INTERVAL_SECONDS = 0.02
LARGEST_SHARE = 20
"""Samples of the memory use at most a twentieth of one CPU."""


@dataclass(slots=True, kw_only=True)
class Usage:
    """CPU time and peak memory of a tree in a period, and how they were measured; complete at the period's end."""

    cpu_seconds: float = 0.0
    cpu_method: str = ""
    peak_bytes: int = 0
    peak_method: str = ""


class TreeUsage:
    """Reads what the running command of a launcher uses; `capabilities` are those of the launcher."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._server = capabilities.server_pid
        self._groups = tuple(map(Path, capabilities.cgroup_paths))

    def cpu_seconds(self) -> float:
        """Return the CPU time of all processes of the command so far; 0 if it is not running."""
        return self._cpu()[0]

    @contextmanager
    def period(self) -> Iterator[Usage]:
        """Yield the usage in a block; its values are complete when the block ends."""
        usage = Usage()
        with self._peak(usage):
            before, _ = self._cpu()
            try:
                yield usage
            finally:
                after, usage.cpu_method = self._cpu()
                usage.cpu_seconds = max(0.0, after - before)

    def _cpu(self) -> tuple[float, str]:
        for group in self._groups:
            with contextlib.suppress(OSError, ValueError):
                return int((group / "cpuacct.usage").read_text()) / 1e9, "cgroup1"
            with contextlib.suppress(OSError):
                if found := _USAGE.search((group / "cpu.stat").read_text()):
                    return int(found[1]) / 1e6, "cgroup2"
        return sum(map(_cpu_with_children, self._processes())), "proc"

    @contextmanager
    def _peak(self, usage: Usage) -> Iterator[None]:
        """Set the peak memory of the block: from a cgroup whose peak can be set back, else from samples."""
        with contextlib.ExitStack() as stack:
            for group in self._groups:
                if (file := _peak_of_cgroup2(group)) is not None:
                    stack.callback(file.close)
                    try:
                        yield
                    finally:
                        file.seek(0)
                        usage.peak_bytes, usage.peak_method = int(file.read() or b"0"), "cgroup2"
                    return
                if (path := _peak_of_cgroup1(group)) is not None:
                    try:
                        yield
                    finally:
                        with contextlib.suppress(OSError):  # it has ended, which the caller notices
                            usage.peak_bytes = int(path.read_text())
                        usage.peak_method = "cgroup1"
                    return
            ended = threading.Event()
            sampling = threading.Thread(target=self._sample, args=(usage, ended), daemon=True)
            sampling.start()
            try:
                yield
            finally:
                ended.set()
                sampling.join()
                usage.peak_method = "sampled"

    def _sample(self, usage: Usage, ended: threading.Event) -> None:
        while True:
            began = time.thread_time()
            usage.peak_bytes = max(usage.peak_bytes, sum(map(_proportional_bytes, self._processes())))
            cost = time.thread_time() - began
            if ended.wait(max(SHORTEST_INTERVAL_SECONDS, cost * LARGEST_SHARE)):
                return

    def _processes(self) -> frozenset[int]:
        return descendants(read_process_table(Path("/")), self._server) - {self._server}


def _peak_of_cgroup2(group: Path) -> IO[bytes] | None:
    """Return the open file of a group's peak, which counts from now; `None` before Linux 6.12."""
    try:
        file = (group / "memory.peak").open("r+b", buffering=0)
    except OSError:
        return None
    try:
        file.write(b"0\n")
    except OSError:
        file.close()
        return None
    return file


def _peak_of_cgroup1(group: Path) -> Path | None:
    path = group / "memory.max_usage_in_bytes"
    try:
        path.write_text("0")
    except OSError:
        return None
    return path


def _cpu_with_children(pid: int) -> float:
    """Return the CPU time of a process and of the children that it waited for, in seconds; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) * TICK_SECONDS


def _proportional_bytes(pid: int) -> int:
    """Return the memory of a process, with its share of memory that it shares with others."""
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
