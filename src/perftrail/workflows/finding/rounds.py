"""A search with several things done at once: each round, what tells most if it is built beside each other.

All of a round is built on all machines, then the one that measures reads it, and everything is told in the order
in which it was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.search.action import Settled
from perftrail.workflows import put

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from perftrail.search.action import Measure
    from perftrail.search.answer import Answer
    from perftrail.search.survey import Survey
    from perftrail.workflows.events import Event
    from perftrail.workflows.finding.journal import Journal, Ledger
    from perftrail.workflows.finding.probe import Probe
    from perftrail.workflows.session import Session


class Rounds:
    """The loop of a search for one figure where several things are done at once; resumes as `pursue` does."""

    def __init__(
        self, session: Session, survey: Survey, probe: Probe, journal: Journal, ledger: Ledger
    ) -> None:
        self._session = session
        self._survey = survey
        self._probe = probe
        self._journal = journal
        self._ledger = ledger

    def events(self) -> Generator[Event, None, Answer]:
        """Go on until the search is settled; yields what happens and gives the answer."""
        while not isinstance(action := self._survey.ask(), Settled):
            measures = self._survey.batch(self._session.at_once)
            yield from self._begin(measures)
            for measure in measures:
                yield from self._take(measure)
            self._session.bench.take_back()
        return action.answer

    def _begin(self, measures: Sequence[Measure]) -> Generator[Event, None, None]:
        """Build everything that a round reads, and have it read one after the other."""
        revisions = [self._probe.revisions[measure.position] for measure in measures]
        yield from self._ledger.together(revisions, variant=self._probe.target.variant)
        for measure in measures:
            yield from self._probe.hand_out(measure.position, measure.readings)

    def _take(self, measure: Measure) -> Generator[Event, None, None]:
        """Take what came of one part of a round, tell it, and write the step down."""
        revision = self._probe.revisions[measure.position].id
        self._move()
        if not self._journal.agrees(revision, measure.readings):
            self._move()
        news = yield from self._probe.take(measure.position, measure.readings)
        self._survey.tell(news)
        held = self._survey.belief
        yield self._journal.step(
            action={"measure": revision, "position": measure.position, "readings": measure.readings},
            news=self._probe.plain(news),
            belief=put.belief(held, self._probe.revisions),
            words=self._probe.words(news, held),
        )

    def _move(self) -> None:
        """Tell the search of a new block where the next step is in another boot of the machine."""
        block = self._probe.move(self._journal.boot)
        if block is not None:
            self._survey.tell(block)
