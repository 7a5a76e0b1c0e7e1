"""Diagnose what on this machine disturbs measurements, its cost and its remedy.

`Signs` are the facts about a machine. Each function from `sandbox` to `heat` turns them into findings: about
sandboxes, memory, the processor, and other users of the machine. `examine` runs the whole diagnosis.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from perftrail.measure.sandboxes import why_no_sandbox
from perftrail.model.wording import number, quantity, quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.machine.load import Watch
from perftrail.process.machine.settings import (
    ChangedSettings,
    possible_changes,
    put_back_left_over,
    read_settings,
    run_attached,
)
from perftrail.verbs.resolution import ResolutionJson, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.measurement import BusyProcess, Conditions
    from perftrail.process.machine.settings import Change
    from perftrail.process.protocol import Capabilities
    from perftrail.verbs.resolution import Resolution


Grade = Literal["spoils", "may spoil", "unknown", "fine"]
"""How much a finding affects measurements on this machine, the worst first."""

GRADES: tuple[Grade, ...] = ("spoils", "may spoil", "unknown", "fine")


class DoctorFindingJson(TypedDict):
    """One property of the machine, and what it costs."""

    name: str
    grade: Grade
    here: Annotated[str, "its state on this machine"]
    cost: str
    source: str
    remedy: str
    fix: Annotated[bool, "whether `doctor --fix` changes it"]


class SettingJson(TypedDict):
    """A setting of the machine that perftrail changed, or restored."""

    setting: str
    file: str
    was: str
    set: str


class DoctorReportJson(TypedDict):
    """The state of a machine, and how small a change it can detect."""

    machine: str
    findings: list[DoctorFindingJson]
    resolution: ResolutionJson | None
    put_back: list[SettingJson]
    held: list[SettingJson]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact about a machine: its state here, its cost, the source of that knowledge, and a remedy.

    `source` is ``measured`` or names a document. `fix`: `--fix` changes it temporarily.
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
class Signs:
    """All that is known of a machine for its diagnosis.

    `facts` and `settings` are as the machine reports them; `conditions` are from a period in which perftrail
    was idle, with the `busiest` other processes of that period. `clock_seconds` is the cost of reading the
    clock. `cgroups` are the launcher's control groups. `fixable` are the settings that `--fix` would change.
    `no_sandbox` says why sandboxes do not work, with the remedy on its second line: empty if they work,
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


def sandbox(signs: Signs) -> Iterator[Finding]:
    """Sandbox: whether one can be created, and whether it limits memory."""
    if signs.no_sandbox is None:
        return
    if signs.no_sandbox:
        result, _, remedy = signs.no_sandbox.partition("\n")
        yield Finding(
            name="sandbox",
            grade="unknown",
            here=result.removeprefix("sandbox — "),
            cost="measurements are not affected; but code that --sandbox would contain runs with all your rights",
            source="measured",
            remedy=remedy,
        )
    elif signs.cgroups.get("memory") is None:
        yield Finding(
            name="sandbox",
            grade="fine",
            here="can be made; it limits memory for each process only, and where a study says sandbox.memory",
        )
    else:
        yield Finding(name="sandbox", grade="fine", here="can be made, with its memory and processes limited")


PRESSED = 0.01
TRANSHUGE = "Linux, admin-guide/mm/transhuge"
SYSCTL = "Linux, admin-guide/sysctl/kernel"
LAYOUT = "Mytkowicz et al., ASPLOS 2009"


def layout(signs: Signs) -> Iterator[Finding]:
    """Address layout: whether it is random in each run."""
    aslr = signs.settings.get("aslr")
    if aslr is None:
        return
    if aslr == "0":
        yield Finding(
            name="address layout",
            grade="may spoil",
            here="never randomised",
            cost="one memory layout for all runs: its effect looks like a change of the program",
            source=f"known: {LAYOUT}",
            remedy="echo 2 | sudo tee /proc/sys/kernel/randomize_va_space; repeated runs then average over it",
        )
    else:
        yield Finding(
            name="address layout",
            grade="fine",
            here="randomised: repeated runs average over it; counted instructions have it off",
        )


def huge_pages(signs: Signs) -> Iterator[Finding]:
    """Huge pages: whether programs get them without a request."""
    mode = signs.settings.get("thp")
    if mode == "always":
        yield Finding(
            name="huge pages",
            grade="may spoil",
            here="always",
            cost="their use depends on the free memory at that moment: time and peak memory jump",
            source=f"known: {TRANSHUGE}",
            remedy="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled, if production does so too",
        )
    elif mode:
        yield Finding(name="huge pages", grade="fine", here=mode)


def swap(signs: Signs) -> Iterator[Finding]:
    """Swap: whether memory is short now, or may be paged out during a run."""
    pressure = signs.conditions.memory_pressure or 0.0
    if pressure > PRESSED:
        yield Finding(
            name="memory",
            grade="spoils",
            here=f"processes waited for memory in {pressure * 100:.0f} % of the time",
            cost="every sample includes the waiting",
            source="measured",
            remedy="stop the processes that fill the memory",
        )
    swaps = signs.settings.get("swaps")
    if swaps is None:
        return
    if swaps == "0":
        yield Finding(name="swap", grade="fine", here="none")
        return
    yield Finding(
        name="swap",
        grade="may spoil",
        here=f"{swaps} in use, swappiness {signs.settings.get('swappiness', '?')}",
        cost="paged-out memory is paged in during some runs; such samples are flagged",
        source="known: Linux, admin-guide/sysctl/vm",
        remedy="sudo swapoff -a, if there is enough memory",
        fix="swappiness" in signs.fixable,
    )


def numa(signs: Signs) -> Iterator[Finding]:
    """Memory nodes: whether memory may be remote, or is migrated."""
    nodes = signs.settings.get("numa_nodes", "0")
    if nodes == "0":
        yield Finding(name="NUMA", grade="fine", here="one node")
        return
    balancing = signs.settings.get("numa_balancing", "0") != "0"
    yield Finding(
        name="NUMA",
        grade="may spoil",
        here=f"nodes {nodes}, balancing {'on' if balancing else 'off'}",
        cost="memory of another node is slower, and its location changes from run to run",
        source=f"known: {SYSCTL}",
        remedy="numactl --cpunodebind=0 --membind=0 as the variant's run.prefix",
        fix="numa_balancing" in signs.fixable,
    )


def control_groups(signs: Signs) -> Iterator[Finding]:
    """Control groups: whether whole process trees can be counted."""
    memory, cpu = signs.cgroups.get("memory"), signs.cgroups.get("cpu")
    if memory is not None and cpu is not None:
        yield Finding(
            name="control groups", grade="fine", here=f"{memory}: memory and CPU time of whole trees"
        )
        return
    lacking = " and ".join(what for what, how in (("memory", memory), ("CPU time", cpu)) if how is None)
    yield Finding(
        name="control groups",
        grade="may spoil",
        here=f"none available for {lacking}",
        cost="a tree's memory is sampled, a short peak can be missed; limits hold for each process only",
        source="known: launcher/PROTOCOL.md",
        remedy="systemd-run --user --scope -p Delegate=yes perftrail …",
    )


SLOW_CLOCK_SECONDS = 500e-9
CPUFREQ = "Linux, admin-guide/pm/cpufreq"
TIPS = "LLVM, Benchmarking tips"
PARAMETERS = "Linux, admin-guide/kernel-parameters"


def governor(signs: Signs) -> Iterator[Finding]:
    """Frequency governor: whether the speed follows the load."""
    governor = signs.facts.get("governor")
    if governor is None:
        yield Finding(
            name="governor",
            grade="unknown",
            here="this machine does not show or set the frequency",
            cost="the host's frequency changes affect every sample",
            source=f"known: {CPUFREQ}",
        )
    elif governor == "performance":
        yield Finding(name="governor", grade="fine", here=governor)
    else:
        yield Finding(
            name="governor",
            grade="spoils",
            here=governor,
            cost="the frequency follows the load: short programs run at one, long ones at another",
            source=f"known: {CPUFREQ}",
            remedy="sudo cpupower frequency-set -g performance",
            fix="governor" in signs.fixable,
        )


def turbo(signs: Signs) -> Iterator[Finding]:
    """Turbo: whether the speed follows heat and neighbours."""
    turbo = signs.facts.get("turbo")
    if turbo == "off":
        yield Finding(name="turbo", grade="fine", here="off")
    elif turbo == "on":
        yield Finding(
            name="turbo",
            grade="may spoil",
            here="on",
            cost="speed depends on heat and on how many CPUs work; thread scaling looks worse than it is",
            source=f"known: {TIPS}",
            remedy="echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo, or cpufreq/boost to 0",
            fix="turbo" in signs.fixable,
        )


def smt(signs: Signs) -> Iterator[Finding]:
    """Sibling threads: whether a core may be shared."""
    active = signs.settings.get("smt_active")
    if active == "0" and signs.facts.get("virtualisation", "none") != "none":
        yield Finding(
            name="sibling threads",
            grade="unknown",
            here="a guest cannot see whether its CPUs share a core with other guests",
        )
    elif active == "0":
        yield Finding(name="sibling threads", grade="fine", here="off: each CPU is a separate core")
    elif active == "1":
        yield Finding(
            name="sibling threads",
            grade="may spoil",
            here="on: two CPUs share a core",
            cost="a neighbour on the sibling takes part of the core, and no counter shows it",
            source=f"known: {TIPS}",
            remedy="keep the siblings idle; off: echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )


def isolated(signs: Signs) -> Iterator[Finding]:
    """Isolation: whether some CPUs are kept free of other work."""
    isolated = signs.settings.get("isolated", "")
    if isolated:
        yield Finding(name="isolated CPUs", grade="fine", here=isolated)
        return
    yield Finding(
        name="isolated CPUs",
        grade="may spoil",
        here="none",
        cost="the scheduler runs other work on every CPU, including the tick",
        source=f"known: {PARAMETERS}",
        remedy="boot with isolcpus=2,3 nohz_full=2,3 and run with taskset -c 2; worth it below 1 %",
    )


def counters(signs: Signs) -> Iterator[Finding]:
    """Hardware counters: whether instructions can be counted at full speed."""
    if signs.settings.get("counters") != "yes":
        yield Finding(
            name="hardware counters",
            grade="unknown",
            here="this machine shows none",
            cost="instructions cannot be counted while a program runs at full speed",
            source="measured",
            remedy="the metric instructions uses Valgrind if it is installed",
        )
        return
    paranoid = signs.settings.get("perf_event_paranoid", "2")
    allowed = paranoid.lstrip("-").isdigit() and int(paranoid) <= 2
    yield Finding(
        name="hardware counters",
        grade="fine" if allowed else "may spoil",
        here=f"there, perf_event_paranoid {paranoid}",
        cost="" if allowed else "instructions cannot be counted without root",
        source="" if allowed else "known: Linux, admin-guide/perf-security",
        remedy="" if allowed else "echo 2 | sudo tee /proc/sys/kernel/perf_event_paranoid",
    )


def clock(signs: Signs) -> Iterator[Finding]:
    """Clock: the cost of reading it."""
    source = signs.settings.get("clocksource", "unknown")
    each = quantity(signs.clock_seconds, "s")
    if signs.clock_seconds <= SLOW_CLOCK_SECONDS:
        yield Finding(name="clock", grade="fine", here=f"{source}, {each} to read")
        return
    better = [name for name in signs.settings.get("clocksources", "").split() if name != source]
    yield Finding(
        name="clock",
        grade="may spoil",
        here=f"{source}, {each} to read",
        cost="slows a program that reads the clock often",
        source="measured",
        remedy=f"boot with clocksource={better[0]}" if better else "",
    )


BUSY_CPUS = 0.25
STOLEN = 0.01


def load(signs: Signs) -> Iterator[Finding]:
    """Load: other users of the CPUs."""
    foreign = signs.conditions.foreign_cpus
    cpus = signs.facts.get("logical_cpus", "?")
    if foreign is None:
        yield Finding(name="load", grade="unknown", here="this system does not show who uses the CPUs")
        return
    who = ", ".join(f"{quoted(each.name)} ({each.pid}) {each.cpus:.2f}" for each in signs.busiest[:3])
    here = f"others use {number(foreign)} of {cpus} CPUs"
    if foreign <= BUSY_CPUS:
        yield Finding(name="load", grade="fine", here=here)
        return
    yield Finding(
        name="load",
        grade="spoils",
        here=f"{here}: {who}" if who else here,
        cost=f"up to {min(foreign, 1.0) * 100:.0f} % of a CPU that a program would have; caches and memory too",
        source="measured",
        remedy='stop them; or [measure] quiet = "wait 60s"; or use cpu instead of wall',
    )


def steal(signs: Signs) -> Iterator[Finding]:
    """Steal: whether a hypervisor takes CPU time."""
    kind = signs.facts.get("virtualisation", "none")
    if kind == "none":
        yield Finding(name="virtual machine", grade="fine", here="none: this is a physical machine")
        return
    now = signs.conditions.stolen_cpus or 0.0
    always = float(signs.settings.get("stolen_share", 0.0))
    taken = f"{now * 100:.1f} % of a CPU stolen now, {always * 100:.2f} % of all time since the start"
    heavy = max(now, always) > STOLEN
    yield Finding(
        name="virtual machine",
        grade="spoils" if heavy else "may spoil",
        here=f"{'a hypervisor that hides its name' if kind == 'unknown' else kind}; {taken}",
        cost="stolen time counts as wall, and as cpu if the guest does not know it"
        if heavy
        else "neighbours on the host share caches and memory; a guest cannot see frequency and heat",
        source="measured" if heavy else "known: a guest sees its own counters only",
        remedy="use a physical machine, or an instance with dedicated CPUs; else more pairs",
    )


def quota(signs: Signs) -> Iterator[Finding]:
    """Quota: whether a control group limits CPU time."""
    quota = signs.facts.get("cpu_quota")
    if quota is None:
        yield Finding(name="CPU limit", grade="fine", here="no control group limits CPU time")
        return
    yield Finding(
        name="CPU limit",
        grade="may spoil",
        here=f"a control group allows {quota} CPUs",
        cost="a program that uses more is paused for up to 100 ms at a time",
        source="known: Linux, scheduler/sched-bwc",
        remedy="start the container without a CPU limit (docker: no --cpus); bind it to CPUs instead",
    )


def power(signs: Signs) -> Iterator[Finding]:
    """Power: whether a battery limits the speed."""
    power = signs.settings.get("power")
    if power == "battery":
        yield Finding(
            name="power",
            grade="spoils",
            here="on battery",
            cost="the firmware may lower frequencies at any time",
            source=f"known: {CPUFREQ}",
            remedy="plug it in",
        )
    elif power is not None:
        yield Finding(name="power", grade="fine", here="mains")


def heat(signs: Signs) -> Iterator[Finding]:
    """Heat: whether the processor reduced its speed."""
    throttles = signs.settings.get("heat_throttles")
    if throttles is None:
        return
    celsius = signs.conditions.celsius
    now = f", {celsius:.0f} °C now" if celsius is not None else ""
    if throttles == "0":
        yield Finding(name="heat", grade="fine", here=f"never slowed down since the start{now}")
        return
    yield Finding(
        name="heat",
        grade="may spoil",
        here=f"slowed down {throttles} times since the start{now}",
        cost="consecutive runs differ; such samples are flagged throttled",
        source="measured",
        remedy="better cooling; turbo off",
        fix="turbo" in signs.fixable,
    )


__all__ = ["GRADES", "Finding", "Grade", "Signs", "diagnose"]

_LOOKS = (
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
"""The checks, in order of their usual cost, which is the order within a grade."""


def diagnose(signs: Signs) -> tuple[Finding, ...]:
    """Return every finding, the worst first."""
    found = [finding for look in _LOOKS for finding in look(signs)]
    return tuple(sorted(found, key=lambda finding: GRADES.index(finding.grade)))


WATCHED_SECONDS = 1.0
CLOCK_READINGS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The diagnosis: every finding, the worst first, and the resolution unless it was to be quick.

    `put_back` are settings that a killed perftrail had left changed, `held` those that are changed now.
    """

    machine: str
    findings: tuple[Finding, ...]
    resolution: Resolution | None
    put_back: tuple[Change, ...] = ()
    held: tuple[Change, ...] = ()

    def as_json(self) -> DoctorReportJson:
        """Return the report as `doctor --json` prints it."""
        return {
            "machine": self.machine,
            "findings": [finding.as_json() for finding in self.findings],
            "resolution": None if self.resolution is None else self.resolution.as_json(),
            "put_back": [_change_json(change) for change in self.put_back],
            "held": [_change_json(change) for change in self.held],
        }


def examine(*, quick: bool = False, held: tuple[Change, ...] = ()) -> Report:
    """Observe this machine for a second, and unless `quick` measure its resolution.

    Settings that a killed perftrail left changed are restored first.
    """
    put_back = put_back_left_over()
    with Launcher() as launcher:
        signs = read_signs(launcher.start())
        resolution = None if quick else resolve(launcher)
    return Report(
        machine=read_machine().id,
        findings=diagnose(signs),
        resolution=resolution,
        put_back=put_back,
        held=held,
    )


def read_signs(capabilities: Capabilities) -> Signs:
    """Read everything that a diagnosis needs, and observe the load for a second."""
    with Watch() as watch:
        watch.begin()
        busiest = watch.busiest(seconds=WATCHED_SECONDS)
        conditions = watch.end(0.0)
    return Signs(
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
def fixed() -> Iterator[tuple[Change, ...]]:
    """Change settings for the duration of this context; yield the changes.

    Raises `SettingsError` if a change fails, after restoring all settings.
    """
    put_back_left_over()
    changes = possible_changes()
    with ChangedSettings(changes):
        yield changes


def run(arguments: Sequence[str]) -> int:
    """Run a command on this terminal and return its exit code. Raises `UsageError` for an unknown program."""
    return run_attached(arguments)


def _clock_seconds() -> float:
    """Return the cost of reading the clock, including the loop around it; the fastest of several tries."""
    tries = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(CLOCK_READINGS):
            time.monotonic_ns()
        tries.append((time.perf_counter() - started) / CLOCK_READINGS)
    return min(tries)


def _change_json(change: Change) -> SettingJson:
    return {"setting": change.setting, "file": change.file, "was": change.was, "set": change.wanted}
