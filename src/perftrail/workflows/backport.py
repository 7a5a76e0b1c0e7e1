"""`backport`: old, patched and fixed measured side by side, until it is known how much of the gain is carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.plan import cells
from perftrail.model.subject import Subject
from perftrail.workflows.backporting.bout import Bout, wanted_metrics
from perftrail.workflows.backporting.report import BackportReport, Missing, Role
from perftrail.workflows.sides.rules import rule_for

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from perftrail.model.subject import Revision
    from perftrail.workflows.backporting.patch import Carriage
    from perftrail.workflows.events import Event
    from perftrail.workflows.session import Session
    from perftrail.workflows.workshop import Ready


class Backport:
    """Measures what a back-port carries, over every variant, benchmark, point and metric of the study.

    Resumes by itself: what was built, and what was started side by side, is not done again.
    """

    def __init__(self, session: Session, carriage: Carriage) -> None:
        self._session = session
        self._carriage = carriage
        self._revisions = _revisions(carriage)
        self._missing: dict[str, Missing] = {}

    def events(self) -> Generator[Event, None, BackportReport]:
        """Make the subjects and measure them; yields what happens and returns what came of it."""
        bouts: list[Bout] = []
        variants, revisions = self._session.study.variants, self._revisions.values()
        yield from self._session.workshop.ahead(
            Subject(revision=revision, variant=variant) for variant in variants for revision in revisions
        )
        for variant in variants:
            made: dict[str, dict[Role, list[Ready]]] = {}
            for role in self._revisions:
                for ready in (yield from self._make(role, variant)):
                    made.setdefault(ready.cell.benchmark, {}).setdefault(role, []).append(ready)
            bouts += [
                Bout(self._session, readies)
                for readies in made.values()
                if readies.keys() >= {Role.OLD, Role.PATCHED}
            ]
        rule = rule_for(self._session.study.measure, sum(bout.comparisons for bout in bouts))
        for bout in bouts:
            yield from bout.events(rule)
        broken = [missing for bout in bouts for missing in bout.broken()]
        return BackportReport(
            carriage=self._carriage,
            stands=tuple(stand for bout in bouts for stand in bout.stands(rule)),
            missing=(*self._missing.values(), *broken),
            skipped=sum(bout.skipped for bout in bouts),
            equal=tuple(dict.fromkeys(pair for bout in bouts for pair in bout.equal)),
            invocations=sum(bout.invocations for bout in bouts),
            fresh=self._session.bench.started,
            wanted=wanted_metrics(self._session.study),
            machine=self._session.machine.id,
        )

    def _make(self, role: Role, variant: str) -> Generator[Event, None, list[Ready]]:
        """Make one revision in one variant, ready for every benchmark that can be had of it."""
        subject = Subject(revision=self._revisions[role], variant=variant)
        readies = []
        for cell in cells(self._session.study, subject):
            ready = yield from self._session.workshop.ready(cell)
            if isinstance(ready, Failure):
                where = f"{subject} {cell.benchmark}" if ready.stage == "link" else str(subject)
                self._missing.setdefault(where, Missing(role=role, where=where, failure=ready))
            else:
                readies.append(ready)
        return readies


def _revisions(carriage: Carriage) -> Mapping[Role, Revision]:
    """Who is measured, in the order in which people read them."""
    there = {Role.OLD: carriage.patched.base, Role.PATCHED: carriage.patched.revision}
    return there if carriage.fix is None else {**there, Role.FIXED: carriage.fix}
