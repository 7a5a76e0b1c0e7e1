"""How the processor runs: governor, turbo, sibling threads, isolation, counters, clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.quantity import quantity
from perftrail.workflows.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.workflows.diagnosis.finding import Signs

SLOW_CLOCK_SECONDS = 500e-9
CPUFREQ = "Linux, admin-guide/pm/cpufreq"
TIPS = "LLVM, Benchmarking tips"
PARAMETERS = "Linux, admin-guide/kernel-parameters"


def governor(signs: Signs) -> Iterator[Finding]:
    """The frequency governor: whether the speed follows the load."""
    governor = signs.facts.get("governor")
    if governor is None:
        yield Finding(
            name="governor",
            grade="unknown",
            here="the frequency is not ours to see or to set",
            cost="what the host does with it is in every figure",
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
            here="a guest cannot see whether its CPUs share a core with somebody",
        )
    elif active == "0":
        yield Finding(name="sibling threads", grade="fine", here="off: each CPU is a core of its own")
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
        cost="the scheduler puts other work on every CPU, the tick included",
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
            remedy="metric instructions counts with Valgrind where that is installed",
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
    """The clock: what reading it costs."""
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
        cost="a program that times itself often is slowed by it",
        source="measured",
        remedy=f"boot with clocksource={better[0]}" if better else "",
    )
