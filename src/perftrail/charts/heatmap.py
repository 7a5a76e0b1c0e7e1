"""Heat map of benchmarks by subjects: ratios to a reference, and unclear ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perftrail.charts.frame import DIVERGING, FOUR, MUTED, Chart, drawing, number, tooltip

if TYPE_CHECKING:
    from perftrail.charts.frame import Spec
    from perftrail.model.json_data import Json

STEP = 20
STRONGEST = 2.0
"""Smallest ratio (or its inverse) with the full colour."""

MOST_ROWS = 150
"""Largest number of rows; those with the largest differences are drawn."""

FEW_COLUMNS = 3
"""With at most this many columns, there is space for intervals."""

WIDEST_HEAD = 48
"""Maximum number of characters of column names, each as long as the longest, for which there is space in one line."""

LABEL_LIMIT = 360
"""Maximum width of a row's name in pixels."""

INK = "#23272e"
"""Text colour on a pale cell, in any theme."""

Standing = Literal["differs", "same", "unclear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The ratio of a subject's value to the reference's, with its interval.

    `ratio` is `None` if it is missing; `why` is then the reason.

    `whole`: the row summarises all rows below it.
    """

    row: str
    column: str
    ratio: float | None
    low: float = 0.0
    high: float = 0.0
    standing: Standing = "unclear"
    whole: bool = False
    why: str = ""


def heat(cells: Sequence[Cell], *, reference: str, name: str, omitted_rows: int = 0) -> Chart:
    """Return the chart of ratios to a reference by benchmark; `omitted_rows` is the number of omitted rows."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    encoding: Spec = {
        "x": {
            "field": "column",
            "type": "nominal",
            "title": None,
            "sort": [*columns],
            "axis": {
                "labelAngle": 0 if len(columns) * max(map(len, columns)) <= WIDEST_HEAD else -30,
                "orient": "top",
                "grid": False,
            },
        },
        "y": {
            "field": "row",
            "type": "nominal",
            "title": None,
            "sort": [*rows],
            "axis": {"grid": False, "labelLimit": LABEL_LIMIT},
        },
    }
    known = [_values(cell, intervals=len(columns) <= FEW_COLUMNS) for cell in cells if cell.ratio is not None]
    missing: list[Json] = [
        {"row": cell.row, "column": cell.column, "words": cell.why or "–"}
        for cell in cells
        if cell.ratio is None
    ]
    omitted = (
        f" Only the table has the {omitted_rows} rows with the smallest differences." if omitted_rows else ""
    )
    return Chart(
        name=name,
        title=f"Every benchmark relative to {reference}",
        caption=(
            f"Ratios to {reference}: blue is less, red is more, with full colour at half or twice. Pale is the same. "
            f"Cells without colour and with a question mark have no clear difference.{omitted}"
        ),
        spec=drawing(_layers(known, missing, encoding), height=STEP * len(rows)),
    )


def _values(cell: Cell, *, intervals: bool) -> dict[str, Json]:
    """Return a cell as data: its colour, its text and its tooltip."""
    assert cell.ratio is not None
    words = f"{cell.ratio:.2f}"
    if intervals:
        words += f" [{cell.low:.2f}, {cell.high:.2f}]"
    return {
        "row": cell.row,
        "column": cell.column,
        "ratio": cell.ratio,
        "low": cell.low,
        "high": cell.high,
        "shown": min(max(cell.ratio, 1 / STRONGEST), STRONGEST) if cell.standing == "differs" else 1.0,
        "standing": cell.standing,
        "whole": cell.whole,
        "words": f"{words} ?" if cell.standing == "unclear" else words,
    }


def _layers(known: Sequence[dict[str, Json]], missing: list[Json], encoding: Spec) -> list[Spec]:
    """Return cells by their certainty, a line above summary rows, and text for missing cells."""
    sure: list[Json] = [each for each in known if each["standing"] != "unclear"]
    unclear: list[Json] = [each for each in known if each["standing"] == "unclear"]
    heads: list[Json] = [
        {"row": row} for row in dict.fromkeys(str(each["row"]) for each in known if each["whole"])
    ]
    found: list[Spec] = [
        _squares(sure, encoding, {"stroke": MUTED, "strokeWidth": 0.5}, color=_COLOUR),
        _squares(
            unclear, encoding, {"fillOpacity": 0, "stroke": MUTED, "strokeWidth": 0.5, "strokeDash": [2, 2]}
        ),
        {
            "data": {"values": heads},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": {**_field(encoding["y"]), "bandPosition": 0}},
        },
        *_written(sure, encoding, colour=_ON_COLOUR),
        *_written(unclear, encoding, colour={"value": MUTED}),
    ]
    if missing:
        found.append(
            {
                "data": {"values": missing},
                "mark": {"type": "text", "fontStyle": "italic", "limit": 90},
                "encoding": {**encoding, "text": {"field": "words", "type": "nominal"}},
            }
        )
    return found


def _squares(values: list[Json], encoding: Spec, mark: Spec, **channels: Json) -> Spec:
    """Return a square for each cell, with its tooltip."""
    tooltips: list[Json] = [
        tooltip("row", "benchmark"),
        tooltip("column", "subject"),
        number("ratio", "times", FOUR),
        number("low", "low", FOUR),
        number("high", "high", FOUR),
        tooltip("standing", "verdict"),
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "rect", **mark},
        "encoding": {**encoding, **channels, "tooltip": tooltips},
    }


def _written(values: Sequence[Json], encoding: Spec, *, colour: Json) -> list[Spec]:
    """Return the texts of cells, bold for summary rows."""
    return [
        {
            "data": {"values": [*values]},
            "transform": [{"filter": f"datum.whole === {whole}"}],
            "mark": {"type": "text", "fontWeight": weight},
            "encoding": {**encoding, "text": {"field": "words", "type": "nominal"}, "color": colour},
        }
        for whole, weight in (("true", "bold"), ("false", "normal"))
    ]


def _field(channel: Json) -> Spec:
    assert isinstance(channel, dict)
    return channel


_COLOUR: Spec = {
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
_ON_COLOUR: Spec = {
    "condition": {"test": "datum.shown < 0.6 || datum.shown > 1.6", "value": "white"},
    "value": INK,
}
