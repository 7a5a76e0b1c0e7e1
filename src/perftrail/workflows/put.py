"""A search's news and belief, put as plain data for the store and in words for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.model.quantity import probability, quantity
from perftrail.search.evidence import Readings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.build import Failure
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import News
    from perftrail.search.search import Measure

TIMES = {1: "once", 2: "twice", 3: "three times", 4: "four times", 5: "five times"}


def news(told: News, failure: Failure | None) -> dict[str, Json]:
    """Put what a step found out; values are the metric's own, not logarithms."""
    if isinstance(told, Readings):
        return {"values": [math.exp(value) for value in told.values], "seconds": told.seconds}
    assert failure is not None
    return {
        "unusable": failure.stage,
        "message": failure.message,
        "log": failure.log,
        "seconds": told.seconds,
    }


def belief(posterior: Posterior | None, revisions: Sequence[Revision]) -> dict[str, Json]:
    """Put what is believed after a step: every built revision with P(the change is at or before it)."""
    if posterior is None:
        return {}
    built: list[Json] = [
        {"revision": revisions[position].id, "position": position, "changed": round(float(share), 6)}
        for position, share in zip(posterior.positions, posterior.at_or_before, strict=True)
    ]
    return {
        "no_change": round(posterior.nothing, 6),
        "built": built,
        "sigma": posterior.sigma,
        "tau": posterior.tau,
    }


def words(
    action: Measure,
    told: News,
    failure: Failure | None,
    posterior: Posterior | None,
    revisions: Sequence[Revision],
    *,
    unit: str,
) -> str:
    """Say a step: what was measured (the middle value), which side that puts it on, what is left."""
    name = revisions[action.position].short
    if not isinstance(told, Readings):
        assert failure is not None
        return f"{name} cannot be used ({failure.stage}), which says nothing about its side"
    values = sorted(math.exp(value) for value in told.values)
    figure = quantity(values[len(values) // 2], unit)
    count = TIMES.get(len(values), f"{len(values)} times")
    said = f"measured {name} {count}: {figure}"
    if posterior is None or len(posterior.positions) < 2:
        return said
    return f"{said}{_side(action.position, posterior)}; {_left(posterior, len(revisions))}"


def _side(position: int, posterior: Posterior) -> str:
    if posterior.nothing > 0.5 or position in (posterior.positions[0], posterior.positions[-1]):
        return ""
    share = float(posterior.at_or_before[posterior.positions.index(position)])
    share /= max(1.0 - posterior.nothing, 1e-12)
    side, sure = ("after", share) if share >= 0.5 else ("before", 1.0 - share)
    return f", {probability(min(sure, 1.0))} it is {side} the change"


def _left(posterior: Posterior, revisions: int) -> str:
    """Say how likely a change is at all, or else how many candidates hold 95 % of it."""
    if posterior.nothing > 0.05:
        return f"{probability(1.0 - posterior.nothing)} that something changed"
    heavy = sorted(zip(posterior.gaps, range(len(posterior.gaps)), strict=True), reverse=True)
    mass, count = 0.0, 0
    for share, gap in heavy:
        mass += float(share)
        count += posterior.positions[gap + 1] - posterior.positions[gap]
        if mass >= 0.95 * (1.0 - posterior.nothing):
            break
    return f"{count} candidate{'s' if count != 1 else ''} left of {revisions - 1}"
