"""The rule by which verdicts of a report on subjects side by side are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.stats.comparison import FAMILY_ERROR, Rule

if TYPE_CHECKING:
    from perftrail.model.study import MeasurePolicy


def rule_for(
    policy: MeasurePolicy,
    comparisons: int,
    *,
    error: float = FAMILY_ERROR,
    smallest: float | None = None,
    most: int | None = None,
) -> Rule:
    """Make the rule for so many verdicts that share an error: as many units as the study allows, or a verdict takes.

    A difference below `smallest`, which is the study's precision unless given, counts as none. `most` units take the
    place of the study's most invocations.
    """
    wanted = policy.invocations.most if most is None else most
    return Rule(
        most=max(wanted, units_needed(comparisons, error=error)),
        comparisons=max(1, comparisons),
        smallest=policy.precision if smallest is None else smallest,
        error=error,
    )


def units_needed(comparisons: int, *, error: float = FAMILY_ERROR) -> int:
    """Give the fewest units of which one of so many verdicts that share an error can be read.

    >>> units_needed(1), units_needed(50)
    (9, 15)
    """
    return Rule(most=1, comparisons=max(1, comparisons), error=error).needed_pairs
