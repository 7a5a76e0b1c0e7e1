"""What every figure has in common: its parts, its looks in light and dark, its scales."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from perftrail.model.quantity import scale
from perftrail.model.trail import Json

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
