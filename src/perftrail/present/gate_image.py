"""Chart of a comparison as an image: each metric's ratio of head to base with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vl_convert

from perftrail.charts.comparison import Against, against
from perftrail.charts.frame import Palette
from perftrail.present.gate import name, revision
from perftrail.present.page_images import PNG_SCALE, svg

if TYPE_CHECKING:
    from perftrail.results.gate import Gate

MOST_ROWS = 40


def draw(gate: Gate) -> str:
    """Return the worst rows as SVG."""
    rows = [
        Against(
            row=name(row),
            subject="head",
            ratios=row.ratios,
            effect=row.comparison.effect,
            low=row.comparison.low,
            high=row.comparison.high,
            verdict=row.word,
        )
        for row in gate.rows[:MOST_ROWS]
        if row.comparison is not None
    ]
    return svg(
        against(
            rows,
            name="comparison",
            title=gate.title,
            reference=revision(gate.base),
            palette=Palette(("head",)),
        )
    )


def to_png(drawn: str) -> bytes:
    """Return an SVG as PNG."""
    image: bytes = vl_convert.svg_to_png(drawn, scale=PNG_SCALE)
    return image
