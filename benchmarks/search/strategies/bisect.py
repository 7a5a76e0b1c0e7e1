"""git bisect, running each revision k times and comparing the median with the middle of the ends.

Like git, it searches merges: the revisions of a branch come before their merge.
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
"""Error rate of a search that knows the truth, from the scatter of runs only."""

FEWEST = 5
"""Minimum number of samples, so that the median ignores an outlier."""


def median_of(samples: int) -> Callable[[Machine], Report]:
    """Return the search that uses the median of this number of samples of each revision."""

    def search(machine: Machine) -> Report:
        return _bisect(machine.line(), samples)

    return search


def with_known_truth(machine: Machine) -> Report:
    """Bisect with the number of samples that the true change and scatter need."""
    return _bisect(machine.line(), samples_needed(machine.settings))


def samples_needed(settings: Settings) -> int:
    """Return the k with which the scatter of runs misleads a search in one case of a hundred.

    The median of k has variance pi / 2 * sigma^2 / k, must be right within half the change, and is used log2(N) times.
    Without a change the threshold counts.
    """
    change = abs(settings.step) or math.log1p(settings.threshold)
    questions = math.log2(settings.revisions + settings.branch)
    needed = math.pi / 2 * (NormalDist().inv_cdf(1 - WRONG / questions) * settings.cv / (change / 2)) ** 2
    return max(FEWEST, 2 * math.ceil((needed - 1) / 2) + 1)


def _bisect(machine: Machine, samples: int) -> Report:
    low, high = 0, machine.revisions - 1
    ends = []
    for end in (low, high):
        machine.build(end)
        ends.append(float(np.median(machine.run(end, samples))))
    middle, rises = sum(ends) / 2, ends[1] > ends[0]
    skipped: set[int] = set()
    while (position := _next(low, high, skipped)) is not None:
        if not machine.build(position):
            skipped.add(position)
        elif (np.median(machine.run(position, samples)) > middle) == rises:
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
