"""`check`: what a study would take, what of it is there already, and how long the rest will be."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.build import Built, Failure
from perftrail.model.measurement import Runnable
from perftrail.model.plan import cells, subjects
from perftrail.model.source import ALONE
from perftrail.workflows.eras import skips_json
from perftrail.workflows.measuring import Standing
from perftrail.workflows.outlook import Outlook, Span
from perftrail.workflows.troubles import common

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.measurement import Outcome
    from perftrail.model.plan import Cell
    from perftrail.model.search_record import Json
    from perftrail.model.source import Pins
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision, Subject
    from perftrail.workflows.eras import LeftOut
    from perftrail.workflows.outlook import Left
    from perftrail.workflows.selection import Selection
    from perftrail.workflows.session import View
    from perftrail.workflows.troubles import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A study's plan: counts of what is asked, made, failed and stored, and the time that is left.

    `troubles` are the builds that failed before, `left_out` the revisions that the study skips.
    `asked` is when a source was asked for what it answers from what is kept, empty when by this process.
    `seconds` is `None` as long as nothing was made or measured from which it could be told; so many points are
    `unseen`, for which another's time stands, and which may take longer.
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
    unseen: int = 0
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
            "unseen_points": self.unseen,
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

    def standings(self, study: Study) -> dict[Cell, Standing]:
        """Where each thing to be measured stands; cells that share an artefact count once."""
        held: dict[object, tuple[Cell, tuple[Outcome, ...]]] = {}
        for cell in self.possible:
            runnable = self.runnables.get(cell)
            if isinstance(runnable, Runnable):
                held.setdefault(runnable.key, (cell, self.outcomes.get(runnable.key, ())))
            else:
                held[cell] = (cell, ())
        return {
            cell: Standing(
                known={(each.key.phase, each.key.ordinal): each for each in outcomes},
                policy=study.measure,
                metrics=study.benchmarks[cell.benchmark].leading,
            )
            for cell, outcomes in held.values()
        }

    def seconds(self, measuring: Span | None) -> Span | None:
        """How long what is left takes, by what was made and measured so far; `None` where nothing was."""
        to_make = sum(build is None for build in self.builds.values())
        if measuring is None or (to_make and not self.built):
            return None
        making = to_make * statistics.median(build.seconds for build in self.built) if to_make else 0.0
        return Span(least=making + measuring.least, most=making + measuring.most)


def survey(view: View, selection: Selection) -> Survey:
    """Work out the plan of `run` for a study. Makes and measures nothing."""
    revisions = view.source.history()
    known = _known(view, selection, revisions)
    policy = view.study.measure
    least, most = policy.warmups + policy.invocations.least, policy.warmups + policy.invocations.most
    standings = known.standings(view.study)
    left = _left(view.study, standings)
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
        invocations=Span(least=least * len(standings), most=most * len(standings)),
        stored=sum(len(each) for each in known.outcomes.values()),
        left=left.starts,
        seconds=known.seconds(left.seconds),
        unseen=left.unseen,
        troubles=common(tried, known.failures),
        left_out=view.workshop.left_out(revisions),
    )


def _left(study: Study, standings: Mapping[Cell, Standing]) -> Left:
    outlook = Outlook(study.benchmarks)
    for cell, standing in standings.items():
        outlook.put(cell, standing)
    for cell in standings:
        outlook.give_up(cell)
    return outlook.left()


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
