"""git bisect, running each revision k times and comparing the median with the middle of the ends.

It walks merges as git does: the revisions of a branch stand in line before the merge that brought them.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.search.histories import Settings
    from benchmarks.search.simulator import Machine

WRONG = 0.01
"""How often a search that knows the truth is to go wrong, by the scatter of runs alone."""

FEWEST = 5
"""How many readings it takes at least, so that the median passes over an outlier."""


def median_of(readings: int) -> Callable[[Machine], Report]:
    """Return the search that takes the median of so many readings of each revision."""

    def search(machine: Machine) -> Report:
        return _bisect(machine.line(), readings)

    return search


def knowing_the_truth(machine: Machine) -> Report:
    """Bisect with as many readings as the true change and scatter ask for."""
    return _bisect(machine.line(), readings_needed(machine.settings))


def readings_needed(settings: Settings) -> int:
    """Return the k with which a search errs in one case of a hundred by the scatter of runs.

    The median of k has variance pi / 2 * sigma^2 / k, is off by half the change, and is asked log2(N) times.
    Without a change the threshold counts.
    """
    change = abs(settings.step) or math.log1p(settings.threshold)
    asked = math.log2(settings.revisions + settings.branch)
    needed = math.pi / 2 * (NormalDist().inv_cdf(1 - WRONG / asked) * settings.cv / (change / 2)) ** 2
    return max(FEWEST, 2 * math.ceil((needed - 1) / 2) + 1)


def _bisect(machine: Machine, readings: int) -> Report:
    low, high = 0, machine.revisions - 1
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
    return Report(verdict="found", candidates=tuple(machine.ids[low + 1 : high + 1].tolist()))


def _next(low: int, high: int, skipped: set[int]) -> int | None:
    """Return the position nearest the middle that was not skipped, `None` if there is none."""
    middle = (low + high) // 2
    for distance in range(high - low):
        for position in (middle - distance, middle + distance):
            if low < position < high and position not in skipped:
                return position
    return None
