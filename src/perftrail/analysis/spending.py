"""Looking more often without being fooled more often: how much of the error allowed each look may spend.

Kim and DeMets' power family (Biometrika 74, 1987): by the share t of the most pairs there will be,
``alpha t^1.5`` is spent. Between Pocock's (t) and O'Brien and Fleming's (about t^3): large differences are
told early, and the last look keeps nearly the power of a single one. Levels follow from the joint
distribution of the looks, a Brownian motion at times t, by Armitage, McPherson and Rowe's recursive
integration (JRSS A 132, 1969).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

POWER = 1.5
FIRST_PAIRS = 10
GROWTH = 1.35
_NODES = 601
"""Of twice as many the levels differ by less than three in a hundred thousand of themselves."""
_LEAST, _REACH = 0.5, 8.5
_FINE = 1e-12


def looks(most: int) -> tuple[int, ...]:
    """After how many pairs to look, the last look at `most`: from ten on, each a third later than the last.

    >>> looks(150)
    (10, 14, 18, 25, 33, 45, 61, 82, 110, 150)
    """
    counts = []
    count = float(FIRST_PAIRS)
    while count < most / math.sqrt(GROWTH):
        counts.append(round(count))
        count *= GROWTH
    return (*counts, most)


@lru_cache(maxsize=256)
def levels(counts: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Give the two-sided p-value that each look may call significant, so that all err at most `alpha`.

    >>> [round(level, 4) for level in levels((75, 150), 0.05)]
    [0.0177, 0.0398]
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha {alpha}: must lie between 0 and 1")
    times = [count / counts[-1] for count in counts]
    spent, found = 0.0, []
    density: Floats | None = None
    grid: Floats = np.zeros(0)
    for number, time in enumerate(times):
        budget = alpha * time**POWER - spent
        step = time - (times[number - 1] if number else 0.0)
        bound = _bound(_tail(density, grid, step, time), budget)
        found.append(2.0 * (1.0 - NormalDist().cdf(bound)))
        grid_now = np.linspace(-bound, bound, _NODES) * math.sqrt(time)
        density = _density(density, grid, step, grid_now)
        grid = grid_now
        spent = alpha * time**POWER
    return tuple(found)


def first_level(counts: tuple[int, ...], alpha: float) -> float:
    """Give the first of `levels`, without working out the others: what no look before it has spent.

    >>> math.isclose(first_level((75, 150), 0.05), levels((75, 150), 0.05)[0])
    True
    """
    return alpha * float((counts[0] / counts[-1]) ** POWER)


def _density(density: Floats | None, grid: Floats, step: float, at: Floats) -> Floats:
    """The density of the motion at the points `at`, of those paths that no look has stopped yet."""
    if density is None:
        return _normal(at / math.sqrt(step)) / math.sqrt(step)
    kernel = _normal((at[:, None] - grid[None, :]) / math.sqrt(step)) / math.sqrt(step)
    moved: Floats = kernel @ (density * _weights(grid))
    return moved


def _tail(density: Floats | None, grid: Floats, step: float, time: float) -> Callable[[float], float]:
    """The probability to be beyond a standardised bound now, two-sided."""
    spread = math.sqrt(step)
    if density is None:
        return lambda score: math.erfc(score * math.sqrt(time) / spread / math.sqrt(2.0))
    weighted = density * _weights(grid)
    return lambda score: 2.0 * float(_upper((score * math.sqrt(time) - grid) / spread) @ weighted)


def _bound(tail: Callable[[float], float], budget: float) -> float:
    """The bound beyond which exactly the budget lies, by halving what holds it."""
    low, high = _LEAST, _REACH
    while high - low > _FINE:
        middle = (low + high) / 2.0
        low, high = (middle, high) if tail(middle) > budget else (low, middle)
    return (low + high) / 2.0


def _weights(grid: Floats) -> Floats:
    weights = np.full(len(grid), grid[1] - grid[0])
    weights[[0, -1]] /= 2.0
    return weights


def _normal(x: Floats) -> Floats:
    shape: Floats = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return shape


def _upper(x: Floats) -> Floats:
    from scipy.special import ndtr  # noqa: PLC0415 - scipy is imported where it is used

    tail: Floats = ndtr(-x)
    return tail
