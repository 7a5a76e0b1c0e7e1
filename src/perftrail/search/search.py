"""The search itself: ask what to measure, tell what came of it, until it is settled.

Pure: no clock, no disk, no chance. The same news in the same order lead to the same question, so a search is
resumed by telling everything again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import answer as answers
from perftrail.search import batch, ends, policy, purse, references
from perftrail.search.action import Measure, Settled
from perftrail.search.belief import Posterior, infer
from perftrail.search.evidence import Evidence
from perftrail.search.snapshot import believe, narrowest
from perftrail.search.timeline import Timeline

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.action import Action
    from perftrail.search.evidence import News
    from perftrail.search.noise import Likelihoods
    from perftrail.search.question import Question
    from perftrail.search.snapshot import Belief

SHOWN_TO_DIFFER = 0.1
"""The search goes inside once P(no change) is below this."""

MISFIT = 0.5
"""The share of the allowed risk that the model may use up; the rest is for noise unlike what it assumes."""

DEARER = 0.2
"""The share of the allowed risk that "none" may use up: it is said after few readings, and ends the search."""

LITTLE = 0.01
"""Bits for each reading: less is not worth waiting for once the confidence asked for is reached."""

BROKEN_TOO = 0.97
"""Untried revisions in a broken stretch are left alone once all of them are broken with this probability."""


class Search:
    """A search for the revision that changed a metric, as an ask/tell object.

    Tell it anything that is known, asked for or not, then ask; do what it asks and tell it; until `Settled`.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        weights = question.weights()
        self._cumulative = np.cumsum(weights)
        self._cumulative /= self._cumulative[-1]
        self._possible = weights > 0
        self._evidence = Evidence(question)
        self._posterior: Posterior | None = None
        self._likelihoods: Likelihoods | None = None
        self._timeline = Timeline()

    def tell(self, news: News) -> None:
        """Take news in, asked for or not; raise `ValueError` for a position outside the history."""
        self._evidence.add(news)
        self._posterior = None

    def ask(self) -> Action:
        """Say what to measure next, or that the search is settled; the same until something is told."""
        first = ends.first_look(self.question, self._evidence)
        if first:
            return self._afford(first[0])
        if len(self._evidence.positions) < 2:
            return Settled(answer=answers.nothing_usable(self._too_few()))
        posterior = self.posterior
        decided = self._unchanged(posterior) or self._located(posterior)
        level = ends.known_level(self._evidence, posterior, self.question.readings_at_ends)
        if decided is None and level is not None:
            return self._afford(level)
        if decided is not None:
            return decided
        unshown = posterior.nothing + posterior.outside > SHOWN_TO_DIFFER
        if unshown and not ends.went_inside(self.question, posterior):
            choice = ends.tell_apart(self.question, self._evidence, posterior) or policy.any_reading(
                self.question, self._evidence, posterior
            )
            floor = "builds differ by chance as much as the ends do: more readings would not tell them apart"
        else:
            choice = self._inside(posterior)
            floor = self._floor(posterior)
        return self._afford(choice) if choice is not None else self._end(floor)

    def batch(self, count: int) -> tuple[Measure, ...]:
        """Say what `count` idle workers may do at the same time, the most useful first; none once settled.

        The first is what `ask` says, with all readings at once if there are others. They may be fewer than
        the workers, where more would tell nothing or the budget does not allow them. What comes of them may
        be told in any order, and in part.
        """
        first = self.ask()
        if not isinstance(first, Measure):
            return ()
        if count == 1:
            return (first,)
        looks = ends.first_look(self.question, self._evidence)
        if looks:
            choices = tuple({look.position: look for look in reversed(looks)}.values())[::-1]
        elif first.reference or first.redraw:
            return (first,)
        else:
            alone = policy.Choice(position=first.position, readings=first.readings, bits=0.0, seconds=0.0)
            most = self.question.budget.builds
            builds = count if most is None else most - self._evidence.builds
            choices = batch.beside(
                alone, count, self._evidence, self.posterior, self._cumulative, builds=builds
            )
        return self._afford_all(choices[:count])

    @property
    def belief(self) -> Belief | None:
        """What the search believes now, `None` before two revisions were measured."""
        if len(self._evidence.positions) < 2:
            return None
        return believe(self.posterior)

    @property
    def posterior(self) -> Posterior:
        """The belief in numbers; needs at least one usable revision told."""
        if self._posterior is None:
            still = infer(self.question, self._evidence, self._cumulative, self._likelihoods)
            self._likelihoods = still.likelihoods
            self._posterior = self._timeline.judge(self.question, self._evidence, self._cumulative, still)
        return self._posterior

    @property
    def builds(self) -> int:
        """How many revisions have been told of, those that could not be used included."""
        return self._evidence.builds

    @property
    def invocations(self) -> int:
        """How many invocations the readings told have cost."""
        return self._evidence.invocations

    def _too_few(self) -> str:
        tried = len(self._evidence.unusable)
        if not self._evidence.positions:
            return f"none of the {tried} revisions tried could be built and run"
        return f"only one revision could be built and run, {tried} could not: nothing to compare it with"

    def _floor(self, posterior: Posterior) -> str:
        if self._divisible(int(np.argmax(posterior.gaps)), posterior):
            return "the revisions that are left to be tried are not likely to be fit for measuring"
        return "builds differ by chance almost as much as the change does: more readings would not help"

    def _unchanged(self, posterior: Posterior) -> Action | None:
        """Answer that nothing changed; look further out first where revisions beyond the ends are untried."""
        wanted = self.question.confidence
        unchanged = posterior.nothing + posterior.small
        if unchanged >= wanted:
            choice = ends.tell_apart(self.question, self._evidence, posterior)
            proven = unchanged >= 1 - (1 - wanted) * DEARER
            if not proven and choice is not None and self._affordable(choice):
                return self._afford(choice)
            reason = "the ends do not differ by a change worth finding (a thorough search looks between them)"
            return Settled(answer=answers.no_change(self.question, posterior, reason))
        if unchanged + posterior.outside < wanted:
            return None
        low, high = posterior.positions[0], posterior.positions[-1]
        beyond = [*range(low - 1, -1, -1), *range(high + 1, self.question.revisions)]
        untried = next((position for position in beyond if not self._evidence.is_attempted(position)), None)
        if untried is not None:
            readings = self.question.readings_at_ends
            return self._afford(policy.Choice(position=untried, readings=readings, bits=0.0, seconds=0.0))
        outside = np.array([*range(1, low + 1), *range(high + 1, self.question.revisions)], dtype=np.int64)
        outside = outside[self._possible[outside]]
        reason = (
            "nothing changed between the outermost revisions that could be built and run; "
            "if something changed, it was before the first or after the last of them"
        )
        return Settled(answer=answers.beyond_the_ends(self.question, posterior, outside, reason))

    def _located(self, posterior: Posterior) -> Settled | None:
        """Answer with the one gap that holds the culprit, once nothing inside it is left to be built."""
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

    def _sure(self, probability: float, posterior: Posterior) -> bool:
        """Whether it is sure: well above the confidence asked for, or just above with little to be had."""
        if probability < self.question.confidence:
            return False
        if probability >= 1 - (1 - self.question.confidence) * MISFIT:
            return True
        reading = policy.any_reading(self.question, self._evidence, posterior)
        return reading is None or reading.bits / reading.readings < LITTLE

    def _divisible(self, gap: int, posterior: Posterior) -> bool:
        """Whether some revision inside a gap, not tried yet, would split its candidates."""
        possible = self._within(range(gap, gap + 1), posterior)
        return any(
            not self._evidence.is_attempted(position)
            for position in range(int(possible[0]), int(possible[-1]))
        )

    def _within(self, gaps: range, posterior: Posterior) -> npt.NDArray[np.int64]:
        """Return the possible culprits inside neighbouring gaps."""
        low, high = posterior.positions[gaps.start], posterior.positions[gaps.stop]
        return np.nonzero(self._possible[low + 1 : high + 1])[0] + low + 1

    def _inside(self, posterior: Posterior) -> policy.Choice | None:
        best = self._best(posterior)
        for readings in references.REFERENCES if posterior.track is not None else ():
            known = references.with_reference(self._evidence, posterior, readings)
            then = self._best(known[1]) if known is not None else None
            if known is not None and then is not None:
                seconds = then.seconds + readings * self._evidence.seconds_per_reading
                if best is None or then.bits / seconds > best.rate:
                    best = policy.Choice(
                        position=known[0], readings=readings, bits=then.bits, seconds=seconds, reference=True
                    )
        return best

    def _best(self, posterior: Posterior) -> policy.Choice | None:
        reading = policy.any_reading(self.question, self._evidence, posterior)
        if not purse.may_build(self.question, self._evidence):
            return reading
        build = policy.best_build(self._evidence, posterior, self._cumulative)
        if reading is None or (build is not None and build.rate >= reading.rate):
            return build
        return reading

    def _affordable(self, choice: policy.Choice) -> bool:
        fresh = not self._evidence.is_attempted(choice.position)
        return purse.refusal(self.question, self._evidence, fresh=fresh) is None

    def _afford(self, choice: policy.Choice) -> Action:
        """Do the chosen if the budget allows it, as much of it as it allows; else end."""
        fresh = not self._evidence.is_attempted(choice.position)
        refusal = purse.refusal(self.question, self._evidence, fresh=fresh)
        if refusal is not None:
            return self._end(refusal)
        readings = purse.affordable(self.question, self._evidence, choice.readings)
        return Measure(
            position=choice.position, readings=readings, redraw=choice.redraw, reference=choice.reference
        )

    def _afford_all(self, choices: tuple[policy.Choice, ...]) -> tuple[Measure, ...]:
        """Do of the chosen what the budget of invocations allows together."""
        left = purse.readings_left(self.question, self._evidence)
        measures = []
        for choice in choices:
            action = self._afford(choice)
            if isinstance(action, Measure) and action.readings <= left:
                measures.append(action)
                left -= action.readings
        return tuple(measures)

    def _end(self, reason: str) -> Settled:
        """Answer with what is known: the smallest range that holds the culprit, or that it is unclear."""
        if len(self._evidence.positions) < 2:
            return Settled(answer=answers.nothing_usable(reason))
        posterior = self.posterior
        best = narrowest(posterior, self.question.confidence)
        if best is None:
            return Settled(answer=answers.unclear(self.question, posterior, reason))
        candidates = self._within(best, posterior)
        if len(candidates) == int(self._possible.sum()) and len(candidates) > 1:
            return Settled(answer=answers.unclear(self.question, posterior, reason))
        return Settled(answer=answers.located(self.question, posterior, best, candidates, reason))
