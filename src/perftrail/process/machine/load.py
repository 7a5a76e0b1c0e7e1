"""Observe other load on the machine: read counters before and after each invocation, and compute the difference.

`busiest` names the processes that use the CPUs.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perftrail.model.measurement import BusyProcess, Conditions
from perftrail.process.machine.counters import TICK_SECONDS, Clocks, CounterReading, Gauges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from perftrail.model.measurement import ForeignMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process at one time: its parent, its name (hostile text), and its CPU time so far."""

    parent: int
    name: str
    cpu_seconds: float


ProcessTable = dict[int, Process]
"""All processes at one time, by id."""


def read_process_table(root: Path) -> ProcessTable:
    """Return all processes, by id; processes that end meanwhile are left out."""
    found: ProcessTable = {}
    for directory in (root / "proc").glob("[0-9]*"):
        try:
            text = (directory / "stat").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        # The name may contain anything, also blanks and brackets: it ends at the last bracket.
        name, _, rest = text.partition("(")[2].rpartition(")")
        words = rest.split()
        if len(words) > 12 and directory.name.isdigit():
            found[int(directory.name)] = Process(
                parent=int(words[1]),
                name=name,
                cpu_seconds=(int(words[11]) + int(words[12])) * TICK_SECONDS,
            )
    return found


def busiest(
    before: ProcessTable, after: ProcessTable, *, seconds: float, own: int, limit: int = 5
) -> tuple[BusyProcess, ...]:
    """Return the processes that used the most CPU time between queries, except `own` and its descendants."""
    ours = descendants(after, own)
    used = {
        pid: process.cpu_seconds - (before[pid].cpu_seconds if pid in before else 0.0)
        for pid, process in after.items()
        if pid not in ours
    }
    worst = sorted((pid for pid in used if used[pid] > 0.0), key=lambda pid: (-used[pid], pid))[:limit]
    return tuple(BusyProcess(pid=pid, name=after[pid].name, cpus=used[pid] / seconds) for pid in worst)


def descendants(table: Mapping[int, Process], pid: int) -> frozenset[int]:
    """Return the ids of a process and its descendants. A process whose parent is not in the table is left out."""
    found, grew = {pid}, True
    while grew:
        more = {child for child, process in table.items() if process.parent in found} - found
        found |= more
        grew = bool(more)
    return frozenset(found)


RESOLVED_SECONDS: dict[ForeignMethod, float] = {"cpuacct": 0.05, "proc-stat": 0.2}
"""Shortest window that resolves 0.1 CPU, in seconds.

Idle time and stolen time are both truncated to 10 ms. The exact counter is late by one tick (4 ms at HZ = 250) for
each busy CPU.
"""

RECENT_SECONDS = 0.5
"""Time for which the machine must have been quiet."""

LONGEST_GAP_SECONDS = 0.1
"""After a longer pause between two queries, builds of perftrail could count as foreign load."""

REMEMBERED_SECONDS = 2.0
"""Age of the oldest reading that is stored."""

BUSIEST_SECONDS = 0.3
"""Time for which `Watch.busiest` observes the processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoadReading:
    """A reading, with the CPU time of this process and all its descendants."""

    reading: CounterReading
    own: float

    @property
    def foreign(self) -> float | None:
        """CPU time of other processes, up to a constant."""
        return None if self.reading.busy is None else self.reading.busy - self.own


class Watch:
    """Reads the machine's counters; a context manager that keeps their files open.

    `own_processes` returns the ids of processes whose CPU time belongs to perftrail, for example the launcher, and
    `own_cpu` the CPU seconds of other such processes so far, for example services.
    """

    def __init__(
        self,
        root: str = "/",
        *,
        own_processes: Callable[[], Iterable[int]] = tuple,
        own_cpu: Callable[[], float] = float,
        clocks: Clocks | None = None,
    ) -> None:
        self._root = Path(root)
        self._clocks = clocks or Clocks()
        self._own_processes = own_processes
        self._own_cpu_seconds = own_cpu
        self._gauges = Gauges(self._root, self._clocks)
        self._invocations_cpu = 0.0
        self._readings: deque[_LoadReading] = deque()
        self._begun: _LoadReading | None = None
        self._known_processes: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of the counters."""
        self._gauges.close()

    @property
    def method(self) -> ForeignMethod | None:
        """Source of the foreign CPU time; `None` if there is none."""
        return self._gauges.method

    def begin(self) -> None:
        """Read the counters directly before an invocation."""
        if self._begun is not None:  # an interrupted invocation used an unknown CPU time
            self._readings.clear()
        self._begun = self._record()

    def end(self, own_cpu_seconds: float) -> Conditions:
        """Read the counters directly after an invocation and its descendants; `own_cpu_seconds` is their CPU time."""
        before = self._begun
        assert before is not None, "call begin() before end()"
        self._begun = None
        self._invocations_cpu += own_cpu_seconds
        now = self._record(during=True)
        seconds = max(now.reading.at - before.reading.at, 1e-9)
        window = self._since(RESOLVED_SECONDS[self.method or "proc-stat"], now)
        waited = tuple(
            None if last is None or first is None else (last - first) / seconds
            for first, last in zip(before.reading.pressures, now.reading.pressures, strict=True)
        )
        return Conditions(
            window_seconds=now.reading.at - window.reading.at if window else seconds,
            foreign_cpus=_foreign(window, now) if window else None,
            foreign_method=self.method,
            stolen_cpus=_stolen(window, now) if window else None,
            cpu_pressure=waited[0],
            memory_pressure=waited[1],
            io_pressure=waited[2],
            throttled=now.reading.throttled - before.reading.throttled,
            throttled_seconds=now.reading.throttled_seconds - before.reading.throttled_seconds,
            swapped_pages=now.reading.swapped_pages - before.reading.swapped_pages,
            suspended_seconds=max(0.0, now.reading.asleep - before.reading.asleep),
            cpu_hertz=self._gauges.hertz(),
            celsius=self._gauges.celsius(),
        )

    def recent(self) -> float | None:
        """Return the foreign load of the last half second in CPUs; `None` if not observed that long.

        A machine without counters counts as quiet: 0.
        """
        if self.method is None:
            return 0.0
        now = self._record()
        since = self._since(RECENT_SECONDS, now)
        return None if since is None else _foreign(since, now)

    def busiest(self, *, seconds: float = BUSIEST_SECONDS) -> tuple[BusyProcess, ...]:
        """Return the other processes that use the most CPU time now; takes this number of seconds."""
        before, started = read_process_table(self._root), time.monotonic()
        time.sleep(seconds)
        after = read_process_table(self._root)
        return busiest(before, after, seconds=time.monotonic() - started, own=os.getpid())

    def _record(self, *, during: bool = False) -> _LoadReading:
        reading = self._gauges.read()
        readings = self._readings
        own_processes = tuple(self._own_processes())
        if own_processes != self._known_processes:  # a new one starts at zero; the old total is unknown
            self._known_processes = own_processes
            readings.clear()
        latest = _LoadReading(reading=reading, own=self._invocations_cpu + self._own_cpu())
        if readings and not during and reading.at - readings[-1].reading.at > LONGEST_GAP_SECONDS:
            readings.clear()
        readings.append(latest)
        while len(readings) > 2 and reading.at - readings[1].reading.at > REMEMBERED_SECONDS:
            readings.popleft()
        return latest

    def _own_cpu(self) -> float:
        used = self._clocks.own_cpu() + self._own_cpu_seconds()
        for pid in self._known_processes:
            with contextlib.suppress(OSError):  # it has ended; the next reading uses its successor
                # The kernel's name for the CPU clock of another process: include/linux/posix-timers.h.
                used += time.clock_gettime((~pid << 3) | 2)
        return used

    def _since(self, seconds: float, now: _LoadReading) -> _LoadReading | None:
        """Return the latest reading that is at least this old."""
        return next(
            (each for each in reversed(self._readings) if now.reading.at - each.reading.at >= seconds), None
        )


def _foreign(since: _LoadReading, now: _LoadReading) -> float | None:
    if since.foreign is None or now.foreign is None:
        return None
    return max(0.0, (now.foreign - since.foreign) / (now.reading.at - since.reading.at))


def _stolen(since: _LoadReading, now: _LoadReading) -> float | None:
    if since.reading.stolen is None or now.reading.stolen is None:
        return None
    return max(0.0, (now.reading.stolen - since.reading.stolen) / (now.reading.at - since.reading.at))
