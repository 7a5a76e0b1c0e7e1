"""Values of two subjects that were taken in the same blocks, and which of them tell something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.measurement import Marked

Blocks = tuple[str, ...]
"""The names of the blocks of the samples that a value is read from."""

BUSY = "unclear: the machine was busy"
"""What is said where pairs decide nothing, see `decides`."""

ENOUGH_QUIET_PAIRS = 10
"""So many pairs that nothing disturbed are used alone; of fewer, the disturbed ones are used, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Values of two subjects in the same blocks, both above zero; `quiet`: nothing else disturbed either."""

    first: float
    second: float
    quiet: bool


def paired(first: Mapping[Blocks, Marked], second: Mapping[Blocks, Marked]) -> list[Pair]:
    """Pair the values of two subjects block by block, in the order of the first subject's."""
    return [
        Pair(
            first=first[at].value,
            second=second[at].value,
            quiet=all(weight(each[at].flags) > 0.0 for each in (first, second)),
        )
        for at in first
        if at in second
        if first[at].value > 0.0 and second[at].value > 0.0
    ]


def telling_over(points: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
    """Choose the pairs of some points that nothing disturbed, if they are enough and each point has any, else all."""
    quiet = [[pair for pair in pairs if pair.quiet] for pairs in points]
    enough = all(quiet) and sum(map(len, quiet)) >= ENOUGH_QUIET_PAIRS
    return quiet if enough else [list(pairs) for pairs in points]


def values_of(points: Sequence[Sequence[Pair]]) -> list[list[tuple[float, float]]]:
    """Give the values of the pairs of some points, as they are compared."""
    return [[(pair.first, pair.second) for pair in pairs] for pairs in points]


def decides(unit: str, pairs: Iterable[Pair]) -> bool:
    """Whether pairs of values with this unit decide anything: not times taken while something else was at work."""
    return unit != "s" or all(pair.quiet for pair in pairs)
