"""At which new revision a figure may have changed: by its pairs with the one before, or by its whole history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.stats.changepoints import change_points
from perftrail.stats.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.target import Target
    from perftrail.workflows.watching.batch import Measured
    from perftrail.workflows.watching.state import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A figure that seems to have changed after `before`, at `at` at the latest."""

    target: Target
    before: str
    at: str


def by_pairs(measured: Measured, order: Sequence[str], *, smallest: float) -> list[Alarm]:
    """Walk through a batch in the order of history; each revision is compared with the one whose level holds.

    A sure difference of at least `smallest` is an alarm, and the level is that revision's from then on.
    """
    alarms = []
    holds = before = measured.bout.reference
    for name in order:
        found = measured.against(holds, name)
        sure = found is not None and found.verdict in (Verdict.FASTER, Verdict.SLOWER)
        if found is not None and sure and abs(math.log(found.effect)) >= math.log1p(smallest):
            alarms.append(Alarm(target=measured.target, before=before, at=name))
            holds = name
        if name in measured.logs or name in measured.same:
            before = name
    return alarms


def by_history(
    target: Target, levels: Sequence[Level], *, smallest: float, known: Mapping[str, object]
) -> list[Alarm]:
    """Find the change points of a figure's levels at revisions that are not `known` for one.

    They show what is too small for the pairs of one revision, once several have the new level. Only points at the
    alert level count: smaller ones are often noise that wanders.
    """
    points = change_points([(number, each.logs) for number, each in enumerate(levels)])
    return [
        Alarm(target=target, before=levels[point.previous].revision, at=levels[point.position].revision)
        for point in points
        if point.alert
        and abs(math.log(point.effect)) >= math.log1p(smallest)
        and not any(levels[at].revision in known for at in range(point.earliest, point.latest + 1))
    ]
