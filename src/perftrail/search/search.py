"""The search itself: ask what to measure, tell what came of it, until it is settled.

Pure: no clock, no disk, no chance. The same news in the same order lead to the same question, so a search is
resumed by telling everything again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import answer as answers
from perftrail.search import ends, policy
from perftrail.search.belief import Posterior, infer
from perftrail.search.evidence import Evidence

if TYPE_CHECKING:
    from perftrail.search.answer import Answer
    from perftrail.search.evidence import News
    from perftrail.search.noise import Likelihoods
    from perftrail.search.question import Question

SHOWN_TO_DIFFER = 0.05
"""The search goes inside once P(no change) is below this."""

MISFIT = 0.5
"""The share of the allowed risk that the model may use up; the rest is for noise that is not as it assumes."""


LITTLE = 0.01
"""Bits for each reading: less is not worth waiting for once the confidence asked for is reached."""

BROKEN_TOO = 0.9
"""Untried revisions in a broken stretch are left alone once all of them are broken with this probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Take so many readings of a position, building it first where that has not been done."""

    position: int
    readings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Nothing more is to be measured."""

    answer: Answer


Action = Measure | Settled


class Search:
    """A search for the revision that changed a metric, as an ask/tell object.

    Tell it anything that is known, asked for or not, then ask; do what it asks and tell it; until `Settled`.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        weights = np.ones(question.revisions) if question.prior is None else np.asarray(question.prior, dtype=float)
        weights = weights / weights[1:].sum()
        weights[0] = 0.0
        self._cumulative = np.cumsum(weights)
        self._cumulative /= self._cumulative[-1]
        self._possible = weights > 0
        self._evidence = Evidence(question)
        self._posterior: Posterior | None = None
        self._likelihoods: Likelihoods | None = None

    def tell(self, news: News) -> None:
        """Take news in, asked for or not; raise `ValueError` for a position outside the history."""
        self._evidence.add(news)
        self._posterior = None

    def ask(self) -> Action:
        """Say what to measure next, or that the search is settled; the same until something is told."""
        first = ends.first_look(self.question, self._evidence)
        if first is not None:
            return self._afford(first)
        if len(self._evidence.positions) < 2:
            return Settled(answer=answers.nothing_usable(self._too_few()))
        posterior = self.posterior
        settled = self._located(posterior) or self._unchanged(posterior)
        if settled is not None:
            return settled
        if posterior.nothing + posterior.outside > SHOWN_TO_DIFFER and not ends.went_inside(
            self.question, posterior
        ):
            choice = ends.tell_apart(self.question, self._evidence, posterior)
            floor = "the ends differ by less than builds of one revision do: more readings would not tell them apart"
        else:
            choice = self._inside(posterior)
            floor = (
                "builds differ among themselves almost as much as the change does: more readings of the same "
                "builds would not narrow it further"
            )
        return self._afford(choice) if choice is not None else self._end(floor)

    @property
    def posterior(self) -> Posterior:
        """The belief in numbers; needs at least one usable revision told."""
        if self._posterior is None:
            self._posterior = infer(self.question, self._evidence, self._cumulative, self._likelihoods)
            self._likelihoods = self._posterior.likelihoods
        return self._posterior

    def _too_few(self) -> str:
        tried = len(self._evidence.unusable)
        if not self._evidence.positions:
            return f"none of the {tried} revisions tried could be built and run"
        return f"only one revision could be built and run, {tried} could not: there is nothing to compare it with"

    def _sure(self, probability: float, posterior: Posterior) -> bool:
        """Whether it is sure enough: well above the confidence asked for, or above and no reading adds much."""
        if probability < self.question.confidence:
            return False
        if probability >= 1 - (1 - self.question.confidence) * MISFIT:
            return True
        reading = policy.best_reading(self._evidence, posterior)
        return reading is None or reading.bits / reading.readings < LITTLE

    def _located(self, posterior: Posterior) -> Settled | None:
        if len(posterior.gaps) == 0:
            return None
        gap = int(np.argmax(posterior.gaps))
        if not self._sure(float(posterior.gaps[gap]), posterior):
            return None
        candidates = self._within(range(gap, gap + 1), posterior)
        reason = "the revisions on both sides were measured"
        if self._divisible(gap, posterior):
            low, high = posterior.positions[gap], posterior.positions[gap + 1]
            if policy.breakage(self._evidence).all_between(low, high) < BROKEN_TOO:
                return None
            reason = (
                "the revisions between those that were measured could not be built and run, or, "
                "as their neighbours could not, are not likely to be"
            )
        elif len(candidates) > 1:
            reason = "only revisions that could not be built and run stand between those that were measured"
        return Settled(
            answer=answers.located(self.question, posterior, range(gap, gap + 1), candidates, reason)
        )

    def _unchanged(self, posterior: Posterior) -> Settled | None:
        wanted = self.question.confidence
        if posterior.nothing + posterior.small >= wanted:
            reason = "no change of the smallest size worth finding, anywhere between the ends"
            return Settled(answer=answers.no_change(self.question, posterior, reason))
        if posterior.nothing + posterior.outside + posterior.small < wanted:
            return None
        low, high = posterior.positions[0], posterior.positions[-1]
        beyond = [*range(low - 1, -1, -1), *range(high + 1, self.question.revisions)]
        untried = [position for position in beyond if not self._evidence.is_attempted(position)]
        if untried:
            return None
        outside = np.array([*range(1, low + 1), *range(high + 1, self.question.revisions)], dtype=np.int64)
        reason = (
            "nothing changed between the outermost revisions that could be built and run; if something changed, "
            "it was before the first or after the last of them"
        )
        return Settled(
            answer=answers.beyond_the_ends(self.question, posterior, outside[self._possible[outside]], reason)
        )

    def _divisible(self, gap: int, posterior: Posterior) -> bool:
        """Whether some revision inside a gap, not tried yet, would split its candidates."""
        low, high = posterior.positions[gap], posterior.positions[gap + 1]
        possible = np.nonzero(self._possible[low + 1 : high + 1])[0] + low + 1
        if len(possible) < 2:
            return False
        between = range(int(possible[0]), int(possible[-1]))
        return any(not self._evidence.is_attempted(position) for position in between)

    def _within(self, gaps: range, posterior: Posterior) -> np.ndarray:
        low, high = posterior.positions[gaps.start], posterior.positions[gaps.stop]
        return np.nonzero(self._possible[low + 1 : high + 1])[0] + low + 1

    def _inside(self, posterior: Posterior) -> policy.Choice | None:
        reading = policy.best_reading(self._evidence, posterior)
        build = policy.best_build(self._evidence, posterior, self._cumulative)
        if build is None or not self._may_build():
            return reading
        if reading is None or build.rate >= reading.rate:
            return build
        return reading

    def _may_build(self) -> bool:
        most = self.question.budget.builds
        return most is None or self._evidence.builds < most

    def _afford(self, choice: policy.Choice) -> Action:
        """Do the chosen if the budget allows it, as much of it as it allows; else end."""
        budget, evidence = self.question.budget, self._evidence
        if budget.seconds is not None and evidence.seconds >= budget.seconds:
            return self._end("the budget of seconds is spent")
        if not evidence.is_attempted(choice.position) and not self._may_build():
            return self._end("the budget of builds is spent")
        readings = choice.readings
        if budget.invocations is not None:
            left = (budget.invocations - evidence.invocations) // self.question.invocations_per_reading
            if left < 1:
                return self._end("the budget of invocations is spent")
            readings = min(readings, left)
        return Measure(position=choice.position, readings=readings)

    def _end(self, reason: str) -> Settled:
        """Answer with what is known: the smallest range that holds the culprit, or that it is unclear."""
        if len(self._evidence.positions) < 2:
            return Settled(answer=answers.nothing_usable(reason))
        posterior = self.posterior
        best: range | None = None
        size = self.question.revisions
        sums = posterior.at_or_before
        for start in range(len(posterior.gaps)):
            stop = int(np.searchsorted(sums, sums[start] + self.question.confidence))
            if stop <= len(posterior.gaps):
                length = posterior.positions[stop] - posterior.positions[start]
                if length < size:
                    best, size = range(start, stop), length
        whole = self.question.revisions - 1
        if best is None or size >= whole:
            return Settled(answer=answers.unclear(self.question, posterior, reason))
        candidates = self._within(best, posterior)
        return Settled(answer=answers.located(self.question, posterior, best, candidates, reason))
