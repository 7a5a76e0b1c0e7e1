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
    from collections.abc import Mapping, Sequence

    from perftrail.model.measurement import Outcome
    from perftrail.model.pins import Pins
    from perftrail.model.plan import Cell
    from perftrail.model.subject import Revision, Subject
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What a study wants of each subject, and what is there of it: builds, what is started, and its outcomes."""

    wanted: Mapping[Subject, Sequence[Cell]]
    builds: Mapping[Subject, Built | Failure | None]
    runnables: Mapping[Cell, Runnable | Failure | None]
    outcomes: Mapping[str, tuple[Outcome, ...]]

    @property
    def built(self) -> list[Built]:
        """The builds that there are."""
        return [build for build in self.builds.values() if isinstance(build, Built)]

    @property
    def failures(self) -> dict[Subject, Failure]:
        """The subjects that do not build."""
        return {subject: build for subject, build in self.builds.items() if isinstance(build, Failure)}

    @property
    def possible(self) -> list[Cell]:
        """What can be measured, as far as is known."""
        return [
            cell
            for subject, chosen in self.wanted.items()
            for cell in chosen
            if not isinstance(self.builds[subject], Failure)
            and not isinstance(self.runnables.get(cell), Failure)
        ]

    def held(self) -> list[int]:
        """How many outcomes each thing to be measured has; cells that share an artefact count once."""
        counts: dict[object, int] = {}
        for cell in self.possible:
            runnable = self.runnables.get(cell)
            key: object = runnable.key if isinstance(runnable, Runnable) else cell
            counts[key] = len(self.outcomes.get(runnable.key, ())) if isinstance(runnable, Runnable) else 0
        return list(counts.values())

    def seconds(self, left: Span) -> Span | None:
        """How long what is left takes, by what was made and measured so far; `None` where nothing was."""
        each = [outcome.seconds for held in self.outcomes.values() for outcome in held]
        to_make = sum(build is None for build in self.builds.values())
        if (to_make and not self.built) or (left.most and not each):
            return None
        making = to_make * statistics.median(build.seconds for build in self.built) if to_make else 0.0
        typical = statistics.median(each) if each else 0.0
        return Span(least=making + left.least * typical, most=making + left.most * typical)


def survey(view: View, selection: Selection) -> Survey:
    """Work out the plan of `run` for a study. Makes and measures nothing."""
    revisions = view.source.history()
    known = _known(view, selection, revisions)
    policy = view.study.measure
    least, most = policy.warmups + policy.invocations.least, policy.warmups + policy.invocations.most
    held = known.held()
    left = Span(
        least=sum(max(0, least - count) for count in held),
        most=sum(most - count if count < least else 0 for count in held),
    )
    tried = [subject for subject, build in known.builds.items() if build is not None]
    return Survey(
        title=view.study.title,
        revisions=revisions,
        pins=view.pins,
        asked=view.asked(),
        subjects=len(known.wanted),
        built=len(known.built),
        failed=len(known.failures),
        points=len(known.possible),
        invocations=Span(least=least * len(held), most=most * len(held)),
        stored=sum(len(each) for each in known.outcomes.values()),
        left=left,
        seconds=known.seconds(left),
        troubles=common(tried, known.failures),
        left_out=view.workshop.left_out(revisions),
    )


def _known(view: View, selection: Selection, revisions: Sequence[Revision]) -> _Known:
    """Look up what there is of everything wanted."""
    every = {
        subject: [cell for cell in cells(view.study, subject) if selection.wants(cell)]
        for subject in subjects(view.study, view.workshop.wanted(revisions))
    }
    wanted = {subject: chosen for subject, chosen in every.items() if chosen}
    builds = {subject: view.workshop.known_build(subject) for subject in wanted}
    runnables = {
        cell: view.workshop.known_runnable(cell)
        for subject, chosen in wanted.items()
        if isinstance(builds[subject], Built)
        for cell in chosen
    }
    keys = {each.key for each in runnables.values() if isinstance(each, Runnable)}
    return _Known(
        wanted=wanted,
        builds=builds,
        runnables=runnables,
        outcomes=view.store.outcomes(tuple(keys), view.machine.id),
    )
