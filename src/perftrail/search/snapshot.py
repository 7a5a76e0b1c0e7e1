"""What a search believes at one moment, in figures that can be stored and told to people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from perftrail.search.belief import Posterior

SHOWN = 0.95
"""The candidates that are counted hold the culprit with this probability, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A snapshot of the posterior.

    `at_or_before` gives for each built position, ascending, the probability that the culprit is at or
    before it. `no_change` is the probability that nothing of the smallest size worth finding changed.
    `candidates` counts the revisions of the smallest stretch that holds 95 % of the culprit's probability;
    `heaviest` is the gap (low, high] most likely to hold it, with the probability `heaviest_probability`.
    `before` and `after` are levels in the metric's own unit. `sigma` and `tau` are the scatter of readings
    and of builds, relative (0.01 is 1 %).
    """

    at_or_before: tuple[tuple[int, float], ...]
    no_change: float
    candidates: int
    heaviest: tuple[int, int]
    heaviest_probability: float
    before: float
    after: float
    sigma: float
    tau: float

    def after_the_change(self, position: int) -> float | None:
        """P(the culprit is at or before a position, which is thus after the change); `None` if not built."""
        return dict(self.at_or_before).get(position)


def believe(posterior: Posterior) -> Belief:
    """Take a snapshot of a posterior with two built positions or more."""
    gap = int(np.argmax(posterior.gaps))
    share = float(posterior.gaps.sum())
    stretch = narrowest(posterior, SHOWN * share) or range(len(posterior.gaps))
    shares = np.minimum(posterior.at_or_before, 1.0)
    return Belief(
        at_or_before=tuple(zip(posterior.positions, shares.tolist(), strict=True)),
        no_change=min(posterior.nothing + posterior.small, 1.0),
        candidates=posterior.positions[stretch.stop] - posterior.positions[stretch.start],
        heaviest=(posterior.positions[gap], posterior.positions[gap + 1]),
        heaviest_probability=float(posterior.gaps[gap]),
        before=math.exp(posterior.before[0]),
        after=math.exp(posterior.after[0]),
        sigma=posterior.sigma,
        tau=posterior.tau,
    )


def narrowest(posterior: Posterior, probability: float) -> range | None:
    """Return the neighbouring gaps with the fewest revisions that hold the culprit with a probability."""
    best: range | None = None
    size = math.inf
    sums = posterior.at_or_before
    for start in range(len(posterior.gaps)):
        stop = int(np.searchsorted(sums, sums[start] + probability - 1e-12))
        if start < stop <= len(posterior.gaps):
            length = posterior.positions[stop] - posterior.positions[start]
            if length < size:
                best, size = range(start, stop), length
    return best
