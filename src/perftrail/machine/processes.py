"""Who uses the CPUs: the processes that took most time between two looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.machine.gauges import TICK_SECONDS
from perftrail.model.measurement import Busy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process at one time: its parent, its name (hostile text), the CPU time it has used."""

    parent: int
    name: str
    cpu_seconds: float


Census = dict[int, Process]
"""All processes at one time, by id."""


def take_census(root: Path) -> Census:
    """Read every process there is; one that ends meanwhile is left out."""
    found: Census = {}
    for directory in (root / "proc").glob("[0-9]*"):
        try:
            text = (directory / "stat").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        # The name may hold anything, blanks and brackets too: it ends at the last bracket.
        name, _, rest = text.partition("(")[2].rpartition(")")
        words = rest.split()
        if len(words) > 12 and directory.name.isdigit():
            found[int(directory.name)] = Process(
                parent=int(words[1]),
                name=name,
                cpu_seconds=(int(words[11]) + int(words[12])) * TICK_SECONDS,
            )
    return found


def busiest(before: Census, after: Census, *, seconds: float, own: int, most: int = 5) -> tuple[Busy, ...]:
    """Name who used most CPU time between two looks, the process `own` and its descendants left out."""
    ours = descendants(after, own)
    used = {
        pid: process.cpu_seconds - (before[pid].cpu_seconds if pid in before else 0.0)
        for pid, process in after.items()
        if pid not in ours
    }
    worst = sorted((pid for pid in used if used[pid] > 0.0), key=lambda pid: (-used[pid], pid))[:most]
    return tuple(Busy(pid=pid, name=after[pid].name, cpus=used[pid] / seconds) for pid in worst)


def descendants(census: Mapping[int, Process], pid: int) -> frozenset[int]:
    """Give a process and everything that it has started, as far as parents tell."""
    found, grew = {pid}, True
    while grew:
        more = {child for child, process in census.items() if process.parent in found} - found
        found |= more
        grew = bool(more)
    return frozenset(found)
