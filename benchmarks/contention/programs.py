"""The programs of faults.c: the limits of each, and which reports about it are right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program with its limits, any of which is a right report. A program without limits has no right cause."""

    name: str
    limits: frozenset[str] = frozenset()

    def is_wrong(self, report: str) -> bool:
        """Whether the report names a cause that the program does not have, or several without the true one."""
        if report in NO_CAUSE:
            return False
        causes = set(report.split(OR))
        if len(causes) == 1:
            return not causes <= self.limits
        if "lock" in causes:  # together with other causes it means any lock, also that of malloc
            causes.add("hidden lock")
        return bool(self.limits) and not causes & self.limits


NOT_MEASURED = "not measured"
NO_CAUSE = ("scales", "cannot tell", NOT_MEASURED)
OR = " or "
"""Separates causes that cannot be distinguished."""


def _limited(name: str, *limits: str) -> Program:
    return Program(name=name, limits=frozenset(limits))


PROGRAMS = (
    _limited("mutex", "lock"),
    _limited("half-mutex", "lock"),
    _limited("writers", "lock"),
    _limited("arena", "hidden lock"),
    _limited("spin", "spinning"),
    _limited("sharing", "false sharing"),
    _limited("counter", "false sharing"),
    _limited("memory", "memory", "kernel"),
    _limited("imbalance", "serial"),
    _limited("handover", "handover"),
    _limited("semaphore", "handover"),
    _limited("barrier", "handover"),
    _limited("pages", "hidden lock", "kernel"),
    _limited("none"),
    _limited("own-mutex"),
    _limited("reading"),
    _limited("rare-mutex"),
    _limited("even-barrier"),
)
"""A cache line that several processors write is reported as false sharing, also if they share it on purpose.

Threads are the first to touch the memory that they share, which is work of the kernel.
"""

CLEAN = tuple(each.name for each in PROGRAMS if not each.limits)
FAULTY = tuple(each.name for each in PROGRAMS if each.limits)


def programs_named(names: list[str]) -> tuple[Program, ...]:
    """Return the programs with these names, which may include ``clean`` and ``faulty``; all programs without names.

    Raises `ValueError` for an unknown name.
    """
    sets = {"clean": CLEAN, "faulty": FAULTY, **{each.name: (each.name,) for each in PROGRAMS}}
    unknown = [name for name in names if name not in sets]
    if unknown:
        raise ValueError(f"no program {unknown[0]}; the names are {', '.join(sets)}")
    wanted = {each for name in names for each in sets[name]}
    return tuple(each for each in PROGRAMS if not names or each.name in wanted)
