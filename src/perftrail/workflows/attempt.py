"""`check --try`: builds and starts a few revisions, and says what those that fail have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.build import Built, Failure
from perftrail.model.conditions import Quiet
from perftrail.model.measurement import FailedInvocation
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.workflows.check import survey
from perftrail.workflows.events import HistoryRead

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from perftrail.model.measurement import Phase
    from perftrail.model.plan import Cell
    from perftrail.model.study import Study
    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.workflows.check import Survey
    from perftrail.workflows.events import Event
    from perftrail.workflows.selection import Selection
    from perftrail.workflows.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A failure that several subjects have in common: its stage, what it says, and the first one's log.

    `line` is the most telling line in the first subject's own words: hostile text. `oldest` says that all
    of these, and nothing else that was tried, come before the first revision that did not fail so.
    """

    failure: Failure
    line: str
    subjects: tuple[Subject, ...]
    oldest: bool

    def as_json(self) -> dict[str, Json]:
        """The trouble as `check --try --json` prints it."""
        return {
            "stage": self.failure.stage,
            "line": self.line,
            "count": len(self.subjects),
            "revisions": list(dict.fromkeys(subject.revision.id for subject in self.subjects)),
            "oldest": self.oldest,
            "log": self.failure.log,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """What came of trying: how many subjects of how many, what failed, and the plan by what is known now."""

    plan: Survey
    tried: tuple[Subject, ...]
    built: int
    started: int
    troubles: tuple[Trouble, ...]

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
        self._failures: dict[Subject, Failure] = {}

    def events(self) -> Generator[Event, None, AttemptReport]:
        """Do it; yields what happens and returns the report. Raises `UsageError` when nothing is selected."""
        revisions = self._session.source.history()
        yield HistoryRead(revisions=revisions)
        tried = self._chosen(revisions)
        for subject in tried:
            yield from self._try(subject)
        return AttemptReport(
            plan=survey(self._session, self._selection),
            tried=tried,
            built=len(self._built),
            started=len(self._started),
            troubles=common(tried, self._failures),
        )

    def _chosen(self, revisions: Sequence[Revision]) -> tuple[Subject, ...]:
        variants = self._session.study.variants
        wanted = [
            revision
            for revision in revisions
            if any(self._first_cells(Subject(revision=revision, variant=name)) for name in variants)
        ]
        if not wanted:
            raise UsageError("--only leaves nothing to try; perftrail check without it shows what there is")
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


def common(tried: Sequence[Subject], failures: dict[Subject, Failure]) -> tuple[Trouble, ...]:
    """Put failures together that are one and the same trouble, the one that most subjects have first."""
    groups: dict[tuple[str, str], list[Subject]] = {}
    for subject in tried:
        if subject in failures:
            failure = failures[subject]
            groups.setdefault((failure.stage, alike(_telling(failure))), []).append(subject)
    return tuple(
        Trouble(
            failure=failures[group[0]],
            line=_telling(failures[group[0]]),
            subjects=tuple(group),
            oldest=len(group) < len(tried) and tuple(group) == tuple(tried[: len(group)]),
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    )


_DIFFERS = (
    # What differs between builds of one trouble: where it lies, what it is called by content, counts.
    (re.compile(r"(?:[\w.@+-]*/)+([\w.@+-]+)"), r"\1"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b"), "#"),
    (re.compile(r"\d+"), "#"),
    (re.compile(r"\s+"), " "),
)


def alike(line: str) -> str:
    """Give a line without what may differ where one trouble is told twice: places, numbers, ids.

    >>> alike("/tmp/b/0f3a9c1e77/tree/src/a.c:12:5: error: 'x' undeclared")
    "a.c:#:#: error: 'x' undeclared"
    """
    for pattern, instead in _DIFFERS:
        line = pattern.sub(instead, line)
    return line.strip()


def _telling(failure: Failure) -> str:
    """The first of the lines that tell why something failed; they come with the most telling first."""
    lines: Iterable[str] = failure.message.strip().splitlines()
    return next(iter(lines), f"failed at {failure.stage}")
