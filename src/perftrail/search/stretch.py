"""A search for one step in a stretch of a history, told what is known of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from perftrail.search.action import Action, Measure, Settled
from perftrail.search.answer import Answer, Change
from perftrail.search.evidence import Block, Readings, Same, Unusable
from perftrail.search.search import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.search.evidence import News
    from perftrail.search.question import Budget, Question
    from perftrail.search.snapshot import Belief


class Stretch:
    """The search among the positions `low` to `high`, both included; all positions are those of the whole.

    It is told all news, and passes on what lies inside. `no_change` is the prior probability that nothing
    changed inside.
    """

    def __init__(self, question: Question, low: int, high: int, *, no_change: float) -> None:
        self.low = low
        self.high = high
        prior = None if question.prior is None else question.prior[low : high + 1]
        if prior is not None and not sum(prior[1:]) > 0:
            prior = None
        whole = high - low + 1 == question.revisions
        self._search = Search(
            replace(
                question,
                revisions=high - low + 1,
                prior=prior,
                no_change=no_change,
                # The ends of a part are known to differ from what was told: they need no first look of their own.
                readings_at_ends=question.readings_at_ends if whole else 2,
            )
        )
        self._told = 0
        self._seconds = 0.0

    def catch_up(self, news: Sequence[News]) -> None:
        """Tell what has come since; `news` is everything from the beginning."""
        for item in news[self._told :]:
            inside = self._inside(item)
            if inside is not None:
                self._search.tell(inside)
                self._seconds += _seconds(inside)
        self._told = len(news)

    def ask(self, budget: Budget, *, builds: int, invocations: int, seconds: float) -> Action:
        """Say what to measure next; `budget` and what has been spent are those of the whole history."""
        question, search = self._search.question, self._search
        left = budget.without(
            builds=builds - search.builds,
            invocations=invocations - search.invocations,
            seconds=seconds - self._seconds,
        )
        search.question = replace(question, budget=left)
        action = search.ask()
        match action:
            case Measure():
                return replace(action, position=action.position + self.low)
            case Settled():
                return Settled(answer=self._outward(action.answer))
            case _:
                assert_never(action)

    @property
    def belief(self) -> Belief | None:
        """What the search believes now, `None` before two revisions were measured."""
        belief = self._search.belief
        if belief is None:
            return None
        low = self.low
        return replace(
            belief,
            at_or_before=tuple((position + low, share) for position, share in belief.at_or_before),
            heaviest=(belief.heaviest[0] + low, belief.heaviest[1] + low),
        )

    def _inside(self, news: News) -> News | None:
        """Return news as the search knows positions, `None` for what lies outside."""
        match news:
            case Readings() | Unusable():
                inside = self.low <= news.position <= self.high
                return replace(news, position=news.position - self.low) if inside else None
            case Same():
                # Of equal artefacts on both sides of an end the one inside keeps only its own readings.
                inside = (
                    self.low <= min(news.position, news.like) <= max(news.position, news.like) <= self.high
                )
                if not inside:
                    return None
                return replace(news, position=news.position - self.low, like=news.like - self.low)
            case Block():
                return news
            case _:
                assert_never(news)

    def _outward(self, answer: Answer) -> Answer:
        return replace(answer, changes=tuple(self._moved(change) for change in answer.changes))

    def _moved(self, change: Change) -> Change:
        return replace(change, positions=tuple(position + self.low for position in change.positions))


def _seconds(news: News) -> float:
    match news:
        case Readings():
            return news.seconds + (news.build_seconds or 0.0)
        case Unusable() | Same():
            return news.seconds
        case Block():
            return 0.0
        case _:
            assert_never(news)
