"""Search for the revision where a program began to fail, with attempts that can also fail by chance.

An attempt builds a revision, if it is not built yet, and runs the benchmark once. The model: one change at an unknown
position, from one unknown probability to fail to another. With w_p attempts of position
p that worked and f_p that failed,

``P(attempts | culprit c, rates a, b) = prod_{p<c} a^f_p (1-a)^w_p prod_{p>=c} b^f_p (1-b)^w_p``

summed over a grid of both rates. Most of the grid's weight is on programs that never, or always, fail. Rates are
capped on both sides, so one attempt never decides. Unlike the Beta-Bernoulli search of git_bayesect, the search
considers the cost of an attempt. It does not repeat a revision whose failure is deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import Answer, Change, Measure, Settled, Verdict
from perftrail.search.policy import entropy
from perftrail.search.posterior import CANDIDATES_PROBABILITY, Belief, narrowest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.budget import Budget
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]

RATES = np.array([0.0005, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.9995])
"""Probabilities to fail. The first and the last are the cap: the rate of failures, or successes, by mere chance."""

_WEIGHTS = np.array([40.0, 4.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 4.0, 40.0])
_WEIGHTS /= _WEIGHTS.sum()

SMALLEST = 0.14
"""The smallest difference of two rates that counts as a change."""

MOST_ATTEMPTS = 1000
"""A search that this many attempts did not settle has rates that hardly differ."""

_FOR_RATES = 0.1
"""Value of one bit about the rates, relative to one bit about the position."""

_LITTLE = 1e-4
"""Bits: an attempt with less information than this is not worth its cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """New attempts of one revision: how many worked, how many failed, and their cost.

    `final`: the failure is deterministic, for example a failed build, so another attempt would give the same
    result. `stored`: the attempts are older than the search, so they cost it nothing and count in no budget.
    """

    position: int
    worked: int = 0
    failed: int = 0
    final: bool = False
    stored: bool = False
    seconds: float = 0.0
    build_seconds: float | None = None

    def __post_init__(self) -> None:
        if min(self.worked, self.failed) < 0 or self.worked + self.failed == 0:
            raise ValueError(
                f"position {self.position}: {self.worked} attempts worked, {self.failed} failed; report one or more"
            )


class FailureSearch:
    """The search for the first revision that fails, or works again, as an ask/tell object.

    The same observations in the same order lead to the same request. The question's `threshold` is not used.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        weights = np.ones(question.revisions) if question.prior is None else np.array(question.prior)
        weights[0] = 0.0
        self._cumulative = np.cumsum(weights / weights.sum())
        self._attempts: dict[int, list[int]] = {}
        self._stored: dict[int, int] = {}
        self._performed: set[int] = set()
        self._final: set[int] = set()
        self._spent: dict[str, list[float]] = {"build": [], "attempt": []}
        self._chances: Chances | None = None

    def tell(self, observation: Attempts) -> None:
        """Record attempts, asked for or not; raise `ValueError` for a position outside the history."""
        if not 0 <= observation.position < self.question.revisions:
            raise ValueError(
                f"position {observation.position}: the history has positions 0 to {self.question.revisions - 1}"
            )
        counts = self._attempts.setdefault(observation.position, [0, 0])
        counts[0] += observation.worked
        counts[1] += observation.failed
        if observation.final:
            self._final.add(observation.position)
        self._chances = None
        attempts = observation.worked + observation.failed
        if observation.stored:
            self._stored[observation.position] = self._stored.get(observation.position, 0) + attempts
            return
        self._performed.add(observation.position)
        if observation.build_seconds is not None:
            self._spent["build"].append(observation.build_seconds)
        self._spent["attempt"].extend([observation.seconds / attempts] * attempts)

    def allow(self, budget: Budget) -> None:
        """Replace the question's budget."""
        self.question = replace(self.question, budget=budget)

    def ask(self) -> Measure | Settled:
        """Return the next revision to try, or the answer; the same until new results are added."""
        for end in (0, self.question.revisions - 1):
            if end not in self._attempts:
                return self._afford(end)
        chances = self._posterior
        wanted = self.question.confidence
        if chances.nothing >= wanted:
            return self._unchanged(chances)
        gap = int(np.argmax(chances.gaps))
        single = chances.positions[gap + 1] - chances.positions[gap] == 1
        if single and chances.gaps[gap] >= wanted:
            return self._located(chances, range(gap, gap + 1), "the revisions on both sides were tried")
        bits, costs = self._bits(chances), self._costs()
        best = int(np.argmax(bits / costs))
        if self.invocations >= MOST_ATTEMPTS:
            return self._end(f"{MOST_ATTEMPTS} attempts did not separate before from after")
        if bits[best] < _LITTLE:
            return self._end("more attempts would give almost no information")
        return self._afford(best)

    @property
    def belief(self) -> Belief | None:
        """The current belief, `None` before two revisions were tried. The levels are P(works)."""
        if len(self._attempts) < 2:
            return None
        chances = self._posterior
        gaps = _narrowest(chances, CANDIDATES_PROBABILITY * float(chances.gaps.sum()))
        sums = np.minimum(np.concatenate([[0.0], np.cumsum(chances.gaps)]), 1.0)
        return Belief(
            at_or_before=tuple(zip(chances.positions.tolist(), sums.tolist(), strict=True)),
            no_change=chances.nothing,
            candidates=int(chances.positions[gaps.stop] - chances.positions[gaps.start]),
            before=1.0 - mean(chances.before, chances.gaps),
            after=1.0 - mean(chances.after, chances.gaps),
            sigma=0.0,
            tau=0.0,
        )

    @property
    def builds(self) -> int:
        """Number of revisions that the search itself tried."""
        return len(self._performed)

    @property
    def invocations(self) -> int:
        """Number of the search's own attempts, including those that failed before an invocation."""
        return sum(map(sum, self._attempts.values())) - sum(self._stored.values())

    @property
    def seconds(self) -> float:
        """Seconds of all builds and attempts."""
        return sum(map(sum, self._spent.values()))

    @property
    def _posterior(self) -> Chances:
        if self._chances is None:
            self._chances = infer_chances(self.question, self._attempts, self._cumulative)
        return self._chances

    def _bits(self, chances: Chances) -> Floats:
        """Return the information of one attempt of each position about the gap with the culprit, in bits, (revisions,).

        It is the mutual information of the outcome and the gap that contains the culprit, each gap with its
        own mean rates. A position inside a gap splits that gap in two. Information about the rates has a
        small weight: gaps with equal means differ by them.
        """
        gap, share = self._gaps_of_positions(chances)

        def outcome(before: Floats, after: Floats, always: float) -> Floats:
            """Sum a function over the gaps before, around and after each position."""
            earlier = np.concatenate([[0.0], np.cumsum(chances.gaps * after)])[gap]
            later = np.cumsum((chances.gaps * before)[::-1])[::-1][gap] - (chances.gaps * before)[gap]
            around = chances.gaps[gap] * (share * after[gap] + (1 - share) * before[gap])
            total: Floats = earlier + around + later + chances.nothing * always
            return total

        fails = outcome(chances.before, chances.after, chances.always)
        always = float(entropy(np.array([chances.always]))[0])
        of_gaps = entropy(fails) - outcome(entropy(chances.before), entropy(chances.after), always)
        of_all = entropy(fails) - outcome(*chances.chance)
        bits: Floats = of_gaps + _FOR_RATES * of_all
        bits[sorted(self._final)] = 0.0
        return bits

    def _gaps_of_positions(self, chances: Chances) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the gap of each position, and the share of that gap at or before the position."""
        everywhere = np.arange(self.question.revisions)
        gap = np.clip(np.searchsorted(chances.positions, everywhere) - 1, 0, len(chances.gaps) - 1)
        low, high = self._cumulative[chances.positions[gap]], self._cumulative[chances.positions[gap + 1]]
        share = np.divide(self._cumulative - low, high - low, out=np.ones_like(low), where=high > low)
        return gap, np.clip(share, 0.0, 1.0)

    def _costs(self) -> Floats:
        costs = self.question.costs
        one = _average(self._spent["attempt"], costs.sample)
        seconds = np.full(self.question.revisions, one + _average(self._spent["build"], costs.build))
        seconds[sorted(self._attempts)] = one
        return seconds

    def _afford(self, position: int) -> Measure | Settled:
        """Return an attempt of the position if the budget allows it; else the answer."""
        refusal = self.question.budget.refusal(
            builds=self.builds,
            invocations=self.invocations,
            seconds=self.seconds,
            fresh=int(position not in self._attempts),
        )
        if refusal is not None:
            return self._end(refusal)
        return Measure(order=(position,))

    def _end(self, reason: str) -> Settled:
        """Return the answer so far: the narrowest range that contains the culprit, or unclear."""
        if len(self._attempts) < 2:
            return Settled(answer=_answer(Verdict.UNCLEAR, (), 0.0, reason))
        chances = self._posterior
        best = _narrowest(chances, self.question.confidence)
        whole = best.stop - best.start == len(chances.gaps) and len(chances.positions) > 2
        if float(chances.gaps[best.start : best.stop].sum()) < self.question.confidence or whole:
            confidence = max(chances.nothing, float(chances.gaps.max()))
            return Settled(answer=_answer(Verdict.UNCLEAR, (), confidence, reason))
        return self._located(chances, best, reason)

    def _unchanged(self, chances: Chances) -> Settled:
        worked, failed = np.sum(list(self._attempts.values()), axis=0)
        if failed == 0:
            reason = f"all {worked} attempts worked, at both ends and at all other tried revisions"
        elif worked == 0:
            reason = f"all {failed} attempts failed, at both ends and at all other tried revisions"
        else:
            reason = f"{failed} of {worked + failed} attempts failed, equally often before and after"
        return Settled(answer=_answer(Verdict.NONE, (), chances.nothing, reason))

    def _located(self, chances: Chances, gaps: range, reason: str) -> Settled:
        chosen = chances.gaps[gaps.start : gaps.stop]
        first, last = int(chances.positions[gaps.start]) + 1, int(chances.positions[gaps.stop])
        confidence = float(chosen.sum())
        possible = np.diff(self._cumulative, prepend=0.0)[first : last + 1] > 0
        change = Change(
            positions=tuple((np.nonzero(possible)[0] + first).tolist()),
            confidence=confidence,
            before=1.0 - mean(chances.before[gaps.start : gaps.stop], chosen),
            after=1.0 - mean(chances.after[gaps.start : gaps.stop], chosen),
            effect=None,
        )
        verdict = Verdict.FOUND if len(change.positions) == 1 else Verdict.RANGE
        return Settled(answer=_answer(verdict, (change,), confidence, reason))


def _answer(verdict: Verdict, changes: tuple[Change, ...], confidence: float, reason: str) -> Answer:
    return Answer(
        verdict=verdict, changes=changes, confidence=confidence, minimum_detectable=SMALLEST, reason=reason
    )


def _average(seconds: list[float], guess: float) -> float:
    return max(sum(seconds) / len(seconds), 1e-9) if sum(seconds) > 0 else max(guess, 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """The belief about the K tried positions, the gaps between them, and the failure rates.

    `gaps` (K-1,) is P(the culprit is in (p_k, p_k+1]), `nothing` that the rate never changed. `before` and
    `after` (K-1,) are the mean rates given a gap, `always` the mean rate given no change. `chance` contains
    the same three for the entropy of an attempt at the rate: the uncertainty that would remain if the rate were
    known.
    """

    positions: npt.NDArray[np.int64]
    gaps: Floats
    nothing: float
    before: Floats
    after: Floats
    always: float
    chance: tuple[Floats, Floats, float]


def infer_chances(question: Question, attempts: Mapping[int, Sequence[int]], cumulative: Floats) -> Chances:
    """Infer the belief from the working and failed attempts of each position; needs two positions or more."""
    positions = np.array(sorted(attempts), dtype=np.int64)
    counts = np.array([attempts[position] for position in positions.tolist()], dtype=np.float64)
    each = counts @ np.log(np.array([1.0 - RATES, RATES]))
    upto = np.cumsum(each, axis=0)
    left, right = upto[:-1], upto[-1] - upto[:-1]
    pair = np.outer(_WEIGHTS, _WEIGHTS) * (np.abs(RATES[:, None] - RATES[None, :]) >= SMALLEST - 1e-9)
    pair /= pair.sum()
    peak = max(float((left.max(axis=1) + right.max(axis=1)).max()), float(upto[-1].max()))
    before = np.exp(left - left.max(axis=1, keepdims=True))
    after = np.exp(right - right.max(axis=1, keepdims=True))
    joint = before[:, :, None] * pair * after[:, None, :]
    height = np.exp(left.max(axis=1) + right.max(axis=1) - peak)
    total = joint.sum(axis=(1, 2))
    gaps = (1 - question.no_change) * np.diff(cumulative[positions]) * height * total
    same = _WEIGHTS * np.exp(upto[-1] - peak)
    # A change outside of the tried positions looks like no change.
    covered = float(cumulative[positions[-1]] - cumulative[positions[0]])
    nothing = (question.no_change + (1 - question.no_change) * (1 - covered)) * float(same.sum())
    evidence = float(gaps.sum()) + nothing
    of_before, of_after = joint.sum(axis=2) / total[:, None], joint.sum(axis=1) / total[:, None]
    of_same = same / same.sum()
    chance = entropy(RATES)
    return Chances(
        positions=positions,
        gaps=gaps / evidence,
        nothing=nothing / evidence,
        before=of_before @ RATES,
        after=of_after @ RATES,
        always=float(of_same @ RATES),
        chance=(of_before @ chance, of_after @ chance, float(of_same @ chance)),
    )


def _narrowest(chances: Chances, probability: float) -> range:
    """Return the neighbouring gaps with the fewest revisions that contain the culprit, or all gaps."""
    return narrowest(chances.positions.tolist(), chances.gaps, probability) or range(len(chances.gaps))


def mean(rates: Floats, weights: Floats) -> float:
    """Return the weighted mean, or the plain one if all weights are zero."""
    total = float(weights.sum())
    return float(rates @ weights / total) if total > 0 else float(rates.mean())
