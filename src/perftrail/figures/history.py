"""A metric along a history: intervals, change points, releases, what could not be had, a search's own steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.figures.frame import FOUND, MUTED, Figure, drawing, interval, measured_axis, number, told
from perftrail.figures.thinning import Along, thinned

if TYPE_CHECKING:
    from perftrail.figures.curve import Labels
    from perftrail.figures.frame import Axis, Spec
    from perftrail.figures.palette import Palette
    from perftrail.model.trail import Json

MOST_RELEASES, MOST_NUMBERED, LONGEST = 10, 60, 24
CLOSEST = 0.025
"""Numbers that are closer than this share of the history would cover each other: the earlier step is kept."""

POINTS = "points"
"""The name of the data that a page may replace when a part of the history is looked at closely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place of the history with a word to it: a release, a culprit, a revision that failed."""

    position: int
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Neighbouring revisions that could not be had, both ends included, and why in a word."""

    first: int
    last: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """What happened along a history of `length` revisions; `steps` say in which step of a search one was taken."""

    length: int
    changes: Sequence[Mark] = ()
    releases: Sequence[Mark] = ()
    failed: Sequence[Mark] = ()
    gaps: Sequence[Gap] = ()
    steps: Sequence[Mark] = ()


def history(points: Sequence[Along], events: Events, *, labels: Labels, palette: Palette) -> Figure:
    """Draw a metric along a history. Many points are drawn as ranges of neighbours."""
    drawn = thinned(points)
    measured = measured_axis(
        labels.metric, labels.unit, [end for point in points for end in (point.low, point.high)]
    )
    shown = palette.ordered(point.subject for point in points)
    values: list[Json] = [plain(point, measured.divisor) for point in drawn]
    layers = [
        *_stretches(events),
        *_releases(events),
        *_series(values, measured, events.length, palette, shown),
        *_changes(events),
        *_steps(events, points, measured),
        *_failed(events),
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


def along_axis(length: int, title: str = "position in the history") -> Spec:
    """The horizontal axis of everything that is drawn along a history."""
    return {
        "field": "position",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [-0.5, max(length, 1) - 0.5], "nice": False, "padding": 8},
        "axis": {"grid": False, "tickMinStep": 1, "labelOverlap": True, "format": "d"},
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


def _stretches(events: Events) -> list[Spec]:
    if not events.gaps:
        return []
    values: list[Json] = [
        {"position": gap.first - 0.5, "end": gap.last + 0.5, "why": gap.why} for gap in events.gaps
    ]
    return [
        {
            "data": {"values": values},
            "mark": {"type": "rect", "color": MUTED, "opacity": 0.22},
            "encoding": {
                "x": along_axis(events.length),
                "x2": {"field": "end"},
                "tooltip": told("why", "not to be had"),
            },
        }
    ]


def _releases(events: Events) -> list[Spec]:
    kept = _spread(events.releases)
    if not kept:
        return []
    data: Spec = {"values": [_marked(mark) for mark in kept]}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": MUTED, "strokeDash": [2, 3], "opacity": 0.8},
            "encoding": {"x": along_axis(events.length)},
        },
        *(_release_words(data, events.length, side, offset) for side, offset in (("<=", 9), (">", -7))),
    ]


def _release_words(data: Spec, length: int, side: str, offset: int) -> Spec:
    """The names of releases, to the right of their lines; at the right end to the left."""
    return {
        "data": data,
        "transform": [{"filter": f"datum.position {side} {0.96 * length}"}],
        "mark": {
            "type": "text",
            "angle": 270,
            "align": "right",
            "dy": offset,
            "baseline": "middle",
            "color": MUTED,
        },
        "encoding": {
            "x": along_axis(length),
            "y": {"value": 4},
            "text": {"field": "word", "type": "nominal"},
        },
    }


def _changes(events: Events) -> list[Spec]:
    if not events.changes:
        return []
    data: Spec = {"values": [_marked(mark) for mark in events.changes]}
    middle = events.length / 2
    spec: list[Spec] = [
        {
            "data": data,
            "mark": {"type": "rule", "color": FOUND, "strokeWidth": 2},
            "encoding": {
                "x": along_axis(events.length),
                "tooltip": told("word", "changed"),
            },
        }
    ]
    for side, align, offset in ((f"<= {middle}", "left", 6), (f"> {middle}", "right", -6)):
        words: Spec = {
            "data": data,
            "transform": [{"filter": f"datum.position {side}"}],
            "mark": {
                "type": "text",
                "align": align,
                "dx": offset,
                "baseline": "bottom",
                "color": FOUND,
                "fontWeight": "bold",
                "limit": 260,
            },
            "encoding": {
                "x": along_axis(events.length),
                "y": {"value": -5},
                "text": {"field": "word", "type": "nominal"},
            },
        }
        spec.append(words)
    return spec


def _steps(events: Events, points: Sequence[Along], measured: Axis) -> list[Spec]:
    """Number the measured revisions in the order in which a search took them, as long as that can be read."""
    tops = {point.position: point.high for point in points}
    kept: list[Mark] = []
    for mark in events.steps:
        apart = all(abs(mark.position - other.position) >= CLOSEST * events.length for other in kept)
        if mark.position in tops and apart:
            kept.append(mark)
    values: list[Json] = [
        {"position": mark.position, "word": mark.word, "value": tops[mark.position] / measured.divisor}
        for mark in kept
    ]
    if not values or len(values) > MOST_NUMBERED:
        return []
    return [
        {
            "data": {"values": values},
            "mark": {"type": "text", "dy": -8, "fontSize": 10, "color": MUTED},
            "encoding": {
                "x": along_axis(events.length),
                "y": {"field": "value", **measured.spec()},
                "text": {"field": "word", "type": "nominal"},
            },
        }
    ]


def _failed(events: Events) -> list[Spec]:
    if not events.failed:
        return []
    return [
        {
            "data": {"values": [_marked(mark) for mark in events.failed]},
            "mark": {"type": "point", "shape": "M-1,-1L1,1M-1,1L1,-1", "size": 50, "color": MUTED},
            "encoding": {
                "x": along_axis(events.length),
                "y": {"value": 300},
                "tooltip": told("word", "failed"),
            },
        }
    ]


def _marked(mark: Mark) -> Spec:
    word = mark.word if len(mark.word) <= LONGEST else f"{mark.word[: LONGEST - 1]}…"
    return {"position": mark.position, "word": word}


def _spread(marks: Sequence[Mark]) -> list[Mark]:
    """Give so many of the marks as can be read, evenly, the last one among them."""
    step = -(-len(marks) // MOST_RELEASES) if marks else 1
    return list(reversed(list(reversed(marks))[::step]))


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
