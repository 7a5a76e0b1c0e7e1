"""Search for the revision where a program began to fail, and report ranges of unusable revisions.

`RevisionTester` tests revisions for the search. `find_broken_ranges` returns ranges of a history that appear broken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from perftrail.find import step_record
from perftrail.model.build import Failure
from perftrail.model.measurement import FailedInvocation, Runnable
from perftrail.model.plan import Cell
from perftrail.model.subject import Subject
from perftrail.search import Batch, Built, Sample, Settled
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
    from perftrail.search import Answer, Belief, Budget, Search
    from perftrail.search.answer import Change, Measure


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
        self._failures: dict[int, list[Failure]] = {}
        self._invocation_seconds = 0.0
        self._observation: dict[str, Json] = {}

    @property
    def failures(self) -> Mapping[int, Failure]:
        """The last failure of each revision that ever failed, in ascending order."""
        return {position: each[-1] for position, each in sorted(self._failures.items())}

    def failures_of(self, answer: Answer) -> Mapping[int, Failure]:
        """Return the failure of each revision that failed, at a culprit the one whose rate changed there."""
        reasons = {change.positions[-1]: self._changed(change.positions[-1]) for change in answer.changes}
        return {**self.failures, **{at: why for at, why in reasons.items() if why is not None}}

    def _changed(self, culprit: int) -> Failure | None:
        """Return the culprit's failure whose rate rose the most at it; `None` if it did not fail."""
        rates: dict[str, float] = {}
        for sign, side in ((1.0, self._side(culprit, after=True)), (-1.0, self._side(culprit, after=False))):
            runs = sum(self._attempts[position] for position in side)
            for position in side:
                for failure in self._failures.get(position, ()):
                    rates[_reason(failure)] = rates.get(_reason(failure), 0.0) + sign / runs
        found = self._failures.get(culprit, [])
        return max(reversed(found), key=lambda failure: rates[_reason(failure)], default=None)

    def _side(self, culprit: int, *, after: bool) -> list[int]:
        return [position for position in self._attempts if (position >= culprit) == after]

    def tell_stored(self, search: Search, *, before: str) -> None:
        """Tell the outcomes of each revision that the store has from before a time; new attempts follow them.

        Use the time when the search first began: a resumed search then repeats its steps. Builds and starts nothing.
        They guide the search and are no evidence: no round ran them in random order.
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
                self._failures[position] = failed
            samples = (Sample(position=position, value=float(failure is None)) for failure in failures)
            search.tell(Built(position=position))
            search.tell(Batch(samples=tuple(samples), stored=True))

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

    def search(self, search: Search, journal: Journal, budget: Budget) -> Generator[Event, None, Answer]:
        """Test revisions until the search is settled; `budget` limits new steps."""
        while not isinstance(action := self._ask(search, journal, budget), Settled):
            names = self._names(action)
            journal.accepts(names, 0)
            yield from self._tell(search, action)
            position = action.positions[-1]
            belief = search.belief
            yield journal.step(
                action={"measure": self.revisions[position].id, "position": position, "order": list(names)},
                observation=self._observation,
                belief=step_record.belief_json(belief, self.revisions),
                words=self._words(action, belief),
            )
        return action.answer

    def _ask(self, search: Search, journal: Journal, budget: Budget) -> Measure | Settled:
        """Ask for the next step, with the budget that applies to it."""
        for each in journal.budgets(budget):
            search.allow(each)
            action = search.ask()
            if isinstance(action, Settled) or journal.is_recorded(self._names(action), 0):
                break
        return action

    def _names(self, measure: Measure) -> list[str]:
        return [self.revisions[position].id for position in measure.order]

    def _tell(self, search: Search, measure: Measure) -> Generator[Event, None, None]:
        """Test the revisions of a request in its order, and report which worked."""
        samples, spent, failed = [], 0.0, None
        for position in measure.order:
            yield from self._ledger.build_ahead(position, self.revisions, variant=self._working.variant)
            first = position not in self._attempts
            began, self._invocation_seconds = self._ledger.seconds, 0.0
            failure = yield from self._first_failure(position)
            if failure is not None:
                self._failures.setdefault(position, []).append(failure)
                failed = failure
            if first:
                building = max(self._ledger.seconds - began - self._invocation_seconds, 0.0)
                search.tell(Built(position=position, seconds=building))
            samples.append(Sample(position=position, value=float(failure is None)))
            spent += self._invocation_seconds
        search.tell(Batch(samples=tuple(samples), seconds=spent, certificate=measure.certificate))
        worked = sum(sample.value == 1.0 for sample in samples)
        self._observation = {"worked": worked, "failed": len(samples) - worked}
        if failed is not None:
            self._observation |= {"stage": failed.stage, "message": failed.message, "log": failed.log}

    def _words(self, measure: Measure, belief: Belief | None) -> str:
        """Return the description of a step."""
        labels = [self.revisions[position].short for position in measure.positions]
        if len(measure.order) == 1:
            stage = self._observation.get("stage")
            done = f"tried {labels[0]}: " + (f"failed ({stage})" if stage else "works")
        else:
            worked, tried = self._observation["worked"], len(measure.order)
            done = f"round: tried {' and '.join(labels)} in random order: {worked} of {tried} worked"
        return done if belief is None else f"{done}; {belief_words(belief)}"

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


def _reason(failure: Failure) -> str:
    """Return what is the same in failures for one reason: stage, end, and the message without numbers."""
    end, _, message = failure.message.partition(":")
    return f"{failure.stage} {end} {re.sub('[0-9]+', '#', message)}"


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
