"""Search for the revisions that changed a metric: ask what to measure, tell the samples, until it is settled.

The guide (`posterior`, `policy`) chooses what to measure; the certificate (`certificate`) decides. Once the
guide has narrowed each likely change to one gap, fresh blocks of a certificate confirm or reject it. If no
change is likely, a certificate shows that the ends are equal within the threshold. The guide uses the blocks'
samples too; a certificate never uses the guide's.

Pure: no clock, no disk; random orders come from the question's seed. The same observations in the same order, with a
request after each, lead to the same requests. So a search resumes when it receives all earlier results again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import policy
from perftrail.search.answer import Measure, Purpose, Settled, nothing_usable
from perftrail.search.certificate import Certificate, State
from perftrail.search.conclusion import LAYOUTS_ENOUGH, Claim, conclude, conclude_ramp, no_change
from perftrail.search.evidence import Evidence
from perftrail.search.forecast import NOTHING_LEFT, blocks_left, work_left
from perftrail.search.observation import Batch
from perftrail.search.policy import CostModel
from perftrail.search.posterior import ClaimProgress, belief_of, infer, narrowest
from perftrail.search.ramp import find_ramp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from perftrail.search.answer import Action
    from perftrail.search.budget import Budget
    from perftrail.search.forecast import WorkLeft
    from perftrail.search.observation import Observation
    from perftrail.search.posterior import Belief, LikelyChange, Posterior
    from perftrail.search.question import Question
    from perftrail.search.ramp import Ramp

LARGE_ENOUGH = 0.5
LARGE_ENOUGH_ALONE = 0.1
"""A likely change is searched for if it reaches the threshold with this probability; the second value applies if there
is no other change."""

FURTHER = 0.1
FURTHER_THOROUGH = 0.01
"""A further change of this probability gets more samples; the second value applies in a thorough search."""

MOST_SAMPLES = 12
"""Maximum samples of a build only to look for a further change."""

CERTIFY_FROM = 0.95
"""The guide passes a change to the certificate once it is in one gap with this probability."""

ALL_BROKEN = 0.97
"""Untried revisions in a broken range are ignored once all of them are broken with this probability."""

MOST_UNUSABLE = 40
"""Maximum failures without one usable revision."""

SPREAD = 24
"""A thorough search measures a revision in each range longer than the history's length over this."""

LEAST_NEAR = 3
NEAR = 6
"""Minimum and maximum of further builds measured at each end without relinking: they show the layout noise."""

LEAST_PER_SIDE = 3
"""Minimum number of builds on each side of a change before it is named without relinking: fewer may be alike by
the chance of their layouts."""

BEYOND_LAYOUTS = 0.999
"""Above this confidence, a change is too large for any usual layout."""

MOST_CLAIMS = 10
"""Maximum number of claims to certify, including rejected ones."""

MOST_AFTER_LOCATED = 48
"""Maximum samples to exclude that layouts explain a certified change. If the search needed more samples
to locate the change, that number is the maximum."""

SAMPLES_PER_LAYOUT = 4
"""Number of runs of each build in a block's layout if linking costs more than samples."""

LONG_SEARCH = 90
"""Invocations after which a search checks whether its step is really a ramp."""

MOST_FIRST = 24
"""Maximum batches for the ends, even if many samples were disturbed."""

MOST_BATCHES = 1000
"""Maximum batches of one search."""

BUILDS_PER_HALVING = 4
HIDDEN = 0.5
"""Without relinking, a search with more than these builds for each halving of the history ends if the standard
deviation of layouts exceeds this share of the threshold."""

MOST_CONSECUTIVE = 12
"""Maximum consecutive batches of one build."""

MOST_NOISY = 0.25
"""Above this share of noisy samples, a noisy sample no longer cancels its pair: hardly any pairs would be
left."""

_PARTS = (0.5, 0.375, 0.625, 0.25, 0.75)
"""Where to build in a range, as shares of its length: the first untried one is chosen."""


class Search:
    """A search for the revisions that changed a metric, as an ask/tell object.

    First `tell` all known results, also those that it did not ask for. Then perform the action that `ask` returns,
    and `tell` its result, until `ask` returns `Settled`.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        weights = question.weights()
        self._cumulative = np.cumsum(weights)
        self._cumulative /= self._cumulative[-1]
        self._possible = weights > 0
        self._evidence = Evidence(question)
        self._certificates: dict[tuple[int, ...], Certificate] = {}
        self._blocks = 0
        self._informed: tuple[Certificate, ...] = ()
        self._until_located = 0
        self._after_located = 0
        self._last_sampled: frozenset[int] = frozenset()
        self._consecutive = 0
        self._posterior: Posterior | None = None
        self._earlier: Posterior | None = None
        self._ramp: Ramp | None = None
        self._ramp_known = False
        self._next: Action | None = None

    def tell(self, observation: Observation) -> None:
        """Record an observation, asked for or not. Raises `ValueError` for a position outside the history."""
        if isinstance(observation, Batch) and observation.certificate:
            # Asking creates claims: a resumed search that only receives results must create them too.
            self.ask()
        self._evidence.add(observation)
        if isinstance(observation, Batch) and observation.certificate:
            self._blocks += 1
            self._report_to_certificates(observation)
        elif isinstance(observation, Batch):
            others = frozenset(sample.position for sample in observation.samples) - {self._evidence.reference}
            self._consecutive = self._consecutive + 1 if others == self._last_sampled else 1
            self._last_sampled = others
            if self._is_cautious:
                self._after_located += len(observation.samples)
            else:
                self._until_located += len(observation.samples)
        self._posterior = None
        self._next = None

    def _report_to_certificates(self, block: Batch) -> None:
        """Report a block to every open certificate of which the block ran at least two builds."""
        values: dict[int, list[float]] = {}
        cancelled: set[int] = set()
        for sample in block.samples:
            build = self._evidence.build_of(sample.position)
            if sample.value is None or (sample.noisy and self._evidence.noisy_share < MOST_NOISY):
                cancelled.add(build)
            else:
                values.setdefault(build, []).append(sample.value)
        means = {build: sum(each) / len(each) for build, each in values.items() if build not in cancelled}
        ran = set(values) | cancelled
        self._informed = tuple(
            certificate
            for certificate in self._certificates.values()
            if certificate.state is State.OPEN and len(ran.intersection(certificate.builds)) > 1
        )
        count = len(block.samples) * self.question.invocations_per_sample
        for certificate in self._informed:
            certificate.tell(means, layout=block.layout, invocations=count)

    def ask(self) -> Action:
        """Return what to measure next, or the answer; the same until new results are added."""
        if self._next is None:
            self._next = self._decide()
        return self._next

    def first_batch(self, position: int) -> Measure:
        """Return the first batch of a build that was built ahead."""
        return self._guide_batch(position, 1)

    def builds_ahead(self, begun: Collection[int], count: int) -> tuple[int, ...]:
        """Return up to `count` positions with the most informative builds while those `begun` are being built.

        With k parallel builds of one gap, a gap is split into k + 1 pieces instead of two.
        """
        action = self.ask()
        if isinstance(action, Settled) or action.certificate:
            return ()
        taken = {*begun, *action.positions}
        if len(self._evidence.positions) < 2:
            ends = [end for end in self._ends() if end is not None and not self._evidence.has_result(end)]
            return tuple(end for end in dict.fromkeys(ends) if end not in taken)[:count]
        ahead: list[int] = []
        options = [self._new_builds(change) for change in self._unresolved()]
        while len(ahead) < count and self._may_build(
            extra=len(taken - self._evidence.attempted) + len(ahead)
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

    def allow(self, budget: Budget) -> None:
        """Replace the question's budget."""
        if budget != self.question.budget:
            self.question = replace(self.question, budget=budget)
            self._next = None

    @property
    def posterior(self) -> Posterior:
        """The posterior given the samples; needs two usable revisions."""
        if self._posterior is None:
            self._posterior = infer(
                self.question,
                self._evidence,
                self._cumulative,
                cautious=self._is_cautious,
                known=self._earlier,
            )
            self._earlier = self._posterior
            self._ramp_known = False
        return self._posterior

    @property
    def _is_cautious(self) -> bool:
        """Whether a claim has so few layouts that only the posterior separates layouts from changes."""
        located = (each for each in self._certificates.values() if each.state is State.CONFIRMED)
        return any(each.summary().layouts < LAYOUTS_ENOUGH for each in located)

    @property
    def belief(self) -> Belief | None:
        """The current belief, `None` before two revisions were measured."""
        if len(self._evidence.positions) < 2:
            return None
        belief = belief_of(self.posterior)
        return replace(belief, claim=self._claim_progress(), changes=len(self._large_changes()))

    def _claim_progress(self) -> ClaimProgress | None:
        """Return the progress of the open claim that agrees with the belief and has the most blocks.

        If none agrees, the claim of the latest block may still be open; it has no forecast then.
        """
        nothing = self.posterior.no_change > 0.5
        open_ones = [each for each in self._certificates.values() if each.state is State.OPEN and each.blocks]
        agreeing = [each for each in open_ones if each.claims_equal_ends == nothing]
        latest = max(
            agreeing or (each for each in open_ones if each in self._informed),
            key=lambda each: each.blocks,
            default=None,
        )
        if latest is None:
            return None
        confirmed = sum(
            each.state is State.CONFIRMED and not each.claims_equal_ends
            for each in self._certificates.values()
        )
        others = max(0, len(self._large_changes()) - 1 - confirmed)
        left = blocks_left(latest, others=others, counted=self.question.counted) if agreeing else None
        return ClaimProgress(
            blocks=latest.blocks,
            blocks_left=left,
            around=None if latest.claims_equal_ends else latest.inner,
        )

    def work_left(self) -> WorkLeft:
        """Forecast the work until the search is settled."""
        if isinstance(self.ask(), Settled):
            return NOTHING_LEFT
        return work_left(self.question, self.belief, invocations=self._evidence.invocations)

    def expected_seconds(self, measure: Measure) -> float:
        """Return the expected cost of a batch, including the builds that it needs."""
        fresh = [position for position in measure.positions if position not in self._evidence.built]
        costs = CostModel(self.question, self._evidence)
        return float(costs.build(np.array(fresh, dtype=np.int64)).sum()) + len(measure.order) * costs.sample

    @property
    def evidence(self) -> Evidence:
        """Everything reported so far."""
        return self._evidence

    # Deciding what to do next: first the ends, then inside, then certificates.

    def _decide(self) -> Action:  # noqa: PLR0911 - one return for each stage, in their order
        batch = self._first_samples()
        if batch is not None:
            return self._afford(replace(batch, purpose=Purpose.ENDS))
        if len(self._evidence.positions) < 2:
            return Settled(answer=nothing_usable(self._too_few()))
        if self._evidence.batches >= MOST_BATCHES:
            return self._conclude(f"{MOST_BATCHES} batches have not decided it")
        unmeasured_build = self._evidence.unmeasured_build
        if unmeasured_build is not None:
            return self._afford(self._guide_batch(unmeasured_build, 2))
        if not self._large_changes():
            return self._nothing_found()
        ramp = self._likely_ramp()
        if ramp is not None:
            return self._certify_ramp(ramp)
        if self._is_hidden():
            return self._conclude(
                f"builds seem to differ by about {100 * self.posterior.tau:.2g} % without any change"
                f"{', perhaps because of their memory layouts or of other load' if self.question.linked else ''}: "
                f"too much to search for changes of {100 * self.question.threshold:g} %",
                layouts_hide=True,
            )
        enough = max(MOST_AFTER_LOCATED, self._until_located)
        choice = self._best_choice(self._unresolved()) if self._after_located < enough else None
        if choice is not None and not self._is_stuck(choice.position):
            return self._afford(
                replace(self._guide_batch(choice.position, choice.samples), purpose=self._locating())
            )
        return self._sample_further() or self._separate_ramp() or self._certify()

    def _locating(self) -> Purpose:
        """Return why a change is narrowed down now: blocks of a certificate may have made that necessary again."""
        if self._is_cautious:
            return Purpose.LAYOUTS
        return Purpose.UNSETTLED if self._blocks else Purpose.LOCATE

    def _is_hidden(self) -> bool:
        """Whether the noise of layouts, without relinking, is too large for the threshold."""
        most = BUILDS_PER_HALVING * math.ceil(math.log2(self.question.revisions))
        return (
            not self._evidence.relinks
            and len(self._evidence.built) > most
            and self.posterior.tau > HIDDEN * self.question.threshold_log
        )

    def _is_stuck(self, position: int) -> bool:
        """Whether one build was requested so often in a row that more samples of it give no information."""
        wanted = frozenset({position}) - {self._evidence.reference}
        return self._consecutive >= MOST_CONSECUTIVE and wanted == self._last_sampled

    def _large_changes(self) -> list[LikelyChange]:
        """Return the likely changes that probably reach the threshold."""
        changes = self.posterior.changes
        large = [change for change in changes if change.reaches_threshold >= LARGE_ENOUGH]
        return large or [change for change in changes if change.reaches_threshold >= LARGE_ENOUGH_ALONE]

    def _first_samples(self) -> Measure | None:
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

    def _too_few(self) -> str:
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
        if change.exists * float(change.gaps[gap]) < self._target(gap):
            return False
        if not self._is_divisible(gap):
            return True
        low, high = self.posterior.positions[gap], self.posterior.positions[gap + 1]
        return bool(policy.breakage(self._evidence).all_between(low, high) >= ALL_BROKEN)

    def _target(self, gap: int) -> float:
        """Return the required probability of a gap: lower before its certificate than for the answer."""
        sides = [self._evidence.build_of(self.posterior.positions[at]) for at in (gap, gap + 1)]
        for certificate in self._certificates.values():
            inner = certificate.inner
            if list(inner) == sides and certificate.state is State.CONFIRMED:
                return (
                    0.0
                    if certificate.summary().layouts >= LAYOUTS_ENOUGH
                    else self.question.required_probability
                )
        return CERTIFY_FROM

    def _is_divisible(self, gap: int) -> bool:
        """Whether an untried revision inside a gap would split its candidates."""
        possible = self._candidates(range(gap, gap + 1))
        inside = range(int(possible[0]), int(possible[-1]))
        return any(not self._evidence.has_result(position) for position in inside)

    def _candidates(self, gaps: range) -> npt.NDArray[np.int64]:
        """Return the possible culprits inside neighbouring gaps."""
        low, high = self.posterior.positions[gaps.start], self.posterior.positions[gaps.stop]
        found: npt.NDArray[np.int64] = np.nonzero(self._possible[low + 1 : high + 1])[0] + low + 1
        return found

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

    def _guide_batch(self, position: int, samples: int) -> Measure:
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

    def _sample_further(self) -> Action | None:
        """Return more samples of the builds next to the likeliest gap of a further change."""
        enough = FURTHER_THOROUGH if self.question.thorough else FURTHER
        further = self.posterior.further
        if further is not None and further.probability > enough:
            sides = [self.posterior.positions[at] for at in (further.gap, further.gap + 1)]
            usable = [side for side in sides if side not in self._evidence.unusable]
            least = min(usable, key=self._evidence.count, default=None)
            if least is not None and self._evidence.count(least) < MOST_SAMPLES:
                measure = replace(self._guide_batch(least, 2), purpose=Purpose.FURTHER)
                return measure if self._refusal(measure) is None else None
        return self._sample_longest_range() if self.question.thorough else None

    def _sample_longest_range(self) -> Measure | None:
        """Return a build near the middle of the longest range without a measured revision, while it is too long."""
        positions = self._evidence.positions
        lengths = np.diff(positions)
        for gap in np.argsort(-lengths, kind="stable").tolist():
            low, high = positions[gap], positions[gap + 1]
            if high - low <= max(1, self.question.revisions // SPREAD):
                break
            candidates = [low + round((high - low) * part) for part in _PARTS]
            fresh = [at for at in candidates if low < at < high and not self._evidence.has_result(at)]
            if fresh:
                measure = replace(self._guide_batch(fresh[0], 2), purpose=Purpose.REVERTED)
                return measure if self._refusal(measure) is None else None
        return None

    # Ramps.

    def _possible_ramp(self) -> Ramp | None:
        """Return the belief in a ramp, if it is plausible: steps in one direction, or a long search."""
        changes = self.posterior.changes
        one_way = len({change.size > 0 for change in changes}) == 1
        if not one_way or (len(changes) < 3 and self._evidence.invocations < LONG_SEARCH):
            return None
        if not self._ramp_known:
            self._ramp, self._ramp_known = find_ramp(self.posterior, self.question), True
        return self._ramp

    def _likely_ramp(self) -> Ramp | None:
        ramp = self._possible_ramp()
        return ramp if ramp is not None and ramp.probability >= 0.5 else None

    def _separate_ramp(self) -> Measure | None:
        """Return samples where a ramp and the steps differ most, while a ramp is not excluded."""
        ramp = self._possible_ramp()
        if ramp is None or ramp.probability <= 1 - self.question.confidence:
            return None
        position = ramp.most_informative_position(self._evidence, self.posterior)
        if position is None:
            return None
        measure = replace(self._guide_batch(position, 2), purpose=Purpose.GRADUAL)
        return measure if self._refusal(measure) is None else None

    def _certify_ramp(self, ramp: Ramp) -> Action:
        """Confirm that it is a ramp, and certify that the ends differ."""
        if ramp.probability < self.question.confidence:
            batch = self._separate_ramp()
            if batch is not None:
                return batch
        low, high = self.posterior.positions[0], self.posterior.positions[-1]
        certificate = self._certificate((low, low, high, high), direction=ramp.direction)
        if certificate is not None and certificate.state is State.OPEN:
            return self._afford(self._block(certificate))
        return Settled(answer=conclude_ramp(self.question, self._evidence, self.posterior, ramp, certificate))

    # The certificates.

    def _nothing_found(self) -> Action:  # noqa: PLR0911 - as `_decide`
        """Certify that the ends are equal within the threshold, after a search for further changes if requested."""
        batch = self._sample_further()
        if batch is not None:
            return batch
        untried = self._untried_beyond_ends()
        if untried is not None:
            batch = self._guide_batch(untried, self.question.samples_at_ends)
            return self._afford(replace(batch, purpose=Purpose.OUTSIDE))
        low, high = self.posterior.positions[0], self.posterior.positions[-1]
        certificate = self._certificate((low, high), direction=1)
        if certificate is not None and certificate.state is State.OPEN:
            return self._afford(self._block(certificate))
        if certificate is None or certificate.state is not State.CONFIRMED:
            return self._conclude(
                "the search could neither show that the ends are equal nor locate a change between them"
            )
        same = self._evidence.build_of(low) == self._evidence.build_of(high)
        if certificate.summary().layouts < LAYOUTS_ENOUGH and not same and not self.question.counted:
            unsure = self.posterior.no_change < self.question.required_probability
            near = self._near_end(NEAR if unsure else LEAST_NEAR)
            if near is not None:
                return self._afford(replace(near, purpose=Purpose.LAYOUTS))
            if unsure:
                return self._conclude(
                    "the builds at the ends have equal values, possibly because of their layouts",
                    layouts_hide=True,
                )
        return Settled(answer=no_change(self.question, self._evidence, self.posterior, certificate))

    def _near_end(self, most: int) -> Measure | None:
        """Return samples of one more build near an end: one layout may hide a change, several hardly can."""
        last = self.question.revisions - 1
        reach = max(NEAR, self.question.revisions // 8)
        sides = [range(1, min(reach, last)), range(last - 1, max(last - reach, 0), -1)]
        built = [sum(self._evidence.is_usable(at) for at in side) for side in sides]
        for side in sorted((0, 1), key=lambda each: built[each]):
            fresh = next((at for at in sides[side] if not self._evidence.has_result(at)), None)
            if built[side] < most and fresh is not None:
                wanted = (self.posterior.sigma / max(self.posterior.tau, 1e-9)) ** 2
                return self._guide_batch(fresh, int(np.clip(round(wanted), 2, MOST_SAMPLES)))
        return None

    def _untried_beyond_ends(self) -> int | None:
        """Return an untried revision before the first or after the last usable one, halving the untried range."""
        if len(self._evidence.unusable) >= MOST_UNUSABLE:
            return None
        low, high = self.posterior.positions[0], self.posterior.positions[-1]
        for outside in (range(low - 1, -1, -1), range(high + 1, self.question.revisions)):
            untried = [position for position in outside if not self._evidence.has_result(position)]
            if untried:
                reach = sum(abs(at - untried[0]) == number for number, at in enumerate(untried))
                return untried[(reach - 1) // 2]
        return None

    def _certify(self) -> Action:
        """Certify every change that the guide has narrowed down; answer once all claims are decided."""
        claims = self._claims()
        for certificate in self._certificates_of(claims):
            if certificate is None:
                continue
            if certificate.state is State.FUTILE:
                certificate.extend()
            if certificate.state is State.OPEN:
                return self._afford(self._block(certificate))
        return self._sample_sides(claims) or self._conclude("")

    def _sample_sides(self, claims: Sequence[Claim]) -> Measure | None:
        """Return samples of one more build beyond a certified change with few on that side: layouts may explain it."""
        if self.question.counted:
            return None
        certificates = list(self._certificates_of(claims))
        located = [
            claim
            for claim, certificate in zip(claims, certificates, strict=True)
            if certificate is not None
            and certificate.state is State.CONFIRMED
            and certificate.summary().layouts < LAYOUTS_ENOUGH
            and claim.confidence < BEYOND_LAYOUTS
        ]
        inside = {at for claim in claims for at in self._candidates(claim.gaps).tolist() if at != claim.after}
        bounds = sorted({0, self.question.revisions, *(claim.after for claim in located)})
        for first, stop in pairwise(bounds) if located else ():
            side = [at for at in range(first, stop) if at not in inside]
            builds = {self._evidence.build_of(at) for at in side if self._evidence.is_usable(at)}
            fresh = [at for at in side if not self._evidence.has_result(at)]
            if len(builds) < LEAST_PER_SIDE and fresh and len(side) - len(fresh) < NEAR:
                measure = replace(self._guide_batch(fresh[len(fresh) // 2], 2), purpose=Purpose.LAYOUTS)
                return measure if self._refusal(measure) is None else None
        return None

    def _claims(self) -> list[Claim]:
        """Narrow each large change to the fewest revisions that contain it; of overlapping ranges keep the surest."""
        found: list[Claim] = []
        for change in sorted(self._large_changes(), key=lambda each: -float(each.gaps.max() * each.exists)):
            gap = int(np.argmax(change.gaps))
            if self._is_resolved(change):
                gaps = range(gap, gap + 1)
            else:
                gaps = narrowest(self.posterior.positions, change.gaps, self._target(gap)) or range(
                    gap, gap + 1
                )
            positions = self.posterior.positions
            claim = Claim(
                change=change,
                gaps=gaps,
                before=positions[gaps.start],
                after=positions[gaps.stop],
                direction=1 if change.size > 0 else -1,
                confidence=change.exists * float(change.gaps[gaps.start : gaps.stop].sum()),
            )
            if all(claim.after <= other.before or claim.before >= other.after for other in found):
                found.append(claim)
        return sorted(found, key=lambda claim: claim.before)

    def _certificates_of(self, claims: Sequence[Claim]) -> Iterator[Certificate | None]:
        """Yield the certificate of each claim, created if missing; `None` once there are too many."""
        positions = self.posterior.positions
        edges = [positions[0], *(at for claim in claims for at in (claim.before, claim.after)), positions[-1]]
        for number, claim in enumerate(claims):
            builds = edges[2 * number : 2 * number + 4]
            yield self._certificate(tuple(builds), direction=claim.direction)

    def _certificate(self, builds: tuple[int, ...], *, direction: int) -> Certificate | None:
        named = tuple(self._evidence.build_of(position) for position in builds)
        if named not in self._certificates:
            if len(self._certificates) >= MOST_CLAIMS:
                return None
            posterior = self.posterior
            layout = posterior.tau if self._evidence.relinks else 0.0
            self._certificates[named] = Certificate(
                named,
                direction=direction,
                level=(1 - self.question.confidence) / 2 ** (1 + len(self._certificates)),
                threshold=self.question.threshold_log,
                scale=math.hypot(posterior.grid_sigma, layout),
                resolution=self._evidence.undithered_step(posterior.grid_sigma),
                counted=self.question.counted,
            )
        return self._certificates[named]

    def _block(self, certificate: Certificate) -> Measure:
        """Return the next block of a certificate, in random order, in new layouts where builds can be relinked."""
        builds = list(certificate.needed)
        rng = np.random.default_rng([self.question.seed, self._blocks, *builds])
        expensive = self._evidence.relinks and self._evidence.relinking_is_expensive
        builds *= SAMPLES_PER_LAYOUT if expensive else 1
        rng.shuffle(builds)
        layout = self._evidence.batches + 1 if self._evidence.relinks else 0
        return Measure(order=tuple(builds), certificate=True, layout=layout, purpose=Purpose.CERTIFY)

    # The budget, and the answer.

    def _may_build(self, *, extra: int = 0) -> bool:
        most = self.question.budget.builds
        return most is None or self._evidence.builds + extra < most

    def _refusal(self, measure: Measure) -> str | None:
        """Return why the budget does not allow a batch; `None` if it does."""
        evidence = self._evidence
        return self.question.budget.refusal(
            builds=evidence.builds,
            invocations=evidence.invocations,
            seconds=evidence.seconds,
            fresh=sum(not evidence.is_started(position) for position in measure.positions),
            more=len(measure.order) * self.question.invocations_per_sample,
        )

    def _afford(self, measure: Measure) -> Action:
        """Return the batch if the budget allows it; else the answer."""
        refusal = self._refusal(measure)
        return measure if refusal is None else self._conclude(refusal)

    def _conclude(self, reason: str, *, layouts_hide: bool = False) -> Settled:
        """Return the certified answer, with the guide's further suspicions.

        `layouts_hide`: the search ends because builds without a change differ too much.
        """
        if len(self._evidence.positions) < 2:
            return Settled(answer=nothing_usable(reason))
        claims = self._claims()
        certificates = list(self._certificates_of(claims))
        return Settled(
            answer=conclude(
                self.question,
                self._evidence,
                self.posterior,
                [
                    (claim, tuple(self._candidates(claim.gaps).tolist()), certificate)
                    for claim, certificate in zip(claims, certificates, strict=True)
                ],
                equal_ends=self._certificates.get(self._named_ends()),
                reason=reason,
                layouts_hide=layouts_hide,
            )
        )

    def _named_ends(self) -> tuple[int, ...]:
        ends = (self.posterior.positions[0], self.posterior.positions[-1])
        return tuple(self._evidence.build_of(position) for position in ends)


def _inward(revisions: int) -> Iterator[int]:
    """Yield distances from an end at which to look for a usable revision, in growing steps.

    >>> list(_inward(20))
    [0, 1, 2, 3, 4, 6, 9, 13, 19]
    """
    distance = 0
    while distance < revisions:
        yield distance
        distance = max(distance + 1, distance * 3 // 2)
