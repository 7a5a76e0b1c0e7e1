"""One step of the filter in `drift`: the case that the machine's level jumped before a reading."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.noise import OUTLIERS

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

JUMP = 0.15
"""The standard deviation of a jump of the level, on the logarithmic scale."""


class Jump:
    """The case that the level jumped before a reading, beside the case that it did not (H, J of S).

    `error`, `variance` and `told` are those of the reading without a jump: what it was off, how far that was
    to be expected, and its covariance with the unknowns (H, J, D).
    """

    def __init__(self, error: Floats, variance: Floats, told: Floats, level: int, chance: Floats) -> None:
        self._error = error
        self._variance = variance + JUMP**2
        self._told = told.copy()
        self._told[:, :, level] += JUMP**2
        self._level = level
        self.log_weight: Floats = math.log(1 - OUTLIERS) + np.log(chance) + log_normal(error, self._variance)

    def moments(self, total: Floats, gain: Floats, told: Floats) -> tuple[Floats, Floats]:
        """Return what the case adds to the mean and the covariance of the unknowns.

        `total` is the logarithm of the weight of all cases together; `gain` times `told` is what the case
        without a jump moved the mean by.
        """
        share = np.exp(self.log_weight - total)
        own = share * self._error / self._variance
        mean = own[:, :, None] * self._told
        factor = share * ((1 - share) * (self._error / self._variance) ** 2 - 1 / self._variance)
        covariance = (factor[:, :, None] * self._told)[:, :, :, None] * self._told[:, :, None, :]
        both = (gain[:, :, None] * told)[:, :, :, None] * mean[:, :, None, :]
        covariance -= both + both.swapaxes(2, 3)
        covariance[:, :, self._level, self._level] += share * JUMP**2
        return mean, covariance


def log_normal(error: Floats, variance: Floats) -> Floats:
    """Return the logarithm of a normal density at what is off its middle."""
    density: Floats = -0.5 * (np.log(2 * math.pi * variance) + error**2 / variance)
    return density
