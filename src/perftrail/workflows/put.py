"""A search's news and belief, put as plain data for the store and in words for people."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from perftrail.model.quantity import quantity
from perftrail.search.evidence import Readings, Same
from perftrail.search.words import step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.build import Failure
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.search.snapshot import Belief
    from perftrail.workflows.finding.probe import Taken


def news(told: Taken, failure: Failure | None, revisions: Sequence[Revision]) -> dict[str, Json]:
    """Put what a step found out; values are the metric's own, not logarithms."""
    if isinstance(told, Same):
        return {"same_as": revisions[told.like].id, "seconds": told.seconds}
    if isinstance(told, Readings):
        return {"values": [math.exp(value) for value in told.values], "seconds": told.seconds}
    assert failure is not None
    why: dict[str, Json] = {"unusable": failure.stage, "message": failure.message, "log": failure.log}
    return {**why, "seconds": told.seconds}


def belief(held: Belief | None, revisions: Sequence[Revision]) -> dict[str, Json]:
    """Put what is believed after a step: every built revision with P(the change is at or before it)."""
    if held is None:
        return {}
    built: list[Json] = [
        {"revision": revisions[position].id, "position": position, "changed": round(share, 6)}
        for position, share in held.at_or_before
    ]
    return {
        "no_change": round(held.no_change, 6),
        "candidates": held.candidates,
        "built": built,
        "before": held.before,
        "after": held.after,
        "sigma": held.sigma,
        "tau": held.tau,
    }


def words(
    told: Taken, failure: Failure | None, held: Belief | None, revisions: Sequence[Revision], *, unit: str
) -> str:
    """Say a step; of several readings the middle one stands for all."""
    if isinstance(told, Readings):
        what = quantity(math.exp(statistics.median(told.values)), unit)
    elif isinstance(told, Same):
        what = ""
    else:
        assert failure is not None
        what = failure.stage
    return step(told, held, lambda position: revisions[position].short, what=what)
