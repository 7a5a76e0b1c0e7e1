"""The programs of faults.c: what limits each, and what may be told of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that `limits` limit, any of which may be told; nothing limits one that has none."""

    name: str
    limits: frozenset[str] = frozenset()

    def is_wrong(self, told: str) -> bool:
        """Whether what was told names a cause that is not there, or several without the one that is."""
        if told in SAYS_NOTHING:
            return False
        named = set(told.split(OR))
        if len(named) == 1:
            return not named <= self.limits
        if "lock" in named:  # beside others it is any lock, that of malloc too
            named.add("hidden lock")
        return bool(self.limits) and not named & self.limits


NOT_MEASURED = "not measured"
SAYS_NOTHING = ("scales", "cannot tell", NOT_MEASURED)
OR = " or "
"""Between the causes of which none can be told from the others."""


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
"""A line that several processors write is called false sharing, also where they mean to share it.

The memory that threads share is first touched by them, which is the kernel's work.
"""

CLEAN = tuple(each.name for each in PROGRAMS if not each.limits)
FAULTY = tuple(each.name for each in PROGRAMS if each.limits)


def named(words: list[str]) -> tuple[Program, ...]:
    """Return the programs of some names, ``clean`` and ``faulty`` among them; all where there is none.

    Raises `ValueError` for a name that no program has.
    """
    sets = {"clean": CLEAN, "faulty": FAULTY, **{each.name: (each.name,) for each in PROGRAMS}}
    unknown = [word for word in words if word not in sets]
    if unknown:
        raise ValueError(f"no program {unknown[0]}; there are {', '.join(sets)}")
    wanted = {name for word in words for name in sets[word]}
    return tuple(each for each in PROGRAMS if not words or each.name in wanted)
