"""Whether a change shows where the builds on its two sides are read in turns.

Readings of two builds that were taken hours apart differ by what the machine did meanwhile as well; those
that follow each other do not. So before more than one change is told, each has to show in turns.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.search.blocks import Timed
    from perftrail.search.evidence import Evidence

    Floats = npt.NDArray[np.float64]

SHOWN = 3.0
"""A change shows, or does not, once the logarithm of the odds is so far from zero: twenty to one."""

MOST_TURNS = 12
"""No more turns are taken of one change."""

_SIZES = np.linspace(0.01, 3.0, 300)
_SIZES_PRIOR = np.exp(-0.5 * ((_SIZES - 1) / 0.4) ** 2)
_SIZES_PRIOR /= _SIZES_PRIOR.sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What readings in turns say of the change between two builds.

    `low` and `high` are the builds, `differences` (n,) the logarithm of high over low in each turn, `following`
    the build to be read next, so that the turns go low, high, high, low.
    """

    low: int
    high: int
    differences: tuple[float, ...]
    following: int

    def log_odds(self, change: float, sigma: float) -> float:
        """Return the logarithm of the odds for a change in the direction of `change`, and about of its size.

        Against it stands that the builds do not differ. The size is believed to be that of `change`, with a
        standard deviation of two fifths of it, for builds fall differently; a turn scatters by
        ``sigma sqrt 2``, or holds an outlier.
        """
        spread = math.sqrt(2) * sigma
        off = np.asarray(self.differences)[:, None] - np.array([0.0, *(_SIZES * change)])
        inlier = (
            (1 - noise.OUTLIERS) ** 2 * np.exp(-0.5 * (off / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
        )
        logs = np.log(inlier + 2 * noise.OUTLIERS * noise.garbage_density(sigma)).sum(axis=0)
        with_change = np.log(np.exp(logs[1:] - logs.max()) @ _SIZES_PRIOR + 1e-300) + logs.max()
        return float(with_change - logs[0])


def turns(sequence: Sequence[Timed], low: int, high: int) -> Turns:
    """Return the turns of two builds, named by their `representative`, among readings in order of time.

    The first reading of a build is no part of one: building lay between it and the one before.
    """
    read: set[int] = set()
    settled = []
    for reading in sequence:
        settled.append(reading.position in read)
        read.add(reading.position)
    differences: list[float] = []
    last, open_until = high, 0
    for number, (one, other) in enumerate(itertools.pairwise(sequence)):
        both = settled[number] and settled[number + 1] and one.block == other.block
        if number >= open_until and both and {one.position, other.position} == {low, high}:
            sign = 1 if one.position == low else -1
            differences.append(sign * (other.value - one.value))
            last, open_until = other.position, number + 2
    ending = sequence[-1].position
    begun = open_until < len(sequence) and settled[-1] and ending in (low, high)
    following = (low if ending == high else high) if begun else last
    return Turns(low=low, high=high, differences=tuple(differences), following=following)


def beside(evidence: Evidence, candidates: Sequence[int]) -> tuple[int, int] | None:
    """Return the builds next to a change, by their `representative`; `None` where it has not one on each side.

    `candidates` are the positions, ascending, of which one changed the metric.
    """
    usable = [position for position in evidence.positions if position not in evidence.unusable]
    low = max((position for position in usable if position < candidates[0]), default=None)
    high = min((position for position in usable if position >= candidates[-1]), default=None)
    if low is None or high is None:
        return None
    sides = evidence.representative(low), evidence.representative(high)
    return None if sides[0] == sides[1] else sides
