"""Subjects by benchmarks: how much each takes of what the reference takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.figures.frame import FOUR, MUTED, Figure, drawing, number, told
from perftrail.figures.palette import DIVERGING

if TYPE_CHECKING:
    from perftrail.figures.frame import Spec
    from perftrail.model.trail import Json

STEP = 26
STRONGEST = 2.0
"""From half or twice as much on, a colour is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A subject's value over the reference's in one benchmark; `None` where there is none, with the reason."""

    row: str
    column: str
    ratio: float | None
    why: str = ""


def heat(cells: Sequence[Cell], *, reference: str, metric: str) -> Figure:
    """Draw the ratios of subjects to a reference, benchmark by benchmark."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    values: list[Json] = [
        {
            "row": cell.row,
            "column": cell.column,
            "ratio": cell.ratio,
            "shown": min(max(cell.ratio, 1 / STRONGEST), STRONGEST),
            "words": f"{cell.ratio:.2f}",
        }
        for cell in cells
        if cell.ratio is not None
    ]
    lost: list[Json] = [
        {"row": cell.row, "column": cell.column, "words": cell.why or "–"}
        for cell in cells
        if cell.ratio is None
    ]
    place: Spec = {
        "x": {
            "field": "column",
            "type": "nominal",
            "title": None,
            "sort": [*columns],
            "axis": {"labelAngle": -30, "orient": "top", "grid": False},
        },
        "y": {"field": "row", "type": "nominal", "title": None, "sort": [*rows], "axis": {"grid": False}},
    }
    return Figure(
        name=f"heat-{metric}",
        title=f"Subjects by benchmarks: {metric}",
        caption=f"Times {reference}: blue is less, red is more; full colour from half or twice on.",
        spec=drawing(_layers(values, lost, place), height=STEP * len(rows)),
    )


def _layers(values: list[Json], lost: list[Json], place: Spec) -> list[Spec]:
    colour: Spec = {
        "field": "shown",
        "type": "quantitative",
        "title": "times",
        "scale": {
            "type": "log",
            "domain": [1 / STRONGEST, 1, STRONGEST],
            "range": [*DIVERGING],
            "interpolate": "rgb",
        },
        "legend": {"format": ".2~g", "gradientLength": 160, "values": [1 / STRONGEST, 1, STRONGEST]},
    }
    words: Spec = {"text": {"field": "words", "type": "nominal"}}
    under: list[Json] = [
        told("row", "subject"),
        told("column", "benchmark"),
        number("ratio", "times", FOUR),
    ]
    layers: list[Spec] = [
        {
            "data": {"values": values},
            "mark": {"type": "rect", "stroke": MUTED, "strokeWidth": 0.5},
            "encoding": {**place, "color": colour, "tooltip": under},
        },
        {
            "data": {"values": values},
            "mark": {"type": "text"},
            "encoding": {
                **place,
                **words,
                "color": {
                    "condition": {"test": "datum.shown < 0.6 || datum.shown > 1.6", "value": "white"},
                    "value": "#23272e",
                },
            },
        },
    ]
    if lost:
        empty: Spec = {
            "data": {"values": lost},
            "mark": {"type": "text", "fontStyle": "italic", "limit": 90},
            "encoding": {**place, **words},
        }
        layers.append(empty)
    return layers
