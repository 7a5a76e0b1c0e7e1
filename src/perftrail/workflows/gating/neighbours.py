"""What the store says of builds that change nothing: neighbours in a history that were measured in the same blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.stats.comparison import layout_noise
from perftrail.workflows.reading import logarithm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.measurement import Outcome, Runnable
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.stats.comparison import LayoutNoise
    from perftrail.workflows.session import Session

MOST_REVISIONS = 400
"""Number of newest revisions of a history to look at."""


def neighbours_noise(session: Session, target: Target) -> LayoutNoise | None:
    """Estimate how far builds lie apart in a figure that no change moved; makes and starts nothing.

    Only figures of a single point are looked at, and only builds as their recipe links them.
    """
    if len(target.points) != 1:
        return None
    revisions = session.source.history()[-MOST_REVISIONS:]
    known = [_runnable(session, revision, target) for revision in revisions]
    keys = tuple({each.key for each in known if each is not None})
    held = session.store.outcomes(keys, session.machine.id) if keys else {}
    logs = {key: _by_block(target, outcomes) for key, outcomes in held.items()}
    ratios = []
    for one, other in pairwise(known):
        if one is None or other is None or one.key == other.key:
            continue
        before, after = logs.get(one.key, {}), logs.get(other.key, {})
        ratios.append([after[block] - before[block] for block in before if block in after])
    return layout_noise(ratios)


def _runnable(session: Session, revision: Revision, target: Target) -> Runnable | None:
    subject = Subject(revision=revision, variant=target.variant)
    [point] = target.points
    for cell in cells(session.study, subject):
        if (cell.benchmark, cell.point) == (target.benchmark, point):
            found = session.workshop.known_runnable(cell)
            return None if isinstance(found, Failure) else found
    return None


def _by_block(target: Target, outcomes: Sequence[Outcome]) -> Mapping[str, float]:
    [point] = target.points
    found = {}
    for each in outcomes:
        draw = each.draw
        if isinstance(each, Measurement) and each.key.phase == "sample" and draw.block and not draw.layout:
            value = logarithm(target, {point: each})
            if not isinstance(value, Failure):
                found[draw.block] = value
    return found
