"""A metric along a history: intervals, change points, releases, what could not be had, a search's own steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.figures.frame import MUTED, Figure, drawing, interval, measured_axis, number, told
from perftrail.figures.marks import along_axis, changes, failed, releases, stretches
from perftrail.figures.thinning import Along, thinned

if TYPE_CHECKING:
    from perftrail.figures.curve import Labels
    from perftrail.figures.frame import Axis, Spec
    from perftrail.figures.marks import Events, Mark
    from perftrail.figures.palette import Palette
    from perftrail.model.trail import Json

MOST_NUMBERED = 60
CLOSEST = 0.025
"""Numbers that are closer than this share of the history would cover each other: the earlier step is kept."""

ROOM = 18
"""In pixels: a step's number stands above its point, beside the line of a change, below the words above the drawing."""

POINTS = "points"
"""The name of the data that a page may replace when a part of the history is looked at closely."""


def history(points: Sequence[Along], events: Events, *, labels: Labels, palette: Palette) -> Figure:
    """Draw a metric along a history. Many points are drawn as ranges of neighbours."""
    drawn = thinned(points)
    numbered = _numbered(events, points)
    measured = replace(
        measured_axis(
            labels.metric, labels.unit, [end for point in points for end in (point.low, point.high)]
        ),
        padding=ROOM if numbered else 0,
    )
    shown = palette.ordered(point.subject for point in points)
    values: list[Json] = [plain(point, measured.divisor) for point in drawn]
    layers = [
        *stretches(events),
        *releases(events),
        *_series(values, measured, events.length, palette, shown),
        *changes(events),
        *_steps(numbered, events.length, measured),
        *failed(events),
    ]
    thin = len(drawn) < len(points)
    return Figure(
        name=labels.name,
        title=labels.title,
        caption=_caption(events, thin=thin),
        spec=drawing(layers, usermeta={"divisor": measured.divisor, "thinned": thin}),
    )


def plain(point: Along, divisor: float) -> Spec:
    """Give a point as a row of the figure's data."""
    return {
        "position": point.position,
        "subject": point.subject,
        "revision": point.revision,
        "value": point.value / divisor,
        "low": point.low / divisor,
        "high": point.high / divisor,
        "count": point.count,
        "of": point.of,
    }


def _series(
    values: list[Json], measured: Axis, length: int, palette: Palette, shown: list[str]
) -> list[Spec]:
    colour, along = palette.encoding(shown), along_axis(length)
    under: list[Json] = [
        told("revision", "revision"),
        told("subject", "variant"),
        *interval("median"),
        number("count", "samples"),
    ]
    return [
        {
            "data": {"name": POINTS, "values": values},
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6},
            "encoding": {
                "x": along,
                "y": {"field": "low", **measured.spec()},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "data": {"name": POINTS},
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 40},
            "encoding": {
                "x": along,
                "y": {"field": "value", **measured.spec()},
                "color": colour,
                "shape": palette.shapes(shown),
                "tooltip": under,
            },
        },
    ]


def _numbered(events: Events, points: Sequence[Along]) -> list[tuple[Mark, float]]:
    """The steps whose number can be read, each with the top of what it measured; none of a long search."""
    tops = {point.position: point.high for point in points}
    kept: list[Mark] = []
    for mark in events.steps:
        apart = all(abs(mark.position - other.position) >= CLOSEST * events.length for other in kept)
        if mark.position in tops and apart:
            kept.append(mark)
    return [(mark, tops[mark.position]) for mark in kept] if len(kept) <= MOST_NUMBERED else []


def _steps(numbered: Sequence[tuple[Mark, float]], length: int, measured: Axis) -> list[Spec]:
    """Number the measured revisions in the order in which a search took them."""
    values: list[Json] = [
        {"position": mark.position, "word": mark.word, "value": top / measured.divisor}
        for mark, top in numbered
    ]
    if not values:
        return []
    return [
        {
            "data": {"values": values},
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 4,
                "dy": -8,
                "fontSize": 10,
                "color": MUTED,
            },
            "encoding": {
                "x": along_axis(length),
                "y": {"field": "value", **measured.spec()},
                "text": {"field": "word", "type": "nominal"},
            },
        }
    ]


def _caption(events: Events, *, thin: bool) -> str:
    together = "Neighbouring revisions stand together: their median, and the range of their intervals"
    parts = [together if thin else "Medians with their 95 % intervals"]
    if events.changes:
        parts.append("the red line is where it changed")
    if events.releases:
        parts.append("dotted lines are releases")
    if events.gaps or events.failed:
        parts.append("grey stretches and crosses could not be had")
    if 0 < len(events.steps) <= MOST_NUMBERED:
        parts.append("numbers are the search's steps, in the order it took them")
    return "; ".join(parts) + "."
