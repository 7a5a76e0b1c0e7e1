"""How much of a gain a back-port carries: log(patched/old) against log(fixed/old), with an interval.

Each unit of adjacent starts gives one pair (p, f) = (log(patched/old), log(fixed/old)); both share the same start
of the old one, so they are not independent, and the interval does not need them to be. For each share s,
p − s f lies about zero if s is the share that is carried: the bets of `martingale` test that, whenever measuring
stops, and the shares that are not rejected are the interval (Fieller's argument, JRSS B 16, 1954). It assumes that
p − s f is symmetric about zero at the true s.
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
"""From this share on, a gain counts as carried whole: what is lost is less than a tenth."""

NOTHING = 0.1
"""Below this share, nothing of a gain counts as carried."""

FIRST_DISTANCE = 1e-3
FARTHEST_SHARE = 1e3
"""How far from the estimate the search for the interval's ends begins, and where it is given up."""

HALVINGS = 24


class Share(StrEnum):
    """How much of a gain is carried, as far as the interval tells."""

    WHOLE = "whole"
    PART = "part"
    NOTHING = "nothing"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The share of a gain that is carried: 1 is all of it, below 0 the opposite of a gain.

    `confidence` is the interval's. `low` and `high` may be infinite: the units were too few for a bound.
    """

    value: float
    low: float
    high: float
    confidence: float
    units: int

    @property
    def share(self) -> Share:
        """Say what the interval tells: `WHOLE` and `NOTHING` when all of it does, `PART` when it excludes 1."""
        if self.low >= WHOLE:
            return Share.WHOLE
        if self.high < NOTHING:
            return Share.NOTHING
        return Share.PART if self.low > 0.0 and self.high < 1.0 else Share.UNCLEAR


def carried(patched: Sequence[float], fixed: Sequence[float], *, level: float) -> Carried | None:
    """Estimate the share from the log ratios to the old one of both, unit by unit, at a two-sided level.

    None where the gain itself is not clear at this level: the share is then not bounded, and any number would
    be an accident. Raises `ValueError` for sequences of different lengths or without a unit.

    >>> print(carried([0.35] * 12, [0.7] * 12, level=0.01))
    Carried(value=0.5, low=0.5, high=0.5, confidence=0.99, units=12)
    """
    if len(patched) != len(fixed) or not patched:
        raise ValueError(
            f"{len(patched)} and {len(fixed)} log ratios: a share needs one of both in each unit"
        )
    numerators, denominators = np.array(patched, dtype=np.float64), np.array(fixed, dtype=np.float64)
    if len(fixed) < needed(level / 2.0) or not _differs(denominators, level):
        return None
    value = _central(numerators, denominators)
    alike = max(np.ptp(numerators), np.ptp(denominators)) < ALIKE
    return Carried(
        value=value,
        low=value if alike else _edge(numerators, denominators, value, -1.0, level),
        high=value if alike else _edge(numerators, denominators, value, 1.0, level),
        confidence=1.0 - level,
        units=len(patched),
    )


def _differs(differences: Floats, level: float) -> bool:
    """Whether differences are not about zero; equal ones, which show no spread, are so if they are zero."""
    low, high = float(differences.min()), float(differences.max())
    return max(low, -high) > ALIKE if high - low < ALIKE else excludes_zero(differences, level / 2.0)


def _central(numerators: Floats, denominators: Floats) -> float:
    """The share s at which p − s f has its centre at zero, between those of the units with a gain."""
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
    """The farthest share on one side of a value that is not rejected; infinite where none is."""

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
