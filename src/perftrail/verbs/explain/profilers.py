"""Profilers of a program: plain measurement, locks, system calls, instructions.

Each starts the program separately, because profiling makes it slow: times come from plain starts only.
`read_functions` reads the files of Valgrind's cachegrind, and `read_calls` the table of ``strace -c``.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perftrail.errors import LauncherError
from perftrail.measure.invoker import DETERMINISTIC, lock_metrics
from perftrail.model.build import Failure
from perftrail.model.metrics import COUNTED, MEASURED
from perftrail.model.process import Command, Exited
from perftrail.process.launcher import launcher_path
from perftrail.process.lock_counts import locks_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perftrail.measure.invoker import Invoker
    from perftrail.measure.subjects import Ready
    from perftrail.model.study import Study


UNKNOWN = "???"
"""Cachegrind's name for a function without a known name."""


def read_functions(texts: Iterable[str]) -> dict[str, int]:
    r"""Return the instructions of each function, without symbol versions, over the files of all processes.

    >>> read_functions(["events: Ir\nfl=a.c\nfn=main\n3 10\n4 5\nfn=add\n9 2\nsummary: 17\n"])
    {'main': 15, 'add': 2}
    """
    counts: Counter[str] = Counter()
    for text in texts:
        function = UNKNOWN
        for line in text.splitlines():
            if line.startswith("fn="):
                function = line.removeprefix("fn=").partition("@@")[0]
            elif line[:1].isdigit():
                _, _, count = line.partition(" ")
                counts[function] += int(count.split()[0]) if count.split()[:1] else 0
    return dict(counts)


_ROW = re.compile(
    r"^\s*[0-9.]+\s+[0-9.]+\s+[0-9]+\s+(?P<calls>[0-9]+)\s+(?:[0-9]+\s+)?(?P<name>[a-zA-Z_]\w*)\s*$"
)


def read_calls(text: str) -> dict[str, int]:
    """Return the number of calls of each system call, by name, without the line of totals.

    >>> read_calls(" 50.00    0.000100          10        10         2 openat")
    {'openat': 10}
    """
    found = (_ROW.match(line) for line in text.splitlines())
    return {row["name"]: int(row["calls"]) for row in found if row is not None and row["name"] != "total"}


FLOORS: Mapping[str, float] = {"": 5.0, "s": 1e-4, "B": 65536.0}
"""Negligible difference of a metric in each unit: five of anything, 100 µs, 64 KiB."""

SHARE_OF_CALLS = 0.01
SHARE_OF_INSTRUCTIONS = 0.5
"""Negligible difference of one of many parts, as a share of their sum."""

TIMES_SLOWER = 60.0
"""Typical worst slowdown of a program under Valgrind or strace."""

TELLING = ("wall", "cpu", "peak_memory", "voluntary_switches", "involuntary_switches", "page_faults")
"""Metrics of a plain start that are reported in addition to the benchmark's own."""

ALWAYS_TOLD = ("locks", "contended_locks", "lock_wait")
"""Metrics of locks that are reported even if zero."""

FOLLOWS_WALL = "join_wait"
"""Metrics that explain nothing: a thread that joins others waits as long as they run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledMetric:
    """One metric of one start: its unit, how it was measured, and its negligible difference."""

    value: float
    unit: str
    method: str
    floor: float


class Profiler(Protocol):
    """One profiler."""

    name: str
    starts: int
    slow: float

    def why_not(self) -> str:
        """Return why this machine does not support it, and the remedy; empty if it does."""
        ...

    def take(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start the program once and return every metric by its name."""
        ...


class PlainLook:
    """A plain start: times, memory, switches, faults, and what the benchmark prints."""

    name = "figures"
    slow = 1.0

    def __init__(self, study: Study, invoker: Invoker, *, starts: int) -> None:
        self.starts = starts
        self._study = study
        self._invoker = invoker

    def why_not(self) -> str:
        """Return an empty reason: it is always supported."""
        return ""

    def take(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once; omit metrics that are zero or below and have no floor."""
        benchmark = self._study.benchmarks[ready.cell.benchmark]
        seen = self._invoker.observe(
            ready, f"figures-{number}", lambda command: replace(command, lock_counter="off")
        )
        if isinstance(seen.result, Failure):
            return seen.result
        units = {name: each.unit for name, each in benchmark.metrics.items()}
        data = {name: (value, units[name], 0.0) for name, value in seen.result.items() if name in units}
        own = {name: MEASURED[name].unit for name in TELLING}
        data |= {
            name: (seen.result[name], own[name], FLOORS[own[name]]) for name in TELLING if name in seen.result
        }
        return {
            name: ProfiledMetric(
                value=value, unit=unit, method="launcher" if name in own else "output", floor=floor
            )
            for name, (value, unit, floor) in data.items()
            if value + floor > 0.0 and value >= 0.0
        }


class LocksLook:
    """A start with a preloaded object that counts locks, and where threads wait for each other."""

    name = "locks"
    slow = 1.0

    def __init__(self, invoker: Invoker, *, starts: int) -> None:
        self.starts = starts
        self._invoker = invoker

    def why_not(self) -> str:
        """Return a reason if the object was not built."""
        try:
            locks_object(launcher_path())
        except LauncherError as error:
            return str(error)
        return ""

    def take(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once with the counter; include only waits that occurred."""
        seen = self._invoker.observe(
            ready, f"locks-{number}", lambda command: replace(command, lock_counter="preload")
        )
        if isinstance(seen.result, Failure):
            return seen.result
        found = seen.ran.locks
        if found is None:
            return Failure(
                stage="metric", message="it does not load a shared glibc, which counting locks needs"
            )
        units = {name: metric.unit for name, metric in COUNTED["locks"].items()}
        return {
            name: ProfiledMetric(value=value, unit=units[name], method="preload", floor=FLOORS[units[name]])
            for name, value in lock_metrics(found).items()
            if name in ALWAYS_TOLD or (value > 0.0 and name != FOLLOWS_WALL)
        }


class CallsLook:
    """A start under strace, which counts system calls of all threads and processes."""

    name = "system calls"
    slow = TIMES_SLOWER

    def __init__(self, invoker: Invoker, *, starts: int) -> None:
        self.starts = starts
        self._invoker = invoker
        self._program = shutil.which("strace")

    def why_not(self) -> str:
        """Return a reason if strace is missing, or may not trace here."""
        if self._program is None:
            return "strace is not installed; it is a package of that name"
        trial = Command(
            arguments=(self._program, "-f", "-c", "-o", "/dev/null", "--", "/bin/true"),
            environment={},
            directory="/",
        )
        if self._invoker.starter.run(trial).ended != Exited(code=0):
            return "strace may not trace processes here; a container needs the capability SYS_PTRACE for it"
        return ""

    def take(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once under strace."""
        assert self._program is not None
        with tempfile.TemporaryDirectory(prefix="perftrail-strace-") as scratch:
            summary = Path(scratch) / "calls"
            words = (self._program, "-f", "-qq", "-c", "-o", str(summary), "--")
            seen = self._invoker.observe(ready, f"calls-{number}", lambda command: _under(words, command))
            if isinstance(seen.result, Failure):
                return seen.result
            calls = read_calls(summary.read_text(errors="replace"))
        floor = max(FLOORS[""], SHARE_OF_CALLS * sum(calls.values()))
        return {
            f"calls of {name}": ProfiledMetric(value=float(count), unit="", method="strace", floor=floor)
            for name, count in calls.items()
        }


class InstructionsLook:
    """A start under Valgrind, which counts instructions in each function, the same each time."""

    name = "instructions"
    slow = TIMES_SLOWER

    def __init__(self, invoker: Invoker, *, starts: int) -> None:
        self.starts = starts
        self._invoker = invoker
        self._program = shutil.which("valgrind")

    def why_not(self) -> str:
        """Return a reason if Valgrind is missing."""
        return "" if self._program else "Valgrind is not installed; it is the package valgrind"

    def take(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once under Valgrind, without anything that makes two counts of one program differ."""
        assert self._program is not None
        with tempfile.TemporaryDirectory(prefix="perftrail-cachegrind-") as scratch:
            words = (
                self._program, "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes",
                f"--cachegrind-out-file={scratch}/%p", f"--log-file={scratch}/log.%p", "--",
            )  # fmt: skip
            seen = self._invoker.observe(
                ready,
                f"instructions-{number}",
                lambda command: replace(
                    _under(words, command), environment={**DETERMINISTIC, **command.environment}, aslr=False
                ),
            )
            if isinstance(seen.result, Failure):
                return seen.result
            texts = [file.read_text(errors="replace") for file in sorted(Path(scratch).glob("[0-9]*"))]
        functions = read_functions(texts)
        total = float(sum(functions.values()))
        if total <= 0.0:
            return Failure(stage="metric", message="Valgrind counted no instructions")
        floor = max(FLOORS[""], SHARE_OF_INSTRUCTIONS * total)
        inside = {
            f"instructions in {name}": ProfiledMetric(
                value=float(count), unit="", method="valgrind", floor=floor
            )
            for name, count in functions.items()
        }
        return {
            "instructions": ProfiledMetric(value=total, unit="", method="valgrind", floor=FLOORS[""]),
            **inside,
        }


def every_look(study: Study, invoker: Invoker, *, starts: int) -> tuple[Profiler, ...]:
    """Return all profilers, the plain one first; slow ones take three starts at most."""
    few = min(3, starts)
    return (
        PlainLook(study, invoker, starts=starts),
        LocksLook(invoker, starts=few),
        CallsLook(invoker, starts=few),
        InstructionsLook(invoker, starts=few),
    )


def _under(words: tuple[str, ...], command: Command) -> Command:
    """Return a command that runs under another program, with a longer timeout."""
    seconds = command.timeout_seconds
    return replace(
        command,
        arguments=(*words, *command.arguments),
        timeout_seconds=None if seconds is None else seconds * TIMES_SLOWER,
        memory_limit_bytes=None,
        lock_counter="off",
    )
