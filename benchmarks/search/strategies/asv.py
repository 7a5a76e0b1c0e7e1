"""The rule of `asv find` (airspeed-velocity/asv, `asv/commands/find.py`).

It compares the first, middle and last revision of the range, and continues in the half with the larger rise, relative
to the sum of all three, until two neighbours are left. A value is the median of ten samples: asv takes two rounds of up
to five if a sample lasts a second. It looks for regressions only, and it always names a revision.

A failed build ends it. A benchmark without a value is skipped: the first moves up, the last down, the middle up.
`skipping_failed_builds` also skips failed builds, which asv does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    from benchmarks.search.simulator import Machine

SAMPLES = 10


class _Ended(Exception):
    """The search ended with an error."""


def find(machine: Machine) -> Report:
    """Search like asv."""
    return _search(machine, skips_failed_builds=False)


def skipping_failed_builds(machine: Machine) -> Report:
    """Search like asv, but skip failed builds like failed benchmarks."""
    return _search(machine, skips_failed_builds=True)


def _search(machine: Machine, *, skips_failed_builds: bool) -> Report:
    known: dict[int, float] = {}

    def measured(position: int) -> float | None:
        if not machine.build(position):
            if skips_failed_builds:
                return None
            raise _Ended
        if position not in known:
            known[position] = float(np.exp(np.median(machine.run(position, SAMPLES))))
        return known[position]

    def first_of(positions: range) -> tuple[int, float]:
        for position in positions:
            value = measured(position)
            if value is not None:
                return position, value
        raise _Ended

    low, high = 0, machine.revisions - 1
    try:
        while high - low > 1:
            middle = (low + high) // 2
            low, at_low = first_of(range(low, middle))
            middle, at_middle = first_of(range(middle, high))
            high, at_high = first_of(range(high, middle, -1))
            total = abs(at_low) + abs(at_middle) + abs(at_high)
            rises_first = max(0.0, (at_middle - at_low) / total)
            rises_later = max(0.0, (at_high - at_middle) / total)
            low, high = (low, middle) if rises_first >= rises_later else (middle, high)
    except _Ended:
        return Report(verdict="error", candidates=())
    return Report(verdict="found", candidates=(high,))
