"""Search for the revisions that changed a metric, until what is named explains the difference of the ends.

An ask/tell object: it says what to measure next, and receives the results. After each result, the first of its stages
that needs something decides:

1. the ends: the outermost revisions that can be built and run; then builds whose batches were all disturbed;
2. the guide (`guide`): where builds are expensive, few builds locate the likely changes. Where they are cheap, a
   coarse map of the whole history takes its place;
3. rounds (`rounds`) over the ends and the builds around each change certify changes, and that everything between them
   is equal within the threshold, or divide it further;
4. builds in the longest gaps, if nothing has changed, or if so much has that changes may cancel each other there;
5. revisions beyond the outermost ones that could be built;
6. more builds on the sides of a change that memory layouts may explain (`layout_guard`).

The first request that the budget refuses ends the search.

Pure: no clock, no disk; random orders come from the question's seed. The same observations in the same order, with a
request after each, lead to the same requests. So a search resumes when it receives all earlier results again, and is
asked after each. What it receives before the first request is only evidence.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import Measure, Purpose, Settled, nothing_usable
from perftrail.search.conclude import conclude
from perftrail.search.evidence import Evidence
from perftrail.search.forecast import NOTHING_LEFT, open_rounds, work_left
from perftrail.search.guide import MOST_UNUSABLE, Guide
from perftrail.search.layout_guard import LayoutGuard
from perftrail.search.observation import Batch
from perftrail.search.posterior import Belief, ClaimProgress
from perftrail.search.rate_guide import LEAVE_ROUNDS, RateGuide
from perftrail.search.rounds import FEWEST_FLAT, FEWEST_ROUNDS, Finding, Rounds
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from perftrail.search.answer import Action
    from perftrail.search.budget import Budget
    from perftrail.search.forecast import WorkLeft
    from perftrail.search.observation import Observation
    from perftrail.search.question import Question

CHEAP = 3.0
"""A build that costs less than this number of samples is cheap: a coarse map finds several changes in fewer runs."""

FIRST_GAPS = 9
"""Gaps of the first map where builds are cheap."""

THOROUGH_GAPS = 24
"""Gaps of the first map of a thorough search."""

LOOKS = 3
"""Most builds to look for changes that cancel each other: in a history without a change; or for each change if there
are several and builds are cheap."""

MOST_BATCHES = 2000
"""Maximum batches of one search."""


class Search:
    """A search for the revisions that changed a metric, as an ask/tell object.

    First `tell` all known results, also those that it did not ask for. Then perform the action that `ask` returns,
    and `tell` its result, until `ask` returns `Settled`.
    """

    def __init__(self, question: Question) -> None:
        self._told: list[Observation] = []
        self._begin(question)
        self._stages: tuple[Callable[[], Measure | None], ...] = (
            self._first_samples,
            self._disturbed_build,
            self._locate,
            self._round,
            self._look_inside,
            self._look_outside,
            self._look_beside,
            self._persist,
        )
        self._next: Action | None = None

    def _begin(self, question: Question) -> None:
        """Begin without evidence."""
        self.question = question
        self._evidence = Evidence(question)
        self._is_rate = question.scale is Scale.RATE
        self._guide = (RateGuide if self._is_rate else Guide)(question, self._evidence)
        self._looks = 0
        self._start_rounds()

    def _start_rounds(self) -> None:
        """Begin without a map: which builds it has depends on the budget."""
        self._is_guided = True
        self._is_mapped = False
        self._saw_nothing = False
        self._rounds = Rounds(self.question, self._evidence)
        self._layouts = LayoutGuard(self.question, self._evidence, self._rounds)

    def tell(self, observation: Observation) -> None:
        """Record an observation, asked for or not. Raises `ValueError` for a position outside the history."""
        self._told.append(observation)
        scale = self._suited_scale()
        if scale is self.question.scale:
            self._record(observation)
            return
        # A certificate needs a scale that was fixed before it: rounds before this choice only guide.
        self._begin(replace(self.question, scale=scale))
        for each in self._told:
            self._record(replace(each, certificate=False) if isinstance(each, Batch) else each)

    def _suited_scale(self) -> Scale:
        """Return the scale for all samples so far."""
        scale = self.question.scale
        if not self.question.adapts or all(map(scale.allows, _values(self._told[-1:]))):
            return scale
        return scale.suited(_values(self._told))

    def _record(self, observation: Observation) -> None:
        self._evidence.add(observation)
        sampled = None
        if isinstance(observation, Batch) and not observation.certificate:
            sampled = frozenset(sample.position for sample in observation.samples)
        self._guide.update(sampled)
        self._next = None

    def ask(self) -> Action:
        """Return what to measure next, or the answer; the same until new results are added."""
        if self._next is None:
            self._next = self._decide()
        return self._next

    def allow(self, budget: Budget) -> None:
        """Replace the question's budget."""
        if budget != self.question.budget:
            self.question = self._guide.question = replace(self.question, budget=budget)
            self._next = None
            if not self._evidence.rounds:
                self._start_rounds()

    @property
    def evidence(self) -> Evidence:
        """Everything reported so far."""
        return self._evidence

    def builds_ahead(self, begun: Collection[int], count: int) -> tuple[int, ...]:
        """Return up to `count` positions with the most informative builds while those `begun` are being built."""
        action = self.ask()
        if isinstance(action, Settled) or action.certificate:
            return ()
        return self._guide.builds_ahead({*begun, *action.positions}, count)

    def expected_seconds(self, measure: Measure) -> float:
        """Return the expected cost of a batch, including the builds that it needs."""
        return self._guide.expected_seconds(measure)

    # Deciding what to do next.

    def _decide(self) -> Action:
        for stage in self._stages:
            measure = stage()
            if measure is not None:
                refusal = self._refusal(measure)
                return measure if refusal is None else self._conclude(refusal)
            if stage == self._first_samples and len(self._evidence.positions) < 2:
                return Settled(answer=nothing_usable(self._guide.too_few()))
        return self._conclude("")

    def _refusal(self, measure: Measure) -> str | None:
        """Return why the budget does not allow a batch; `None` if it does."""
        evidence = self._evidence
        if evidence.batches >= MOST_BATCHES:
            return f"{MOST_BATCHES} batches have not decided it"
        return self.question.budget.refusal(
            builds=evidence.builds,
            invocations=evidence.invocations,
            seconds=evidence.seconds,
            fresh=sum(not evidence.is_started(position) for position in measure.positions),
            more=len(measure.order) * self.question.invocations_per_sample,
        )

    def _conclude(self, reason: str) -> Settled:
        """Return the answer; `reason` states why the search ended, empty if everything is decided."""
        if len(self._evidence.positions) < 2:
            return Settled(answer=nothing_usable(reason))
        if not self._rounds.positions:
            self._begin_map()
        self._rounds.keep_measured()
        answer = conclude(self.question, self._evidence, self._rounds, self._layouts, reason)
        return Settled(answer=answer)

    # The stages: each returns what it needs next, `None` if nothing.

    def _first_samples(self) -> Measure | None:
        """The first samples of the two ends."""
        batch = self._guide.first_samples()
        return None if batch is None else replace(batch, purpose=Purpose.ENDS)

    def _disturbed_build(self) -> Measure | None:
        """More samples of a build whose batches were all disturbed."""
        build = self._evidence.unmeasured_build
        return None if build is None else self._guide.batch(build, 2)

    def _locate(self) -> Measure | None:
        """What narrows the likely changes down, if builds are expensive; once, before the rounds.

        For a rate again, when rounds of two builds show that the change is elsewhere.
        """
        if self._is_elsewhere():
            self._is_guided, self._rounds.focus = True, None
        if not self._is_guided:
            return None
        batch = None if self._begins_with_map else self._guide.ask()
        if batch is None:
            self._is_guided = False
            self._begin_map()
        return batch

    def _is_elsewhere(self) -> bool:
        if self._is_guided or not isinstance(self._guide, RateGuide):
            return False
        focus = self._rounds.focus
        if focus is None:
            return self._saw_nothing and bool(self._guide.located())
        return (
            self._rounds.compare(*focus).finding is Finding.OPEN and self._guide.chance(*focus) < LEAVE_ROUNDS
        )

    def _round(self) -> Measure | None:
        """The next round."""
        self._rounds.add((self._evidence.positions[0], self._evidence.positions[-1]))
        return None if self._layouts.hidden else self._rounds.ask()

    def _look_inside(self) -> Measure | None:
        """A round with further builds in the longest gaps, if changes may cancel each other there."""
        most = self._looks_left if self._is_mapped else min(1, self._looks_left)
        pairs = self._rounds.longest_unseen()[:most]
        middles = {pair: middle for pair in pairs if (middle := self._rounds.middle(*pair)) is not None}
        if not middles:
            return None
        builds = {*middles.values(), *(end for pair in middles for end in pair)}
        measure = self._rounds.round_of(builds, Purpose.UNSEEN)
        if self._refusal(replace(measure, order=measure.order * FEWEST_FLAT)) is not None:
            return None
        self._looks += len(middles)
        self._rounds.add(middles.values())
        return measure

    @property
    def _looks_left(self) -> int:
        """The number of further builds in the longest gaps.

        Where layouts may explain a change, more builds would also find more unusual layouts.
        """
        named = sum(each.finding is Finding.CHANGED for each in self._rounds.gaps())
        if self._is_mapped:
            most = LOOKS * named if named > 1 and not self._layouts.is_needed else 0
        else:
            most = 0 if named or self._is_rate else LOOKS
        return max(0, most - self._looks)

    def _look_outside(self) -> Measure | None:
        """First samples of an untried revision beyond the outermost usable ones, halving the untried range."""
        if len(self._evidence.unusable) >= MOST_UNUSABLE:
            return None
        low, high = self._evidence.positions[0], self._evidence.positions[-1]
        for outside in (range(low - 1, -1, -1), range(high + 1, self.question.revisions)):
            untried = [position for position in outside if not self._evidence.has_result(position)]
            if untried:
                reach = sum(abs(at - untried[0]) == number for number, at in enumerate(untried))
                batch = self._guide.batch(untried[(reach - 1) // 2], self.question.samples_at_ends)
                return replace(batch, purpose=Purpose.OUTSIDE)
        return None

    def _look_beside(self) -> Measure | None:
        """A round with one more build on the side of a change that layouts may explain."""
        builds = self._layouts.wanted()
        self._rounds.add(builds)
        return self._rounds.round_of(builds, Purpose.LAYOUTS) if builds else None

    @property
    def _begins_with_map(self) -> bool:
        """Whether the rounds begin with a map of the whole history: it is thorough, or builds are cheap so far."""
        if self._is_rate:
            return False
        cheap = self._evidence.seconds_per_build < CHEAP * self._evidence.seconds_per_sample
        return self.question.thorough or cheap

    def _persist(self) -> Measure | None:
        """Further rounds of builds that many rounds may decide, if no change is named and nothing else is left."""
        named = any(each.is_named for each in self._rounds.gaps())
        if self._is_rate or self._rounds.is_persistent or named:
            return None
        self._rounds.persist()
        return self._round()

    def _begin_map(self) -> None:
        """Put the first builds on the map."""
        positions = self._evidence.positions
        low, high = positions[0], positions[-1]
        self._is_mapped = self._begins_with_map
        if self._is_mapped:
            count = THOROUGH_GAPS if self.question.thorough else FIRST_GAPS
            spread = np.linspace(low, high, min(count, high - low) + 1)
            builds = [round(each) for each in spread.tolist()]
            is_allowed = self._refusal(self._rounds.round_of(builds, Purpose.ROUND)) is None
            self._rounds.add(builds if is_allowed else (low, high))
        else:
            located = self._guide.located()
            self._rounds.add((low, *located, high))
            self._saw_nothing = not located
            if isinstance(self._guide, RateGuide) and len(located) == 2 and located[1] - located[0] == 1:
                direction, chance = self._guide.direction(located[0]), self._guide.chance(*located)
                self._rounds.focus_on(located[0], located[1], direction=direction, chance=chance)

    # What is known so far.

    @property
    def belief(self) -> Belief | None:
        """The current belief, `None` before two revisions were measured."""
        if not self._is_guided and len(self._evidence.rounds) >= FEWEST_ROUNDS:
            return self._belief_of_rounds()
        return self._guide.belief if len(self._evidence.guiding_positions) > 1 else None

    def _belief_of_rounds(self) -> Belief:
        """Return what the rounds show: the widest likely change that is not decided, or that nothing changed."""
        gaps = self._rounds.gaps()
        likely = [each for each in gaps if each.is_named or each.is_likely]
        total = sum(abs(each.size) for each in likely)
        share, shares = 0.0, [(gaps[0].first, 0.0)]
        for each in gaps:
            share += abs(each.size) / total if each in likely else 0.0
            shares.append((each.last, min(share, 1.0)))
        open_ones = [each for each in likely if each.finding is Finding.OPEN]
        widest = max(open_ones or likely or gaps, key=lambda each: each.last - each.first)
        values = self._evidence.values_in_rounds(widest.first)
        before = float(np.median(values)) if len(values) else 0.0
        claim, ends = None, self._rounds.compare(gaps[0].first, gaps[-1].last)
        about, running = widest if likely else ends, self._rounds.open_pairs()
        is_run = any((each.first, each.last) == (about.first, about.last) for each in running)
        may_be_equal = not likely and not self._rounds.is_certain(ends)
        may_be_change = open_ones and self._rounds.middle(widest.first, widest.last) is None
        if is_run and (may_be_equal or may_be_change):
            forecast = open_rounds(about, self.question.threshold_on_scale, self._rounds.level)
            claim = ClaimProgress(
                blocks=len(about.differences),
                blocks_left=forecast if about.finding is Finding.OPEN else None,
                around=(widest.first, widest.last) if likely else None,
            )
        runs = self._rounds.between_changes(gaps)
        return Belief(
            at_or_before=tuple(shares),
            no_change=0.0
            if likely
            else math.prod(1 - run.ends.reaches(self.question.threshold_on_scale) for run in runs),
            candidates=len(self.question.candidates(widest.first, widest.last)),
            before=self.question.scale.as_value(before),
            after=self.question.scale.as_value(before + widest.size),
            sigma=self._rounds.spread / math.sqrt(2),
            tau=None,
            claim=claim,
            changes=len(likely),
            span=(widest.first, widest.last) if likely else None,
        )

    def work_left(self) -> WorkLeft:
        """Forecast the work until the search is settled."""
        if isinstance(self.ask(), Settled):
            return NOTHING_LEFT
        rounds = None if self._is_guided else self._rounds
        left = work_left(self.question, self.belief, invocations=self._evidence.invocations, rounds=rounds)
        looks = 0 if rounds is None else self._looks_left
        # Each is compared with both of its neighbours until the three look equal.
        runs = 3 * FEWEST_FLAT * looks * self.question.invocations_per_sample
        return replace(
            left, runs=(left.runs[0], left.runs[1] + runs), builds=(left.builds[0], left.builds[1] + looks)
        )


def _values(observations: Iterable[Observation]) -> Iterator[float]:
    """Yield the values of all samples of observations."""
    for batch in observations:
        for sample in batch.samples if isinstance(batch, Batch) else ():
            if sample.value is not None:
                yield sample.value
