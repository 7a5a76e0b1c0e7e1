"""Choose what to measure so that few builds locate the likely changes of a history.

The belief (`posterior`) and the policy (`policy`) choose builds and numbers of samples until each likely change is in
one gap between two builds. The guide confirms nothing: `search.search` does, by rounds over the builds around each
likely change.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import policy
from perftrail.search.answer import Measure
from perftrail.search.policy import CostModel
from perftrail.search.posterior import belief_of, infer, narrowest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from perftrail.search.evidence import Evidence
    from perftrail.search.posterior import Belief, LikelyChange, Posterior
    from perftrail.search.question import Question

LARGE_ENOUGH = 0.5
LARGE_ENOUGH_ALONE = 0.1
"""A likely change is searched for if it reaches the threshold with this probability; the second value applies if there
is no other change."""

LOCATED = 0.95
"""A change is located once it is in one gap between builds with this probability: rounds confirm or refute it."""

MOST_UNUSABLE = 40
"""Maximum failures without one usable revision."""

MOST_FIRST = 24
"""Maximum batches for the ends, even if many samples were disturbed."""

BUILDS_PER_HALVING = 4
"""The guide ends at this number of builds for each halving of the history: rounds divide what is left."""

MOST_CONSECUTIVE = 12
"""Maximum consecutive batches of one build."""


def most_builds(question: Question) -> int:
    """Return the number of builds after which a guided search for one change is hardly still on its way."""
    return BUILDS_PER_HALVING * math.ceil(math.log2(question.revisions))


class Guide:
    """The guided part of a search. `evidence` is that of the whole search, which records every observation."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.question = question
        self._evidence = evidence
        self._cumulative = np.cumsum(question.weights())
        self._cumulative /= self._cumulative[-1]
        self._last_sampled: frozenset[int] = frozenset()
        self._consecutive = 0
        self._posterior: Posterior | None = None
        self._earlier: Posterior | None = None

    def update(self, sampled: frozenset[int] | None) -> None:
        """Take notice of a new observation; `sampled` are the positions of a batch, `None` if it is something else."""
        if sampled is not None:
            others = sampled - {self._evidence.reference}
            self._consecutive = self._consecutive + 1 if others == self._last_sampled else 1
            self._last_sampled = others
        self._posterior = None

    def ask(self) -> Measure | None:
        """Return what narrows the likely changes down; `None` once they are located, or rounds do it better."""
        if len(self._evidence.guiding_positions) < 2:
            return None
        if len(self._evidence.built) > most_builds(self.question):
            return None
        choice = self._best_choice(self._unresolved())
        if choice is None or self._is_stuck(choice.position):
            return None
        return self.batch(choice.position, choice.samples)

    def builds_ahead(self, taken: Collection[int], count: int) -> tuple[int, ...]:
        """Return up to `count` further positions with the most informative builds while those `taken` are being built.

        With k parallel builds of one gap, a gap is split into k + 1 pieces instead of two.
        """
        if len(self._evidence.guiding_positions) < 2:
            ends = [end for end in self._ends() if end is not None and not self._evidence.has_result(end)]
            return tuple(end for end in dict.fromkeys(ends) if end not in taken)[:count]
        ahead: list[int] = []
        options = [self._new_builds(change) for change in self._unresolved()]
        while len(ahead) < count and self._may_build(
            extra=len(set(taken) - self._evidence.attempted) + len(ahead)
        ):
            left = [
                each.best(policy.remaining_share(each, {*taken, *ahead}, self.posterior, self._cumulative))
                for each in options
            ]
            chosen = [choice for choice in left if choice is not None]
            if not chosen:
                break
            ahead.append(max(chosen, key=lambda choice: choice.rate).position)
        return tuple(ahead)

    @property
    def posterior(self) -> Posterior:
        """The posterior given the samples; needs two usable revisions."""
        if self._posterior is None:
            self._posterior = infer(self.question, self._evidence, self._cumulative, known=self._earlier)
            self._earlier = self._posterior
        return self._posterior

    @property
    def belief(self) -> Belief:
        """The current belief; needs two usable revisions."""
        return belief_of(self.posterior, self.question.scale)

    def located(self) -> tuple[int, ...]:
        """Return the builds around each likely change, ascending; none if only rounds measured builds."""
        if len(self._evidence.guiding_positions) < 2:
            return ()
        positions, found = self.posterior.positions, set[int]()
        for change in self._large_changes():
            gap = int(np.argmax(change.gaps))
            gaps = narrowest(positions, change.gaps, LOCATED) or range(gap, gap + 1)
            found |= {positions[gaps.start], positions[gap], positions[gap + 1], positions[gaps.stop]}
        return tuple(sorted(found))

    def expected_seconds(self, measure: Measure) -> float:
        """Return the expected cost of a batch, including the builds that it needs."""
        fresh = [position for position in measure.positions if position not in self._evidence.built]
        costs = CostModel(self.question, self._evidence)
        return float(costs.build(np.array(fresh, dtype=np.int64)).sum()) + len(measure.order) * costs.sample

    def _is_stuck(self, position: int) -> bool:
        """Whether one build was requested so often in a row that more samples of it give no information."""
        wanted = frozenset({position}) - {self._evidence.reference}
        return self._consecutive >= MOST_CONSECUTIVE and wanted == self._last_sampled

    def _large_changes(self) -> list[LikelyChange]:
        """Return the likely changes that probably reach the threshold."""
        changes = self.posterior.changes
        large = [change for change in changes if change.reaches_threshold >= LARGE_ENOUGH]
        return large or [change for change in changes if change.reaches_threshold >= LARGE_ENOUGH_ALONE]

    def first_samples(self) -> Measure | None:
        """Return the first samples of the two ends, among usable revisions; `None` once they exist."""
        low, high = self._ends()
        wanted, evidence = self.question.samples_at_ends, self._evidence
        if low is not None and evidence.count(low) == 0:
            return Measure(order=(low,))
        if low is not None and evidence.reference is None:
            evidence.reference = evidence.build_of(low)
        if high is None or high == low:
            return None
        if evidence.count(high) == 0:
            return Measure(
                order=(high, *([] if low is None else [low]), high, *([] if low is None else [low]), high)
            )
        short = [end for end in (high, low) if end is not None and evidence.count(end) < wanted]
        if not short or evidence.batches > MOST_FIRST:
            return None
        return Measure(order=(*short, *(end for end in (low,) if end is not None and end not in short)))

    def _ends(self) -> tuple[int | None, int | None]:
        """Return the usable or untried revisions nearest to both ends."""
        distances = list(_inward(self.question.revisions))
        last = self.question.revisions - 1
        return self._end(distances), self._end([last - distance for distance in distances])

    def _end(self, order: Sequence[int]) -> int | None:
        evidence = self._evidence
        if len(evidence.unusable) >= MOST_UNUSABLE and len(evidence.positions) < 2:
            return None
        for position in order:
            if evidence.count(position) or position not in evidence.unusable:
                return position
        between = range(min(order), max(order) + 1)
        return next((position for position in between if not evidence.has_result(position)), None)

    def too_few(self) -> str:
        """Return why fewer than two revisions are usable."""
        tried = len(self._evidence.unusable)
        if not self._evidence.positions:
            return f"all {tried} tried revisions failed to build or run"
        return f"only one revision could be built and run, {tried} failed: no other revision to compare with"

    # The guide.

    def _unresolved(self) -> list[LikelyChange]:
        return [change for change in self._large_changes() if not self._is_resolved(change)]

    def _is_resolved(self, change: LikelyChange) -> bool:
        """Whether a change is surely in one gap, with nothing left to build inside."""
        gap = int(np.argmax(change.gaps))
        if change.exists * float(change.gaps[gap]) < LOCATED:
            return False
        if not self._is_divisible(gap):
            return True
        return policy.is_all_broken(self._evidence, *self.posterior.positions[gap : gap + 2])

    def _is_divisible(self, gap: int) -> bool:
        """Whether an untried revision inside a gap would split its candidates."""
        possible = self.question.candidates(*self.posterior.positions[gap : gap + 2])
        inside = range(int(possible[0]), int(possible[-1]))
        return any(not self._evidence.has_result(position) for position in inside)

    def _best_choice(self, changes: Sequence[LikelyChange]) -> policy.Choice | None:
        costs = CostModel(self.question, self._evidence)
        chosen = []
        for change in changes:
            chosen.append(
                policy.more_samples(
                    self._evidence, self.posterior, change, costs, redrawn=self._redraws()
                ).best()
            )
            if self._may_build():
                chosen.append(self._new_builds(change).best())
        return max(
            (each for each in chosen if each is not None), key=lambda choice: choice.rate, default=None
        )

    def _new_builds(self, change: LikelyChange) -> policy.Options:
        costs = CostModel(self.question, self._evidence)
        return policy.new_builds(self._evidence, self.posterior, change, self._cumulative, costs)

    def _redraws(self) -> bool:
        """Whether the guide's samples use new layouts: if layouts differ about as much as samples do."""
        return self._evidence.relinks and self.posterior.tau > 0.5 * self.posterior.sigma

    def batch(self, position: int, samples: int) -> Measure:
        """Return a batch of a build with samples of the reference between them."""
        reference, order = self._evidence.reference, [position] * samples
        alone = policy.reuses_reference(self._evidence, samples)
        if reference is not None and self._evidence.build_of(position) != reference and not alone:
            for at in np.linspace(0, samples, policy.references(samples) + 2)[-2:0:-1]:
                order.insert(round(float(at)), reference)
            if samples == 1 and len(self._evidence.positions) % 2:
                order.reverse()
        known = len(self._evidence.positions) > 1
        layout = self._evidence.batches + 1 if known and self._redraws() else 0
        return Measure(order=tuple(order), layout=layout)

    def _may_build(self, *, extra: int = 0) -> bool:
        most = self.question.budget.builds
        return most is None or self._evidence.builds + extra < most


def _inward(revisions: int) -> Iterator[int]:
    """Yield distances from an end at which to look for a usable revision, in growing steps.

    >>> list(_inward(20))
    [0, 1, 2, 3, 4, 6, 9, 13, 19]
    """
    distance = 0
    while distance < revisions:
        yield distance
        distance = max(distance + 1, distance * 3 // 2)
