"""What a run of a study still lacks, from what its store holds: for whoever watches one from outside."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Built, Failure
from perftrail.model.plan import cells, subjects
from perftrail.stats.estimate import enough

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.plan import Cell
    from perftrail.model.study import MeasurePolicy
    from perftrail.workflows.reporting.gathered import Gathered
    from perftrail.workflows.session import View
    from perftrail.workflows.showing.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """Builds that are to be made yet, what one takes (zero where none is known), and starts: at least, at most.

    `planned` is how many starts the whole plan has at least.
    """

    builds: int = 0
    build_seconds: float = 0.0
    least: int = 0
    most: int = 0
    planned: int = 0


def remaining(gathered: Gathered) -> Remaining:
    """Work out what a run of the whole plan lacks; call it while the view is open."""
    view = gathered.view
    study, policy = view.study, view.study.measure
    if study.walked.kind == "samples":
        return Remaining()
    held = _held(gathered)
    lacking: dict[object, tuple[int, int]] = {}
    to_build, seconds = 0, []
    for subject in subjects(study, view.workshop.wanted(gathered.revisions)):
        known = view.workshop.known_build(subject)
        if isinstance(known, Failure):
            continue
        if isinstance(known, Built):
            seconds.append(known.seconds)
        else:
            to_build += 1
        keys = gathered.measured_here.by_subject.get(subject, {})
        for cell in cells(study, subject):
            name = keys.get((cell.benchmark, cell.point)) or _name(view, cell, known)
            if name is not None and name not in lacking:
                lacking[name] = _lacks(held.get(name, ()), policy)
    return Remaining(
        builds=to_build,
        build_seconds=statistics.median(seconds) if seconds else 0.0,
        least=sum(least for least, _ in lacking.values()),
        most=sum(most for _, most in lacking.values()),
        planned=len(lacking) * (policy.warmups + policy.invocations.least),
    )


def _name(view: View, cell: Cell, known: Built | None) -> object | None:
    """What would be started for a cell that was not started yet, which others may share; nothing where it failed."""
    runnable = None if known is None else view.workshop.known_runnable(cell)
    if isinstance(runnable, Failure):
        return None
    return cell if runnable is None else runnable.key


def _held(gathered: Gathered) -> dict[object, list[Row]]:
    """The rows by which it is decided whether a runnable was started often enough, by its key."""
    benchmarks = gathered.view.study.benchmarks
    held: dict[object, list[Row]] = {}
    for row in gathered.rows:
        if row.metric in benchmarks[row.benchmark].leading and row.metric not in gathered.view.study.derived:
            for key in row.runnables:
                held.setdefault(key, []).append(row)
    return held


def _lacks(rows: Sequence[Row], policy: MeasurePolicy) -> tuple[int, int]:
    """How many starts a runnable lacks, at least and at most; none where it failed too often, as a run has it."""
    least, most = policy.invocations.least, policy.invocations.most
    taken = max((len(row.values) for row in rows), default=0)
    failures = max((row.failures for row in rows), default=0)
    if failures > taken:
        return (0, 0)
    if not taken:
        return (policy.warmups + least, policy.warmups + most)
    told = [row.values for row in rows if row.values]
    if (
        all(
            enough(values, least=min(least, len(values)), most=most, precision=policy.precision)
            for values in told
            if taken >= least
        )
        and taken + failures >= least
    ):
        return (0, 0)
    done = taken + failures
    return (max(1, least - done), max(1, most - done))
