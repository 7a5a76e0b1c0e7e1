"""Simulated histories: steps, noise of samples and of builds, outliers, with the truth known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One kind of history.

    `cv` and `layout` are standard deviations of the logarithm, of samples and of builds. A share `outliers`
    of samples is multiplied by `outlier_factor`, or, with `two_sided`, divided by it half of the time. Steps have
    sizes between `threshold` and `largest`, evenly distributed over their logarithms, in both directions equally, and
    are at least `apart` revisions from each other and from the ends. `drift` is the step of a random walk from
    one revision to the next, in units of `cv`; `growth` is how much larger the noise is at the end.
    `correlation` is that of the noise of neighbours: an autoregressive process of order 1. In each of `bursts`
    ranges of 2 to 10 revisions, the level is higher by 2 to 4 standard deviations of the noise, and returns.
    """

    length: int
    changes: int
    threshold: float = 0.05
    largest: float = 0.50
    cv: float = 0.03
    layout: float = 0.01
    outliers: float = 0.03
    outlier_factor: float = 2.0
    two_sided: bool = False
    apart: int = 12
    drift: float = 0.0
    growth: float = 1.0
    correlation: float = 0.0
    bursts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value for each revision, and the changes: the index of each new level, and its step, log after/before."""

    values: Floats
    changes: tuple[int, ...]
    steps: tuple[float, ...]


def draw(settings: Settings, rng: np.random.Generator) -> Series:
    """Draw one history."""
    length = settings.length
    changes = _changes(settings, rng)
    sizes = np.exp(rng.uniform(np.log(settings.threshold), np.log(settings.largest), size=len(changes)))
    steps = np.log1p(sizes) * rng.choice((-1.0, 1.0), size=len(changes))
    level = np.zeros(length)
    level[list(changes)] = steps
    level = np.cumsum(level)
    noise = np.hypot(settings.cv, settings.layout) * np.linspace(1.0, settings.growth, length)
    logs = level + _correlated(rng.normal(size=length), settings.correlation) * noise
    logs += np.cumsum(rng.normal(size=length)) * settings.drift * settings.cv
    garbage = np.log(settings.outlier_factor) * (rng.random(length) < settings.outliers)
    if settings.two_sided:
        garbage *= rng.choice((-1.0, 1.0), size=length)
    for _ in range(settings.bursts):
        first = int(rng.integers(0, length - 10))
        logs[first : first + int(rng.integers(2, 11))] += rng.uniform(2.0, 4.0) * noise[first]
    return Series(values=np.exp(logs + garbage), changes=changes, steps=tuple(steps.tolist()))


def _correlated(noise: Floats, correlation: float) -> Floats:
    """Return a stationary autoregressive process of order 1 and variance 1 from independent innovations."""
    found = noise.copy()
    for at in range(1, len(noise) if correlation else 0):
        found[at] = correlation * found[at - 1] + math.sqrt(1.0 - correlation**2) * noise[at]
    return found


def _changes(settings: Settings, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw positions evenly from all that have the minimum distance."""
    if settings.changes == 0:
        return ()
    room = settings.length - (settings.changes + 1) * settings.apart
    if room < 0:
        raise ValueError(
            f"{settings.changes} changes, {settings.apart} apart, have no room in {settings.length}"
        )
    offsets = np.sort(rng.integers(0, room + 1, size=settings.changes))
    return tuple((offsets + settings.apart * np.arange(1, settings.changes + 1)).tolist())
