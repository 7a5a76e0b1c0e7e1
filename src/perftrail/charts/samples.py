"""Chart of the samples of each subject, with their quartiles."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perftrail.charts.frame import (
    FOUR,
    MOST_DOTS,
    MUTED,
    Chart,
    drawing,
    evenly,
    measured_axis,
    number,
    tooltip,
)

if TYPE_CHECKING:
    from perftrail.charts.curve import Labels
    from perftrail.charts.frame import Axis, Palette, Spec
    from perftrail.model.json_data import Json

MOST_ROWS = 24
STEP = 26
"""Height of a row in pixels."""


def samples(
    rows: Mapping[str, Sequence[float]], *, labels: Labels, palette: Palette, kinds: Mapping[str, str]
) -> Chart:
    """Return the chart of the samples of each row, oldest row first; `kinds` maps rows to subjects.

    With many rows, evenly spaced ones are drawn, including the first and the last. The same applies to the samples of
    a row, sorted by size.
    """
    kept = [*evenly(list(rows), MOST_ROWS)]
    measured = measured_axis(labels.metric, labels.unit, [value for name in kept for value in rows[name]])
    dots: list[Json] = [
        {"row": name, "subject": kinds[name], "value": value / measured.divisor}
        for name in kept
        for value in evenly(sorted(rows[name]), MOST_DOTS)
    ]
    boxes: list[Json] = [_box(name, rows[name], measured.divisor) for name in kept]
    omitted_rows = len(rows) - len(kept)
    omitted = f" The table has {omitted_rows} more subjects." if omitted_rows else ""
    shown = palette.ordered(kinds[name] for name in kept)
    return Chart(
        name=labels.name,
        title=labels.title,
        caption=f"Each dot is a sample; the grey bar is the middle half, its line is the median.{omitted}",
        spec=drawing(_layers(dots, boxes, measured, kept, palette, shown), height=STEP * len(kept)),
    )


def _layers(
    dots: list[Json], boxes: list[Json], measured: Axis, kept: list[str], palette: Palette, shown: list[str]
) -> list[Spec]:
    row: Spec = {"field": "row", "type": "nominal", "title": None, "sort": [*kept], "axis": {"grid": False}}
    return [
        {
            "data": {"values": boxes},
            "mark": {"type": "bar", "color": MUTED, "opacity": 0.35, "height": 14},
            "encoding": {"y": row, "x": {"field": "low", **measured.spec()}, "x2": {"field": "high"}},
        },
        {
            "data": {"values": dots},
            "mark": {"type": "point", "filled": True, "opacity": 0.55, "size": 26},
            "encoding": {
                "y": row,
                "x": {"field": "value", **measured.spec()},
                "color": palette.encoding(shown),
                "shape": palette.shapes(shown),
            },
        },
        {
            "data": {"values": boxes},
            "mark": {"type": "tick", "thickness": 2.5, "size": 18, "color": MUTED},
            "encoding": {
                "y": row,
                "x": {"field": "value", **measured.spec()},
                "tooltip": [
                    tooltip("row", "subject"),
                    number("value", "median", FOUR),
                    number("count", "samples"),
                ],
            },
        },
    ]


def _box(name: str, values: Sequence[float], divisor: float) -> Spec:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return {
        "row": name,
        "value": middle / divisor,
        "low": low / divisor,
        "high": high / divisor,
        "count": len(values),
    }
