"""`find`: the search asks, workshop and bench answer, the store remembers each step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer
from perftrail.model.build import content_key
from perftrail.model.trail import SearchRecord
from perftrail.model.working import Working
from perftrail.search.survey import Survey
from perftrail.search.works import Works
from perftrail.workflows.clock import now
from perftrail.workflows.events import HistoryRead, Skipped
from perftrail.workflows.finding.blocks import InBlocks, elsewhere
from perftrail.workflows.finding.broken import stretches
from perftrail.workflows.finding.failing import Trials
from perftrail.workflows.finding.gaps import gaps
from perftrail.workflows.finding.inside import InsideMerges
from perftrail.workflows.finding.journal import Journal, Ledger
from perftrail.workflows.finding.probe import Probe
from perftrail.workflows.finding.pursuit import pursue
from perftrail.workflows.finding.rounds import Rounds
from perftrail.workflows.finding.suspects import Beforehand, weigh, with_measured, with_notes
from perftrail.workflows.finding.walk import Walk
from perftrail.workflows.finding.witnesses import witnesses
from perftrail.workflows.found import FindAnswer, FindTable, UnusableRevision
from perftrail.workflows.warm import warm_prior

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from perftrail.model.build import Failure
    from perftrail.model.subject import Revision
    from perftrail.model.target import Target
    from perftrail.search.answer import Answer
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.request import FindRequest
    from perftrail.workflows.session import Session


MOST_COMPARED = 20_000
"""A history that is longer is not compared file by file for the sizes of its changes: that takes minutes."""


class Find:
    """One search through a history. Resumes by itself: what the store holds is told, not done again."""

    def __init__(self, session: Session, request: FindRequest) -> None:
        self._session = session
        self._request = request
        self._ledger = Ledger(session)
        self._revisions: tuple[Revision, ...] = ()
        self._beforehand = Beforehand(weights=None, said=())
        self._begun = ""
        self._elsewhere: tuple[str, ...] = ()

    def events(self) -> Generator[Event, None, FindAnswer | FindTable]:
        """Search; yields what happens and returns the answer, or a table of them where there are several."""
        self._revisions = self._session.source.history(self._request.range)
        yield HistoryRead(revisions=self._revisions)
        if len(self._revisions) < 2:
            raise NoAnswer(
                "the range has one revision, so there is no change to be found; widen source.range"
            )
        yield from (Skipped(left_out=each) for each in self._session.workshop.left_out(self._revisions))
        self._beforehand = self._weigh()
        record = self._record()
        self._begun = self._first_begun(record)
        goal = self._request.goal
        journal = Journal(self._session, record, self._ledger, in_blocks=not isinstance(goal, Working))
        self._elsewhere = elsewhere(self._session.store, self._session.machine, record)
        result: FindAnswer | FindTable
        if isinstance(goal, Working):
            result = yield from self._failing(goal, journal)
        elif len(goal) == 1:
            result = yield from self._one(goal[0], journal)
        else:
            result = yield from self._several(goal, journal)
        yield from self._session.workshop.confirm(witnesses(result, self._ledger.attempted))
        result = replace(result, pins=self._session.pins)
        journal.end(result.as_json())
        return result

    def _one(self, target: Target, journal: Journal) -> Generator[Event, None, FindAnswer]:
        known = self._known_beforehand(target)
        question = self._request.question(
            len(self._revisions), points=len(target.points), prior=known.weights
        )
        probe = Probe(self._session, target, self._revisions, self._ledger)
        survey = Survey(question, thorough=self._request.thorough)
        if self._session.at_once > 1:
            answer = yield from Rounds(self._session, survey, probe, journal, self._ledger).events()
        else:
            answer = yield from pursue(InBlocks(survey, probe, journal), probe, journal)
        return (yield from self._told(answer, probe, known, journal))

    def _several(self, targets: tuple[Target, ...], journal: Journal) -> Generator[Event, None, FindTable]:
        probes = [Probe(self._session, target, self._revisions, self._ledger) for target in targets]
        known = [self._known_beforehand(target) for target in targets]
        walk = Walk(self._request, probes, [each.weights for each in known])
        found = yield from walk.events(journal)
        answers: list[FindAnswer] = []
        for probe, answer, its in zip(probes, found, known, strict=True):
            answers.append((yield from self._told(answer, probe, its, journal)))
        return FindTable(
            answers=tuple(answers),
            revisions=self._revisions,
            builds=len(self._ledger.attempted),
            invocations=len(self._ledger.invocations),
            seconds=self._ledger.seconds,
            machine=self._session.machine.id,
        )

    def _told(
        self, answer: Answer, probe: Probe, known: Beforehand, journal: Journal
    ) -> Generator[Event, None, FindAnswer]:
        """Put an answer about a figure with its revisions, after a look inside the merges it names."""
        merges = InsideMerges(self._session, self._request, probe, ledger=self._ledger, journal=journal)
        inside = yield from merges.each(answer)
        return FindAnswer(
            answer=answer,
            target=probe.target,
            revisions=self._revisions,
            builds=len(self._ledger.attempted),
            unusable=self._unusable(probe.failures),
            invocations=len(self._ledger.invocations),
            seconds=self._ledger.seconds,
            machine=self._session.machine.id,
            inside=inside,
            broke=stretches(probe.usable, probe.failures, answer.changes),
            priors=known.said,
            set_aside=probe.set_aside,
            marked=probe.marked,
            with_notes="notes" in self._request.priors,
            boots=journal.boots,
            elsewhere=self._elsewhere,
        )

    def _failing(self, working: Working, journal: Journal) -> Generator[Event, None, FindAnswer]:
        wanted = self._session.workshop.wanted(self._revisions)
        if not wanted:
            raise NoAnswer("source.skip leaves out every revision of the range; none can be tried")
        line = gaps(self._revisions, wanted)
        prior = line.weights(self._beforehand.weights)
        question = self._request.question(len(wanted), points=len(working.places), prior=prior)
        trials = Trials(self._session, working, wanted, self._ledger)
        answer = yield from pursue(Works(question), trials, journal)
        return FindAnswer(
            answer=line.answer(answer),
            target=working,
            revisions=self._revisions,
            builds=len(self._ledger.attempted),
            unusable=self._unusable({line.places[at]: why for at, why in trials.failures.items()}),
            invocations=len(self._ledger.invocations),
            seconds=self._ledger.seconds,
            machine=self._session.machine.id,
            inside={},
            priors=self._beforehand.said,
            with_notes="notes" in self._request.priors,
        )

    def _unusable(self, failures: Mapping[int, Failure]) -> tuple[UnusableRevision, ...]:
        return tuple(
            UnusableRevision(revision=self._revisions[position], failure=failure)
            for position, failure in failures.items()
        )

    def _weigh(self) -> Beforehand:
        request = self._request
        small = len(self._revisions) <= MOST_COMPARED
        wanted = [
            prior
            for prior in request.priors
            if (prior == "size" and small) or (prior == "suspect" and request.suspect)
        ]
        known = Beforehand(weights=None, said=())
        if len(self._revisions) < 2:
            return known
        if wanted:
            touched = self._session.source.touched(self._revisions)
            known = weigh(touched, priors=wanted, suspect=request.suspect)
        return with_notes(known, self._revisions) if "notes" in request.priors else known

    def _known_beforehand(self, target: Target) -> Beforehand:
        """Give what is believed of the revisions as culprits of one figure's change."""
        if "measured" not in self._request.priors or len(self._revisions) < 2:
            return self._beforehand
        warm = warm_prior(self._session, target, self._revisions, before=self._begun)
        return with_measured(self._beforehand, warm)

    def _first_begun(self, record: SearchRecord) -> str:
        """Give when this search was begun, at first where it is resumed: its own samples are no prior of it."""
        begun = [
            each.started
            for each in self._session.store.searches()
            if (each.key, each.machine) == (record.key, record.machine)
        ]
        return begun[0] if begun else record.started

    def _record(self) -> SearchRecord:
        request, goal = self._request, self._request.goal
        ids = [revision.id for revision in self._revisions]
        targets: tuple[Target | Working, ...] = (goal,) if isinstance(goal, Working) else goal
        named = [[target.name, target.variant] for target in targets]
        # nothing where there is one source, so that searches begun before are still found
        held = [pins] if (pins := self._session.pins.as_json()) else []
        return SearchRecord(
            key=content_key(ids, named, request.smallest, request.confidence, request.thorough, *held),
            machine=self._session.machine.id,
            started=now(),
            question={
                "metric": ", ".join(target.text for target in targets),
                "variant": ", ".join(dict.fromkeys(target.variant for target in targets)),
                "benchmark": ", ".join(dict.fromkeys(target.benchmark for target in targets)),
                "revisions": len(ids),
                "first": ids[0],
                "last": ids[-1],
                "smallest": request.smallest,
                "confidence": request.confidence,
                "thorough": request.thorough,
                **self._session.pins.as_json(),
                "priors": list(self._beforehand.said),
            },
        )
