"""Diagnose what on this machine disturbs measurements, its cost and its remedy.

`MachineState` has the facts about a machine. Each function from `sandbox` to `heat` checks one of them and yields
findings: about sandboxes, memory, the processor, and other users of the machine. `examine` runs all checks.
"""

from __future__ import annotations

import platform
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.file_tree import user_cache
from perftrail.measure.sandboxes import why_no_sandbox
from perftrail.model.wording import number, quantity, quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.machine.load import Watch
from perftrail.process.machine.settings import (
    ChangedSettings,
    possible_changes,
    read_settings,
    restore_abandoned_settings,
)
from perftrail.verbs.resolution import ResolutionJson, measure_resolution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from perftrail.model.measurement import BusyProcess, Conditions
    from perftrail.process.machine.settings import Change
    from perftrail.process.protocol import Capabilities
    from perftrail.verbs.resolution import Resolution


Grade = Literal["spoils", "may spoil", "unknown", "fine"]
"""Effect of a finding on measurements, the worst first."""

GRADES: tuple[Grade, ...] = ("spoils", "may spoil", "unknown", "fine")


class DoctorFindingJson(TypedDict):
    """One property of the machine, with its cost and remedy."""

    name: str
    grade: Grade
    here: Annotated[str, "its value on this machine"]
    cost: str
    source: str
    remedy: str
    fix: Annotated[bool, "whether `doctor --fix` changes this setting"]


class SettingJson(TypedDict):
    """A setting of the machine that perftrail changed, or restored."""

    setting: str
    file: str
    was: str
    set: str


class DoctorReportJson(TypedDict):
    """The state of a machine, and the smallest change that it can detect."""

    machine: str
    findings: list[DoctorFindingJson]
    resolution: ResolutionJson | None
    restored: list[SettingJson]
    changed: list[SettingJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One fact about a machine: its value here, its cost, the source of that knowledge, and a remedy.

    `source` is ``measured`` or names a document. `fix`: `--fix` changes the setting temporarily.
    """

    name: str
    grade: Grade
    here: str
    cost: str = ""
    source: str = ""
    remedy: str = ""
    fix: bool = False

    def as_json(self) -> DoctorFindingJson:
        """Return the finding as `doctor --json` prints it."""
        return {
            "name": self.name,
            "grade": self.grade,
            "here": self.here,
            "cost": self.cost,
            "source": self.source,
            "remedy": self.remedy,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The state of a machine that the checks use.

    `facts` and `settings` are as the machine reports them; `conditions` are from a period in which perftrail
    was idle, with the `busiest` other processes of that period. `clock_seconds` is the cost of reading the
    clock. `cgroups` are the launcher's control groups. `fixable` are the settings that `--fix` would change.
    `no_sandbox` is the reason why sandboxes do not work, with the remedy on its second line: empty if they work,
    `None` if not tested.
    """

    facts: Mapping[str, str]
    settings: Mapping[str, str]
    conditions: Conditions
    busiest: tuple[BusyProcess, ...] = ()
    clock_seconds: float = 0.0
    cgroups: Mapping[str, str | None] = field(default_factory=dict)
    fixable: frozenset[str] = frozenset()
    no_sandbox: str | None = None


def sandbox(state: MachineState) -> Iterator[DoctorFinding]:
    """Sandbox: whether one can be created, and whether it limits memory."""
    if state.no_sandbox is None:
        return
    if state.no_sandbox:
        result, _, remedy = state.no_sandbox.partition("\n")
        yield DoctorFinding(
            name="sandbox",
            grade="unknown",
            here=result.removeprefix("sandbox — "),
            cost="measurements are not affected, but without a sandbox builds and benchmarks run with all your rights",
            source="measured",
            remedy=remedy,
        )
    elif state.cgroups.get("memory") is None:
        yield DoctorFinding(
            name="sandbox",
            grade="fine",
            here="works; it can limit the memory of each process only (sandbox.memory), not of all together",
        )
    else:
        yield DoctorFinding(name="sandbox", grade="fine", here="works, with limits of memory and processes")


MOST_MEMORY_PRESSURE = 0.01
TRANSHUGE = "Linux, admin-guide/mm/transhuge"
SYSCTL = "Linux, admin-guide/sysctl/kernel"
LAYOUT = "Mytkowicz et al., ASPLOS 2009"


def layout(state: MachineState) -> Iterator[DoctorFinding]:
    """Address layout: whether it is random in each run."""
    aslr = state.settings.get("aslr")
    if aslr is None:
        return
    if aslr == "0":
        yield DoctorFinding(
            name="address layout",
            grade="may spoil",
            here="not randomised",
            cost="all runs have the same memory layout, whose effect looks like a change of the program",
            source=f"known: {LAYOUT}",
            remedy="echo 2 | sudo tee /proc/sys/kernel/randomize_va_space; repeated runs then average over layouts",
        )
    else:
        yield DoctorFinding(
            name="address layout",
            grade="fine",
            here="randomised: repeated runs average over layouts; perftrail turns it off to count instructions",
        )


def huge_pages(state: MachineState) -> Iterator[DoctorFinding]:
    """Huge pages: whether programs get them without a request."""
    mode = state.settings.get("thp")
    if mode == "always":
        yield DoctorFinding(
            name="huge pages",
            grade="may spoil",
            here="always",
            cost="whether a program gets huge pages depends on the free memory: time and peak memory jump",
            source=f"known: {TRANSHUGE}",
            remedy="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled, if production has it too",
        )
    elif mode:
        yield DoctorFinding(name="huge pages", grade="fine", here=mode)


def swap(state: MachineState) -> Iterator[DoctorFinding]:
    """Swap: whether memory is short now, or may be paged out during a run."""
    pressure = state.conditions.memory_pressure or 0.0
    if pressure > MOST_MEMORY_PRESSURE:
        yield DoctorFinding(
            name="memory",
            grade="spoils",
            here=f"processes waited for memory in {pressure * 100:.0f} % of the time",
            cost="every sample includes the waiting",
            source="measured",
            remedy="stop the processes that fill the memory",
        )
    swaps = state.settings.get("swaps")
    if swaps is None:
        return
    if swaps == "0":
        yield DoctorFinding(name="swap", grade="fine", here="none")
        return
    yield DoctorFinding(
        name="swap",
        grade="may spoil",
        here=f"{swaps} in use, swappiness {state.settings.get('swappiness', '?')}",
        cost="memory is paged in during some runs; perftrail flags such samples",
        source="known: Linux, admin-guide/sysctl/vm",
        remedy="sudo swapoff -a, if there is enough memory",
        fix="swappiness" in state.fixable,
    )


def numa(state: MachineState) -> Iterator[DoctorFinding]:
    """Memory nodes: whether memory may be remote, or is migrated."""
    nodes = state.settings.get("numa_nodes", "0")
    if nodes == "0":
        yield DoctorFinding(name="NUMA", grade="fine", here="one node")
        return
    balancing = state.settings.get("numa_balancing", "0") != "0"
    yield DoctorFinding(
        name="NUMA",
        grade="may spoil",
        here=f"nodes {nodes}, balancing {'on' if balancing else 'off'}",
        cost="memory of another node is slower, and its location changes from run to run",
        source=f"known: {SYSCTL}",
        remedy="numactl --cpunodebind=0 --membind=0 as the variant's run.prefix",
        fix="numa_balancing" in state.fixable,
    )


def control_groups(state: MachineState) -> Iterator[DoctorFinding]:
    """Control groups: whether whole process trees can be counted."""
    memory, cpu = state.cgroups.get("memory"), state.cgroups.get("cpu")
    if memory is not None and cpu is not None:
        yield DoctorFinding(
            name="control groups", grade="fine", here=f"{memory}: memory and CPU time of whole process trees"
        )
        return
    lacking = " and ".join(what for what, how in (("memory", memory), ("CPU time", cpu)) if how is None)
    yield DoctorFinding(
        name="control groups",
        grade="may spoil",
        here=f"none available for {lacking}",
        cost="perftrail polls the memory of trees and may miss a short peak; limits apply to each process only",
        source="known: launcher/PROTOCOL.md",
        remedy="systemd-run --user --scope -p Delegate=yes perftrail …",
    )


SLOW_CLOCK_SECONDS = 500e-9
CPUFREQ = "Linux, admin-guide/pm/cpufreq"
TIPS = "LLVM, Benchmarking tips"
PARAMETERS = "Linux, admin-guide/kernel-parameters"


def governor(state: MachineState) -> Iterator[DoctorFinding]:
    """Frequency governor: whether the speed depends on the load."""
    governor = state.facts.get("governor")
    if governor is None:
        yield DoctorFinding(
            name="governor",
            grade="unknown",
            here="this machine does not report its CPU frequency",
            cost="frequency changes of the host affect every sample",
            source=f"known: {CPUFREQ}",
        )
    elif governor == "performance":
        yield DoctorFinding(name="governor", grade="fine", here=governor)
    else:
        yield DoctorFinding(
            name="governor",
            grade="spoils",
            here=governor,
            cost="the frequency follows the load: short and long programs run at different frequencies",
            source=f"known: {CPUFREQ}",
            remedy="sudo cpupower frequency-set -g performance",
            fix="governor" in state.fixable,
        )


def turbo(state: MachineState) -> Iterator[DoctorFinding]:
    """Turbo: whether the speed depends on heat and on other busy CPUs."""
    turbo = state.facts.get("turbo")
    if turbo == "off":
        yield DoctorFinding(name="turbo", grade="fine", here="off")
    elif turbo == "on":
        yield DoctorFinding(
            name="turbo",
            grade="may spoil",
            here="on",
            cost="the frequency depends on heat and on the number of busy CPUs; threads seem to scale worse",
            source=f"known: {TIPS}",
            remedy="echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo, or cpufreq/boost to 0",
            fix="turbo" in state.fixable,
        )


def smt(state: MachineState) -> Iterator[DoctorFinding]:
    """Sibling threads: whether a core may be shared."""
    active = state.settings.get("smt_active")
    if active == "0" and state.facts.get("virtualisation", "none") != "none":
        yield DoctorFinding(
            name="sibling threads",
            grade="unknown",
            here="a guest cannot see whether its CPUs share a core with other guests",
        )
    elif active == "0":
        yield DoctorFinding(name="sibling threads", grade="fine", here="off: each CPU is a separate core")
    elif active == "1":
        yield DoctorFinding(
            name="sibling threads",
            grade="may spoil",
            here="on: two CPUs share a core",
            cost="a process on the sibling uses a part of the core, and no counter shows it",
            source=f"known: {TIPS}",
            remedy="keep the siblings idle, or: echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )


def isolated(state: MachineState) -> Iterator[DoctorFinding]:
    """Isolation: whether some CPUs are kept free of other work."""
    isolated = state.settings.get("isolated", "")
    if isolated:
        yield DoctorFinding(name="isolated CPUs", grade="fine", here=isolated)
        return
    yield DoctorFinding(
        name="isolated CPUs",
        grade="may spoil",
        here="none",
        cost="the scheduler runs other work on every CPU, including the tick",
        source=f"known: {PARAMETERS}",
        remedy=_isolation(state.facts.get("logical_cpus", "")),
    )


def _isolation(cpus: str) -> str:
    """Return how to keep the last quarter of the CPUs free, at least one of them.

    >>> _isolation("2")
    'boot with isolcpus=1 nohz_full=1 and run with taskset -c 1; needed only for changes below 1 %'
    """
    count = int(cpus) if cpus.isdigit() else 0
    if count < 2:
        return "use a machine with two or more CPUs; needed only for changes below 1 %"
    first, last = count - max(1, count // 4), count - 1
    span = str(last) if first == last else f"{first}-{last}"
    boot = f"boot with isolcpus={span} nohz_full={span} and run with taskset -c {span}"
    return f"{boot}; needed only for changes below 1 %"


def counters(state: MachineState) -> Iterator[DoctorFinding]:
    """Hardware counters: whether instructions can be counted at full speed."""
    if state.settings.get("counters") != "yes":
        yield DoctorFinding(
            name="hardware counters",
            grade="unknown",
            here="none available",
            cost="perftrail cannot count instructions at full speed",
            source="measured",
            remedy="the metric instructions uses Valgrind if it is installed",
        )
        return
    paranoid = state.settings.get("perf_event_paranoid", "2")
    allowed = paranoid.lstrip("-").isdigit() and int(paranoid) <= 2
    yield DoctorFinding(
        name="hardware counters",
        grade="fine" if allowed else "may spoil",
        here=f"available, perf_event_paranoid {paranoid}",
        cost="" if allowed else "perftrail cannot count instructions without root",
        source="" if allowed else "known: Linux, admin-guide/perf-security",
        remedy="" if allowed else "echo 2 | sudo tee /proc/sys/kernel/perf_event_paranoid",
    )


def clock(state: MachineState) -> Iterator[DoctorFinding]:
    """Clock: the cost of reading it."""
    source = state.settings.get("clocksource", "unknown")
    each = quantity(state.clock_seconds, "s")
    if state.clock_seconds <= SLOW_CLOCK_SECONDS:
        yield DoctorFinding(name="clock", grade="fine", here=f"{source}, {each} to read")
        return
    better = [name for name in state.settings.get("clocksources", "").split() if name != source]
    yield DoctorFinding(
        name="clock",
        grade="may spoil",
        here=f"{source}, {each} to read",
        cost="a program that reads the clock often is slower",
        source="measured",
        remedy=f"boot with clocksource={better[0]}" if better else "",
    )


MOST_FOREIGN_CPUS = 0.25
MOST_STOLEN_CPUS = 0.01


def load(state: MachineState) -> Iterator[DoctorFinding]:
    """Load: other users of the CPUs."""
    foreign = state.conditions.foreign_cpus
    cpus = state.facts.get("logical_cpus", "?")
    if foreign is None:
        yield DoctorFinding(
            name="load", grade="unknown", here="this system does not report the CPU time of other processes"
        )
        return
    users = ", ".join(f"{quoted(each.name)} ({each.pid}) {each.cpus:.2f}" for each in state.busiest[:3])
    here = f"other processes use {number(foreign)} of {cpus} CPUs"
    if foreign <= MOST_FOREIGN_CPUS:
        yield DoctorFinding(name="load", grade="fine", here=here)
        return
    yield DoctorFinding(
        name="load",
        grade="spoils",
        here=f"{here}: {users}" if users else here,
        cost=f"up to {min(foreign, 1.0) * 100:.0f} % less CPU time for a program, and less cache and memory bandwidth",
        source="measured",
        remedy='stop these processes, or set [measure] quiet = "wait 60s", or use cpu instead of wall',
    )


def steal(state: MachineState) -> Iterator[DoctorFinding]:
    """Steal: whether a hypervisor takes CPU time."""
    kind = state.facts.get("virtualisation", "none")
    if kind == "none":
        yield DoctorFinding(name="virtual machine", grade="fine", here="none: this is a physical machine")
        return
    now = state.conditions.stolen_cpus or 0.0
    always = float(state.settings.get("stolen_share", 0.0))
    stolen = f"{now * 100:.1f} % of a CPU stolen now, {always * 100:.2f} % since the boot"
    heavy = max(now, always) > MOST_STOLEN_CPUS
    yield DoctorFinding(
        name="virtual machine",
        grade="spoils" if heavy else "may spoil",
        here=f"{'a hypervisor that hides its name' if kind == 'unknown' else kind}; {stolen}",
        cost="stolen time is part of wall time, and of CPU time if the guest does not know about it"
        if heavy
        else "other guests share caches and memory; a guest cannot see frequency and heat",
        source="measured" if heavy else "known: a guest sees only its own counters",
        remedy="use a physical machine, an instance with dedicated CPUs, or more pairs",
    )


def quota(state: MachineState) -> Iterator[DoctorFinding]:
    """Quota: whether a control group limits CPU time."""
    quota = state.facts.get("cpu_quota")
    if quota is None:
        yield DoctorFinding(name="CPU limit", grade="fine", here="no control group limits CPU time")
        return
    yield DoctorFinding(
        name="CPU limit",
        grade="may spoil",
        here=f"a control group allows {quota} CPUs",
        cost="a program that uses more is paused for up to 100 ms at a time",
        source="known: Linux, scheduler/sched-bwc",
        remedy="start the container without a CPU limit (docker: no --cpus); bind it to CPUs instead",
    )


def power(state: MachineState) -> Iterator[DoctorFinding]:
    """Power: whether a battery limits the speed."""
    power = state.settings.get("power")
    if power == "battery":
        yield DoctorFinding(
            name="power",
            grade="spoils",
            here="on battery",
            cost="the firmware may lower frequencies at any time",
            source=f"known: {CPUFREQ}",
            remedy="plug it in",
        )
    elif power is not None:
        yield DoctorFinding(name="power", grade="fine", here="mains")


def heat(state: MachineState) -> Iterator[DoctorFinding]:
    """Heat: whether the processor reduced its speed."""
    throttles = state.settings.get("heat_throttles")
    if throttles is None:
        return
    celsius = state.conditions.celsius
    now = f", {celsius:.0f} °C now" if celsius is not None else ""
    if throttles == "0":
        yield DoctorFinding(name="heat", grade="fine", here=f"never throttled since the boot{now}")
        return
    yield DoctorFinding(
        name="heat",
        grade="may spoil",
        here=f"throttled {throttles} times since the boot{now}",
        cost="consecutive runs differ; perftrail flags such samples as throttled",
        source="measured",
        remedy="improve the cooling, or turn turbo off",
        fix="turbo" in state.fixable,
    )


_CHECKS = (
    load,
    power,
    swap,
    governor,
    turbo,
    heat,
    steal,
    quota,
    smt,
    numa,
    huge_pages,
    layout,
    control_groups,
    counters,
    isolated,
    clock,
    sandbox,
)
"""The checks, the most important first, which is the order of findings within a grade."""


def diagnose(state: MachineState) -> tuple[DoctorFinding, ...]:
    """Return every finding, the worst first."""
    found = [finding for check in _CHECKS for finding in check(state)]
    return tuple(sorted(found, key=lambda finding: GRADES.index(finding.grade)))


WATCHED_SECONDS = 1.0
CLOCK_READINGS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """The diagnosis: every finding, the worst first, and the resolution if it was measured.

    `restored` are settings that a killed perftrail had left changed, `changed` those that are changed now.
    """

    machine: str
    findings: tuple[DoctorFinding, ...]
    resolution: Resolution | None
    restored: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()

    def as_json(self) -> DoctorReportJson:
        """Return the report as `doctor --json` prints it."""
        return {
            "machine": self.machine,
            "findings": [finding.as_json() for finding in self.findings],
            "resolution": None if self.resolution is None else self.resolution.as_json(),
            "restored": [_change_json(change) for change in self.restored],
            "changed": [_change_json(change) for change in self.changed],
        }


def examine(*, quick: bool = False, changed: tuple[Change, ...] = ()) -> DoctorReport:
    """Observe this machine for a second, and unless `quick` measure its resolution.

    Settings that a killed perftrail left changed are restored first.
    """
    restored = restore_abandoned_settings()
    with Launcher() as launcher:
        state = read_machine_state(launcher.start())
        resolution = None if quick else measure_resolution(launcher)
    return DoctorReport(
        machine=read_machine().id,
        findings=diagnose(state),
        resolution=resolution,
        restored=restored,
        changed=changed,
    )


def first_time() -> bool:
    """Whether this is the first call on this machine, which the user's cache remembers.

    False if the cache cannot be written, because the next call could not know of this one.
    """
    marker = user_cache() / "reported" / platform.node()
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch(exist_ok=False)
    except OSError:
        return False
    return True


def read_machine_state(capabilities: Capabilities) -> MachineState:
    """Read the state of this machine, and observe its load for a second."""
    with Watch() as watch:
        watch.begin()
        busiest = watch.busiest(seconds=WATCHED_SECONDS)
        conditions = watch.end(0.0)
    return MachineState(
        facts=read_machine().facts,
        settings=read_settings(),
        conditions=conditions,
        busiest=busiest,
        clock_seconds=_clock_seconds(),
        cgroups={"memory": capabilities.memory_cgroup, "cpu": capabilities.cpu_cgroup},
        fixable=frozenset(change.setting for change in possible_changes()),
        no_sandbox=why_no_sandbox(),
    )


@contextmanager
def changed_settings() -> Iterator[tuple[Change, ...]]:
    """Change settings for measuring in this context; yield the changes.

    Raises `SettingsError` if a change fails, after restoring all settings.
    """
    restore_abandoned_settings()
    changes = possible_changes()
    with ChangedSettings(changes):
        yield changes


def _clock_seconds() -> float:
    """Return the cost of reading the clock, including the loop around it; the fastest of several rounds."""
    seconds_each = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(CLOCK_READINGS):
            time.monotonic_ns()
        seconds_each.append((time.perf_counter() - started) / CLOCK_READINGS)
    return min(seconds_each)


def _change_json(change: Change) -> SettingJson:
    return {"setting": change.setting, "file": change.file, "was": change.was, "set": change.wanted}
