"""The rule of Pinpoint (catapult-project/catapult, `dashboard/pinpoint/models`: `job_state.py`, `compare/`).

Each revision gets ten samples. Measured neighbours are *different* if the smaller p of the Mann-Whitney and the
Kolmogorov-Smirnov test is at most 0.01, and *the same* if it is above a threshold that falls with the number of
samples. In between, the one with fewer samples gets ten more. If two differ, the revision in the middle is measured.
At the end, all neighbours that still differ are reported.

It is more favourable than the original: it measures one middle at a time, not three, which needs fewer builds. It skips
failed builds; the original also compares the failures and names the revisions at which they begin and end.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import mannwhitneyu

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    import numpy.typing as npt

    from benchmarks.search.simulator import Machine

    Floats = npt.NDArray[np.float64]

SAMPLES = 10
DIFFERENT = 0.01
SAME = {10: 0.571, 15: 0.229, 20: 0.0859, 25: 0.0270}
"""Above this p, two sets of this size are the same: the 99th percentile of p if the medians are one interquartile
range apart, from 100,000 simulations with seed 1, as in its `thresholds_performance.py`; beyond 25 samples it is below
0.01. One interquartile range is the default of the changes that it looks for."""
MOST_BUILDS = 400
"""The search stops after this number of builds, for example if every pair seems to differ."""


def search(machine: Machine) -> Report:
    """Search like Pinpoint."""
    job = _Job(machine)
    for end in (0, machine.revisions - 1):
        machine.build(end)
        job.add(end)
    while machine.builds < MOST_BUILDS:
        middles = [middle for pair in job.different() if (middle := job.between(*pair)) is not None]
        if not middles:
            break
        for middle in middles:
            job.add(middle)
    named = tuple(tuple(range(low + 1, high + 1)) for low, high in job.different())
    if not named:
        return Report(verdict="none", candidates=())
    verdict = "found" if len(named) == 1 else "several"
    return Report(verdict=verdict, candidates=named[0], others=named[1:])


class _Job:
    """The samples so far."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._values: dict[int, Floats] = {}
        self._failed: set[int] = set()

    def add(self, position: int) -> None:
        """Take ten samples of a position, the first or more."""
        more = self._machine.run(position, SAMPLES)
        self._values[position] = np.append(self._values.get(position, np.empty(0)), more)

    def different(self) -> list[tuple[int, int]]:
        """Return all neighbours that differ; take as many samples as the rule needs."""
        positions = sorted(self._values)
        return [pair for pair in pairwise(positions) if self._differ(*pair)]

    def _differ(self, low: int, high: int) -> bool:
        while True:
            one, other = self._values[low], self._values[high]
            p = smaller_p(one, other)
            if p <= DIFFERENT:
                return True
            if p > SAME.get((len(one) + len(other)) // 2, 0.0):
                return False
            self.add(low if len(one) <= len(other) else high)

    def between(self, low: int, high: int) -> int | None:
        """Return the position nearest the middle that builds, `None` if none does."""
        middle = (low + high) // 2
        for distance in range(high - low):
            for position in (middle - distance, middle + distance):
                if low < position < high and position not in self._failed:
                    if self._machine.build(position):
                        return position
                    self._failed.add(position)
        return None


def smaller_p(one: Floats, other: Floats) -> float:
    """Return the smaller p of both tests, each by its large-sample distribution."""
    ranks = float(mannwhitneyu(one, other, method="asymptotic").pvalue)
    both = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (one, other)]
    size = math.sqrt(len(one) * len(other) / (len(one) + len(other)))
    distance = float(np.abs(shares[0] - shares[1]).max())
    return min(ranks, float(kolmogorov((size + 0.12 + 0.11 / size) * distance)))
