"""A against B: the ratio of each pair that was measured in turn, and the effect with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.figures.frame import MUTED, Figure, drawing

if TYPE_CHECKING:
    from perftrail.figures.frame import Spec
    from perftrail.figures.palette import Palette
    from perftrail.model.trail import Json

MOST_PAIRS = 60
STEP = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """One subject against a reference: ratios of pairs, the effect and its interval, the verdict in words."""

    row: str
    subject: str
    ratios: tuple[float, ...]
    effect: float
    low: float
    high: float
    verdict: str


def against(rows: Sequence[Against], *, name: str, title: str, reference: str, palette: Palette) -> Figure:
    """Draw each subject against the reference: 1 is as much, less is to the left."""
    effects: list[Json] = [
        {
            "row": each.row,
            "subject": each.subject,
            "value": each.effect,
            "low": each.low,
            "high": each.high,
            "verdict": each.verdict,
        }
        for each in rows
    ]
    pairs: list[Json] = [
        {"row": each.row, "subject": each.subject, "value": ratio}
        for each in rows
        for ratio in each.ratios[:MOST_PAIRS]
    ]
    shown = palette.ordered(each.subject for each in rows)
    return Figure(
        name=name,
        title=title,
        caption=(
            f"Dots are ratios of pairs to {reference}, measured in turns; the diamond is the effect with its "
            "interval. 1 is as much."
        ),
        spec=drawing(
            _layers(effects, pairs, [each.row for each in rows], palette, shown, reference),
            height=STEP * len(rows),
        ),
    )


def _layers(
    effects: list[Json],
    pairs: list[Json],
    order: list[str],
    palette: Palette,
    shown: list[str],
    reference: str,
) -> list[Spec]:
    row: Spec = {"field": "row", "type": "nominal", "title": None, "sort": [*order]}
    along: Spec = {
        "type": "quantitative",
        "title": f"times that of {reference}",
        "scale": {"type": "log", "nice": False, "padding": 16},
        "axis": {"format": ".3~g", "tickCount": 6, "labelOverlap": True},
    }
    colour = {**palette.encoding(shown), "legend": None}
    return [
        {
            "data": {"values": [{"value": 1}]},
            "mark": {"type": "rule", "color": MUTED, "strokeDash": [4, 4]},
            "encoding": {"x": {"field": "value", **along}},
        },
        {
            "data": {"values": pairs},
            "mark": {"type": "point", "filled": True, "opacity": 0.35, "size": 22},
            "encoding": {"y": row, "x": {"field": "value", **along}, "color": colour},
        },
        {
            "data": {"values": effects},
            "mark": {"type": "rule", "strokeWidth": 3},
            "encoding": {
                "y": row,
                "x": {"field": "low", **along},
                "x2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "data": {"values": effects},
            "mark": {"type": "point", "filled": True, "shape": "diamond", "size": 110, "opacity": 1},
            "encoding": {
                "y": row,
                "x": {"field": "value", **along},
                "color": colour,
                "tooltip": [
                    {"field": "row", "type": "nominal", "title": "subject"},
                    {"field": "value", "type": "quantitative", "title": "times", "format": ".4~g"},
                    {"field": "low", "type": "quantitative", "title": "low", "format": ".4~g"},
                    {"field": "high", "type": "quantitative", "title": "high", "format": ".4~g"},
                    {"field": "verdict", "type": "nominal", "title": "verdict"},
                ],
            },
        },
    ]
