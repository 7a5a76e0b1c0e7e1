"""Memory along an axis: the cost of one more unit, the steps of a heap, and leaks over time.

The cost of a unit is the slope of a line through all points, by weighted least squares. The weights include a point's
own error, half a quantum of the heap, and half a percent. The points themselves scale the errors, and Student's t gives
the interval. It assumes that memory grows linearly; `bent` states where it does not. A heap that grows in fixed chunks,
or by one factor, shows its own size, not its content: values then have few levels, whose distances are multiples
of one chunk or whose ratios are powers of one factor.

A leak is growth over time under constant load. The axis may be seconds or iterations, with the same demand at each
value. A series is cut into at most `BLOCKS` blocks of equal count, each represented by its minimum: memory that a
collector has not freed yet is not a leak. The first quarter of the time is warm-up if enough remains. Growth is tested
by Kendall's rank correlation with time (exact, one-sided). Its size is Sen's slope with Kendall's interval (Sen 1968;
Hollander and Wolfe, sections 8.1 and 9.3). Assumes that blocks scatter independently.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from perftrail.stats.student import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.stats.curves import Curve

    Floats = npt.NDArray[np.float64]

MODEL_ERROR = 0.005
"""Relative error of every point."""

FEWEST_STEPS = 3
"""Minimum number of steps between levels that must fit one quantum."""

CHANCE = 0.001
"""Probability that levels without a quantum seem to have one."""

FACTORS = (1.1, 1.15, 1.2, 1.25, 1.5, 2.0)
"""Usual growth factors of heaps; others are not tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantum:
    """Step size of a heap: a chunk in the metric's unit, or a factor above 1."""

    chunk: float | None = None
    factor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerUnit:
    """Memory of one more unit of the axis with its 95 % interval, and memory without any unit (`base`).

    `bent`: memory does not grow linearly, so that the cost of a unit is not constant.
    """

    value: float
    low: float
    high: float
    base: float
    bent: bool
    quantum: Quantum | None


def per_unit(curve: Curve, *, resolution: float = 0.0) -> PerUnit | None:
    """Return the cost of a unit; `None` with fewer than three points, or if all are at one position.

    `resolution` is the possible error of each value, in the metric's unit.
    """
    if len(curve) < 3:
        return None
    values, quantum = np.exp(curve.logs), find_quantum(curve, resolution=resolution)
    variances = (values * np.hypot(curve.errors, MODEL_ERROR)) ** 2 + _steps(values, quantum)
    slope, base, variance, residuals = _line(curve.xs, values, variances)
    freedom = len(curve) - 2
    scale = max(1.0, float((residuals**2 / variances).sum()) / freedom)
    half = t_quantile(freedom, 0.975) * math.sqrt(variance * scale)
    return PerUnit(
        value=slope,
        low=slope - half,
        high=slope + half,
        base=base,
        bent=_bent(curve.xs, values, variances),
        quantum=quantum,
    )


def find_quantum(curve: Curve, *, resolution: float = 0.0) -> Quantum | None:
    """Return the step size of a heap; `None` if the levels have none, or if too few differ.

    Above the lowest level, two values of the axis must share a level. Otherwise a straight line would fit, too.
    `resolution` is the possible error of each value, in the metric's unit.
    """
    values = np.sort(np.exp(curve.logs))
    error = max(resolution, float(np.median(values * curve.errors)), 1e-6 * float(values[-1]))
    groups = np.split(values, np.flatnonzero(np.diff(values) > 2.0 * error) + 1)
    levels = np.array([group.mean() for group in groups])
    if len(levels) - 1 < FEWEST_STEPS or all(len(group) == 1 for group in groups[1:]):
        return None
    for factor in sorted(FACTORS, reverse=True):
        steps = np.log(levels[1:] / levels[:-1]) / math.log(factor)
        if _whole(steps, 2.0 * error / float(levels[0]) / math.log(factor), most=3.0):
            return Quantum(factor=factor)
    chunk = _chunk(np.diff(levels), error)
    return None if chunk is None else Quantum(chunk=chunk)


def _whole(steps: Floats, tolerance: float, *, most: float) -> bool:
    """Return whether all steps are whole numbers from 1 to `most`, more closely than by chance."""
    tolerance = max(tolerance, 1e-3)
    if tolerance >= 0.25 or not 0.5 < steps.min() <= steps.max() < most + 0.5:
        return False
    largest_miss = float(np.abs(steps - np.rint(steps)).max())
    return largest_miss <= tolerance and (2.0 * tolerance) ** len(steps) <= CHANCE / len(FACTORS)


def _chunk(steps: Floats, error: float) -> float | None:
    """Return the largest chunk that divides every step, where the smallest step has one to three chunks."""
    least = float(steps.min())
    for parts in (1, 2, 3):
        chunk = least / parts
        counts = np.rint(steps / chunk)
        chunk = float((steps * counts).sum() / (counts**2).sum())
        tolerance = max(2.0 * error / chunk, 1e-3)
        largest_miss = float(np.abs(steps / chunk - counts).max())
        if (
            tolerance < 0.25
            and largest_miss <= tolerance
            and (2.0 * tolerance) ** (len(steps) - 1) <= CHANCE / 3
        ):
            return chunk
    return None


def _steps(values: Floats, quantum: Quantum | None) -> Floats:
    """Return the variance of a heap's content: its true size is between this step and the previous one."""
    if quantum is None:
        return np.zeros(len(values))
    if quantum.chunk is not None:
        return np.full(len(values), quantum.chunk**2 / 12.0)
    assert quantum.factor is not None
    spread: Floats = (values * math.log(quantum.factor)) ** 2 / 12.0
    return spread


def _line(xs: Floats, values: Floats, variances: Floats) -> tuple[float, float, float, Floats]:
    """Return slope, intercept, variance of the slope, and residuals of a weighted line."""
    weights = 1.0 / variances
    middle = float(xs @ weights / weights.sum())
    spread = float(((xs - middle) ** 2) @ weights)
    slope = float((values * (xs - middle)) @ weights / spread)
    base = float(values @ weights / weights.sum()) - slope * middle
    return slope, base, 1.0 / spread, values - base - slope * xs


def _bent(xs: Floats, values: Floats, variances: Floats) -> bool:
    """Return whether a parabola fits significantly better, by more than a twentieth of the range."""
    freedom = len(xs) - 3
    if freedom < 1:
        return False
    scaled = (xs - xs.mean()) / np.ptp(xs)
    weights = 1.0 / np.sqrt(variances)
    design = np.stack([np.ones(len(xs)), scaled, scaled**2], axis=1) * weights[:, None]
    found = np.linalg.lstsq(design, values * weights, rcond=None)[0]
    residuals = values * weights - design @ found
    scale = max(1.0, float(residuals @ residuals) / freedom)
    error = math.sqrt(scale * float(np.linalg.pinv(design.T @ design)[2, 2]))
    significant = abs(float(found[2])) > t_quantile(freedom, 0.995) * error
    return significant and abs(float(found[2])) / 4.0 > 0.05 * float(np.ptp(values))


BLOCKS = 16
FEWEST = 5
"""Five values are in order by chance once in 120 times, four values once in 24."""

FALSE_LEAKS = 0.01
"""Probability that a series without growth counts as a leak."""

WORTH = 0.02
"""Smallest growth over the whole series, as a share of the level, that is worth reporting."""

SLOWING = 0.5
"""A leak continues if its second half grows at least this many times as fast as its first."""


class Leak(StrEnum):
    """Verdict on a series."""

    LEAK = "leak"
    NONE = "none"
    LEVELS_OFF = "levels off"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """The verdict, the growth per unit of time with its 95 % interval, and its p-value."""

    verdict: Leak
    slope: float
    low: float
    high: float
    p_value: float


def over_time(series: Sequence[tuple[float, float]], *, resolution: float = 0.0) -> OverTime | None:
    """Judge pairs of time and memory; `None` with fewer than five times.

    `resolution` is the possible error of each value; smaller growth is not reported.
    """
    times, values = _blocks(series)
    if len(times) < FEWEST:
        return None
    late = times >= times[0] + 0.25 * (times[-1] - times[0])
    if int(late.sum()) >= 2 * FEWEST:
        times, values = times[late], values[late]
    slopes = _slopes(times, values)
    slope, low, high = _sen(slopes, len(times))
    p_value = _rise_p_value(values)
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
    """Return the mean time and the smallest value of each block; values at one time count as their median."""
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
    """Return Sen's slope with the interval of Kendall's test at 5 %."""
    spread = 1.96 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
    outside = max(0, math.floor((len(slopes) - spread) / 2.0))
    return float(np.median(slopes)), float(slopes[outside]), float(slopes[len(slopes) - 1 - outside])


def _rise_p_value(values: Floats) -> float:
    """Return the p-value of the rise: Kendall's exact distribution, ties counted as falls."""
    first, second = np.triu_indices(len(values), k=1)
    rises = int((values[second] > values[first]).sum())
    ways = np.ones(1)
    for length in range(2, len(values) + 1):
        ways = np.convolve(ways, np.full(length, 1.0 / length))
    return float(ways[rises:].sum())
