"""Tries along a line of revisions: whether each of them works, as the search for `works` asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.search.words import left
from perftrail.search.works import Tried

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from perftrail.model.subject import Revision
    from perftrail.model.trail import Json
    from perftrail.model.working import Working
    from perftrail.search.snapshot import Belief
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.journal import Ledger
    from perftrail.workflows.session import Session

FINAL = ("checkout", "build", "link", "start")
"""Stages whose failure comes again: trying once more would tell nothing."""


class Trials:
    """Tries revisions: one try builds, links and starts everything that must work, and reads what it prints.

    The first thing that fails ends a try. Tries are numbered as samples are, so a killed search goes on.
    """

    def __init__(
        self, session: Session, working: Working, revisions: Sequence[Revision], ledger: Ledger
    ) -> None:
        self.revisions = revisions
        self._session = session
        self._working = working
        self._ledger = ledger
        self._next: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._running = 0.0

    @property
    def failures(self) -> Mapping[int, Failure]:
        """Why each revision failed that ever did, the last time, ascending."""
        return dict(sorted(self._failures.items()))

    @property
    def worked(self) -> frozenset[int]:
        """The positions that never failed."""
        return frozenset(self._next) - self._failures.keys()

    def take(self, position: int, readings: int) -> Generator[Event, None, Tried]:
        """Try a position so many times, and put what came of it as news."""
        yield from self._ledger.ahead(position, self.revisions, variant=self._working.variant)
        first = position not in self._next
        began, self._running = self._ledger.seconds, 0.0
        worked = failed = 0
        final = False
        for _ in range(readings):
            failure = yield from self._try(position)
            if failure is None:
                worked += 1
            else:
                failed += 1
                self._failures[position] = failure
                final = failure.stage in FINAL
            if final:
                break
        building = self._ledger.seconds - began - self._running
        return Tried(
            position=position,
            worked=worked,
            failed=failed,
            final=final,
            seconds=self._running,
            build_seconds=max(building, 0.0) if first else None,
        )

    def words(self, news: Tried, held: Belief | None) -> str:
        """Say a step."""
        label = self.revisions[news.position].short
        if news.failed:
            failure = self._failures[news.position]
            done = f"tried {label}: failed ({failure.stage})"
        else:
            done = f"tried {label}: works"
        return done if held is None else f"{done}; {left(held)}"

    def plain(self, news: Tried) -> dict[str, Json]:
        """Put what a step found out as plain data."""
        told: dict[str, Json] = {"worked": news.worked, "failed": news.failed}
        failure = self._failures.get(news.position) if news.failed else None
        if failure is not None:
            told |= {"stage": failure.stage, "message": failure.message, "log": failure.log}
        return told

    def _try(self, position: int) -> Generator[Event, None, Failure | None]:
        subject = Subject(revision=self.revisions[position], variant=self._working.variant)
        ordinal = self._next.get(position, 0)
        self._next[position] = ordinal + 1
        for benchmark, point in self._working.places:
            ready = yield from self._ledger.ready(Cell(subject=subject, benchmark=benchmark, point=point))
            if isinstance(ready, Failure):
                self._ledger.build(subject.revision, subject.variant, ready.seconds)
                return ready
            self._ledger.build(subject.revision, subject.variant, ready.prepared.built.seconds)
            outcome = yield from self._session.bench.outcome(ready, "sample", ordinal)
            self._ledger.count(outcome.key, outcome.seconds)
            self._running += outcome.seconds
            if isinstance(outcome, FailedInvocation):
                return outcome.failure
        return None
