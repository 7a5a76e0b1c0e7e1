"""Search inside a merge for the origin of its change, and for the revision of the branch that caused it.

A branch with the merge's first parent before it and the merge after it is a line: the change is between two
neighbours on it. Between the last revision of the branch and the merge: only their combination has the
change. Between the first parent and the point where the branch left the trunk: the trunk changed since, and
the branch did not. No change on the line: the first parent already has the new level. Otherwise a revision of
the branch caused the change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from perftrail.search.answer import Answer, Measure, Settled, Verdict
from perftrail.search.evidence import Evidence
from perftrail.search.observation import Batch, BootSession, Built, CannotRelink, Unusable
from perftrail.search.search import Search

if TYPE_CHECKING:
    from perftrail.search.answer import Action
    from perftrail.search.budget import Budget
    from perftrail.search.observation import Observation
    from perftrail.search.posterior import Belief
    from perftrail.search.question import Question

COMBINED = 0.1
"""The prior probability that only the combination of branch and trunk causes the change."""

TRUNK_CHANGED = 0.05
"""The prior probability that the trunk's level changed since the branch left it."""

_FIRST_SAMPLES = 2


class Origin(StrEnum):
    """Origin of a merge's change."""

    BRANCH = "branch"
    """A revision of a branch caused the change."""
    TRUNK = "trunk"
    """The first parent already has the new level: the trunk changed before the merge."""
    COMBINATION = "combination"
    """No parent alone has the new level, or the merge reverted a trunk change since the branch left."""
    UNCLEAR = "unclear"
    """Unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOrigin:
    """The origin of the change: the branch (from 0) if it was one, and the reason."""

    origin: Origin
    branch: int | None
    reason: str


class MergeSearch:
    """The search inside one merge, with the interface of `Search`.

    `branches` contains the number of revisions of each parent but the first, at least one. The positions:

    - 0 is the first parent;
    - for each branch in turn, one for the revision where it left the trunk (the merge base), then its own
      revisions, oldest first, the last of them the parent itself;
    - the last is the merge.

    So ``question.revisions == 2 + sum(branches) + len(branches)``; a prior weights these positions. First
    report known results: batches with the merge, the first parent, and merge bases that the search along the
    trunk has measured. Report a missing merge base, or one that cannot be built, as `Unusable`. The settled
    answer's changes are in these positions, and `found` is the origin of the change.
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

    def allow(self, budget: Budget) -> None:
        """Replace the question's budget."""
        self.question = replace(self.question, budget=budget)
        for line in self._lines:
            line.budget = budget

    def tell(self, observation: Observation) -> None:
        """Record an observation, asked for or not. Raises `ValueError` for a position outside."""
        self._evidence.add(observation)
        for line in self._lines:
            line.tell(observation)

    def ask(self) -> Action:
        """Return what to measure next, or the answer; the same until new results are added."""
        action = self._settle()
        return Settled(answer=action.answer) if isinstance(action, _Settled) else action

    @property
    def found(self) -> MergeOrigin | None:
        """The origin of the change, once the search is settled; `None` before."""
        action = self._settle()
        return action.found if isinstance(action, _Settled) else None

    @property
    def belief(self) -> Belief | None:
        """The belief about the branch that most likely contains the change."""
        return max(self._lines, key=_Line.change_probability).belief

    @property
    def evidence(self) -> Evidence:
        """Everything reported so far."""
        return self._evidence

    def _settle(self) -> Measure | _Settled:
        ends = (0, self.question.revisions - 1)
        if all(self._evidence.has_result(end) for end in ends):
            for line in self._lines:
                if not self._evidence.has_result(line.tip) and self._allows_first_samples():
                    return Measure(order=(line.tip, 0, line.tip))
        settled: list[_Settled] = []
        for line in sorted(self._lines, key=_Line.change_probability, reverse=True):
            action = line.ask(self._evidence)
            if isinstance(action, Measure):
                return action
            found = self._origin_of(action.answer, line)
            if found.origin is Origin.BRANCH:
                return _Settled(answer=action.answer, found=found)
            settled.append(_Settled(answer=action.answer, found=found))
        unclear = [one for one in settled if one.found.origin is Origin.UNCLEAR]
        return (unclear or settled)[0]

    def _allows_first_samples(self) -> bool:
        evidence = self._evidence
        refusal = self.question.budget.refusal(
            builds=evidence.builds,
            invocations=evidence.invocations,
            seconds=evidence.seconds,
            fresh=1,
            more=(_FIRST_SAMPLES + 1) * self.question.invocations_per_sample,
        )
        return refusal is None

    def _origin_of(self, answer: Answer, line: _Line) -> MergeOrigin:
        merge = self.question.revisions - 1
        changed = {position for change in answer.changes for position in change.positions}
        if answer.verdict is Verdict.NONE or _cancel(answer, self.question):
            return MergeOrigin(
                origin=Origin.TRUNK, branch=None, reason="the first parent already has the level of the merge"
            )
        if changed and changed <= set(range(line.base + 1, line.tip + 1)):
            return MergeOrigin(
                origin=Origin.BRANCH,
                branch=self._lines.index(line),
                reason="the branch has the old level where it leaves the trunk, and the new level before the merge",
            )
        if changed == {merge}:
            return MergeOrigin(
                origin=Origin.COMBINATION,
                branch=None,
                reason="neither the first parent nor the branch has the new level: only their combination has it",
            )
        if changed == {line.base}:
            return MergeOrigin(
                origin=Origin.COMBINATION,
                branch=None,
                reason="the trunk's level changed after the branch left it, and the merge has the earlier level",
            )
        if not changed:
            return MergeOrigin(origin=Origin.UNCLEAR, branch=None, reason=answer.reason)
        return MergeOrigin(
            origin=Origin.UNCLEAR,
            branch=None,
            reason="the revisions that distinguish the branch from the merge could not be separated",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    answer: Answer
    found: MergeOrigin


class _Line:
    """One branch, from the first parent via the merge base to the merge, in positions of `MergeSearch`."""

    def __init__(self, question: Question, base: int, tip: int) -> None:
        self.base = base
        self.tip = tip
        self._positions = (0, *range(base, tip + 1), question.revisions - 1)
        self._number = {position: number for number, position in enumerate(self._positions)}
        self.budget = question.budget
        prior = question.prior
        prior = (
            _prior(tip - base) if prior is None else tuple(prior[position] for position in self._positions)
        )
        built = frozenset(self._number[position] for position in question.built & self._number.keys())
        self.search = Search(
            replace(question, revisions=len(self._positions), prior=prior, built=built, distance=None)
        )

    def tell(self, observation: Observation) -> None:
        """Report an observation that concerns this line to its search."""
        match observation:
            case Batch():
                samples = tuple(
                    replace(sample, position=self._number[sample.position])
                    for sample in observation.samples
                    if sample.position in self._number
                )
                if samples:
                    self.search.tell(replace(observation, samples=samples))
            case Built():
                if observation.position in self._number:
                    same_as = None if observation.same_as is None else self._number.get(observation.same_as)
                    self.search.tell(
                        replace(observation, position=self._number[observation.position], same_as=same_as)
                    )
            case Unusable():
                if observation.position in self._number:
                    self.search.tell(replace(observation, position=self._number[observation.position]))
            case BootSession() | CannotRelink():
                self.search.tell(observation)
            case _:
                assert_never(observation)

    def ask(self, spent: Evidence) -> Action:
        """Ask this line's search, whose budget is what the other branches have not spent."""
        own = self.search.evidence
        self.search.allow(
            self.budget.without(
                builds=spent.builds - own.builds,
                invocations=spent.invocations - own.invocations,
                seconds=spent.seconds - own.seconds,
            )
        )
        action = self.search.ask()
        match action:
            case Measure():
                return replace(action, order=tuple(self._positions[number] for number in action.order))
            case Settled():
                changes = tuple(
                    replace(change, positions=tuple(self._positions[number] for number in change.positions))
                    for change in action.answer.changes
                )
                return Settled(answer=replace(action.answer, changes=changes, suspected=()))
            case _:
                assert_never(action)

    @property
    def belief(self) -> Belief | None:
        """The belief of this line's search, in positions of `MergeSearch`."""
        belief = self.search.belief
        if belief is None:
            return None
        claim, span, at = belief.claim, belief.span, self._positions
        if claim is not None and claim.around is not None:
            low, high = claim.around
            claim = replace(claim, around=(at[low], at[high]))
        return replace(
            belief,
            at_or_before=tuple((at[number], share) for number, share in belief.at_or_before),
            claim=claim,
            span=None if span is None else (at[span[0]], at[span[1]]),
        )

    def change_probability(self) -> float:
        """Return P(the change is at the branch's last revision or before), from the samples so far."""
        belief = self.search.belief
        share = None if belief is None else belief.after_the_change(len(self._positions) - 2)
        return 0.5 if share is None else share


def _cancel(answer: Answer, question: Question) -> bool:
    """Whether several changes on a line cancel, so that its ends do not differ."""
    sizes = [change.effect.size for change in answer.changes if change.effect is not None]
    return len(sizes) > 1 and abs(sum(sizes)) < question.threshold_on_scale / 2


def _prior(revisions: int) -> tuple[float, ...]:
    """Return prior weights of a line's positions: the merge base, the branch's revisions alike, the merge."""
    each = (1 - COMBINED - TRUNK_CHANGED) / revisions
    return (0.0, TRUNK_CHANGED, *[each] * revisions, COMBINED)
