"""The order in which a trial's commands are started: rounds of units of adjacent starts.

Starts of one unit are adjacent in time. A reference R runs between two others, ``B R C``, so that each of both
pairs is adjacent and R is started half as often; one that is left alone makes the unit ``R B``. A fair coin, drawn
from the trial's seed, decides for each unit whether it runs backwards: comparisons bet on that coin. Every second
round has its units in the opposite order, so that drift hits them alike. A command alone is only repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.circumstances import seed_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from perftrail.model.trial import Group, Trial

    Unit = tuple[int, ...]


def units_of_round(trial: Trial, number: int, ended: Collection[int]) -> tuple[Unit, ...]:
    """Give the units of a round, numbered from 0, as entries to start; empty when every entry has ended.

    The shell's own entry, where there is one, is `len(trial.entries)` and comes once in each round.
    """
    units = [unit for group in trial.groups for unit in _units(group, ended)]
    if units and trial.shell is not None:
        units.append((len(trial.entries),))
    drawn = [unit[::-1] if seed_of("order", trial.seed, number, *unit) % 2 else unit for unit in units]
    return tuple(reversed(drawn)) if number % 2 else tuple(drawn)


def _units(group: Group, ended: Collection[int]) -> Iterator[Unit]:
    if not group.others:
        if group.reference not in ended:
            yield (group.reference,)
        return
    others = [other for other in group.others if other not in ended]
    if len(others) == 1:
        yield (group.reference, others[0])
        return
    for at in range(0, len(others), 2):
        two = others[at : at + 2]
        yield (two[0], group.reference, *two[1:])
