"""All changes of one series: the search for one step, and then for what that leaves unexplained.

The search for one step goes first. What has been measured is compared all the while with several steps, and
with a ramp (`picture`); once two steps or more explain it better, each is searched for between the segments
on its two sides. At the end, what lies beside a likely further step is read again. Nothing is built only to
look for more, unless the survey is thorough: then revisions all over the history are, so that a change that
is taken back again is seen too. Where a machine's level that wanders explains the readings better than several
steps do, there is the search for one step alone, which follows it. And before more than one change is told,
each has to show where the builds on its two sides are read in turns: else the machine may have changed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import purse
from perftrail.search.action import Action, Measure, Settled
from perftrail.search.answer import Answer
from perftrail.search.evidence import Evidence, Readings, Same
from perftrail.search.picture import MOST_READINGS
from perftrail.search.picture import picture as take_picture
from perftrail.search.search import Search
from perftrail.search.strays import strays
from perftrail.search.stretch import Stretch
from perftrail.search.together import accounted, as_ramp, together
from perftrail.search.turns import MOST_TURNS, SHOWN, beside, turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from perftrail.search.evidence import News
    from perftrail.search.picture import Contrast, Picture
    from perftrail.search.question import Budget, Question
    from perftrail.search.snapshot import Belief

FURTHER = 0.1
"""What lies beside a further step is read again when it is there with this probability."""

THOROUGHLY = 0.005
"""The same for a thorough survey: two readings of a short stretch might as well be outliers."""

LONG = 60
"""A search that has taken so many invocations is asked whether it looks for a step in what is a ramp."""

SPREAD = 24
"""A thorough survey leaves no more than this part of the history without a measured revision."""

_LEAST_BUILDS = 3
_PARTS = (0.5, 0.375, 0.625, 0.25, 0.75)
_LOOK = 2
_UNTOLD = (
    "what looked like a further change does not show where its two sides are read in turns: it is not told"
)


class Survey:
    """A search for all revisions that changed a metric, with the face of `Search`.

    Tell it anything that is known, asked for or not, then ask; do what it asks and tell it; until `Settled`.
    The answer's changes are in the order of the history; its verdict is `several` when there is more than
    one, and `range` when the only one is a ramp. `thorough` looks also for changes that are taken back again,
    which the ends of the history do not show.
    """

    def __init__(self, question: Question, *, thorough: bool = False) -> None:
        self.question = question
        self._thorough = thorough
        self._news: list[News] = []
        self._order: dict[int, int] = {}
        self._evidence = Evidence(question)
        self._whole = Search(question)
        self._cumulative = _cumulative_prior(question)
        self._stretches: dict[tuple[int, int], Stretch] = {}
        self._at: Stretch | None = None
        self._next: Action | None = None

    def tell(self, news: News) -> None:
        """Take news in, asked for or not; raise `ValueError` for a position outside the history."""
        self._whole.tell(news)
        self._evidence.add(news)
        self._news.append(news)
        if isinstance(news, Same):
            self._order.setdefault(news.like, len(self._order))
        if isinstance(news, Readings | Same):
            self._order.setdefault(news.position, len(self._order))
        self._next = None

    def ask(self) -> Action:
        """Say what to measure next, or that the survey is settled; the same until something is told."""
        if self._next is None:
            self._next = self._decide()
        return self._next

    def batch(self, count: int) -> tuple[Measure, ...]:
        """Say what `count` idle workers may do at the same time, as `Search.batch` does; none once settled.

        While several changes are told apart, or their sides read in turns, that is one thing.
        """
        action = self.ask()
        if not isinstance(action, Measure):
            return ()
        several = self._whole.batch(count) if self._at is None else ()
        return several if action.position in {each.position for each in several} else (action,)

    def allow(self, budget: Budget) -> None:
        """Replace the question's budget, for a survey that shares it with others."""
        if budget != self.question.budget:
            self.question = replace(self.question, budget=budget)
            self._whole.question = self.question
            self._next = None

    @property
    def belief(self) -> Belief | None:
        """What is believed now of the change that is being searched for; `None` before two were measured."""
        self.ask()
        return self._whole.belief if self._at is None else self._at.belief

    @property
    def builds(self) -> int:
        """How many revisions have been told of, those that could not be used included."""
        return self._evidence.builds

    @property
    def invocations(self) -> int:
        """How many invocations the readings told have cost."""
        return self._evidence.invocations

    @property
    def seconds(self) -> float:
        """How long building and reading took, by what was told."""
        return self._evidence.seconds

    def _decide(self) -> Action:
        self._at = None
        picture = self._picture()
        if picture is None:
            action = self._whole.ask()
            spread = self._spread() if self._thorough and isinstance(action, Settled) else None
            return spread or action
        answers: list[Answer] = []
        steps = picture.steps
        for run in picture.runs() if steps.count > 1 else (range(steps.count),):
            explained = self._explain(picture, run)
            if isinstance(explained, Measure):
                return explained
            answers += explained
        enough = THOROUGHLY if self._thorough else FURTHER
        look = self._look_further(picture) if steps.more > enough else None
        if look is None and self._thorough:
            look = self._spread()
        if look is not None:
            return look
        answer = together(answers)
        doubt = self._in_turns(answer, math.sqrt(picture.variance[0]))
        if doubt is not None:
            return doubt
        return Settled(answer=replace(answer, strays=strays(self.question, self._evidence, answer.changes)))

    def _in_turns(self, answer: Answer, sigma: float) -> Action | None:
        """Read the sides of each of several changes in turns; `None` once all of them show, or none is to be had.

        Where one does not, the search for one step goes on, which follows what the machine does.
        """
        sequence = self._evidence.sequence
        for change in answer.changes if len(answer.changes) > 1 else ():
            sides = beside(self._evidence, change.positions)
            if change.effect is None or sides is None:
                continue
            taken = turns(sequence, *sides)
            odds = taken.log_odds(math.log(change.effect.value), sigma)
            if abs(odds) < SHOWN and len(taken.differences) < MOST_TURNS:
                look = self._afford(taken.following, readings=1)
                if look is not None:
                    return look
            if odds < 0:
                action = self._whole.ask()
                if isinstance(action, Settled):
                    return Settled(answer=replace(action.answer, reason=f"{action.answer.reason}; {_UNTOLD}"))
                return action
        return None

    def _picture(self) -> Picture | None:
        """Return what has been measured as steps; `None` where there is too little, or drift explains more."""
        evidence = self._evidence
        if len(evidence.positions) < _LEAST_BUILDS or not evidence.is_linked(evidence.block):
            return None
        posterior = self._whole.posterior
        picture = take_picture(self.question, evidence, posterior, self._cumulative)
        # Drift was weighed against one step without it; several steps take their share of that.
        one = float(picture.steps.counts[:2].sum())
        odds = one * posterior.drift / max(1 - posterior.drift, 1e-12)
        return picture if odds < 1 else None

    def _explain(self, picture: Picture, run: range) -> Measure | list[Answer]:
        """Explain some steps in one direction: each by a search of its own, or all by a ramp."""
        sure = self.question.confidence
        ramp = None
        if len(run) > 2 or self._evidence.invocations >= LONG * max(1, picture.steps.count):
            ramp = self._as_ramp(picture, run)
        found: list[Answer] = []
        if ramp is None or ramp.probability < 0.5:
            for action in self._searches(picture, run):
                if isinstance(action, Measure):
                    return action
                found.append(action.answer)
            if not any(answer.changes for answer in found):
                return found
            ramp = ramp or self._as_ramp(picture, run)
        if ramp is None or ramp.probability <= 1 - sure:
            return found
        place = ramp.contrast(self._evidence) if ramp.probability < sure else None
        look = None if place is None else self._afford(place)
        if look is not None:
            return look
        return [as_ramp(ramp)] if ramp.probability >= 0.5 else found

    def _as_ramp(self, picture: Picture, run: range) -> Contrast | None:
        """Compare a ramp with some steps, among the builds around them."""
        part = picture if picture.steps.count < 2 else picture.around(self.question, run)
        return part.as_ramp(self.question)

    def _searches(self, picture: Picture, run: range) -> Iterator[Action]:
        """Ask the search for each of some steps what it wants, or what it found."""
        steps = picture.steps
        if steps.count < 2:
            yield self._whole.ask()
            return
        for number in run:
            low, high = self._first_of(picture, number), self._first_of(picture, number + 1)
            action = self._within(low, high)
            if isinstance(action, Settled):
                action = Settled(answer=accounted(action.answer, low, high, steps))
            yield action

    def _first_of(self, picture: Picture, segment: int) -> int:
        """Return the build of a segment that was read first: as the survey goes on it stays the same one."""
        members: list[int] = picture.positions[picture.steps.surely(segment)].tolist()
        return min(members, key=self._order.__getitem__)

    def _within(self, low: int, high: int) -> Action:
        """Ask the search between two positions."""
        if (low, high) not in self._stretches:
            self._stretches[low, high] = Stretch(self.question, low, high, no_change=self.question.no_change)
        self._at = self._stretches[low, high]
        self._at.catch_up(self._news)
        return self._at.ask(
            self.question.budget,
            builds=self._evidence.builds,
            invocations=self._evidence.invocations,
            seconds=self._evidence.seconds,
        )

    def _look_further(self, picture: Picture) -> Measure | None:
        """Read again what lies beside the gap where a further step most likely is."""
        gap = int(np.argmax(picture.steps.further))
        sides = picture.positions[gap : gap + 2].tolist()
        usable = [position for position in sides if position not in self._evidence.unusable]
        least = min(usable, key=self._evidence.count, default=None)
        if least is None or self._evidence.count(least) >= MOST_READINGS:
            return None
        return self._afford(least)

    def _spread(self) -> Measure | None:
        """Build near the middle of the longest stretch without a measured revision, while it is too long."""
        positions = self._evidence.positions
        apart = np.diff(positions)
        for gap in np.argsort(-apart, kind="stable").tolist():
            low, high = positions[gap], positions[gap + 1]
            if high - low <= max(1, self.question.revisions // SPREAD):
                break
            places = [low + round((high - low) * part) for part in _PARTS]
            inside = (p for p in places if low < p < high and not self._evidence.is_attempted(p))
            fresh = next(inside, None)
            if fresh is not None:
                return self._afford(fresh)
        return None

    def _afford(self, position: int, readings: int = _LOOK) -> Measure | None:
        """Take a few readings of a position if the budget allows it, as many of them as it allows."""
        fresh = not self._evidence.is_attempted(position)
        if purse.refusal(self.question, self._evidence, fresh=fresh) is not None:
            return None
        return Measure(position=position, readings=purse.affordable(self.question, self._evidence, readings))


def _cumulative_prior(question: Question) -> npt.NDArray[np.float64]:
    weights = np.ones(question.revisions) if question.prior is None else np.array(question.prior, dtype=float)
    weights[0] = 0.0
    total: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return total
