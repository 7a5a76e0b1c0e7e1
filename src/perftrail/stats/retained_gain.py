"""Retained gain: the share of a gain that a back-port keeps, with an interval.

It is log(patched/old) over log(fixed/old). Each unit of adjacent runs gives one pair
(p, f) = (log(patched/old), log(fixed/old)). Both share the run of the old revision, so they are not independent, and
the interval does not need independence. For the true share s, p − s f is symmetric about zero (assumption). The bets of
`comparison` test this for each s, valid whenever measuring stops. The shares that are not rejected form the
interval (Fieller's argument, JRSS B 16, 1954).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.comparison import ALIKE, centre, excludes_zero, needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

WHOLE = 0.9
"""From this share on, the gain is retained completely: less than a tenth is lost."""

NOTHING = 0.1
"""Below this share, nothing of the gain is retained."""

FIRST_DISTANCE = 1e-3
FARTHEST_SHARE = 1e3
"""First and largest distance from the estimate in the search for an end of the interval."""

HALVINGS = 24
"""Steps of a bisection; the error is then below 1e-7 of the first distance between its ends."""


class Share(StrEnum):
    """Class of a retained gain, according to its interval."""

    WHOLE = "whole"
    PART = "part"
    NOTHING = "nothing"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedGain:
    """Retained gain: 1 is the whole gain, negative values are a loss.

    `confidence` is the interval's. `low` and `high` are infinite if there are too few units for a bound.
    """

    value: float
    low: float
    high: float
    confidence: float
    units: int

    @property
    def share(self) -> Share:
        """Class of the interval: `WHOLE` or `NOTHING` if all of it is, `PART` if it excludes 0 and 1."""
        if self.low >= WHOLE:
            return Share.WHOLE
        if self.high < NOTHING:
            return Share.NOTHING
        return Share.PART if self.low > 0.0 and self.high < 1.0 else Share.UNCLEAR


def estimate_retained_gain(
    patched: Sequence[float], fixed: Sequence[float], *, level: float
) -> RetainedGain | None:
    """Estimate the retained gain from log ratios to the old revision, unit by unit, at a two-sided level.

    Return None if the gain itself is not significant at this level: the share then has no bound. Raises `ValueError`
    for sequences of different lengths or without a unit.

    >>> print(estimate_retained_gain([0.35] * 12, [0.7] * 12, level=0.01))
    RetainedGain(value=0.5, low=0.5, high=0.5, confidence=0.99, units=12)
    """
    if len(patched) != len(fixed) or not patched:
        raise ValueError(f"{len(patched)} and {len(fixed)} log ratios: each unit needs both")
    numerators, denominators = np.array(patched, dtype=np.float64), np.array(fixed, dtype=np.float64)
    if len(fixed) < needed(level / 2.0) or not _differs(denominators, level):
        return None
    value = _central(numerators, denominators)
    alike = max(np.ptp(numerators), np.ptp(denominators)) < ALIKE
    return RetainedGain(
        value=value,
        low=value if alike else _edge(numerators, denominators, value, -1.0, level),
        high=value if alike else _edge(numerators, denominators, value, 1.0, level),
        confidence=1.0 - level,
        units=len(patched),
    )


def _differs(differences: Floats, level: float) -> bool:
    """Return whether differences are significantly not zero. Equal ones, without spread, are compared with zero."""
    low, high = float(differences.min()), float(differences.max())
    return max(low, -high) > ALIKE if high - low < ALIKE else excludes_zero(differences, level / 2.0)


def _central(numerators: Floats, denominators: Floats) -> float:
    """Return the share s for which the centre of p − s f is zero."""
    shares = numerators[denominators != 0.0] / denominators[denominators != 0.0]
    low, high = float(shares.min()), float(shares.max())
    sign = math.copysign(1.0, centre(denominators))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if sign * centre(numerators - middle * denominators) > 0.0 else (low, middle)
        )
    return (low + high) / 2.0


def _edge(numerators: Floats, denominators: Floats, value: float, side: float, level: float) -> float:
    """Return the farthest share on one side that is not rejected; infinite if no share is rejected."""

    def rejected(distance: float) -> bool:
        return _differs(numerators - (value + side * distance) * denominators, level)

    near, far = 0.0, FIRST_DISTANCE
    while not rejected(far):
        near, far = far, 2.0 * far
        if far > FARTHEST_SHARE:
            return side * math.inf
    for _ in range(HALVINGS):
        middle = (near + far) / 2.0
        near, far = (near, middle) if rejected(middle) else (middle, far)
    return value + side * near
