"""The linear scan of the seed paper: build and run everything, take the largest jump between neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.search.outcome import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.search.simulator import Machine


def largest_jump(readings: int) -> Callable[[Machine], Report]:
    """Return the scan that takes the mean of so many readings of each revision."""

    def search(machine: Machine) -> Report:
        works = [position for position in range(machine.settings.revisions) if machine.build(position)]
        values = machine.run_each(np.repeat(works, readings)).reshape(-1, readings).mean(axis=1)
        jump = int(np.argmax(np.abs(np.diff(values))))
        return Report(verdict="found", candidates=tuple(range(works[jump] + 1, works[jump + 1] + 1)))

    return search
