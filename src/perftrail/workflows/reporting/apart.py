"""Subjects beside each other whose samples others took, so that nothing pairs them: one sample against another."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perftrail.stats.comparison import FAMILY_ERROR
from perftrail.stats.ratios import compare_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.stats.comparison import Comparison
    from perftrail.workflows.showing.rows import Row


def comparable(first: Row, second: Row) -> bool:
    """Whether two rows have samples that can be compared as ratios."""
    return all(len(row.values) > 1 and min(row.values) > 0.0 for row in (first, second))


def compare_rows(first: Row, second: Row, *, comparisons: int) -> Comparison:
    """Compare two rows' samples, one of so many comparisons in a report, which share its error."""
    return compare_apart(first.values, second.values, level=FAMILY_ERROR / comparisons)


def ratios_apart(first: Row, second: Row) -> Sequence[float]:
    """Give the second row's values as ratios to the median of the first's."""
    middle = statistics.median(first.values)
    return tuple(value / middle for value in second.values)
