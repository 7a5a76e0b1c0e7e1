"""When a point has been measured often enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.analysis.estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Sequence


def enough(values: Sequence[float], *, least: int, most: int, precision: float) -> bool:
    """Tell whether a sample is done: at `most` values, or from `least` on when its interval is narrow.

    Narrow is a half width of at most `precision` times the median. This decides only how long to measure;
    no verdict is read from it, so that looking after each value costs nothing but a slightly narrow interval.
    """
    if len(values) >= most:
        return True
    if len(values) < least:
        return False
    return estimate(values).relative_half_width <= precision
