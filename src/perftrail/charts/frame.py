"""Common parts of all charts: the `Chart` type, axes, light and dark themes, palette, and thinning.

Each subject has one colour, one shape and one dash in every chart. Thinning combines neighbours into one point with
their whole range, so that it hides no value.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeVar

from perftrail.model.json_data import Json
from perftrail.model.wording import scale

Spec = dict[str, Json]
Theme = Literal["light", "dark"]
Item = TypeVar("Item")

WIDTH, HEIGHT = 680, 300
"""Default size of a chart in pixels, without axes; a page sets another width."""

MOST_DOTS = 60
"""Largest number of dots of one row."""

DECADES = 20.0
"""Smallest ratio of the largest to the smallest value for a logarithmic axis."""

MUTED = "#808590"
"""Colour of marks without a subject: ideal lines, limits, releases. Readable on white and on black."""

FOUR = ".4~g"
"""Number format with four significant digits, for tooltips."""

FOUND = "#D55E00"
"""Colour of results: change points and culprits."""

_COLOURS: Mapping[Theme, tuple[str, str]] = {"light": ("#23272e", "#dfe2e7"), "dark": ("#dfe2e8", "#3a404a")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: `name` is safe for a file name, `title` and `caption` are for people, `spec` is for Vega-Lite.

    Names and captions may contain hostile text. In `spec`, such text only occurs where Vega treats it as text.
    """

    name: str
    title: str
    caption: str
    spec: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A measured axis: its title, its scale, and the divisor of its values.

    `padding` is free space in pixels beyond the values at both ends.
    """

    title: str
    divisor: float
    logarithmic: bool
    ticks: tuple[float, ...] = ()
    padding: int = 0

    def spec(self, *, zero: bool = False) -> Spec:
        """Return the axis as part of an encoding; `zero` makes a linear axis begin at zero."""
        if not self.logarithmic:
            scaling: Spec = {
                "zero": zero,
                "nice": True,
                **({"padding": self.padding} if self.padding else {}),
            }
            return {"type": "quantitative", "title": self.title, "scale": scaling, "axis": {"tickCount": 6}}
        return {
            "type": "quantitative",
            "title": self.title,
            "scale": {"type": "log", "nice": False, "padding": max(8, self.padding)},
            "axis": {"values": [*self.ticks], "format": "~g" if max(self.ticks, default=1.0) < 1e6 else "~s"},
        }


def measured_axis(name: str, unit: str, values: Sequence[float], *, linear: bool = False) -> Axis:
    """Return the axis of a metric: a unit that fits its size, logarithmic if it spans decades."""
    sizes = [abs(value) for value in values if value]
    divisor, shown = scale(max(sizes, default=1.0), unit)
    logarithmic = not linear and spans_decades(values)
    return Axis(
        title=f"{name} ({shown})" if shown else name,
        divisor=divisor,
        logarithmic=logarithmic,
        ticks=_ticks(min(values) / divisor, max(values) / divisor) if logarithmic else (),
    )


def spans_decades(values: Sequence[float]) -> bool:
    """Return whether all values are positive and their range is at least `DECADES`."""
    return len(values) > 1 and min(values) > 0.0 and max(values) / min(values) >= DECADES


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Return the ticks of a logarithmic axis: 1, 2 and 5 of each decade, or only decades if there are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    parts = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    ticks = (float(f"{part * 10.0**power:.3g}") for power in range(first, last + 1) for part in parts)
    return tuple(tick for tick in ticks if low * 0.7 <= tick <= high * 1.4)


def tooltip(field: str, title: str) -> Spec:
    """Return a tooltip line with text."""
    return {"field": field, "type": "nominal", "title": title}


def number(field: str, title: str, number_format: str = "") -> Spec:
    """Return a tooltip line with a number, in an optional format of d3."""
    formatted: Spec = {"format": number_format} if number_format else {}
    return {"field": field, "type": "quantitative", "title": title, **formatted}


def interval(middle: str) -> list[Json]:
    """Return the tooltip lines of a value, titled `middle`, and its interval."""
    return [
        number(field, title, FOUR) for field, title in (("value", middle), ("low", "low"), ("high", "high"))
    ]


def drawing(layers: Sequence[Spec], *, height: Json = HEIGHT, **more: Json) -> Spec:
    """Combine layers into one chart that fits the available width."""
    return {
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": list(layers),
        **more,
    }


FEWEST_SAMPLES = 6
"""Fewest samples whose smallest and largest value enclose the median with a confidence of 95 %."""


def intervals_caption(counts: Iterable[int]) -> str:
    """Describe the intervals of points with these numbers of samples; a single sample has no interval.

    >>> intervals_caption([1, 6, 20])
    'Medians with their 95 % intervals'
    >>> intervals_caption([2, 20])
    'Medians with their 95 % intervals, of lower confidence for fewer than 6 samples'
    """
    text = "Medians with their 95 % intervals"
    if any(1 < count < FEWEST_SAMPLES for count in counts):
        text += f", of lower confidence for fewer than {FEWEST_SAMPLES} samples"
    return text


def themed(spec: Spec, theme: Theme) -> Spec:
    """Return a specification with the settings of a theme."""
    return {**spec, "config": config(theme)}


def config(theme: Theme) -> Spec:
    """Return the theme settings of every chart: readable on screen and paper."""
    text, line = _COLOURS[theme]
    font = "system-ui, 'Segoe UI', 'Helvetica Neue', 'Liberation Sans', sans-serif"
    return {
        "background": "white" if theme == "light" else "#15181d",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            "labelColor": text,
            "titleColor": text,
            "gridColor": line,
            "domainColor": MUTED,
            "tickColor": MUTED,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelLimit": 220,
        },
        "legend": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "orient": "top",
            "columns": 3,
            "labelLimit": 240,
            "titleLimit": 420,
            "titleFontWeight": "normal",
        },
        "text": {"color": text, "fontSize": 11},
        "rule": {"color": MUTED},
    }


def evenly(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Return at most `most` items, evenly spaced, including the first and the last."""
    if len(items) <= most:
        return items
    return [items[round(number * (len(items) - 1) / (most - 1))] for number in range(most)]


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#808590")
"""Okabe and Ito's colours for colour-blind readers, without those that vanish on white or black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))

DIVERGING = ("#0072B2", "#f4f4f2", "#D55E00")
"""Colours of less, equal and more."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours, shapes and dashes of the subjects by their order. An unknown name gets those of the first."""

    names: tuple[str, ...]

    def colour(self, name: str) -> str:
        """Return the colour of a name."""
        return COLOURS[self._number(name) % len(COLOURS)]

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return each of some names once, in the palette's order."""
        return sorted(set(names), key=lambda name: (self._number(name), name))

    def encoding(self, shown: Sequence[str], *, field: str = "subject") -> Spec:
        """Return the colour channel of some names, with a legend if there are several."""
        return {
            "field": field,
            "type": "nominal",
            "title": None,
            "scale": {"domain": list(shown), "range": [self.colour(name) for name in shown]},
            "legend": {} if len(shown) > 1 else None,
        }

    def shapes(self, shown: Sequence[str]) -> Spec:
        """Return the shape channel, which also separates names of equal colour."""
        numbers = [self._number(name) for name in shown]
        return self._channel(shown, [SHAPES[(at + at // len(COLOURS)) % len(SHAPES)] for at in numbers])

    def dashes(self, shown: Sequence[str]) -> Spec:
        """Return the dash channel of lines."""
        dashes = [list(DASHES[self._number(name) % len(DASHES)]) for name in shown]
        return self._channel(shown, [*dashes])

    def _channel(self, shown: Sequence[str], chosen: list[object]) -> Spec:
        channel: Spec = {
            "field": "subject",
            "type": "nominal",
            "title": None,
            "legend": {} if len(shown) > 1 else None,
        }
        channel["scale"] = {"domain": list(shown), "range": chosen}  # type: ignore[dict-item] # names and lists
        return channel

    def _number(self, name: str) -> int:
        return self.names.index(name) if name in self.names else 0


MOST = 400
"""Largest number of points of one chart."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class HistoryPoint:
    """A value at a position of the history, or the median and range of neighbours up to `last`.

    `of` is the number of revisions. Do not modify a point: it is not frozen only because that would take longer.
    """

    position: int
    subject: str
    revision: str
    value: float
    low: float
    high: float
    count: int
    last: int
    of: int = 1


def thinned(points: Sequence[HistoryPoint], most: int = MOST) -> list[HistoryPoint]:
    """Combine neighbours of a subject until about `most` points remain.

    >>> from dataclasses import replace
    >>> one = HistoryPoint(position=0, subject="", revision="r", value=0, low=0, high=0, count=1, last=0)
    >>> ends = [replace(one, position=p, value=p, low=p, high=p, last=p) for p in range(9)]
    >>> [(each.position, each.last, each.value) for each in thinned(ends, 3)]
    [(0, 2, 1), (3, 5, 4), (6, 8, 7)]
    """
    if len(points) <= most:
        return list(points)
    subjects = {point.subject for point in points}
    width = -(-(max(point.last for point in points) + 1) * len(subjects) // most)
    ordered = sorted(points, key=lambda point: (point.subject, point.position))
    return [
        _combined(list(group))
        for _, group in groupby(ordered, key=lambda point: (point.subject, point.position // width))
    ]


def _combined(points: list[HistoryPoint]) -> HistoryPoint:
    first, last = points[0], points[-1]
    if first is last:
        return first
    return HistoryPoint(
        position=first.position,
        subject=first.subject,
        revision=f"{first.revision} to {last.revision}",
        value=statistics.median(point.value for point in points),
        low=min(point.low for point in points),
        high=max(point.high for point in points),
        count=sum(point.count for point in points),
        last=last.last,
        of=sum(point.of for point in points),
    )
