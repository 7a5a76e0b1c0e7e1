"""Where `find` begins when the store holds samples along the history already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.measurement import Marked, Measurement, Runnable, sift
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.stats.changepoints import search_weights
from perftrail.workflows.reading import logarithm
from perftrail.workflows.showing.changes import stretches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.benchmark import Point
    from perftrail.model.measurement import Outcome
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.workflows.session import View


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """The natural logarithms of what was measured at a position, and which runnables gave it."""

    position: int
    runnables: frozenset[str]
    logs: Sequence[float]


def warm_prior(
    view: View, target: Target, revisions: Sequence[Revision], *, before: str
) -> tuple[float, ...] | None:
    """Weigh the revisions of a find question from what this machine's samples say, as `Question.prior`.

    Only samples that were started earlier than `before` count (ISO 8601, as the store writes it): give the time
    at which the search was begun (`SearchRecord.started` of one that is resumed), so that a search that
    goes on asks the same again and its own samples do not become its prior. `None` when there is nothing to
    go on. Makes and measures nothing.
    """
    stored = {runnable.revision for runnable in view.store.runnables(target.benchmark)}
    keys = {
        position: found
        for position, revision in enumerate(revisions)
        if revision.id in stored and (found := _keys(view, target, revision)) is not None
    }
    every = {key for of_points in keys.values() for key in of_points.values()}
    outcomes = view.store.outcomes(every, view.machine.id)
    earlier = {key: _earlier(held, before) for key, held in outcomes.items()}
    least = view.study.measure.invocations.least
    measured = [
        _Measured(position=position, runnables=frozenset(of_points.values()), logs=logs)
        for position, of_points in keys.items()
        if (logs := _logs(target, {point: earlier.get(key, {}) for point, key in of_points.items()}, least))
    ]
    firsts = [measured[stretch[0]] for stretch in stretches([each.runnables for each in measured])]
    return search_weights([(each.position, each.logs) for each in firsts], len(revisions))


def _keys(view: View, target: Target, revision: Revision) -> dict[Point, str] | None:
    """Give the runnable's key at each point of a target, `None` where one was never made."""
    subject = Subject(revision=revision, variant=target.variant)
    keys: dict[Point, str] = {}
    for point in target.points:
        cell = Cell(subject=subject, benchmark=target.benchmark, point=point)
        runnable = view.workshop.known_runnable(cell)
        if not isinstance(runnable, Runnable):
            return None
        keys[point] = runnable.key
    return keys


def _logs(target: Target, held: Mapping[Point, Mapping[int, Measurement]], least: int) -> tuple[float, ...]:
    """Evaluate a target for each ordinal that every point has; a mark of any point is the value's."""
    marked: list[Marked] = []
    for ordinal in sorted(set.intersection(*(set(each) for each in held.values()))):
        readings = {point: each[ordinal] for point, each in held.items()}
        value = logarithm(target, readings)
        if isinstance(value, float):
            flags = {flag: None for reading in readings.values() for flag in reading.flags}
            marked.append(Marked(value=value, flags=tuple(flags)))
    return sift(marked, least=least).values


def _earlier(outcomes: Sequence[Outcome], before: str) -> dict[int, Measurement]:
    """Give the samples started before a time, by ordinal."""
    return {
        outcome.key.ordinal: outcome
        for outcome in outcomes
        if isinstance(outcome, Measurement) and outcome.key.phase == "sample" and outcome.started < before
    }
