"""`check`: what a study would take, what of it is there already, and how long the rest will be."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Built, Failure
from perftrail.model.measurement import Runnable
from perftrail.model.pins import ALONE
from perftrail.model.plan import cells, subjects
from perftrail.workflows.eras import skips_json
from perftrail.workflows.troubles import common

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from perftrail.model.measurement import Outcome
    from perftrail.model.pins import Pins
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.workflows.eras import LeftOut
    from perftrail.workflows.selection import Selection
    from perftrail.workflows.session import View
    from perftrail.workflows.troubles import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """At least, and at most."""

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A study's plan: counts of what is asked, made, failed and stored, and the time that is left.

    `troubles` are the builds that failed before, `left_out` the revisions that the study skips.
    `asked` is when a source was asked for what it answers from what is kept, empty when by this process.
    `seconds` is `None` as long as nothing was made or measured from which it could be told.
    """

    title: str
    revisions: tuple[Revision, ...]
    subjects: int
    built: int
    failed: int
    points: int
    invocations: Span
    stored: int
    left: Span
    seconds: Span | None
    troubles: tuple[Trouble, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    pins: Pins = ALONE
    asked: str = ""

    def as_json(self) -> dict[str, Json]:
        """The plan as `check --json` prints it."""
        return {
            "title": self.title,
            "revisions": len(self.revisions),
            "first": self.revisions[0].id,
            "last": self.revisions[-1].id,
            **self.pins.as_json(),
            "source_asked": self.asked or None,
            "subjects": self.subjects,
            "builds": {
                "made": self.built,
                "failed": self.failed,
                "to_make": self.subjects - self.built - self.failed,
            },
            "skipped_revisions": skips_json(self.left_out),
            "failures": [trouble.as_json() for trouble in self.troubles],
            "points": self.points,
            "invocations": {
                "least": int(self.invocations.least),
                "most": int(self.invocations.most),
                "stored": self.stored,
                "left_least": int(self.left.least),
                "left_most": int(self.left.most),
            },
            "seconds": None
            if self.seconds is None
            else {"least": round(self.seconds.least, 1), "most": round(self.seconds.most, 1)},
        }


def survey(view: View, selection: Selection) -> Survey:
    """Work out the plan of `run` for a study. Makes and measures nothing."""
    revisions = view.source.history()
    wanted = [
        (subject, [cell for cell in cells(view.study, subject) if selection.wants(cell)])
        for subject in subjects(view.study, view.workshop.wanted(revisions))
    ]
    wanted = [(subject, chosen) for subject, chosen in wanted if chosen]
    builds = {subject: view.workshop.known_build(subject) for subject, _ in wanted}
    runnables = {
        cell: view.workshop.known_runnable(cell)
        for subject, chosen in wanted
        if isinstance(builds[subject], Built)
        for cell in chosen
    }
    keys = {each.key for each in runnables.values() if isinstance(each, Runnable)}
    outcomes = view.store.outcomes(tuple(keys), view.machine.id)
    policy = view.study.measure
    least, most = policy.warmups + policy.invocations.least, policy.warmups + policy.invocations.most
    possible = [
        cell
        for subject, chosen in wanted
        for cell in chosen
        if not isinstance(builds[subject], Failure) and not isinstance(runnables.get(cell), Failure)
    ]
    held = _held(possible, runnables, outcomes)
    left = Span(
        least=sum(max(0, least - count) for count in held),
        most=sum(most - count if count < least else 0 for count in held),
    )
    built = [build for build in builds.values() if isinstance(build, Built)]
    failures = {subject: build for subject, build in builds.items() if isinstance(build, Failure)}
    known = [subject for subject, build in builds.items() if build is not None]
    to_make = sum(build is None for build in builds.values())
    return Survey(
        title=view.study.title,
        revisions=revisions,
        pins=view.pins,
        asked=view.asked(),
        subjects=len(wanted),
        built=len(built),
        failed=len(failures),
        points=len(possible),
        invocations=Span(least=least * len(held), most=most * len(held)),
        stored=sum(len(each) for each in outcomes.values()),
        left=left,
        seconds=_seconds(to_make, left, built, outcomes),
        troubles=common(known, failures),
        left_out=view.workshop.left_out(revisions),
    )


def _held(
    possible: Iterable[Cell],
    runnables: Mapping[Cell, Runnable | Failure | None],
    outcomes: Mapping[str, tuple[Outcome, ...]],
) -> list[int]:
    """How many outcomes each thing to be measured has; cells that share an artefact count once."""
    counts: dict[object, int] = {}
    for cell in possible:
        runnable = runnables.get(cell)
        key: object = runnable.key if isinstance(runnable, Runnable) else cell
        counts[key] = len(outcomes.get(runnable.key, ())) if isinstance(runnable, Runnable) else 0
    return list(counts.values())


def _seconds(
    to_make: int, left: Span, built: list[Built], outcomes: Mapping[str, tuple[Outcome, ...]]
) -> Span | None:
    each = [outcome.seconds for held in outcomes.values() for outcome in held]
    if (to_make and not built) or (left.most and not each):
        return None
    making = to_make * statistics.median(build.seconds for build in built) if to_make else 0.0
    typical = statistics.median(each) if each else 0.0
    return Span(least=making + left.least * typical, most=making + left.most * typical)
