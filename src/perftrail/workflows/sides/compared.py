"""Two sides of one benchmark compared from their units, analysis by analysis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from perftrail.stats.comparison import Comparison, compare
from perftrail.workflows.sides.units import Side, Unit, Units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.target import Target
    from perftrail.stats.comparison import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[Side]):
    """The units that a verdict was read from, and what they say of the second side against the first."""

    units: Sequence[Unit[Side]]
    comparison: Comparison


class Comparisons(Generic[Side]):
    """Reads figures of units, of one set of them that was fixed in advance (see `Units.of`)."""

    def __init__(self, units: Units[Side]) -> None:
        self._units = units
        self._known: dict[tuple[str, Side, Side, int], Comparison] = {}

    def read(self, target: Target, rule: Rule, *, one: Side, other: Side) -> Read[Side] | None:
        """Compare a figure at each analysis that was due, up to the one that settles it; `None` without a value."""
        units = self._units.of(target)
        if not units:
            return None
        found: Read[Side] | None = None
        for count in rule.looks:
            if count > len(units) or (found is not None and found.comparison.settled):
                break
            # the first units do not change while others are added
            name = (target.name, one, other, count)
            if name not in self._known:
                self._known[name] = compared(units[:count], rule, one, other)
            found = Read(units=units[:count], comparison=self._known[name])
        return found or Read(units=units, comparison=compared(units, rule, one, other))

    def settled(self, target: Target, rule: Rule, *, one: Side, other: Side) -> bool:
        """Whether more units can change nothing: the verdict stands, or by the first analysis there is no ratio.

        A figure that is never above zero has none.
        """
        found = self.read(target, rule, one=one, other=other)
        return self._units.done >= rule.looks[0] if found is None else found.comparison.settled

    def forget(self) -> None:
        """Forget what was read by a rule that no longer holds."""
        self._known.clear()


def compared(units: Sequence[Unit[Side]], rule: Rule, one: Side, other: Side) -> Comparison:
    """Compare the second side with the first over units."""
    first, second = ([math.exp(unit.logs[side]) for unit in units] for side in (one, other))
    return compare(first, second, rule)
