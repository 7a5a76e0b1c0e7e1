"""How memory is laid out and counted: address layout, huge pages, swap, nodes, control groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.workflows.diagnosis.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.workflows.diagnosis.finding import Signs

PRESSED = 0.01
TRANSHUGE = "Linux, admin-guide/mm/transhuge"
SYSCTL = "Linux, admin-guide/sysctl/kernel"
LAYOUT = "Mytkowicz et al., ASPLOS 2009"


def layout(signs: Signs) -> Iterator[Finding]:
    """Address layout: whether it is drawn anew for each run."""
    aslr = signs.settings.get("aslr")
    if aslr is None:
        return
    if aslr == "0":
        yield Finding(
            name="address layout",
            grade="may spoil",
            here="never randomised",
            cost="one layout of memory for all runs: its luck looks like a change of the program",
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
    """Huge pages: whether programs get them unasked."""
    mode = signs.settings.get("thp")
    if mode == "always":
        yield Finding(
            name="huge pages",
            grade="may spoil",
            here="always",
            cost="whether memory gets them depends on what is free just then: time and peak memory jump",
            source=f"known: {TRANSHUGE}",
            remedy="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled, if production has so too",
        )
    elif mode:
        yield Finding(name="huge pages", grade="fine", here=mode)


def swap(signs: Signs) -> Iterator[Finding]:
    """Swap: whether memory is short now, or may be taken out meanwhile."""
    pressure = signs.conditions.memory_pressure or 0.0
    if pressure > PRESSED:
        yield Finding(
            name="memory",
            grade="spoils",
            here=f"processes waited for memory in {pressure * 100:.0f} % of the time",
            cost="every figure holds the waiting",
            source="measured",
            remedy="stop what fills the memory",
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
        cost="what was paged out is paged in during some run; such samples are marked",
        source="known: Linux, admin-guide/sysctl/vm",
        remedy="sudo swapoff -a, when there is memory enough",
        fix="swappiness" in signs.fixable,
    )


def numa(signs: Signs) -> Iterator[Finding]:
    """Memory nodes: whether memory may be far, or is moved."""
    nodes = signs.settings.get("numa_nodes", "0")
    if nodes == "0":
        yield Finding(name="NUMA", grade="fine", here="one node")
        return
    balancing = signs.settings.get("numa_balancing", "0") != "0"
    yield Finding(
        name="NUMA",
        grade="may spoil",
        here=f"nodes {nodes}, balancing {'on' if balancing else 'off'}",
        cost="memory of another node is slower, and where it lies changes from run to run",
        source=f"known: {SYSCTL}",
        remedy="numactl --cpunodebind=0 --membind=0 as the variant's run.prefix",
        fix="numa_balancing" in signs.fixable,
    )


def control_groups(signs: Signs) -> Iterator[Finding]:
    """Control groups: whether whole trees can be counted."""
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
        here=f"none may be made for {lacking}",
        cost="a tree's memory is sampled, a short peak can be missed; limits hold for each process only",
        source="known: launcher/PROTOCOL.md",
        remedy="systemd-run --user --scope -p Delegate=yes perftrail …",
    )
