"""Warm-up, found rather than guessed: how many first runs differ from those that follow.

A series is level from its k-th value on when, in a window that begins there, the first value lies within
the others' spread and no trend runs through the window. The smallest such k is how many are left out. It is
decided from the first values alone and once for all; when two commands are compared, what is left out of a
pair is left out of both, so that no verdict leans on this choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW = 8
"""How many values must be level together."""

MOST = 10
"""More than these are never left out: what takes longer is no warm-up but the program."""

SPREADS = 5.0
"""How many standard deviations, by the median absolute deviation, a first value may lie off the others."""

TELLING = 0.05
"""A first value closer to the others than this is level, however little they spread."""

_STEADY = 20
"""The sum of signs over the 28 pairs of eight values that a level series reaches in 1 of 70 cases."""

_SHORT_LEAST = 4
_SHORT_TELLING = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """How many first values to leave out, and how the very first compares with the level: 1.8 is 1.8 times.

    `level`: the rest was found level. `first` is 1 when nothing is left out.
    """

    count: int
    first: float = 1.0
    level: bool = True


def find_warmup(values: Sequence[float]) -> Warmup | None:
    """Tell how many of the first values are warm-up, None while too few values are there to tell.

    Values are above zero. A given prefix decides; what follows never changes the answer.

    >>> find_warmup([1.8, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99])
    Warmup(count=1, first=1.8, level=True)
    """
    logs = [math.log(value) for value in values]
    for count in range(MOST + 1):
        window = logs[count : count + WINDOW]
        if len(window) < WINDOW:
            return None
        if _level(window):
            return _warmup(logs, count, window, level=True)
    return _warmup(logs, MOST, logs[MOST : MOST + WINDOW], level=False)


def last_word(values: Sequence[float]) -> Warmup:
    """Decide with what there is when measuring has ended: too short a series shows only a large first value.

    >>> last_word([3.0, 1.0, 1.02, 0.99])
    Warmup(count=1, first=3.0, level=True)
    """
    found = find_warmup(values)
    if found is not None:
        return found
    if len(values) < _SHORT_LEAST:
        return Warmup(count=0, level=False)
    logs = [math.log(value) for value in values]
    count = 0
    while count < min(MOST, len(logs) - _SHORT_LEAST + 1) and _off(logs[count:], telling=_SHORT_TELLING):
        count += 1
    return _warmup(logs, count, logs[count:], level=not _off(logs[count:], telling=_SHORT_TELLING))


def given(values: Sequence[float], count: int) -> Warmup:
    """Leave out as many as somebody asked for."""
    if not 0 < count < len(values):
        return Warmup(count=count)
    logs = [math.log(value) for value in values]
    return _warmup(logs, count, logs[count:], level=True)


def _warmup(logs: Sequence[float], count: int, rest: Sequence[float], *, level: bool) -> Warmup:
    first = math.exp(logs[0] - median(rest)) if count else 1.0
    return Warmup(count=count, first=round(first, 4), level=level)


def _level(window: Sequence[float]) -> bool:
    return not _off(window, telling=TELLING) and abs(_signs(window)) < _STEADY


def _off(window: Sequence[float], *, telling: float) -> bool:
    """Whether the first of some values lies outside the spread of the others."""
    others = window[1:]
    middle = median(others)
    spread = 1.4826 * median(abs(value - middle) for value in others)
    return abs(window[0] - middle) > max(SPREADS * spread, telling)


def _signs(values: Sequence[float]) -> int:
    """Kendall's S (Biometrika 30, 1938): how many pairs rise, less how many fall."""
    return sum(
        (later > earlier) - (later < earlier)
        for index, earlier in enumerate(values)
        for later in values[index + 1 :]
    )
