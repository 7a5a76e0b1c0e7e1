"""In which of many figures two subjects differ, from a few starts of each, and which differ most.

A figure is compared on a logarithmic scale after adding its floor, below which it is of no account: from 1 to 2
system calls is not the change that from 1,000 to 2,000 is. What remains of the difference after its own noise
(Student's t over the starts of both, all figures of a report sharing one error) is what ranks it. It assumes starts
to be independent; figures that come out alike each time have no noise.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

REPORT_ERROR = 0.01
"""How often a whole report may tell a difference that is none."""

SMALLEST = 0.002
"""A relative difference below this is not told, however sure it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure before and after (medians), and how far it differs on the logarithmic scale.

    `size` is the logarithm of after/before with the floor added to both, `sure` what noise leaves of its amount.
    """

    before: float
    after: float
    size: float
    sure: float

    @property
    def differs(self) -> bool:
        """Whether there is a difference worth telling."""
        return self.sure > SMALLEST


def difference(before: Sequence[float], after: Sequence[float], *, floor: float, figures: int) -> Difference:
    """Compare a figure, one of `figures` in the report, at least zero each time, from the starts of both.

    Raises `ValueError` without a value on either side, or when value and floor are zero together.

    >>> difference([10.0, 10.0], [20.0, 20.0], floor=0.0, figures=1).differs
    True
    """
    logs = [[math.log(value + floor) for value in values] for values in (before, after)]
    medians = [statistics.median(values) for values in (before, after)]
    size = statistics.median(logs[1]) - statistics.median(logs[0])
    return Difference(
        before=medians[0],
        after=medians[1],
        size=size,
        sure=max(0.0, abs(size) - _noise(logs, REPORT_ERROR / max(1, figures))),
    )


def _noise(logs: Sequence[Sequence[float]], error: float) -> float:
    """How far apart the two would lie by chance, no oftener than `error`; infinite when one start each cannot tell."""
    freedom = sum(len(each) - 1 for each in logs)
    squares = sum((value - statistics.fmean(each)) ** 2 for each in logs for value in each)
    if freedom == 0:
        return math.inf
    if squares < 1e-24:
        return 0.0
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is imported where it is used

    spread = math.sqrt(squares / freedom * sum(1.0 / len(each) for each in logs))
    return float(stdtrit(freedom, 1.0 - error / 2.0)) * spread
