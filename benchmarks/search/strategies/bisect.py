"""git bisect, running each revision k times and comparing the median with the middle of the ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.search.simulator import Machine


def median_of(readings: int) -> Callable[[Machine], Report]:
    """Return the search that takes the median of so many readings of each revision."""

    def search(machine: Machine) -> Report:
        low, high = 0, machine.settings.revisions - 1
        ends = []
        for end in (low, high):
            machine.build(end)
            ends.append(float(np.median(machine.run(end, readings))))
        middle, rises = sum(ends) / 2, ends[1] > ends[0]
        skipped: set[int] = set()
        while (position := _next(low, high, skipped)) is not None:
            if not machine.build(position):
                skipped.add(position)
            elif (np.median(machine.run(position, readings)) > middle) == rises:
                high = position
            else:
                low = position
        return Report(verdict="found", candidates=tuple(range(low + 1, high + 1)))

    return search


def _next(low: int, high: int, skipped: set[int]) -> int | None:
    """Return the position nearest the middle that was not skipped, `None` if there is none."""
    middle = (low + high) // 2
    left = [position for position in range(low + 1, high) if position not in skipped]
    return min(left, key=lambda position: abs(position - middle)) if left else None
