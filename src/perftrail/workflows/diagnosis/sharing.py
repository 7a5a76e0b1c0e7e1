"""Who else uses the machine: load, steal, quota, power and heat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.quantity import number
from perftrail.model.wording import quoted
from perftrail.workflows.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.workflows.diagnosis.finding import Signs

BUSY_CPUS = 0.25
STOLEN = 0.01
CPUFREQ = "Linux, admin-guide/pm/cpufreq"


def load(signs: Signs) -> Iterator[Finding]:
    """Load: who else uses the CPUs, and how much."""
    foreign = signs.conditions.foreign_cpus
    cpus = signs.facts.get("logical_cpus", "?")
    if foreign is None:
        yield Finding(name="load", grade="unknown", here="this system does not tell who uses the CPUs")
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
        remedy='stop them; or [measure] quiet = "wait 60s"; judge by cpu instead of wall',
    )


def steal(signs: Signs) -> Iterator[Finding]:
    """Steal: whether a hypervisor takes time away."""
    kind = signs.facts.get("virtualisation", "none")
    if kind == "none":
        yield Finding(name="virtual machine", grade="fine", here="none: this is the machine itself")
        return
    now = signs.conditions.stolen_cpus or 0.0
    always = float(signs.settings.get("stolen_share", 0.0))
    taken = f"{now * 100:.1f} % of a CPU stolen now, {always * 100:.2f} % of all time since the start"
    heavy = max(now, always) > STOLEN
    yield Finding(
        name="virtual machine",
        grade="spoils" if heavy else "may spoil",
        here=f"{'a hypervisor that hides its name' if kind == 'unknown' else kind}; {taken}",
        cost="stolen time is in wall, and in cpu where the guest cannot tell"
        if heavy
        else "neighbours on the host share caches and memory; frequency and heat cannot be seen from inside",
        source="measured" if heavy else "known: a guest sees its own counters only",
        remedy="use a machine of its own, or an instance with dedicated CPUs; else more pairs",
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
        cost="a program that uses more stands still for up to 100 ms at a time",
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
            cost="the firmware lowers frequencies as it likes",
            source=f"known: {CPUFREQ}",
            remedy="plug it in",
        )
    elif power is not None:
        yield Finding(name="power", grade="fine", here="mains")


def heat(signs: Signs) -> Iterator[Finding]:
    """Heat: whether the processor slowed itself down."""
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
        cost="runs after each other are not alike; samples taken meanwhile are marked throttled",
        source="measured",
        remedy="better cooling; turbo off",
        fix="turbo" in signs.fixable,
    )
