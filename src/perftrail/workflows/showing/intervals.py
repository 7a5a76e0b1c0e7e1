"""A figure with its interval as plain data, the same wherever JSON is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.model.search_record import Json


def interval_json(value: float, low: float, high: float) -> dict[str, Json]:
    """Give a figure and the ends of its interval.

    >>> interval_json(1.0, 0.9, 1.1)
    {'value': 1.0, 'low': 0.9, 'high': 1.1}
    """
    return {"value": value, "low": low, "high": high}
