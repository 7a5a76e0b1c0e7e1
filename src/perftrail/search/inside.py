"""Inside a merge: where its change came from, and which revision of the branch made it.

A branch with the merge's first parent before it and the merge after it is a line: the change lies between
two neighbours on it. Between the last revision of the branch and the merge: neither side has it alone, only
their combination. Between the first parent and the point where the branch left the trunk: the trunk moved
since, and the branch did not. Nowhere: the first parent has the new level already. Else a revision of the
branch made it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from perftrail.search import purse
from perftrail.search.action import Action, Measure, Settled
from perftrail.search.answer import Answer, Verdict
from perftrail.search.evidence import Block, Evidence, Readings, Same, Unusable
from perftrail.search.survey import Survey

if TYPE_CHECKING:
    from perftrail.search.evidence import News
    from perftrail.search.question import Question
    from perftrail.search.snapshot import Belief

_COMBINED = 0.1
"""How likely only the combination makes the change, beforehand."""

_MOVED = 0.05
"""How likely the trunk's level moved since the branch left it, beforehand."""

_LOOK = 2


class Origin(StrEnum):
    """Where a merge's change came from."""

    BRANCH = "branch"
    """A revision of a branch made it."""
    TRUNK = "trunk"
    """The first parent has the new level already: the trunk made it, before the merge."""
    COMBINATION = "combination"
    """No parent has it alone, or the merge undid what the trunk had done since the branch left it."""
    UNCLEAR = "unclear"
    """It cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where the change came from: which branch (from 0) if it was one, and why in plain words."""

    origin: Origin
    branch: int | None
    reason: str


class Inside:
    """The search inside one merge, with the face of `Survey`.

    `branches` holds for each parent but the first how many revisions it brings, at least one. The positions:

    - 0 is the first parent;
    - for each branch in turn, one for the revision where it left the trunk (the merge base), then its own
      revisions, oldest first, the last of them the parent itself;
    - the last is the merge.

    So ``question.revisions == 2 + sum(branches) + len(branches)``; a prior weighs these positions. Tell what
    is known first: the readings of the merge, of the first parent, and of merge bases that the walk along
    the trunk has measured. Where there is no merge base, or it is not to be built, tell it as `Unusable`.
    The settled answer's changes are in these positions, and `found` says where the change came from.
    """

    def __init__(self, question: Question, *, branches: tuple[int, ...]) -> None:
        if not branches or min(branches) < 1:
            raise ValueError(f"branches = {branches!r}: a merge brings one revision or more from each branch")
        if question.revisions != 2 + sum(branches) + len(branches):
            raise ValueError(
                f"question.revisions = {question.revisions}: branches {branches!r} have "
                f"{2 + sum(branches) + len(branches)} positions, merge bases and both ends included"
            )
        self.question = question
        self._evidence = Evidence(question)
        self._lines: list[_Line] = []
        start = 1
        for length in branches:
            self._lines.append(_Line(question, start, start + length))
            start += length + 1

    def tell(self, news: News) -> None:
        """Take news in, asked for or not; raise `ValueError` for a position outside."""
        self._evidence.add(news)
        for line in self._lines:
            line.tell(news)

    def ask(self) -> Action:
        """Say what to measure next, or that the search is settled; the same until something is told."""
        action = self._settle()
        return Settled(answer=action.answer) if isinstance(action, _Settled) else action

    @property
    def found(self) -> Found | None:
        """Where the change came from, once the search is settled; `None` before."""
        action = self._settle()
        return action.found if isinstance(action, _Settled) else None

    @property
    def belief(self) -> Belief | None:
        """What is believed now of the branch that most likely carries the change, in positions of its line."""
        return max(self._lines, key=_Line.carries).survey.belief

    @property
    def builds(self) -> int:
        """How many revisions have been told of, those that could not be used included."""
        return self._evidence.builds

    @property
    def invocations(self) -> int:
        """How many invocations the readings told have cost."""
        return self._evidence.invocations

    def _settle(self) -> Measure | _Settled:
        ends = (0, self.question.revisions - 1)
        if all(self._evidence.is_attempted(end) for end in ends):
            for line in self._lines:
                if not self._evidence.is_attempted(line.tip) and self._affordable():
                    return Measure(position=line.tip, readings=_LOOK)
        settled: list[_Settled] = []
        for line in sorted(self._lines, key=_Line.carries, reverse=True):
            action = line.ask(self._evidence)
            if isinstance(action, Measure):
                return action
            found = self._judge(action.answer, line)
            if found.origin is Origin.BRANCH:
                return _Settled(answer=action.answer, found=found)
            settled.append(_Settled(answer=action.answer, found=found))
        unclear = [one for one in settled if one.found.origin is Origin.UNCLEAR]
        return (unclear or settled)[0]

    def _affordable(self) -> bool:
        allowed = purse.refusal(self.question, self._evidence, fresh=True) is None
        return allowed and purse.affordable(self.question, self._evidence, _LOOK) == _LOOK

    def _judge(self, answer: Answer, line: _Line) -> Found:
        merge = self.question.revisions - 1
        places = {position for change in answer.changes for position in change.positions}
        if answer.verdict is Verdict.NONE or _cancel(answer, self.question):
            return Found(
                origin=Origin.TRUNK, branch=None, reason="the first parent has the level of the merge already"
            )
        if places and places <= set(range(line.base + 1, line.tip + 1)):
            return Found(
                origin=Origin.BRANCH,
                branch=self._lines.index(line),
                reason="the branch has the new level before it is merged, and the old one where it leaves the trunk",
            )
        if places == {merge}:
            return Found(
                origin=Origin.COMBINATION,
                branch=None,
                reason="neither the first parent nor the branch has the new level: only their combination",
            )
        if places == {line.base}:
            return Found(
                origin=Origin.COMBINATION,
                branch=None,
                reason="the trunk's level moved since the branch left it, and the merge has the one from before",
            )
        if not places:
            return Found(origin=Origin.UNCLEAR, branch=None, reason=answer.reason)
        return Found(
            origin=Origin.UNCLEAR,
            branch=None,
            reason="the revisions that would tell the branch from the merge could not be told apart",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    answer: Answer
    found: Found


class _Line:
    """One branch, from the first parent by its merge base to the merge; all positions are those of `Inside`."""

    def __init__(self, question: Question, base: int, tip: int) -> None:
        self.base = base
        self.tip = tip
        self._places = (0, *range(base, tip + 1), question.revisions - 1)
        self._number = {place: number for number, place in enumerate(self._places)}
        self._budget = question.budget
        prior = question.prior
        prior = _prior(tip - base) if prior is None else tuple(prior[place] for place in self._places)
        self.survey = Survey(replace(question, revisions=len(self._places), prior=prior))

    def tell(self, news: News) -> None:
        match news:
            case Readings() | Unusable():
                if news.position in self._number:
                    self.survey.tell(replace(news, position=self._number[news.position]))
            case Same():
                if {news.position, news.like} <= self._number.keys():
                    like = self._number[news.like]
                    self.survey.tell(replace(news, position=self._number[news.position], like=like))
            case Block():
                self.survey.tell(news)
            case _:
                assert_never(news)

    def ask(self, spent: Evidence) -> Action:
        """Ask the survey, which may spend what the other branches have not."""
        budget, survey = self._budget, self.survey
        survey.allow(
            budget.without(
                builds=spent.builds - survey.builds,
                invocations=spent.invocations - survey.invocations,
                seconds=spent.seconds - survey.seconds,
            )
        )
        action = survey.ask()
        match action:
            case Measure():
                return replace(action, position=self._places[action.position])
            case Settled():
                changes = tuple(
                    replace(change, positions=tuple(self._places[number] for number in change.positions))
                    for change in action.answer.changes
                )
                return Settled(answer=replace(action.answer, changes=changes, strays=()))
            case _:
                assert_never(action)

    def carries(self) -> float:
        """P(the change is at the branch's last revision or before), as far as it is known."""
        belief = self.survey.belief
        share = None if belief is None else belief.after_the_change(len(self._places) - 2)
        return 0.5 if share is None else share


def _cancel(answer: Answer, question: Question) -> bool:
    """Whether several changes on a line take each other back, so that its ends do not differ."""
    sizes = [math.log(change.effect.value) for change in answer.changes if change.effect is not None]
    return len(sizes) > 1 and abs(sum(sizes)) < question.smallest_log / 2


def _prior(revisions: int) -> tuple[float, ...]:
    """Weigh the positions of a line: the merge base, the branch's revisions alike, the merge."""
    each = (1 - _COMBINED - _MOVED) / revisions
    return (0.0, _MOVED, *[each] * revisions, _COMBINED)
