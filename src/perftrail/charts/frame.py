"""What every figure has in common: its parts, its looks in light and dark, its scales.

One colour, one shape and one dash for each subject, the same in every figure.

Fewer points than there are, none of them hidden: neighbours stand together as one with their whole range.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeVar

from perftrail.model.quantity import scale
from perftrail.model.search_record import Json

Spec = dict[str, Json]
Theme = Literal["light", "dark"]
Kept = TypeVar("Kept")

WIDTH, HEIGHT = 680, 300
"""In pixels, of the drawing without its axes; a page puts its own width in place."""

MOST_DOTS = 60
"""Of more samples or pairs of a row so many dots are drawn."""

DECADES = 20.0
"""From this ratio of the largest to the smallest on, an axis is logarithmic."""

MUTED = "#808590"
"""What is no subject's: ideal lines, limits, releases. Readable on white and on black."""

FOUR = ".4~g"
"""Four digits that count, for a number under the pointer."""

FOUND = "#D55E00"
"""What was found: change points, culprits."""

_COLOURS: Mapping[Theme, tuple[str, str]] = {"light": ("#23272e", "#dfe2e7"), "dark": ("#dfe2e8", "#3a404a")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure: `name` is fit for a file, `title` and `caption` are for people, `spec` draws it.

    Names and captions may hold hostile text. In `spec` such text stands only where Vega takes it for text.
    """

    name: str
    title: str
    caption: str
    spec: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A measured axis: what it shows, and the unit its values are drawn in after division by `divisor`.

    `padding` is the room in pixels that is kept free beyond the values at both ends, for what stands beside them.
    """

    title: str
    divisor: float
    logarithmic: bool
    ticks: tuple[float, ...] = ()
    padding: int = 0

    def spec(self, *, zero: bool = False) -> Spec:
        """Give the axis as part of an encoding; `zero` makes a linear one begin there."""
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
    """Choose how to draw a metric: a unit that suits its size, logarithmic where it spans decades."""
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
    """Whether values are all above zero and their range is one of decades."""
    return len(values) > 1 and min(values) > 0.0 and max(values) / min(values) >= DECADES


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """The marks of a logarithmic axis: 1, 2 and 5 of each decade, the decades alone where there are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    parts = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    ticks = (float(f"{part * 10.0**power:.3g}") for power in range(first, last + 1) for part in parts)
    return tuple(tick for tick in ticks if low * 0.7 <= tick <= high * 1.4)


def told(field: str, title: str) -> Spec:
    """A line of words under the pointer."""
    return {"field": field, "type": "nominal", "title": title}


def number(field: str, title: str, form: str = "") -> Spec:
    """A line with a number under the pointer, in a form of d3's where one is given."""
    return {"field": field, "type": "quantitative", "title": title, **({"format": form} if form else {})}


def interval(middle: str) -> list[Json]:
    """The lines under the pointer for a value that is called `middle`, and its interval."""
    return [
        number(field, title, FOUR) for field, title in (("value", middle), ("low", "low"), ("high", "high"))
    ]


def drawing(layers: Sequence[Spec], *, height: Json = HEIGHT, **more: Json) -> Spec:
    """Put layers together to one drawing that fits whatever width it is given."""
    return {
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": list(layers),
        **more,
    }


def themed(spec: Spec, theme: Theme) -> Spec:
    """Give a specification with the looks of a theme."""
    return {**spec, "config": config(theme)}


def config(theme: Theme) -> Spec:
    """The looks of every figure: text that is readable on the page and on paper, and little else."""
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


def evenly(all_of: Sequence[Kept], most: int) -> Sequence[Kept]:
    """Keep so many at most of what is in order, evenly spaced, the first and the last among them."""
    if len(all_of) <= most:
        return all_of
    return [all_of[round(number * (len(all_of) - 1) / (most - 1))] for number in range(most)]


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#808590")
"""Okabe and Ito's colours, told apart by colour-blind readers; those left out vanish on white or on black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))

DIVERGING = ("#0072B2", "#f4f4f2", "#D55E00")
"""Less, as much, more."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The names that are drawn, in their order. What has no name of its own is drawn like the first."""

    names: tuple[str, ...]

    def colour(self, name: str) -> str:
        """The colour of a name."""
        return COLOURS[self._number(name) % len(COLOURS)]

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Give each of some names once, in the palette's order."""
        return sorted(set(names), key=lambda name: (self._number(name), name))

    def encoding(self, shown: Sequence[str], *, field: str = "subject") -> Spec:
        """Give the colour channel for some of the names; a legend only where there is something to tell apart."""
        return {
            "field": field,
            "type": "nominal",
            "title": None,
            "scale": {"domain": list(shown), "range": [self.colour(name) for name in shown]},
            "legend": {} if len(shown) > 1 else None,
        }

    def shapes(self, shown: Sequence[str]) -> Spec:
        """Give the shape channel, which tells names apart where colours cannot: also those that share a colour."""
        numbers = [self._number(name) for name in shown]
        return self._second(shown, [SHAPES[(at + at // len(COLOURS)) % len(SHAPES)] for at in numbers])

    def dashes(self, shown: Sequence[str]) -> Spec:
        """Give the dash channel of lines."""
        dashes = [list(DASHES[self._number(name) % len(DASHES)]) for name in shown]
        return self._second(shown, [*dashes])

    def _second(self, shown: Sequence[str], chosen: list[object]) -> Spec:
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
"""So many points a figure draws at most; more than the eye, or a page, keeps apart."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Along:
    """A value at a position of the history, or of neighbours up to `last`: the median and the whole range.

    `of` says how many revisions it stands for. Not to be changed; unfrozen, only because each
    takes longer to make then.
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


def thinned(points: Sequence[Along], most: int = MOST) -> list[Along]:
    """Put neighbours of a subject together until no more than about `most` points are left.

    >>> ends = [Along(position=p, subject="", revision="r", value=p, low=p, high=p, count=1, last=p) for p in range(9)]
    >>> [(each.position, each.last, each.value) for each in thinned(ends, 3)]
    [(0, 2, 1), (3, 5, 4), (6, 8, 7)]
    """
    if len(points) <= most:
        return list(points)
    subjects = {point.subject for point in points}
    width = -(-(max(point.last for point in points) + 1) * len(subjects) // most)
    ordered = sorted(points, key=lambda point: (point.subject, point.position))
    return [
        _together(list(group))
        for _, group in groupby(ordered, key=lambda point: (point.subject, point.position // width))
    ]


def _together(points: list[Along]) -> Along:
    first, last = points[0], points[-1]
    if first is last:
        return first
    return Along(
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
