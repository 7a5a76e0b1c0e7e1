"""What a search's stored answer says, part by part: effect, levels, certainty, cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.model.quantity import change as relative
from perftrail.model.quantity import decimals, duration, percent, probability, quantity
from perftrail.search import Summary, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.search_record import Json
    from perftrail.report.page import Tone


MOST_ALSO = 5


def answer_by(effect: Json) -> str:
    """Say by how much, nothing where that is unknown."""
    return f": {relative(answer_figure(effect['value']))}" if isinstance(effect, dict) else ""


def answer_judged(change: Mapping[str, Json], better: str) -> str:
    """Say whether a change is better or worse, in brackets."""
    tone = answer_tone(change, better)
    return f" ({tone})" if tone in ("better", "worse") else ""


def answer_tone(change: Mapping[str, Json], better: str) -> Tone:
    """Whether a change is an improvement, as the study has it."""
    effect = change.get("effect")
    if not isinstance(effect, dict):
        return "plain"
    return "better" if (answer_figure(effect["value"]) < 1.0) == (better == "lower") else "worse"


def answer_effect(change: Mapping[str, Json]) -> str:
    """The ratio of a change with its interval."""
    effect = change.get("effect")
    if not isinstance(effect, dict):
        return "by how much cannot be told"
    value, low, high = (answer_figure(effect[name]) for name in ("value", "low", "high"))
    digits = decimals(value, low, high)
    return f"× {value:.{digits}f}, 95 % interval {low:.{digits}f} to {high:.{digits}f}"


def answer_levels(answer: Mapping[str, Json], change: Mapping[str, Json]) -> str:
    """The levels on both sides of a change; nothing where they are unknown."""
    before, after = change.get("before"), change.get("after")
    if not (isinstance(before, float) and isinstance(after, float)):
        return ""
    if answer["metric"] == "works":
        return f"works with {probability(before)} before, {probability(after)} after"
    unit = str(answer["unit"])
    return f"before {quantity(before, unit)}, after {quantity(after, unit)}"


def answer_sure(change: Mapping[str, Json]) -> str:
    """The probability that the culprit is named rightly: of the merge, and of what it brought, together."""
    sure, inside = answer_figure(change["confidence"]), change.get("inside")
    while isinstance(inside, dict):
        sure *= answer_figure(inside["confidence"])
        inside = inside.get("inside")
    which = "this one" if len(answer_items(change, "revisions")) == 1 else "one of these"
    return f"{probability(sure)} that it is {which}"


def answer_certificate(of: Mapping[str, Json]) -> tuple[str, ...]:
    """Say what a change, or an answer that nothing changed, rests on, and what that leaves open."""
    told = of.get("certificate")
    if not isinstance(told, dict):
        return ()
    spread, possible = told.get("spread"), told.get("possible")
    summary = Summary(
        blocks=round(answer_figure(told["blocks"])),
        invocations=round(answer_figure(told["invocations"])),
        error=answer_figure(told["error"]),
        layouts=round(answer_figure(told["layouts"])),
        alone=bool(told["single_change"]),
        possible=math.inf if possible is None else answer_figure(possible),
        spread=None if spread is None else answer_figure(spread),
    )
    return (words.certified(summary), *(words.reservations(summary) if "revisions" in of else ()))


def answer_also(change: Mapping[str, Json]) -> str:
    """Say what else a change did; nothing where that is nothing."""
    told = [
        f"{each['metric']} {relative(answer_figure(effect['value']))}"
        for each in answer_items(change, "also_changed")
        if isinstance(each, dict) and isinstance(effect := each.get("effect"), dict)
    ]
    return f"It also changed {', '.join(told[:MOST_ALSO])}." if told else ""


def answer_cost(answer: Mapping[str, Json]) -> str:
    """What a search cost."""
    unusable = answer.get("unbuildable")
    failed = f", {len(unusable)} of them unusable" if isinstance(unusable, list) and unusable else ""
    return (
        f"{answer['builds']} of {answer['revisions']} revisions built{failed}, "
        f"{answer['invocations']} invocations, {duration(answer_figure(answer['seconds']))}"
    )


def answer_certainty(answer: Mapping[str, Json]) -> str:
    """How sure an answer is."""
    return probability(answer_figure(answer.get("confidence", 0.0)))


def answer_smallest(answer: Mapping[str, Json]) -> str:
    """The smallest change that would have been seen."""
    seen = answer.get("smallest_seen")
    return percent(seen) if isinstance(seen, float) else "none: nothing could be measured"


def answer_items(of: Mapping[str, Json], name: str) -> list[Json]:
    """A list in an answer; empty where there is none."""
    found = of.get(name)
    return found if isinstance(found, list) else []


def answer_figure(value: Json) -> float:
    """A number in an answer; zero where there is none."""
    return float(value) if isinstance(value, int | float) else 0.0
