"""Charts of a metric against a parameter, and of the speed-up along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.charts.frame import (
    MUTED,
    Chart,
    drawing,
    interval,
    intervals_caption,
    measured_axis,
    number,
    spans_decades,
    tooltip,
)

if TYPE_CHECKING:
    from perftrail.charts.frame import Axis, Palette, Spec
    from perftrail.model.json_data import Json

POWERS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

MOST_REASONS = 3
"""Largest number of given-up points with a label: more labels would overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A subject's value at one value of the axis, with its 95 % interval, in the metric's unit."""

    subject: str
    at: float
    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A value of the axis without a result: the reason, and the limit that was reached, if any."""

    subject: str
    at: float
    why: str
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Texts of a chart: file name, title, axis, metric and unit."""

    name: str
    title: str
    axis: str
    metric: str
    unit: str


def curve(
    points: Sequence[CurvePoint], given_up: Sequence[GivenUp], *, labels: Labels, palette: Palette
) -> Chart:
    """Return the chart of a metric against a parameter, with intervals and given-up points at their limit."""
    reached = [point.high for point in points] + [each.limit for each in given_up if each.limit is not None]
    measured = measured_axis(
        labels.metric, labels.unit, [*(point.low for point in points), *reached], linear=not points
    )
    top = max(reached, default=1.0)
    shown = palette.ordered([*(point.subject for point in points), *(each.subject for each in given_up)])
    x_axis = _along([*(point.at for point in points), *(each.at for each in given_up)], labels.axis)
    values: list[Json] = [_drawn(point, measured.divisor) for point in points]
    missing: list[Json] = [
        {
            "at": each.at,
            "subject": each.subject,
            "value": (top if each.limit is None else each.limit) / measured.divisor,
            "why": each.why,
        }
        for each in given_up
    ]
    layers = [*_curves(values, x_axis, measured, palette, shown)]
    if missing:
        layers += _limits(missing, x_axis, measured, palette, shown)
    caption = f"{intervals_caption(point.count for point in points)}."
    if missing:
        reference_to_table = "; the table says why" if len(missing) > MOST_REASONS else ""
        caption += f" Crosses are points that were given up, at their limit{reference_to_table}."
    return Chart(
        name=labels.name,
        title=labels.title,
        caption=caption,
        spec=drawing(layers),
    )


def speed_up(points: Sequence[CurvePoint], *, labels: Labels, palette: Palette) -> Chart:
    """Return the chart of each subject's speed-up relative to its first point, with the ideal line.

    The first point is the smallest positive one: zero threads have no ideal. The interval of a ratio combines the
    farthest ends of two 95 % intervals, so its confidence is higher.
    """
    subjects = palette.ordered(point.subject for point in points)
    ratios = [ratio for subject in subjects for ratio in _ratios(points, subject)]
    shown = palette.ordered(ratio.subject for ratio in ratios)
    xs = sorted({ratio.at for ratio in ratios})
    x_axis = _along(xs, labels.axis)
    ideal: list[Json] = [{"at": at, "value": at / xs[0]} for at in xs]
    measured = measured_axis(f"times as fast as at {labels.axis} = {xs[0]:g}", "", [1.0])
    line: Spec = {
        "data": {"values": ideal},
        "mark": {"type": "line", "color": MUTED, "strokeDash": [4, 4]},
        "encoding": {"x": x_axis, "y": {"field": "value", **measured.spec(zero=True)}},
    }
    values: list[Json] = [_drawn(ratio, 1.0) for ratio in ratios]
    return Chart(
        name=labels.name,
        title=labels.title,
        caption=f"Dashed grey: the ideal, speed-up proportional to {labels.axis}. Bars are conservative intervals.",
        spec=drawing([line, *_curves(values, x_axis, measured, palette, shown, zero=True)]),
    )


def _ratios(points: Sequence[CurvePoint], subject: str) -> list[CurvePoint]:
    """Return the speed-up of a subject at each of its points; empty with fewer than two points."""
    counted = (point for point in points if point.subject == subject and point.at > 0)
    own = sorted(counted, key=lambda point: point.at)
    if len(own) < 2 or any(point.low <= 0.0 for point in own):
        return []
    first = own[0]
    return [
        CurvePoint(
            subject=subject,
            at=point.at,
            value=first.value / point.value,
            low=1.0 if point is first else first.low / point.high,
            high=1.0 if point is first else first.high / point.low,
            count=point.count,
        )
        for point in own
    ]


def _drawn(point: CurvePoint, divisor: float) -> Spec:
    """Return a point as a row of the chart's data."""
    return {
        "at": point.at,
        "subject": point.subject,
        "value": point.value / divisor,
        "low": point.low / divisor,
        "high": point.high / divisor,
        "count": point.count,
    }


def _along(xs: Sequence[float], name: str) -> Spec:
    """Return the horizontal axis with the measured values as ticks."""
    distinct = sorted(set(xs))
    powers = len(distinct) > 2 and all(x in (1, *POWERS) for x in distinct)
    scaling: Spec = {"zero": False, "nice": False, "padding": 12}
    if spans_decades(distinct) or powers:
        scaling = {"type": "log", "nice": False, "padding": 12, **({"base": 2} if powers else {})}
    marks: Spec = {"grid": False, "labelOverlap": True}
    if len(distinct) <= 12:
        marks["values"] = [*distinct]
    marks["format"] = "~s" if max(distinct, default=0) >= 10_000 else "~g"
    return {"field": "at", "type": "quantitative", "title": name, "scale": scaling, "axis": marks}


def _curves(
    values: list[Json],
    x_axis: Spec,
    measured: Axis,
    palette: Palette,
    shown: list[str],
    *,
    zero: bool = False,
) -> list[Spec]:
    """Return intervals, lines and points, in the subjects' colours, dashes and shapes."""
    y_axis: Spec = {"field": "value", **measured.spec(zero=zero)}
    colour = palette.encoding(shown)
    tooltips: list[Json] = [
        tooltip("subject", "subject"),
        number("at", "at"),
        *interval("median"),
        number("count", "samples"),
    ]
    data: Spec = {"values": values}
    bounds: Spec = {"field": "low", **measured.spec(zero=zero)}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.75},
            "encoding": {"x": x_axis, "y": bounds, "y2": {"field": "high"}, "color": colour},
        },
        {
            "data": data,
            "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"x": x_axis, "y": y_axis, "color": colour, "strokeDash": palette.dashes(shown)},
        },
        {
            "data": data,
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {
                "x": x_axis,
                "y": y_axis,
                "color": colour,
                "shape": palette.shapes(shown),
                "tooltip": tooltips,
            },
        },
    ]


def _limits(
    missing: list[Json], x_axis: Spec, measured: Axis, palette: Palette, shown: list[str]
) -> list[Spec]:
    encoding: Spec = {
        "x": x_axis,
        "y": {"field": "value", **measured.spec()},
        "color": palette.encoding(shown),
    }
    tooltips: list[Json] = [tooltip("subject", "subject"), number("at", "at"), tooltip("why", "given up")]
    crosses: Spec = {
        "data": {"values": missing},
        "mark": {"type": "point", "shape": "M-1,-1L1,1M-1,1L1,-1", "size": 90, "strokeWidth": 2},
        "encoding": {**encoding, "tooltip": tooltips},
    }
    if len(missing) > MOST_REASONS:
        return [crosses]
    reasons: Spec = {
        "data": {"values": missing},
        "mark": {"type": "text", "dy": -12, "align": "center", "fontStyle": "italic", "limit": 120},
        "encoding": {**encoding, "text": {"field": "why", "type": "nominal"}},
    }
    return [crosses, reasons]
