"""`check --try`: builds, starts and relinks a few revisions, and says what those that fail have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import FailedInvocation, Quiet
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.workflows.check import survey
from perftrail.workflows.events import HistoryRead, Skipped
from perftrail.workflows.remedies import remedies
from perftrail.workflows.troubles import common

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from perftrail.model.measurement import Phase
    from perftrail.model.plan import Cell
    from perftrail.model.search_record import Json
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.workflows.check import Survey
    from perftrail.workflows.events import Event
    from perftrail.workflows.remedies import Remedy
    from perftrail.workflows.selection import Selection
    from perftrail.workflows.session import Session
    from perftrail.workflows.troubles import Trouble


LAYOUTS = (1, 2, 3)
"""The seeds with which the newest revision is relinked: as many as tell whether that has any effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """A trouble of subjects that were tried, with what may help where they are one stretch of the history."""

    trouble: Trouble
    remedies: tuple[Remedy, ...]

    def as_json(self) -> dict[str, Json]:
        """The trouble as `check --try --json` prints it, each remedy as lines of a study file."""
        return {**self.trouble.as_json(), "remedies": ["\n".join(each.lines) for each in self.remedies]}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """The result of a trial: how many subjects of how many, what failed, and the plan by what is known now.

    `relinked` counts subjects that were linked in another order and then started, `None` where nothing says how.
    """

    plan: Survey
    tried: tuple[Subject, ...]
    built: int
    started: int
    troubles: tuple[Advised, ...]
    relinked: int | None = None

    @property
    def useful(self) -> bool:
        """Whether something could be built and started, so that the study can say anything at all."""
        return self.started > 0

    def as_json(self) -> dict[str, Json]:
        """The report as `check --try --json` prints it."""
        return {
            "tried": list(dict.fromkeys(subject.revision.id for subject in self.tried)),
            "subjects": len(self.tried),
            "built": self.built,
            "started": self.started,
            "relinked": self.relinked,
            "failures": [trouble.as_json() for trouble in self.troubles],
            "plan": self.plan.as_json(),
        }


class Attempt:
    """Tries revisions spread evenly over the range: builds each, and starts the first point of each benchmark.

    All of it is done as `run` does it, kept, and not done again.
    """

    def __init__(self, session: Session, selection: Selection, *, count: int) -> None:
        self._session = session
        self._selection = selection
        self._count = count
        self._built: set[Subject] = set()
        self._started: set[Subject] = set()
        self._relinked: set[Subject] = set()
        self._can_relink = False
        self._failures: dict[Subject, Failure] = {}

    def events(self) -> Generator[Event, None, AttemptReport]:
        """Do it; yields what happens and returns the report. Raises `UsageError` when nothing is selected."""
        revisions = self._session.source.history()
        yield HistoryRead(revisions=revisions)
        workshop = self._session.workshop
        yield from (Skipped(left_out=each) for each in workshop.left_out(revisions))
        tried = self._chosen(workshop.wanted(revisions))
        yield from workshop.ahead(tried)
        for subject in tried:
            yield from self._try(subject)
            layouts = LAYOUTS if subject == tried[-1] else LAYOUTS[:1]
            yield from self._relink(self._first_cells(subject), layouts)
        return AttemptReport(
            plan=survey(self._session, self._selection),
            tried=tried,
            built=len(self._built),
            started=len(self._started),
            troubles=tuple(map(self._advised, common(tried, self._failures))),
            relinked=len(self._relinked) if self._can_relink else None,
        )

    def _advised(self, trouble: Trouble) -> Advised:
        how = self._session.workshop.makings.recipe(trouble.subjects[0])
        return Advised(trouble=trouble, remedies=remedies(trouble, how))

    def _chosen(self, revisions: Sequence[Revision]) -> tuple[Subject, ...]:
        variants = self._session.study.variants
        wanted = [
            revision
            for revision in revisions
            if any(self._first_cells(Subject(revision=revision, variant=name)) for name in variants)
        ]
        if not wanted:
            raise UsageError(
                "--only and source.skip leave nothing to try; perftrail check shows what there is"
            )
        subjects = (
            Subject(revision=revision, variant=name)
            for revision in spread(wanted, self._count)
            for name in variants
        )
        return tuple(subject for subject in subjects if self._first_cells(subject))

    def _first_cells(self, subject: Subject) -> list[Cell]:
        """The first point of each benchmark that is wanted of a subject."""
        first: dict[str, Cell] = {}
        for cell in cells(self._session.study, subject):
            if self._selection.wants(cell):
                first.setdefault(cell.benchmark, cell)
        return list(first.values())

    def _try(self, subject: Subject) -> Generator[Event, None, None]:
        built = yield from self._session.workshop.build(subject)
        if isinstance(built, Built):
            self._built.add(subject)
        for cell in self._first_cells(subject):
            failure = yield from self._start(cell)
            if failure is None:
                self._started.add(subject)
            else:
                self._failures.setdefault(subject, failure)

    def _relink(self, cells: Sequence[Cell], layouts: Sequence[int]) -> Generator[Event, None, None]:
        """Link what was started in other orders, and start it once so; no sample is kept of that."""
        workshop, bench = self._session.workshop, self._session.bench
        wanted = [cell for cell in cells if cell.subject in self._started and workshop.can_relink(cell)]
        if not wanted:
            return
        self._can_relink = True
        yield from workshop.relink(wanted, layouts)
        for cell in wanted:
            for layout in layouts:
                ready = yield from workshop.ready(cell, layout=layout)
                failure = ready if isinstance(ready, Failure) else None
                if not isinstance(ready, Failure) and layout == layouts[0]:
                    result = bench.invoker.observe(ready, f"layout-{layout}", lambda command: command).result
                    failure = result if isinstance(result, Failure) else None
                if failure is not None:
                    self._failures.setdefault(cell.subject, failure)
                    return
        self._relinked.add(wanted[0].subject)

    def _start(self, cell: Cell) -> Generator[Event, None, Failure | None]:
        ready = yield from self._session.workshop.ready(cell)
        if isinstance(ready, Failure):
            return ready
        phase: Phase = "warmup" if self._session.study.measure.warmups else "sample"
        outcome = yield from self._session.bench.outcome(ready, phase, 0)
        return outcome.failure if isinstance(outcome, FailedInvocation) else None


def as_tried(study: Study) -> Study:
    """Give a study as it is tried: a start that only warms up need not wait for a quiet machine."""
    if not study.measure.warmups:
        return study
    return replace(study, measure=replace(study.measure, quiet=Quiet()))


def spread(revisions: Sequence[Revision], count: int) -> tuple[Revision, ...]:
    """Choose revisions evenly, the newest always and the oldest as soon as there are two."""
    last = len(revisions) - 1
    if count == 1:
        return (revisions[last],)
    places = {round(number * last / (count - 1)) for number in range(count)}
    return tuple(revisions[place] for place in sorted(places))
