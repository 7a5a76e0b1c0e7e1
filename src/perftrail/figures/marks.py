"""What happened along a history, as layers of a drawing: stretches, releases, changes, what could not be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.figures.frame import FOUND, MUTED, told

if TYPE_CHECKING:
    from perftrail.figures.frame import Spec
    from perftrail.model.trail import Json

MOST_RELEASES, LONGEST = 10, 24

PLACE = "scale('x', datum.position)"
"""Where a mark stands in what is shown of the history, in pixels from the left, as a Vega expression."""

RIGHT_HALF = f"{PLACE} > width / 2"


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


def along_axis(length: int, title: str = "position in the history") -> Spec:
    """The horizontal axis of everything that is drawn along a history."""
    return {
        "field": "position",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [-0.5, max(length, 1) - 0.5], "nice": False, "padding": 8},
        "axis": {"grid": False, "tickMinStep": 1, "labelOverlap": True, "format": "d"},
    }


def stretches(events: Events) -> list[Spec]:
    """Shade what could not be had."""
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


def releases(events: Events) -> list[Spec]:
    """Draw so many releases as can be read, each with its name."""
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


def changes(events: Events) -> list[Spec]:
    """Draw a line where it changed, with its words above the drawing."""
    if not events.changes:
        return []
    data: Spec = {"values": [_marked(mark) for mark in events.changes]}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": FOUND, "strokeWidth": 2},
            "encoding": {
                "x": along_axis(events.length),
                "tooltip": told("word", "changed"),
            },
        },
        {
            "data": data,
            "mark": {
                "type": "text",
                # towards the side with more room, also where a figure is looked at closely
                "align": {"expr": f"{RIGHT_HALF} ? 'right' : 'left'"},
                "dx": {"expr": f"{RIGHT_HALF} ? -6 : 6"},
                "limit": {"expr": f"min(260, max({PLACE}, width - {PLACE}))"},
                "baseline": "bottom",
                "color": FOUND,
                "fontWeight": "bold",
                # above the drawing, where a figure that is looked at closely would cut them off
                "clip": False,
            },
            "encoding": {
                "x": along_axis(events.length),
                "y": {"value": -5},
                "text": {"field": "word", "type": "nominal"},
            },
        },
    ]


def failed(events: Events) -> list[Spec]:
    """Draw a cross for each revision that failed."""
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
