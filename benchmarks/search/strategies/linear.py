"""Linear scans: build and run everything, then look for the step in the means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from benchmarks.search.simulator import Machine

    Floats = npt.NDArray[np.float64]


def largest_jump(readings: int) -> Callable[[Machine], Report]:
    """Return the scan that takes the mean of so many readings of each, and then the largest difference.

    Of neighbours, that is: how the seed of this project found its culprit.
    """

    def search(machine: Machine) -> Report:
        works, values = _scan(machine, readings)
        return _between(works, int(np.argmax(np.abs(np.diff(values)))))

    return search


def best_split(readings: int) -> Callable[[Machine], Report]:
    """Return the scan that takes the split of the means with the least sum of squares on both sides."""

    def search(machine: Machine) -> Report:
        works, values = _scan(machine, readings)
        count = len(values)
        before = np.arange(1, count)
        sums = np.cumsum(values)
        difference = sums[:-1] / before - (sums[-1] - sums[:-1]) / (count - before)
        return _between(works, int(np.argmax(difference**2 * before * (count - before))))

    return search


def _scan(machine: Machine, readings: int) -> tuple[list[int], Floats]:
    """Measure everything that builds: positions, and the mean of the readings of each."""
    works = [position for position in range(machine.revisions) if machine.build(position)]
    return works, machine.run_each(np.repeat(works, readings)).reshape(-1, readings).mean(axis=1)


def _between(works: list[int], number: int) -> Report:
    return Report(verdict="found", candidates=tuple(range(works[number] + 1, works[number + 1] + 1)))
