"""Many series over one history: one walk through it serves all, each series with a survey of its own.

A visit is to one position. Which one: first those that stand already, for they only need readings; else the
build that tells most over all series that are not settled. A series that would have one revision built takes
another in its stead that stands, or is about to be built for others, if that splits its candidates nearly as
well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

from perftrail.search.action import Measure, Settled
from perftrail.search.evidence import Block, Readings, Same, Unusable
from perftrail.search.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from perftrail.search.answer import Answer
    from perftrail.search.evidence import News
    from perftrail.search.question import Question
    from perftrail.search.snapshot import Belief

_SEARCHES = 0.5
"""A build that splits the candidates by so many bits is one of a search, and may be another one instead."""

_AS_GOOD = 0.6
"""The share of the bits that a position must tell to be taken instead of another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Build a position, where that has not been done, and take so many readings of each series named."""

    position: int
    readings: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllSettled:
    """Nothing more is to be measured for any series."""

    answers: Mapping[str, Answer]


class Matrix:
    """The surveys of many series, as one ask/tell object.

    `together` names series that the same invocations give (time and memory of one benchmark): a reading of
    one is a reading of all, so they are always asked for together and told together. A revision that could
    not be built is told as `Unusable` to every series; one that is unusable for one series (its benchmark
    crashes there) to that series only. Each question's budget is one for the whole walk: a build counts
    once, and readings taken together count once.
    """

    def __init__(
        self,
        questions: Mapping[str, Question],
        *,
        together: Collection[frozenset[str]] = (),
        thorough: bool = False,
    ) -> None:
        if len({question.revisions for question in questions.values()}) != 1:
            raise ValueError("a matrix needs one series or more, all over the same history")
        self._questions = dict(questions)
        self._surveys = {name: Survey(question, thorough=thorough) for name, question in questions.items()}
        self._groups = _groups(questions, together)
        self._group = {name: group for group in self._groups for name in group}
        self._stands: set[int] = set()
        self._attempted: dict[str, set[int]] = {name: set() for name in questions}
        self._seconds = 0.0
        self._next: Visit | AllSettled | None = None

    def tell(self, name: str, news: News) -> None:
        """Take news of a series in; `KeyError` for one not asked about, `ValueError` for a position outside."""
        self._surveys[name].tell(news)
        match news:
            case Readings() | Same():
                self._attempted[name].add(news.position)
                self._stands.add(news.position)
            case Unusable():
                self._attempted[name].add(news.position)
            case Block():
                pass
            case _:
                assert_never(news)
        self._next = None

    def spend(self, seconds: float) -> None:
        """Say what the whole walk has cost so far; from the budget of seconds on, no series asks for more."""
        self._seconds = seconds
        self._next = None

    def ask(self) -> Visit | AllSettled:
        """Say where to go next and what to read there; the same until something is told."""
        if self._next is None:
            self._next = self._decide()
        return self._next

    def belief(self, name: str) -> Belief | None:
        """What is believed now of a series, `None` before two revisions were measured for it."""
        return self._surveys[name].belief

    @property
    def builds(self) -> int:
        """How many revisions have been told of for any series, those that could not be used included."""
        return len(set().union(*self._attempted.values()))

    @property
    def invocations(self) -> int:
        """How many invocations the readings told have cost, those taken together counted once."""
        return sum(max(self._surveys[name].invocations for name in group) for group in self._groups)

    def _decide(self) -> Visit | AllSettled:
        self._share_budgets()
        actions = {name: survey.ask() for name, survey in self._surveys.items()}
        wanted = {name: action for name, action in actions.items() if isinstance(action, Measure)}
        if not wanted:
            return AllSettled(
                answers={
                    name: action.answer for name, action in actions.items() if isinstance(action, Settled)
                }
            )
        beliefs = {name: self._surveys[name].belief for name in wanted}
        places = sorted({action.position for action in wanted.values()} | self._stands)
        tells = {
            name: {place: self._tells(name, place, action, beliefs[name]) for place in places}
            for name, action in wanted.items()
        }
        rates = {
            place: sum(tells[name][place] for name in wanted) / self._cost(place, wanted.values())
            for place in places
        }
        best = max(places, key=lambda place: (rates[place], -place))
        readings: dict[str, int] = {}
        for name, action in wanted.items():
            if tells[name][best] > 0:
                for member in self._group[name]:
                    readings[member] = max(readings.get(member, 0), action.readings)
        return Visit(
            position=best, readings={name: readings[name] for name in self._questions if name in readings}
        )

    def _tells(self, name: str, place: int, action: Measure, belief: Belief | None) -> float:
        """Bits that readings of a place tell of a series; zero for a place not worth it for this series."""
        own = _split(belief, action.position)
        if place == action.position:
            return max(own, _SEARCHES)
        if own < _SEARCHES or place in self._attempted[name] or action.position in self._attempted[name]:
            return 0.0
        other = _split(belief, place)
        return other if other >= _AS_GOOD * own else 0.0

    def _cost(self, place: int, actions: Iterable[Measure]) -> float:
        costs = next(iter(self._questions.values())).costs
        readings = max(action.readings for action in actions)
        build = 0.0 if place in self._stands else costs.build
        return max(build + costs.reading * readings, 1e-9)

    def _share_budgets(self) -> None:
        """Leave to each survey what all the others have not spent."""
        for name, survey in self._surveys.items():
            budget = self._questions[name].budget
            over = budget.seconds is not None and self._seconds >= budget.seconds
            survey.allow(
                budget.without(
                    builds=self.builds - survey.builds,
                    invocations=self.invocations - survey.invocations,
                    seconds=self._seconds if over else 0.0,
                )
            )


def _groups(names: Iterable[str], together: Collection[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Return which series are read together: every name in one group, groups that share a name joined."""
    groups = [frozenset({name}) for name in names]
    for ties in together:
        touched = [group for group in groups if group & ties]
        groups = [group for group in groups if not group & ties]
        if touched:
            groups.append(frozenset().union(*touched))
    return tuple(groups)


def _split(belief: Belief | None, place: int) -> float:
    """Return the bits that knowing the side of a place would tell, the candidates of a gap taken as equal."""
    if belief is None:
        return 0.0
    positions = [position for position, _ in belief.at_or_before]
    shares = [share for _, share in belief.at_or_before]
    if not positions[0] < place < positions[-1] or shares[-1] <= 0:
        return 0.0
    share = float(np.interp(place, positions, shares)) / shares[-1]
    if not 0 < share < 1:
        return 0.0
    return -(share * math.log2(share) + (1 - share) * math.log2(1 - share))
