"""Chart of a search's belief: the probability of the change along the history, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.charts.frame import FOUND, MUTED, Chart, drawing, number, tooltip
from perftrail.charts.history import along_axis

if TYPE_CHECKING:
    from perftrail.charts.frame import Spec
    from perftrail.model.json_data import Json

SHOWN = 0.001
"""Ranges of the history with a smaller probability stay white."""

SHADES = ("#dce9f5", "#0b3c6f")
"""Colours from unlikely to certain; certain is also darkest in grey."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievedStep:
    """A step: its position, a description, P(changed at or before) by position, and P(nothing changed).

    `changed` ascends in position; it is empty without a belief.
    """

    number: int
    position: int | None
    words: str
    changed: tuple[tuple[int, float], ...]
    no_change: float


def belief(steps: Sequence[BelievedStep], *, length: int, culprits: Sequence[int] = ()) -> Chart:
    """Return the chart of the belief, the first step on top."""
    x_axis, count = along_axis(length), max((step.number for step in steps), default=1)
    y_axis: Spec = {
        "field": "step",
        "type": "quantitative",
        "title": "step of the search",
        "scale": {"domain": [0.5, count + 0.5], "reverse": True, "nice": False, "zero": False},
        "axis": {"grid": False, "tickMinStep": 1, "format": "d"},
    }
    return Chart(
        name="belief",
        title="Belief of the search, step by step",
        caption=(
            "Each row is a step: the dot is the measured revision, and the darker a range, the likelier it contains "
            "the change. White is unlikely."
        ),
        spec=drawing(
            [_bands(steps, x_axis, y_axis), _dots(steps, x_axis, y_axis), *_rules(culprits, x_axis)],
            height=max(140, min(440, 12 * count)),
        ),
    )


def _bands(steps: Sequence[BelievedStep], x_axis: Spec, y_axis: Spec) -> Spec:
    """Return the ranges of each step, the darker the likelier."""
    bands: list[Json] = [band for step in steps for band in _bands_of(step)]
    return {
        "data": {"values": bands},
        "mark": {"type": "rect"},
        "encoding": {
            "x": x_axis,
            "x2": {"field": "end"},
            "y": {**y_axis, "field": "top"},
            "y2": {"field": "bottom"},
            "color": {
                "field": "probability",
                "type": "quantitative",
                "title": "probability that the change is here",
                "scale": {"domain": [0, 1], "range": [*SHADES]},
                "legend": {"format": ".0%", "gradientLength": 160, "tickCount": 3},
            },
            "tooltip": [
                number("step", "step"),
                number("probability", "probability", ".1%"),
                number("revisions", "revisions"),
            ],
        },
    }


def _dots(steps: Sequence[BelievedStep], x_axis: Spec, y_axis: Spec) -> Spec:
    """Return the measured position of each step, if any."""
    measured: list[Json] = [
        {"position": step.position, "step": step.number, "words": step.words}
        for step in steps
        if step.position is not None
    ]
    return {
        "data": {"values": measured},
        "mark": {"type": "point", "filled": True, "size": 30, "fill": "white", "stroke": MUTED, "opacity": 1},
        "encoding": {"x": x_axis, "y": y_axis, "tooltip": [tooltip("words", "step")]},
    }


def _rules(culprits: Sequence[int], x_axis: Spec) -> list[Spec]:
    """Return a line through all steps at each culprit."""
    if not culprits:
        return []
    values: list[Json] = [{"position": position} for position in culprits]
    return [
        {
            "data": {"values": values},
            "mark": {"type": "rule", "color": FOUND, "strokeDash": [4, 3]},
            "encoding": {"x": x_axis},
        }
    ]


def _bands_of(step: BelievedStep) -> list[Spec]:
    """Return the bands of one step: the ranges between built revisions that may contain the change."""
    found: list[Spec] = []
    total = step.changed[-1][1] if step.changed else 0.0
    share = (1.0 - step.no_change) / total if total > 0.0 else 0.0
    for (start, before), (end, after) in zip(step.changed, step.changed[1:], strict=False):
        if (after - before) * share >= SHOWN:
            found.append(
                {
                    "position": start + 0.5,
                    "end": end + 0.5,
                    "step": step.number,
                    "top": step.number - 0.45,
                    "bottom": step.number + 0.45,
                    "probability": round((after - before) * share, 4),
                    "revisions": end - start,
                }
            )
    return found
