"""Guide for a rate: choose what to run so that few runs locate the revision that changed it.

The model: one change at an unknown position, from one unknown probability of the outcome 0 to another. With w_p
outcomes 1 and f_p outcomes 0 of position p,

``P(outcomes | culprit c, rates a, b) = prod_{p<c} a^f_p (1-a)^w_p prod_{p>=c} b^f_p (1-b)^w_p``

summed over a grid of both rates. Most of the grid's weight is on programs that never, or always, fail. Rates are
capped on both sides, so one outcome never decides. Unlike the Beta-Bernoulli search of git_bayesect, it considers the
cost of a run. It certifies nothing: rounds over the builds around the change do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import Measure
from perftrail.search.guide import LOCATED, Guide
from perftrail.search.policy import entropy
from perftrail.search.posterior import CANDIDATES_PROBABILITY, Belief, narrowest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

RATES = np.array([0.0005, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.9995])
"""Probabilities of the outcome 0. The first and the last are the cap: the rate of either outcome by mere chance."""

_WEIGHTS = np.array([40.0, 4.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 4.0, 40.0])
_WEIGHTS /= _WEIGHTS.sum()

LARGEST_LEAST = 0.14
"""The smallest difference of two rates that the model considers, or the threshold if it is smaller."""

CHEAP_BUILD = 0.3
"""Most cost of a build in runs if the budget limits runs, so that it is worth more builds."""

WORTH_ROUNDS = 0.5
LEAVE_ROUNDS = 0.25
"""Probability of one gap from which on rounds of its two builds begin, and below which they end: these runs locate the
change as well as the guide's do, and also certify it."""

MOST_RUNS = 400
"""Runs after which the guide ends: rounds decide whether the rates differ at all."""

NOTHING = 0.95
"""The guide ends once nothing changed with this probability: rounds compare the ends."""

AGREED = 0.1
"""A side contradicts itself if the change is at the same place less probably than this without its nearer half.

At 0.5, rounds of more builds leave 53 % of the searches from 5 to 40 % unclear instead of 23 %; at 0.03, a single
revision that fails for itself hides a later change.
"""

_FOR_RATES = 0.1
"""Value of one bit about the rates, relative to one bit about the position."""

_LITTLE = 1e-4
"""Bits: a run with less information than this is not worth its cost."""


class RateGuide(Guide):
    """The guided part of the search for a change of a rate."""

    def first_samples(self) -> Measure | None:
        """Return a first run of the next end; `None` once both have one."""
        for end in self._ends():
            if end is not None and not self._evidence.count(end):
                return Measure(order=(end,))
        return None

    def ask(self) -> Measure | None:
        """Return the run with the most information per second; `None` once the change is located, or seems absent."""
        chances = self._chances()
        gap = int(np.argmax(chances.gaps))
        single = chances.positions[gap + 1] - chances.positions[gap] == 1
        if single and chances.gaps[gap] >= WORTH_ROUNDS:
            return self._beyond(chances.positions, gap)
        if chances.nothing >= NOTHING:
            return None
        bits = self._bits(chances)
        best = int(np.argmax(bits / self._costs()))
        if bits[best] < _LITTLE or self._evidence.invocations >= MOST_RUNS:
            return None
        return Measure(order=(best,))

    def _beyond(self, positions: Indices, gap: int) -> Measure | None:
        """Return a run in the farther half of a side of the located change, if only the end was tried there.

        A few revisions that fail for themselves look like the change while nothing behind them was tried.
        """
        for near, end in ((gap + 1, -1), (gap, 0)):
            first, last = int(positions[near]), int(positions[end])
            middle = (first + last) // 2
            low, high = sorted((middle, last))
            tried = any(low <= at <= high and at != last for at in self._evidence.positions)
            if middle not in (first, last) and not tried:
                return Measure(order=(middle,))
        return None

    def builds_ahead(self, taken: Collection[int], count: int) -> tuple[int, ...]:
        """Return up to `count` untried positions that may follow those `taken`, the likeliest first."""
        tried = self._evidence.attempted
        after = next((each for each in taken if each not in tried), None)
        if after is None or not self._may_build(extra=len({*taken} - tried) + count - 1):
            return ()
        likely = likely_next(after, tried, revisions=self.question.revisions)
        return tuple(islice((each for each in likely if each not in taken), count))

    def chance(self, first: int, last: int) -> float:
        """Return the probability that the change is between two builds."""
        chances = self._chances()
        inside = (chances.positions[:-1] >= first) & (chances.positions[1:] <= last)
        return float(chances.gaps[inside].sum())

    def direction(self, first: int) -> float:
        """Return 1 if the rate of the outcome 1 rises between a build and the next one, else -1."""
        chances = self._chances()
        gap = int(np.searchsorted(chances.positions, first))
        return 1.0 if chances.before[gap] > chances.after[gap] else -1.0

    def located(self) -> tuple[int, ...]:
        """Return the builds around the likely change, ascending, with those that contradict it; none without one."""
        chances = self._chances()
        if chances.nothing >= 0.5:
            return ()
        gap = int(np.argmax(chances.gaps))
        before, after = chances.positions[gap : gap + 2].tolist()
        if after - before == 1 and chances.gaps[gap] < LOCATED:
            return before, after
        return tuple(sorted({before, after, *self._contradicting(chances.positions, before, after)}))

    def _contradicting(self, positions: Indices, before: int, after: int) -> Iterator[int]:
        """Yield the builds of the farther half of a side if the change is elsewhere without those of the nearer half.

        Then revisions on one of both halves fail, or work, for themselves, and rounds of all of these tell which.
        """
        for edge, end in ((after, int(positions[-1])), (before, int(positions[0]))):
            low, high = sorted((edge, end))
            side = [at for at in positions.tolist() if low <= at <= high and at != end]
            farther = [at for at in side if abs(at - edge) >= abs((edge + end) // 2 - edge)]
            nearer = frozenset(side) - set(farther)
            if nearer and farther:
                rest = self._chances(nearer)
                around = (rest.positions[:-1] <= before) & (rest.positions[1:] >= after)
                yield from farther if rest.gaps[around].sum() < AGREED else ()

    @property
    def belief(self) -> Belief:
        """The current belief; needs two positions with outcomes."""
        chances = self._chances()
        wanted = CANDIDATES_PROBABILITY * float(chances.gaps.sum())
        gaps = _narrowest(chances, wanted)
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

    def _chances(self, left_out: frozenset[int] = frozenset()) -> Chances:
        kept = [at for at in self._evidence.positions if at not in left_out]
        found = {at: self._evidence.all_samples(at) for at in kept}
        counts = {at: (float(each.sum()), float(len(each) - each.sum())) for at, each in found.items()}
        return infer_chances(self.question, counts, self._cumulative)

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
        bits[sorted(self._evidence.unusable)] = 0.0
        return bits

    def _gaps_of_positions(self, chances: Chances) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the gap of each position, and the share of that gap at or before the position."""
        everywhere = np.arange(self.question.revisions)
        gap = np.clip(np.searchsorted(chances.positions, everywhere) - 1, 0, len(chances.gaps) - 1)
        low, high = self._cumulative[chances.positions[gap]], self._cumulative[chances.positions[gap + 1]]
        share = np.divide(self._cumulative - low, high - low, out=np.ones_like(low), where=high > low)
        return gap, np.clip(share, 0.0, 1.0)

    def _costs(self) -> Floats:
        evidence = self._evidence
        build = evidence.seconds_per_build
        if self.question.budget.invocations is not None:
            build = min(build, CHEAP_BUILD * evidence.seconds_per_sample)
        seconds = np.full(self.question.revisions, evidence.seconds_per_sample + build)
        seconds[sorted(evidence.built)] = evidence.seconds_per_sample
        return seconds


def likely_next(position: int, tried: Collection[int], *, revisions: int) -> Iterator[int]:
    """Yield untried positions that the search may ask for after one, the likeliest first.

    `revisions` is the length of the history. Its other end comes first, if untried. Then come the middles of the ranges
    on both sides of the position, and the middles of the ranges that those leave.
    """
    before = max((each for each in tried if each < position), default=-1)
    after = min((each for each in tried if each > position), default=revisions)
    pieces = [(before, position), (position, after)]
    if before == -1 and position > 0:
        yield 0
        pieces[0] = (0, position)
    if after == revisions and position < revisions - 1:
        yield revisions - 1
        pieces[1] = (position, revisions - 1)
    while True:
        low, high = max(pieces, key=lambda piece: piece[1] - piece[0])
        if high - low < 2:
            return
        middle = (low + high) // 2
        yield middle
        pieces.remove((low, high))
        pieces += [(low, middle), (middle, high)]


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


def infer_chances(question: Question, outcomes: Mapping[int, Sequence[float]], cumulative: Floats) -> Chances:
    """Infer the belief from the outcomes 1 and 0 of each position; needs two positions or more."""
    positions = np.array(sorted(outcomes), dtype=np.int64)
    counts = np.array([outcomes[position] for position in positions.tolist()], dtype=np.float64)
    each = counts @ np.log(np.array([1.0 - RATES, RATES]))
    upto = np.cumsum(each, axis=0)
    left, right = upto[:-1], upto[-1] - upto[:-1]
    least = min(question.threshold, LARGEST_LEAST)
    pair = np.outer(_WEIGHTS, _WEIGHTS) * (np.abs(RATES[:, None] - RATES[None, :]) >= least - 1e-9)
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
