"""Profilers of a program's metrics: plain invocations, locks, allocations, system calls, instructions.

Each profiler starts the program separately, because profiling slows it down. Times come from plain
invocations only. The profilers of functions are those of `measure.function_profilers`.
`read_calls` reads the table of ``strace -c``.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perftrail.errors import LauncherError
from perftrail.measure.call_sites import call_sites
from perftrail.measure.function_profilers import (
    AllocationCounter,
    CallgrindProfiler,
    JavaProfiler,
    PerfProfiler,
    PythonProfiler,
    program_functions,
    under,
)
from perftrail.measure.process_metrics import allocation_metrics, lock_metrics
from perftrail.model.build import Failure
from perftrail.model.metrics import COUNTED, MEASURED
from perftrail.model.process import Command, Exited
from perftrail.model.profile import base_name
from perftrail.process.launcher import launcher_path
from perftrail.process.preloaded import LOCKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.measure.function_profilers import FunctionProfiler
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.subjects import Ready
    from perftrail.model.profile import Profile
    from perftrail.model.study import Study


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
"""Constant added to both values before their ratio is computed, by unit: 5 of a count, 100 µs, 64 KiB."""

SHARE_OF_CALLS = 0.01
SHARE_OF_ALLOCATIONS = 0.01
SHARE_OF_INSTRUCTIONS = 0.5
"""The same constant for one function, call site or system call, as a share of the total."""

SHARE_OF_MISSES = 0.002
"""The same constant for cache and branch misses, as a share of the instructions."""

TIMES_SLOWER = 60.0
"""Typical worst slowdown of a program under Valgrind or strace."""

PLAIN_METRICS = ("wall", "cpu", "peak_memory", "voluntary_switches", "involuntary_switches", "page_faults")
"""Metrics of a plain invocation that are reported in addition to the benchmark's own."""

ALWAYS_REPORTED = ("locks", "contended_locks", "lock_wait", "allocations", "allocated_bytes", "heap_peak")
"""Counted metrics that are reported even if zero."""

NOT_REPORTED = "join_wait"
"""Metric that explains nothing: a thread that joins others waits as long as they run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledMetric:
    """One metric of one invocation: its unit, how it was measured, and its negligible difference."""

    value: float
    unit: str
    method: str
    floor: float


class Profiler(Protocol):
    """One profiler."""

    name: str
    invocations: int
    slowdown: float

    def unsupported_reason(self) -> str:
        """Return the reason why this machine does not support it, with a remedy; empty if it does."""
        ...

    def profile(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start the program once and return every metric by its name."""
        ...


class PlainProfiler:
    """A plain invocation: times, memory, switches, faults, and what the benchmark prints."""

    name = "plain invocations"
    slowdown = 1.0

    def __init__(self, study: Study, invoker: Invoker, *, invocations: int) -> None:
        self.invocations = invocations
        self._study = study
        self._invoker = invoker

    def unsupported_reason(self) -> str:
        """Return an empty reason, because every machine supports it."""
        return ""

    def profile(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once; omit values that are negative, and zeros without a floor."""
        benchmark = self._study.benchmarks[ready.cell.benchmark]
        observed = self._invoker.observe(
            ready,
            f"plain-{number}",
            lambda command: replace(command, lock_counter="off", allocation_counter="off"),
        )
        if isinstance(observed.result, Failure):
            return observed.result
        units = {name: each.unit for name, each in benchmark.metrics.items()}
        data = {name: (value, units[name], 0.0) for name, value in observed.result.items() if name in units}
        own = {name: MEASURED[name].unit for name in PLAIN_METRICS}
        data |= {
            name: (observed.result[name], own[name], FLOORS[own[name]])
            for name in PLAIN_METRICS
            if name in observed.result
        }
        return {
            name: ProfiledMetric(
                value=value, unit=unit, method="launcher" if name in own else "output", floor=floor
            )
            for name, (value, unit, floor) in data.items()
            if value + floor > 0.0 and value >= 0.0
        }


class LocksProfiler:
    """An invocation with a preloaded object that counts locks, and where threads wait for each other."""

    name = "locks"
    slowdown = 1.0

    def __init__(self, invoker: Invoker, *, invocations: int) -> None:
        self.invocations = invocations
        self._invoker = invoker

    def unsupported_reason(self) -> str:
        """Return a reason if the preloaded object was not built."""
        try:
            LOCKS.path(launcher_path())
        except LauncherError as error:
            return str(error)
        return ""

    def profile(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once with the counter; include only waits that occurred."""
        observed = self._invoker.observe(
            ready,
            f"locks-{number}",
            lambda command: replace(command, lock_counter="preload", allocation_counter="off"),
        )
        if isinstance(observed.result, Failure):
            return observed.result
        found = observed.ran.locks
        if found is None:
            return Failure(
                stage="metric",
                message="the program does not load a shared glibc, so its locks cannot be counted",
            )
        units = {name: metric.unit for name, metric in COUNTED["locks"].items()}
        return {
            name: ProfiledMetric(value=value, unit=units[name], method="preload", floor=FLOORS[units[name]])
            for name, value in lock_metrics(found).items()
            if name in ALWAYS_REPORTED or (value > 0.0 and name != NOT_REPORTED)
        }


class AllocationsProfiler(AllocationCounter):
    """An invocation whose heap allocations are counted, in all and by call site."""

    def __init__(self, invoker: Invoker, *, invocations: int) -> None:
        super().__init__(invoker)
        self.invocations = invocations

    def profile(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once with the counter; a program that cannot be counted is a failure."""
        found = self.count(ready, number)
        if isinstance(found, Failure):
            return found
        counts = found.counts
        sites = call_sites(counts.stacks, found.functions, program_functions(ready))
        floor = max(FLOORS[""], SHARE_OF_ALLOCATIONS * counts.allocations)
        floor_bytes = max(FLOORS["B"], SHARE_OF_ALLOCATIONS * counts.bytes)
        by_site = {
            f"{what} {site}": ProfiledMetric(value=float(value), unit=unit, method="preload", floor=least)
            for site, found in sites.items()
            for what, value, unit, least in (
                ("allocations in", found.allocations, "", floor),
                ("bytes allocated in", found.bytes, "B", floor_bytes),
            )
        }
        units = {name: metric.unit for name, metric in COUNTED["allocations"].items()}
        return {
            name: ProfiledMetric(value=value, unit=units[name], method="preload", floor=FLOORS[units[name]])
            for name, value in allocation_metrics(counts).items()
            if name in ALWAYS_REPORTED or value > 0.0
        } | by_site


class CallsProfiler:
    """An invocation under strace, which counts system calls of all threads and processes."""

    name = "system calls"
    slowdown = TIMES_SLOWER

    def __init__(self, invoker: Invoker, *, invocations: int) -> None:
        self.invocations = invocations
        self._invoker = invoker
        self._program = shutil.which("strace")

    def unsupported_reason(self) -> str:
        """Return a reason if strace is missing, or may not trace here."""
        if self._program is None:
            return "strace is not installed; install the package strace"
        trial = Command(
            arguments=(self._program, "-f", "-c", "-o", "/dev/null", "--", "/bin/true"),
            environment={},
            directory="/",
        )
        if self._invoker.starter.run(trial).ended != Exited(code=0):
            return "strace cannot trace processes here; a container needs the capability SYS_PTRACE"
        return ""

    def profile(self, ready: Ready, number: int) -> Mapping[str, ProfiledMetric] | Failure:
        """Start once under strace."""
        assert self._program is not None
        with self._invoker.temporary_directory() as scratch:
            summary = Path(scratch) / "calls"
            # A grandchild (-D), so that daemons do not delay the end; at SIGTERM it writes its table.
            words = (self._program, "-D", "-f", "-qq", "-I", "waiting", "-c", "-o", str(summary), "--")
            observed = self._invoker.observe(
                ready,
                f"calls-{number}",
                lambda command: replace(under(words, command, slowdown=TIMES_SLOWER), orphans="terminate"),
            )
            if isinstance(observed.result, Failure):
                return observed.result
            calls = read_calls(summary.read_text(errors="replace"))
        floor = max(FLOORS[""], SHARE_OF_CALLS * sum(calls.values()))
        return {
            f"calls of {name}": ProfiledMetric(value=float(count), unit="", method="strace", floor=floor)
            for name, count in calls.items()
        }


EVENTS: Mapping[str, tuple[str, ...]] = {
    "instructions": ("Ir",),
    "cache misses": ("D1mr", "D1mw"),
    "last-level cache misses": ("DLmr", "DLmw"),
    "branch misses": ("Bcm", "Bim"),
}
"""Metrics of the whole program from Callgrind's events; misses are simulated."""


def instruction_metrics(profile: Profile) -> dict[str, ProfiledMetric]:
    """Return the metrics of a profile from Callgrind: instructions and misses, and instructions of each function."""
    total = dict(zip(profile.events, profile.total, strict=True))
    floor = max(FLOORS[""], SHARE_OF_INSTRUCTIONS * total.get("Ir", 0.0))
    counts: Counter[str] = Counter()
    for function, costs in profile.own.items():
        counts[base_name(function.name)] += int(costs[0]) if costs else 0
    misses = SHARE_OF_MISSES * total.get("Ir", 0.0)
    return {
        **{
            name: ProfiledMetric(
                value=sum(total.get(event, 0.0) for event in events),
                unit="",
                method="valgrind",
                floor=FLOORS[""] if name == "instructions" else max(FLOORS[""], misses),
            )
            for name, events in EVENTS.items()
            if total.keys() & set(events)
        },
        **{
            f"instructions in {name}": ProfiledMetric(
                value=float(count), unit="", method="valgrind", floor=floor
            )
            for name, count in counts.items()
        },
    }


def all_profilers(study: Study, invoker: Invoker, *, invocations: int) -> tuple[Profiler, ...]:
    """Return all profilers of metrics, the plain one first, with this number of `invocations`.

    The others have at most three.
    """
    few = min(3, invocations)
    return (
        PlainProfiler(study, invoker, invocations=invocations),
        LocksProfiler(invoker, invocations=few),
        AllocationsProfiler(invoker, invocations=few),
        CallsProfiler(invoker, invocations=few),
    )


def function_profilers(invoker: Invoker, *, invocations: int) -> tuple[FunctionProfiler, ...]:
    """Return the profilers of functions in the order in which they are tried: the first that applies is used.

    `invocations` is the number of pairs where times or samples vary; counts need at most three.
    """
    java = (JavaProfiler(invoker, pairs=invocations),) if shutil.which("java") else ()
    return (
        PythonProfiler(invoker, pairs=invocations),
        *java,
        CallgrindProfiler(invoker, pairs=min(3, invocations)),
        PerfProfiler(invoker, pairs=invocations),
    )
