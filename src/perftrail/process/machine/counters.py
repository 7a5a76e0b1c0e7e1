"""Read the kernel's counters of the machine's load, in microseconds, through files that stay open."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.process.machine.facts import control_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from perftrail.model.measurement import ForeignMethod

TICK_SECONDS = 0.01
"""Unit of /proc/stat (USER_HZ), whatever the kernel's own tick is."""

SLOW_SECONDS = 50e-6
"""A gauge that takes longer to read is ignored: some drivers sleep for 10 ms to measure a frequency."""

MOST_GAUGES = 16
"""Maximum number of frequencies, of temperatures and of throttling counters; a machine can have hundreds."""

_LONGEST_READ = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clocks; a test supplies its own."""

    monotonic: Callable[[], float] = time.monotonic
    since_boot: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    own_cpu: Callable[[], float] = time.process_time


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """Every counter at one time, in seconds since an arbitrary start; `None` for missing counters.

    `busy` is the CPU time of all processes, `asleep` the time for which the machine was suspended.
    """

    at: float
    asleep: float
    busy: float | None
    stolen: float | None
    pressures: tuple[float | None, float | None, float | None]
    throttled: int
    throttled_seconds: float
    swapped_pages: int


@dataclass(slots=True, kw_only=True)
class _Files:
    """Open files of counters, closed together."""

    opened: list[int] = field(default_factory=list)

    def open(self, file: Path) -> int | None:
        """Open a file of counters; `None` if it is missing or unreadable."""
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        self.opened.append(descriptor)
        return descriptor if _read(descriptor) else None

    def open_quick(self, files: Iterable[Path]) -> tuple[int, ...]:
        """Open those files that contain a number and are fast to read, up to the maximum."""
        found = []
        for file in files:
            descriptor = self.open(file)
            if descriptor is None:
                continue
            started = time.perf_counter()
            if _number(descriptor) is not None and time.perf_counter() - started < SLOW_SECONDS:
                found.append(descriptor)
            if len(found) == MOST_GAUGES:
                break
        return tuple(found)

    def close(self) -> None:
        """Close them all."""
        while self.opened:
            os.close(self.opened.pop())


class Gauges:
    """The counters below a root directory (``/``, or a test's); call `close`."""

    def __init__(self, root: Path, clocks: Clocks) -> None:
        self._clocks = clocks
        self._files = _Files()
        cpus = root / "sys/devices/system/cpu"
        self._stat = self._files.open(root / "proc/stat")
        self._usage = self._open_usage(root)
        self._pressures = tuple(
            self._files.open(root / f"proc/pressure/{name}") for name in ("cpu", "memory", "io")
        )
        self._limits = self._open_limits(root)
        swaps = (
            (root / "proc/swaps").read_bytes().count(b"\n") > 1 if (root / "proc/swaps").exists() else False
        )
        self._vmstat = self._files.open(root / "proc/vmstat") if swaps else None
        self._heat = self._files.open_quick(
            sorted(cpus.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"))
        )
        self._hertz = self._files.open_quick(sorted(cpus.glob("cpufreq/policy*/scaling_cur_freq")))
        self._celsius = self._files.open_quick(
            sorted((root / "sys/class/thermal").glob("thermal_zone*/temp"))
        )
        self._cpus = _count_cpus(root)

    def close(self) -> None:
        """Close all files."""
        self._files.close()

    @property
    def method(self) -> ForeignMethod | None:
        """Source of the busy time."""
        if self._usage is not None:
            return "cpuacct"
        return "proc-stat" if self._stat is not None else None

    def read(self) -> CounterReading:
        """Read every counter."""
        at = self._clocks.monotonic()
        idle, stolen = self._idle_and_stolen()
        busy = None if idle is None or stolen is None else at * self._cpus - idle - stolen
        if self._usage is not None:
            busy = int(_read(self._usage)) / 1e9
        throttled, throttled_seconds = self._throttled()
        return CounterReading(
            at=at,
            asleep=self._clocks.since_boot() - at,
            busy=busy,
            stolen=stolen,
            pressures=(
                _pressure(self._pressures[0]),
                _pressure(self._pressures[1]),
                _pressure(self._pressures[2]),
            ),
            throttled=throttled + sum(_number(heat) or 0 for heat in self._heat),
            throttled_seconds=throttled_seconds,
            swapped_pages=self._swapped(),
        )

    def hertz(self) -> float | None:
        """Return the present highest frequency of any CPU."""
        found = [number for number in map(_number, self._hertz) if number is not None]
        return max(found) * 1000.0 if found else None

    def celsius(self) -> float | None:
        """Return the present highest temperature of any zone."""
        found = [number for number in map(_number, self._celsius) if number is not None]
        return max(found) / 1000.0 if found else None

    def _open_usage(self, root: Path) -> int | None:
        """Open version 1's exact count of CPU time, if it is the root group's, which counts all processes."""
        for name in ("cpuacct", "cpu,cpuacct"):
            group = root / "sys/fs/cgroup" / name
            if (group / "release_agent").exists():
                return self._files.open(group / "cpuacct.usage")
        return None

    def _open_limits(self, root: Path) -> tuple[int, ...]:
        """Open the statistics of this process's control groups that limit CPU time."""
        groups = [group for group in control_groups(root) if _limited(group)]
        opened = (self._files.open(group / "cpu.stat") for group in groups)
        return tuple(descriptor for descriptor in opened if descriptor is not None)

    def _idle_and_stolen(self) -> tuple[float | None, float | None]:
        """Return the time in which CPUs were idle, and the time that a hypervisor stole.

        Busy time is all time except idle time, which a tickless kernel counts to the microsecond; the kernel's own
        busy counters are sampled by the tick.
        """
        if self._stat is None:
            return None, None
        words = _read(self._stat).split(None, 9)
        stolen = int(words[8]) * TICK_SECONDS if len(words) > 9 else 0.0
        return (int(words[4]) + int(words[5])) * TICK_SECONDS, stolen

    def _throttled(self) -> tuple[int, float]:
        count, seconds = 0, 0.0
        for descriptor in self._limits:
            data = dict(line.split() for line in _read(descriptor).splitlines() if line.count(b" ") == 1)
            count += int(data.get(b"nr_throttled", 0))
            seconds += int(data.get(b"throttled_usec", 0)) / 1e6 + int(data.get(b"throttled_time", 0)) / 1e9
        return count, seconds

    def _swapped(self) -> int:
        if self._vmstat is None:
            return 0
        text = _read(self._vmstat, 1 << 14)
        return _number_after(text, b"\npswpin ") + _number_after(text, b"\npswpout ")


def _limited(group: Path) -> bool:
    for name, unlimited in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        try:
            return not (group / name).read_text().startswith(unlimited)
        except OSError:
            continue
    return False


def _count_cpus(root: Path) -> int:
    try:
        lines = (root / "proc/stat").read_bytes().splitlines()
    except OSError:
        return 0
    return sum(line.startswith(b"cpu") and not line.startswith(b"cpu ") for line in lines)


def _read(descriptor: int, longest: int = _LONGEST_READ) -> bytes:
    try:
        return os.pread(descriptor, longest, 0)
    except OSError:
        return b""


def _number(descriptor: int) -> int | None:
    try:
        return int(_read(descriptor))
    except ValueError:
        return None


def _number_after(text: bytes, name: bytes) -> int:
    start = text.find(name)
    if start < 0:
        return 0
    start += len(name)
    return int(text[start : text.find(b"\n", start)])


def _pressure(descriptor: int | None) -> float | None:
    """Return the seconds in which at least one task waited, from the line that begins with ``some``."""
    if descriptor is None:
        return None
    text = _read(descriptor)
    start = text.find(b"total=")
    if start < 0:
        return None
    return int(text[start + 6 : text.find(b"\n", start)]) / 1e6
