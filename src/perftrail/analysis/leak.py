"""Memory against time at constant load: a leak, none, or not to be told.

The axis is anything that only lasts longer (seconds, iterations); every value of it asks for the same at a time.
A series is cut into at most `BLOCKS` blocks of equal count, of which the least value stands for each: what a
collector has not yet freed is no leak. The first quarter of the time is warm-up where enough remains. Growth is
Kendall's rank correlation with time (exact, one-sided), its size Sen's slope with Kendall's interval
(Sen 1968; Hollander and Wolfe, sections 8.1 and 9.3). Assumes that blocks scatter independently.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

BLOCKS = 16
FEWEST = 5
"""Five values in order happen by chance once in 120 times, four once in 24."""

FALSE_LEAKS = 0.01
"""How often a series that does not grow may be called a leak."""

WORTH = 0.02
"""Growth over the whole series by less than this share of the level is not worth telling."""

SLOWING = 0.5
"""A leak goes on: in the second half it is at least half as fast as in the first."""


class Leak(StrEnum):
    """What a series says."""

    LEAK = "leak"
    NONE = "none"
    LEVELS_OFF = "levels off"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """The verdict, the growth for each unit of time with its 95 % interval, and the chance of it without a leak."""

    verdict: Leak
    slope: float
    low: float
    high: float
    p_value: float


def over_time(series: Sequence[tuple[float, float]], *, resolution: float = 0.0) -> OverTime | None:
    """Judge pairs of time and memory; `None` for fewer than five times.

    `resolution`: how far each value may be off by the way it is taken; growth by less is not told.
    """
    times, values = _blocks(series)
    if len(times) < FEWEST:
        return None
    late = times >= times[0] + 0.25 * (times[-1] - times[0])
    if int(late.sum()) >= 2 * FEWEST:
        times, values = times[late], values[late]
    slopes = _slopes(times, values)
    slope, low, high = _sen(slopes, len(times))
    p_value = _chance(values)
    span = float(times[-1] - times[0])
    worth = max(resolution, WORTH * float(np.median(values)))
    return OverTime(
        verdict=_verdict(times, values, p_value=p_value, growth=slope * span, most=high * span, worth=worth),
        slope=slope,
        low=low,
        high=high,
        p_value=p_value,
    )


def _verdict(
    times: Floats, values: Floats, *, p_value: float, growth: float, most: float, worth: float
) -> Leak:
    if p_value <= FALSE_LEAKS and growth > worth:
        half = len(times) // 2
        early = float(np.median(_slopes(times[: half + 1], values[: half + 1])))
        late = float(np.median(_slopes(times[half:], values[half:])))
        return Leak.LEAK if late >= SLOWING * early else Leak.LEVELS_OFF
    return Leak.NONE if most <= worth else Leak.UNCLEAR


def _blocks(series: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    """The middle time and the least value of each block; values of one time are one, by their median."""
    by_time: dict[float, list[float]] = {}
    for time, value in sorted(series):
        if math.isfinite(time) and math.isfinite(value):
            by_time.setdefault(time, []).append(value)
    times = np.array(list(by_time), dtype=np.float64)
    values = np.array([float(np.median(each)) for each in by_time.values()], dtype=np.float64)
    if len(times) < 2 * BLOCKS:
        return times, values
    parts = np.array_split(np.arange(len(times)), BLOCKS)
    return (
        np.array([times[part].mean() for part in parts]),
        np.array([values[part].min() for part in parts]),
    )


def _slopes(times: Floats, values: Floats) -> Floats:
    first, second = np.triu_indices(len(times), k=1)
    slopes: Floats = np.sort((values[second] - values[first]) / (times[second] - times[first]))
    return slopes


def _sen(slopes: Floats, count: int) -> tuple[float, float, float]:
    """Sen's slope, and the interval that Kendall's test at 5 % leaves."""
    spread = 1.96 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
    outside = max(0, math.floor((len(slopes) - spread) / 2.0))
    return float(np.median(slopes)), float(slopes[outside]), float(slopes[len(slopes) - 1 - outside])


def _chance(values: Floats) -> float:
    """How often values in no order would rise as steadily: Kendall's exact distribution, ties counted as falls."""
    first, second = np.triu_indices(len(values), k=1)
    rises = int((values[second] > values[first]).sum())
    ways = np.ones(1)
    for length in range(2, len(values) + 1):
        ways = np.convolve(ways, np.full(length, 1.0 / length))
    return float(ways[rises:].sum())
