"""Chart of a metric along a history: intervals, change points, releases, missing revisions, and search steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.charts.frame import (
    FOUND,
    MUTED,
    WIDTH,
    Chart,
    HistoryPoint,
    drawing,
    interval,
    intervals_caption,
    measured_axis,
    number,
    thinned,
    tooltip,
)

if TYPE_CHECKING:
    from perftrail.charts.curve import Labels
    from perftrail.charts.frame import Axis, Palette, Spec
    from perftrail.model.json_data import Json


MOST_RELEASES, LONGEST = 10, 24

X_PIXELS = "scale('x', datum.position)"
"""Position of a mark in the visible part of the history, in pixels from the left, as a Vega expression."""

RIGHT_HALF = f"{X_PIXELS} > width / 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A labelled position of the history: a release, a culprit, or a failed revision."""

    position: int
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Neighbouring missing revisions, both ends included, with the reason."""

    first: int
    last: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events along a history of `length` revisions; `steps` are the positions of a search's steps."""

    length: int
    changes: Sequence[Mark] = ()
    releases: Sequence[Mark] = ()
    failed: Sequence[Mark] = ()
    gaps: Sequence[Gap] = ()
    steps: Sequence[Mark] = ()


def along_axis(length: int, title: str = "position in the history") -> Spec:
    """Return the horizontal axis of all charts along a history."""
    return {
        "field": "position",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [-0.5, max(length, 1) - 0.5], "nice": False, "padding": 8},
        "axis": {"grid": False, "tickMinStep": 1, "labelOverlap": True, "format": "d"},
    }


def grey_ranges(events: Events) -> list[Spec]:
    """Return shaded areas for missing revisions."""
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
                "tooltip": tooltip("why", "missing"),
            },
        }
    ]


def releases(events: Events) -> list[Spec]:
    """Return lines for releases, as many as are readable, with their names."""
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
    """Return the names of releases: right of their lines, or left near the right end."""
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
    """Return a line for each change, with its label above the chart."""
    if not events.changes:
        return []
    data: Spec = {
        "values": [
            {**_marked(mark), "rise": rise}
            for mark, rise in zip(events.changes, label_rises(events.changes, events.length), strict=True)
        ]
    }
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": FOUND, "strokeWidth": 2},
            "encoding": {
                "x": along_axis(events.length),
                "tooltip": tooltip("word", "changed"),
            },
        },
        {
            "data": data,
            "transform": [{"filter": "datum.rise !== null"}],
            "mark": {
                "type": "text",
                # towards the side with more space, also in a zoomed chart
                "align": {"expr": f"{RIGHT_HALF} ? 'right' : 'left'"},
                "dx": {"expr": f"{RIGHT_HALF} ? -6 : 6"},
                "dy": {"expr": "-datum.rise"},
                "limit": {"expr": f"min(260, max({X_PIXELS}, width - {X_PIXELS}))"},
                "baseline": "bottom",
                "color": FOUND,
                "fontWeight": "bold",
                # above the chart, where a zoomed chart would cut them off
                "clip": False,
            },
            "encoding": {
                "x": along_axis(events.length),
                "y": {"value": -5},
                "text": {"field": "word", "type": "nominal"},
            },
        },
    ]


LETTER, LINE, MOST_LINES = 7, 14, 3
"""Width of a bold letter and height of a line in pixels, and the number of lines for labels of changes."""


def label_rises(marks: Sequence[Mark], length: int) -> list[int | None]:
    """Return the height of each label of a change in pixels, so that no two overlap; `None` for no label.

    A label that does not fit is omitted: the tooltip of its line and the table have it.

    >>> label_rises([Mark(position=10, word="aaaaaaaaaa"), Mark(position=12, word="bbbbbbbbbb")], 100)
    [0, 14]
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(MOST_LINES)]
    rises: list[int | None] = []
    for mark in marks:
        x, width = WIDTH * mark.position / max(length, 1), LETTER * min(len(mark.word), LONGEST) + 6
        label = (x - width, x) if x > WIDTH / 2 else (x, x + width)
        free = (
            line
            for line, others in enumerate(taken)
            if all(label[1] <= low or label[0] >= high for low, high in others)
        )
        line = next(free, None)
        rises.append(None if line is None else line * LINE)
        if line is not None:
            taken[line].append(label)
    return rises


def failed(events: Events) -> list[Spec]:
    """Return a cross for each failed revision."""
    if not events.failed:
        return []
    return [
        {
            "data": {"values": [_marked(mark) for mark in events.failed]},
            "mark": {"type": "point", "shape": "M-1,-1L1,1M-1,1L1,-1", "size": 50, "color": MUTED},
            "encoding": {
                "x": along_axis(events.length),
                "y": {"value": 300},
                "tooltip": tooltip("word", "failed"),
            },
        }
    ]


def _marked(mark: Mark) -> Spec:
    word = mark.word if len(mark.word) <= LONGEST else f"{mark.word[: LONGEST - 1]}…"
    return {"position": mark.position, "word": word}


def _spread(marks: Sequence[Mark]) -> list[Mark]:
    """Return evenly spaced marks, as many as are readable, including the last."""
    step = -(-len(marks) // MOST_RELEASES) if marks else 1
    return list(reversed(list(reversed(marks))[::step]))


MOST_NUMBERED = 60
CLOSEST = 0.025
"""Numbers closer than this share of the history would overlap; then only the earlier step has one."""

NUMBER_SPACE = 18
"""Space in pixels for a step's number: above its point, below the labels of changes."""

POINTS = "points"
"""Name of the data that a page replaces when it zooms into the history."""


def history(points: Sequence[HistoryPoint], events: Events, *, labels: Labels, palette: Palette) -> Chart:
    """Return the chart of a metric along a history. Many points are drawn as ranges of neighbours."""
    drawn = thinned(points)
    numbered = _numbered(events, points)
    measured = replace(
        measured_axis(
            labels.metric, labels.unit, [end for point in points for end in (point.low, point.high)]
        ),
        padding=NUMBER_SPACE if numbered else 0,
    )
    shown = palette.ordered(point.subject for point in points)
    values: list[Json] = [plain(point, measured.divisor) for point in drawn]
    layers = [
        *grey_ranges(events),
        *releases(events),
        # A change is at a revision: its line must not cover the interval of that revision.
        *changes(events),
        *_series(values, measured, events.length, palette, shown),
        *_steps(numbered, events.length, measured),
        *failed(events),
    ]
    is_thinned = len(drawn) < len(points)
    return Chart(
        name=labels.name,
        title=labels.title,
        caption=_caption(points, events, is_thinned=is_thinned),
        spec=drawing(layers, usermeta={"divisor": measured.divisor, "thinned": is_thinned}),
    )


SPARKLINE = (160, 32)
"""Width and height of a sparkline, in pixels."""


def sparkline(values: Sequence[float], *, least_range: float = 0.0) -> str:
    """Return a line through some values as the path of an SVG, from left to right; empty for fewer than two.

    The height is at least `least_range`, as a share of the largest value: smaller noise looks small.

    >>> sparkline([1.0, 3.0, 2.0])
    'M0,30 L80,2 L160,16'
    >>> sparkline([1.0, 1.02], least_range=0.1)
    'M0,18.75 L160,13.25'
    """
    if len(values) < 2:
        return ""
    (width, height), low = SPARKLINE, min(values)
    span = max(values) - low or 1.0
    if (least := least_range * max(map(abs, values))) > span:
        low, span = low - (least - span) / 2.0, least
    points = (
        f"{width * index / (len(values) - 1):.4g},{2.0 + (height - 4.0) * (1.0 - (value - low) / span):.4g}"
        for index, value in enumerate(values)
    )
    return f"M{' L'.join(points)}"


def plain(point: HistoryPoint, divisor: float) -> Spec:
    """Return a point as a row of the chart's data."""
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
    colour, x_axis = palette.encoding(shown), along_axis(length)
    tooltips: list[Json] = [
        tooltip("revision", "revision"),
        tooltip("subject", "variant"),
        *interval("median"),
        number("count", "samples"),
    ]
    return [
        {
            "data": {"name": POINTS, "values": values},
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6},
            "encoding": {
                "x": x_axis,
                "y": {"field": "low", **measured.spec()},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "data": {"name": POINTS},
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 40},
            "encoding": {
                "x": x_axis,
                "y": {"field": "value", **measured.spec()},
                "color": colour,
                "shape": palette.shapes(shown),
                "tooltip": tooltips,
            },
        },
    ]


def _numbered(events: Events, points: Sequence[HistoryPoint]) -> list[tuple[Mark, float]]:
    """Return the steps with a readable number, each with the top of its interval; none for a long search."""
    tops = {point.position: point.high for point in points}
    kept: list[Mark] = []
    for mark in events.steps:
        apart = all(abs(mark.position - other.position) >= CLOSEST * events.length for other in kept)
        if mark.position in tops and apart:
            kept.append(mark)
    return [(mark, tops[mark.position]) for mark in kept] if len(kept) <= MOST_NUMBERED else []


def _steps(numbered: Sequence[tuple[Mark, float]], length: int, measured: Axis) -> list[Spec]:
    """Return the numbers of the measured revisions, in the order of the search."""
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


def _caption(points: Sequence[HistoryPoint], events: Events, *, is_thinned: bool) -> str:
    together = "Neighbouring revisions are combined: their median, and the range of their intervals"
    parts = [together if is_thinned else intervals_caption(point.count for point in points)]
    if events.changes:
        parts.append("vertical lines are changes")
    if events.releases:
        parts.append("dotted lines are releases")
    if events.gaps or events.failed:
        parts.append("grey ranges and crosses are missing revisions")
    if 0 < len(events.steps) <= MOST_NUMBERED:
        parts.append("numbers are the search's steps, in their order")
    return "; ".join(parts) + "."
