"""Chart of subjects against a reference: ratios of pairs, and effects with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from perftrail.charts.frame import MOST_DOTS, MUTED, Chart, drawing, evenly, interval, tooltip

if TYPE_CHECKING:
    from perftrail.charts.frame import Palette, Spec
    from perftrail.model.json_data import Json
    from perftrail.stats.comparison import Comparison

STEP = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """A row of the chart, one subject compared with a reference: ratios of pairs, effect, interval, and verdict."""

    row: str
    subject: str
    ratios: tuple[float, ...]
    effect: float
    low: float
    high: float
    verdict: str

    @classmethod
    def of(
        cls, comparison: Comparison, *, row: str, subject: str, ratios: tuple[float, ...], verdict: str
    ) -> Self:
        """Return the row of a comparison."""
        return cls(
            row=row,
            subject=subject,
            ratios=ratios,
            effect=comparison.effect,
            low=comparison.low,
            high=comparison.high,
            verdict=verdict,
        )


def ratio_chart(
    rows: Sequence[ComparisonRow],
    *,
    name: str,
    title: str,
    reference: str,
    palette: Palette,
    dots: str = "pairs",
    method: str = "measured as interleaved pairs",
) -> Chart:
    """Return the chart of each subject against the reference: 1 is equal, less is left.

    `dots` names the values whose ratios are drawn as dots; `method` describes how these were measured.
    """
    y_axis: Spec = {"field": "row", "type": "nominal", "title": None, "sort": [each.row for each in rows]}
    x_axis: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": f"times that of {reference}",
        "scale": {"type": "log", "nice": False, "padding": 16},
        "axis": {"format": ".3~g", "tickCount": 6, "labelOverlap": True},
    }
    colour = {**palette.encoding(palette.ordered(each.subject for each in rows)), "legend": None}
    encoding: Spec = {"y": y_axis, "x": x_axis, "color": colour}
    many = any(len(each.ratios) > MOST_DOTS for each in rows)
    thinned = f" At most {MOST_DOTS} dots are drawn, evenly spaced in the order of size." if many else ""
    return Chart(
        name=name,
        title=title,
        caption=(
            f"Dots are ratios of {dots} to {reference}, {method}; the diamond is the effect with its "
            f"interval. 1 is equal.{thinned}"
        ),
        spec=drawing(
            [
                {
                    "data": {"values": [{"value": 1}]},
                    "mark": {"type": "rule", "color": MUTED, "strokeDash": [4, 4]},
                    "encoding": {"x": x_axis},
                },
                _pairs(rows, encoding),
                *_effects(rows, encoding, low={**x_axis, "field": "low"}),
            ],
            height=STEP * len(rows),
        ),
    )


def _pairs(rows: Sequence[ComparisonRow], encoding: Spec) -> Spec:
    """Return a dot for each pair's ratio."""
    values: list[Json] = [
        {"row": each.row, "subject": each.subject, "value": ratio}
        for each in rows
        for ratio in evenly(sorted(each.ratios), MOST_DOTS)
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "opacity": 0.35, "size": 22},
        "encoding": encoding,
    }


def _effects(rows: Sequence[ComparisonRow], encoding: Spec, *, low: Spec) -> list[Spec]:
    """Return each subject's effect with its interval, in the row of its dots."""
    values: list[Json] = [
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
    data: Spec = {"values": values}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "strokeWidth": 3},
            "encoding": {**encoding, "x": low, "x2": {"field": "high"}},
        },
        {
            "data": data,
            "mark": {"type": "point", "filled": True, "shape": "diamond", "size": 110, "opacity": 1},
            "encoding": {
                **encoding,
                "tooltip": [tooltip("row", "subject"), *interval("times"), tooltip("verdict", "verdict")],
            },
        },
    ]
