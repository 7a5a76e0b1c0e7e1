"""How much of a gain a back-port carries: log(patched/old) against log(fixed/old), with an interval.

Each unit of adjacent starts gives one pair (p, f) = (log(patched/old), log(fixed/old)); both share the same start
of the old one, so they are not independent, and the interval does not need them to be. For each share s,
p − s f lies about zero if s is the share that is carried: Wilcoxon's signed ranks test that, exactly, and the
shares that are not rejected are the interval (Fieller's argument, JRSS B 16, 1954, with ranks in place of t). It
assumes that units are independent and that p − s f is symmetric about zero at the true s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from perftrail.analysis.compare import left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

WHOLE = 0.9
"""From this share on, a gain counts as carried whole: what is lost is less than a tenth."""

NOTHING = 0.1
"""Below this share, nothing of a gain counts as carried."""


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
    outside = left_out(len(patched), level)
    numerators, denominators = _walsh(patched), _walsh(fixed)
    rising = int(np.count_nonzero(denominators > 0.0))
    falling = int(np.count_nonzero(denominators < 0.0))
    rejects_no_gain = min(rising, falling) < outside and max(rising, falling) > len(denominators) - outside
    if not rejects_no_gain:
        return None
    if falling > rising:
        numerators, denominators = -numerators, -denominators
    crossings = _crossings(numerators, denominators)
    return Carried(
        value=_where_halved(crossings),
        low=_edge(crossings, outside),
        high=_edge(crossings, outside, upper=True),
        confidence=1.0 - level,
        units=len(patched),
    )


def _walsh(logs: Sequence[float]) -> Floats:
    """Every average of two values, each with itself included, in the same order for any values."""
    values = np.array(logs, dtype=np.float64)
    rows, columns = np.triu_indices(len(values))
    averages: Floats = (values[rows] + values[columns]) / 2.0
    return averages


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crossings:
    """Where Walsh averages of p − s f change sign: at the shares `at`, ascending, and the count after each.

    `counts[k]` averages are above zero between ``at[k - 1]`` and ``at[k]``.
    """

    at: Floats
    counts: npt.NDArray[np.int64]
    total: int


def _crossings(numerators: Floats, denominators: Floats) -> _Crossings:
    """Follow the signed-rank statistic, the number of averages above zero, from the lowest share upwards."""
    moving = denominators != 0.0
    shares = numerators[moving] / denominators[moving]
    order = np.argsort(shares, kind="stable")
    steps = np.where(denominators[moving] > 0.0, -1, 1)[order]
    always = int(np.count_nonzero(numerators[~moving] > 0.0))
    start = always + int(np.count_nonzero(denominators > 0.0))
    counts = np.concatenate(([start], start + np.cumsum(steps))).astype(np.int64)
    return _Crossings(at=shares[order], counts=counts, total=len(numerators))


def _edge(found: _Crossings, outside: int, *, upper: bool = False) -> float:
    """The lowest, or the highest, share that the test does not reject; a share at a crossing is not rejected."""
    accepted = (found.counts > outside - 1) & (found.counts < found.total - outside + 1)
    places = np.flatnonzero(accepted)
    if len(places) == 0:
        return _where_halved(found)
    if upper:
        last = int(places[-1])
        return float(found.at[last]) if last < len(found.at) else math.inf
    first = int(places[0])
    return float(found.at[first - 1]) if first > 0 else -math.inf


def _where_halved(found: _Crossings) -> float:
    """The share at which half of the averages are above zero; the middle where that is a stretch."""
    doubled = 2 * found.counts
    below = np.flatnonzero(doubled <= found.total)
    above = np.flatnonzero(doubled >= found.total)
    first, last = int(below[0]) - 1, int(above[-1])
    low = float(found.at[max(0, first)])
    high = float(found.at[min(last, len(found.at) - 1)])
    return (low + high) / 2.0
