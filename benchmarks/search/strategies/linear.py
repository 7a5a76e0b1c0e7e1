"""Linear scans: build and run everything, then find the step in the means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from benchmarks.search.simulator import Machine

    Floats = npt.NDArray[np.float64]


def largest_jump(samples: int) -> Callable[[Machine], Report]:
    """Return the scan that finds the largest difference between the means of neighbours.

    Each mean is that of this number of samples.
    """

    def search(machine: Machine) -> Report:
        works, values = _scan(machine, samples)
        return _between(works, int(np.argmax(np.abs(np.diff(values)))))

    return search


def best_split(samples: int) -> Callable[[Machine], Report]:
    """Return the scan that finds the split of the means with the least sum of squares on both sides."""

    def search(machine: Machine) -> Report:
        works, values = _scan(machine, samples)
        count = len(values)
        before = np.arange(1, count)
        sums = np.cumsum(values)
        difference = sums[:-1] / before - (sums[-1] - sums[:-1]) / (count - before)
        return _between(works, int(np.argmax(difference**2 * before * (count - before))))

    return search


def _scan(machine: Machine, samples: int) -> tuple[list[int], Floats]:
    """Measure all revisions that build; return their positions and the mean of the samples of each."""
    works = [position for position in range(machine.revisions) if machine.build(position)]
    return works, machine.run_each(np.repeat(works, samples)).reshape(-1, samples).mean(axis=1)


def _between(works: list[int], number: int) -> Report:
    return Report(verdict="found", candidates=tuple(range(works[number] + 1, works[number + 1] + 1)))
