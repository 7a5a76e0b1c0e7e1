"""Search for the revision where a program began to fail, and report ranges of unusable revisions.

`RevisionTester` tests revisions for the search. `find_broken_ranges` returns ranges of a history that appear broken.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from perftrail.find import step_record
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation, Runnable
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.search import Settled
from perftrail.search.failing import Attempts, FailureSearch
from perftrail.search.words import belief_words

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping, Sequence

    from perftrail.find.journal import Journal, Ledger
    from perftrail.measure.events import Event
    from perftrail.measure.session import Session
    from perftrail.model.build import Stage
    from perftrail.model.json_data import Json
    from perftrail.model.measurement import Outcome
    from perftrail.model.subject import Revision
    from perftrail.model.target import Working
    from perftrail.search import Answer, Belief, Budget
    from perftrail.search.answer import Change, Measure


FINAL = ("checkout", "build", "link", "start")
"""Stages whose failures repeat, so that another attempt gives no information."""


class RevisionTester:
    """Tests whether revisions work: one attempt builds, links and starts everything that must work.

    The first failure ends an attempt. Attempts are numbered as samples are, so a killed search can resume.
    """

    def __init__(
        self, session: Session, working: Working, revisions: Sequence[Revision], ledger: Ledger
    ) -> None:
        self.revisions = revisions
        self._session = session
        self._working = working
        self._ledger = ledger
        self._attempts: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._invocation_seconds = 0.0

    @property
    def failures(self) -> Mapping[int, Failure]:
        """The last failure of each revision that ever failed, in ascending order."""
        return dict(sorted(self._failures.items()))

    @property
    def worked(self) -> frozenset[int]:
        """Positions that never failed."""
        return frozenset(self._attempts) - self._failures.keys()

    def stored_attempts(self, *, before: str) -> Iterator[Attempts]:
        """Yield the outcomes of each revision that the store has from before a time; new attempts follow them.

        Use the time when the search first began: a resumed search then repeats its steps. Builds and starts nothing.
        """
        builds = self._session.store.subject_builds()
        for position, revision in enumerate(self.revisions):
            subject = Subject(revision=revision, variant=self._working.variant)
            record = builds.get((revision.id, subject.variant))
            if record is None:
                continue
            built = self._session.subject_builder.known_build(subject)
            if not isinstance(built, Failure):
                failures = self._stored_invocations(subject, before)
            else:
                failures = [built] if record.finished < before else []
            if not failures:
                continue
            self._attempts[position] = len(failures)
            failed = [failure for failure in failures if failure is not None]
            if failed:
                self._failures[position] = failed[-1]
            yield Attempts(
                position=position,
                worked=len(failures) - len(failed),
                failed=len(failed),
                final=any(failure.stage in FINAL for failure in failed),
                stored=True,
            )

    def _stored_invocations(self, subject: Subject, before: str) -> list[Failure | None]:
        """Return the first failure of each complete stored attempt of a build, `None` if everything worked."""
        by_ordinal: list[dict[int, Outcome]] = []
        for benchmark, point in self._working.benchmark_points:
            runnable = self._session.subject_builder.known_runnable(
                Cell(subject=subject, benchmark=benchmark, point=point)
            )
            if not isinstance(runnable, Runnable):
                return []
            outcomes = self._session.store.outcomes((runnable.key,), self._session.machine.id)
            by_ordinal.append(
                {
                    each.key.ordinal: each
                    for each in outcomes.get(runnable.key, ())
                    if each.key.phase == "sample" and each.started < before
                }
            )
        failures: list[Failure | None] = []
        for ordinal in count():
            for outcomes_of in by_ordinal:
                outcome = outcomes_of.get(ordinal)
                if outcome is None:
                    return failures
                if isinstance(outcome, FailedInvocation):
                    failures.append(outcome.failure)
                    break
            else:
                failures.append(None)
        return failures

    def search(
        self, search: FailureSearch, journal: Journal, budget: Budget
    ) -> Generator[Event, None, Answer]:
        """Test revisions until the search is settled; `budget` limits new steps."""
        while not isinstance(action := self._ask(search, journal, budget), Settled):
            (position,) = action.positions
            revision = self.revisions[position]
            journal.accepts([revision.id], 0)
            observation = yield from self.attempt(position)
            search.tell(observation)
            belief = search.belief
            yield journal.step(
                action={"measure": revision.id, "position": position, "order": [revision.id]},
                observation=self.observation_json(observation),
                belief=step_record.belief_json(belief, self.revisions),
                words=self.words(observation, belief),
            )
        return action.answer

    def _ask(self, search: FailureSearch, journal: Journal, budget: Budget) -> Measure | Settled:
        """Ask for the next step, with the budget that applies to it."""
        for each in journal.budgets(budget):
            search.allow(each)
            action = search.ask()
            if isinstance(action, Settled):
                break
            if journal.is_recorded([self.revisions[position].id for position in action.positions], 0):
                break
        return action

    def attempt(self, position: int) -> Generator[Event, None, Attempts]:
        """Test a position once, and return the outcome as an observation."""
        yield from self._ledger.build_ahead(position, self.revisions, variant=self._working.variant)
        first = position not in self._attempts
        began, self._invocation_seconds = self._ledger.seconds, 0.0
        failure = yield from self._first_failure(position)
        if failure is not None:
            self._failures[position] = failure
        building = self._ledger.seconds - began - self._invocation_seconds
        return Attempts(
            position=position,
            worked=int(failure is None),
            failed=int(failure is not None),
            final=failure is not None and failure.stage in FINAL,
            seconds=self._invocation_seconds,
            build_seconds=max(building, 0.0) if first else None,
        )

    def words(self, observation: Attempts, belief: Belief | None) -> str:
        """Return the description of a step."""
        label = self.revisions[observation.position].short
        if observation.failed:
            failure = self._failures[observation.position]
            done = f"tried {label}: failed ({failure.stage})"
        else:
            done = f"tried {label}: works"
        return done if belief is None else f"{done}; {belief_words(belief)}"

    def observation_json(self, observation: Attempts) -> dict[str, Json]:
        """Return the outcome of a step as the journal records it."""
        data: dict[str, Json] = {"worked": observation.worked, "failed": observation.failed}
        failure = self._failures.get(observation.position) if observation.failed else None
        if failure is not None:
            data |= {"stage": failure.stage, "message": failure.message, "log": failure.log}
        return data

    def _first_failure(self, position: int) -> Generator[Event, None, Failure | None]:
        subject = Subject(revision=self.revisions[position], variant=self._working.variant)
        ordinal = self._attempts.get(position, 0)
        self._attempts[position] = ordinal + 1
        for benchmark, point in self._working.benchmark_points:
            ready = yield from self._ledger.ready(Cell(subject=subject, benchmark=benchmark, point=point))
            if isinstance(ready, Failure):
                self._ledger.count_build(subject.revision, subject.variant, ready.seconds)
                return ready
            self._ledger.count_build(subject.revision, subject.variant, ready.prepared.built.seconds)
            outcome = yield from self._session.runner.outcome(ready, "sample", ordinal)
            self._ledger.count(outcome.key, outcome.seconds)
            self._invocation_seconds += outcome.seconds
            if isinstance(outcome, FailedInvocation):
                return outcome.failure
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRange:
    """Consecutive revisions that were tried and were unusable, with no usable revision known between them.

    `first` and `last` are the outermost that were tried; `tried` is their number. `before` and `after` are
    the nearest usable positions around them, or `None` at the end of the history. `stage` is that of the
    first.
    """

    first: int
    last: int
    tried: int
    before: int | None
    after: int | None
    stage: Stage


def find_broken_ranges(
    usable: Collection[int], failures: Mapping[int, Failure], changes: Sequence[Change]
) -> tuple[BrokenRange, ...]:
    """Return the ranges that touch or contain a change, or that reach an end without usable revisions.

    >>> from perftrail.model.build import Failure
    >>> failed = Failure(stage="build", message="")
    >>> [(each.first, each.last, each.before) for each in find_broken_ranges({0, 4}, {6: failed, 9: failed}, ())]
    [(6, 9, 4)]
    """
    return tuple(each for each in _every_broken_range(usable, failures) if _matters(each, changes))


def _every_broken_range(usable: Collection[int], failures: Mapping[int, Failure]) -> Iterator[BrokenRange]:
    run: list[int] = []
    before: int | None = None
    for position in sorted({*usable, *failures}):
        if position in failures:
            run.append(position)
            continue
        if run:
            yield _broken_range(run, failures, before=before, after=position)
        run, before = [], position
    if run:
        yield _broken_range(run, failures, before=before, after=None)


def _broken_range(
    run: Sequence[int], failures: Mapping[int, Failure], *, before: int | None, after: int | None
) -> BrokenRange:
    return BrokenRange(
        first=run[0],
        last=run[-1],
        tried=len(run),
        before=before,
        after=after,
        stage=failures[run[0]].stage,
    )


def _matters(broken_range: BrokenRange, changes: Sequence[Change]) -> bool:
    if broken_range.before is None or broken_range.after is None:
        return True
    return any(
        broken_range.first <= change.positions[-1] + 1 and broken_range.last >= change.positions[0] - 2
        for change in changes
        if change.positions
    )
