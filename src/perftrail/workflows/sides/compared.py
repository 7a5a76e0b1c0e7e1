"""Two sides of one benchmark compared from their units, look by look."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from perftrail.analysis.compare import Comparison, Verdict, compare
from perftrail.workflows.sides.units import Side, Unit, Units, usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.analysis.compare import Rule
    from perftrail.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[Side]):
    """The units that a verdict was read from, and what they say of the second side against the first."""

    units: Sequence[Unit[Side]]
    comparison: Comparison

    @property
    def settled(self) -> bool:
        """Whether the verdict stands, whatever comes after."""
        return self.comparison.verdict is not Verdict.UNCLEAR


class Comparisons(Generic[Side]):
    """Reads figures of units; only the unmarked ones where so many as `least` and as a verdict takes are."""

    def __init__(self, units: Units[Side], *, least: int) -> None:
        self._units = units
        self._least = least
        self._known: dict[tuple[str, Side, Side, int, bool], Comparison] = {}

    def read(self, target: Target, rule: Rule, *, one: Side, other: Side) -> Read[Side] | None:
        """Compare a figure at each look that there was, up to the one that settles it; `None` without a value.

        Between two looks nothing is read, so that stopping there is no further look; before the first there is none.
        """
        units = usable(self._units.of(target), rule, least=self._least)
        if not units:
            return None
        found: Read[Side] | None = None
        for count in rule.looks:
            if count > len(units) or (found is not None and found.settled):
                break
            seen = units[:count]
            # what was read at a look does not change while units are only added
            name = (target.name, one, other, count, all(unit.quiet for unit in seen))
            if name not in self._known:
                self._known[name] = _compared(seen, rule, one, other)
            found = Read(units=seen, comparison=self._known[name])
        return found or Read(units=units, comparison=_compared(units, rule, one, other))

    def settled(self, target: Target, rule: Rule, *, one: Side, other: Side) -> bool:
        """Whether more units can change nothing: the verdict stands, or by the first look there is no ratio to read.

        A figure that is never above zero has none.
        """
        found = self.read(target, rule, one=one, other=other)
        return len(self._units.whole()) >= rule.looks[0] if found is None else found.settled

    def forget(self) -> None:
        """Forget what was read by a rule that no longer holds."""
        self._known.clear()


def _compared(units: Sequence[Unit[Side]], rule: Rule, one: Side, other: Side) -> Comparison:
    first, second = ([math.exp(unit.logs[side]) for unit in units] for side in (one, other))
    return compare(first, second, rule)
