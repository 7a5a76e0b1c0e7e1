"""Conclude a search: certain changes, what they explain of the difference of the ends, and what is left open."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.answer import Answer, Change, Effect, Kind, Summary, Suspicion, Verdict
from perftrail.search.forecast import LARGEST, rounds_left
from perftrail.search.rounds import EFFICIENCY, FEWEST_ROUNDS, Finding
from perftrail.stats.ratios import compare_unpaired
from perftrail.stats.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.layout_guard import LayoutGuard
    from perftrail.search.question import Question
    from perftrail.search.rounds import Gap, Rounds, Run

    Floats = npt.NDArray[np.float64]

NORMAL_DEVIATION = 0.6745
"""Median absolute deviation of the standard normal distribution."""

QUANTILE = 1.96
"""Standard errors of a 95 % interval."""

LEAST_WIDTH = 8
"""Minimum number of revisions of a gradual change."""

DIRECTIONS = 2
"""The bets on a change are made in both directions, and the answer uses the better one."""

FEWEST_FOR_SPREAD = 6
SPREAD_ERROR = 0.01
"""Probability to claim that two builds' samples scatter differently if they do not."""


def conclude(
    question: Question, evidence: Evidence, rounds: Rounds, layouts: LayoutGuard, reason: str
) -> Answer:
    """Return the answer; `reason` states why the search ended, empty if everything is decided."""
    return _Conclusion(question, evidence, rounds, layouts).answer(reason)


class _Conclusion:
    """What the rounds have shown: certain changes, gradual ones, those that layouts may explain, undecided gaps."""

    def __init__(self, question: Question, evidence: Evidence, rounds: Rounds, layouts: LayoutGuard) -> None:
        self._question, self._evidence, self._rounds = question, evidence, rounds
        self._scale, self._layouts = question.scale, layouts
        self._tau = layouts.hidden
        self._gaps = rounds.gaps()
        self._runs = rounds.between_changes(self._gaps)
        certain = [each for each in self._gaps if each.is_named]
        sure = [each for each in certain if layouts.allows(each)]
        self._found = [each for each in sure if each.finding is Finding.CHANGED]
        self._below = [each for each in sure if each.finding is Finding.BELOW]
        self._doubted = [each for each in certain if each.finding is Finding.CHANGED and each not in sure]
        differing = [run for run in self._runs if self._differs(run)]
        self._gradual = [run for run in differing if self._is_gradual(run)]
        unexplained = [run.ends for run in differing if run not in self._gradual]
        explained = [run.ends for run in self._gradual]
        undecided = dict.fromkeys([*rounds.undecided(), *unexplained])
        self._undecided = [each for each in undecided if each not in explained]

    def answer(self, reason: str) -> Answer:
        """Return the answer; `reason` is empty if everything is decided."""
        rounds, question = self._rounds, self._question
        changes = [*map(self._step, self._found), *map(self._ramp, self._gradual)]
        changes.sort(key=lambda change: change.positions[0])
        suspected = [self._suspicion(each) for each in (*self._doubted, *_likely(self._undecided))]
        whole = (rounds.positions[0], rounds.positions[-1]) == (0, question.revisions - 1)
        verdict = _verdict(changes, is_open=bool(self._undecided or suspected) or not whole)
        ends = rounds.compare(rounds.positions[0], rounds.positions[-1])
        certified = verdict is Verdict.NONE and self._ends_are_equal
        return Answer(
            verdict=verdict,
            changes=tuple(changes),
            confidence=self._confidence(verdict, changes, suspected),
            minimum_detectable=self._possible,
            reason=reason or self._reason(changes, suspected, whole=whole),
            scale=self._scale,
            ends=self._sum(self._gaps, ()) if len(ends.differences) < FEWEST_ROUNDS else self._effect(ends),
            rest=self._rest(),
            unseen=next(iter(rounds.longest_unseen()), None),
            certificate=self._summary(ends) if certified else None,
            below_threshold=tuple(map(self._step, self._below)),
            suspected=tuple(suspected),
            layouts_hide=bool(self._doubted) or self._tau > 0.0,
        )

    def _differs(self, run: Run) -> bool:
        """Whether a run's ends certainly differ, by the threshold more than its certain small changes; no gap does."""
        rest = run.ends.size - sum(each.size for each in self._below if each in run.gaps)
        return (
            len(run.gaps) > 1
            and not run.is_equal
            and abs(rest) >= self._question.threshold_on_scale
            and self._rounds.is_certain(run.ends)
            and all(each.finding in (Finding.EQUAL, Finding.BELOW) for each in run.gaps)
        )

    def _is_gradual(self, run: Run) -> bool:
        """Whether a run that differs is wide, no gap may have half of the difference, and layouts hardly explain it."""
        return (
            run.ends.last - run.ends.first >= LEAST_WIDTH
            and max(abs(each.size) + QUANTILE * self._own_error(each) for each in run.gaps)
            < abs(run.ends.size) / 2
            and not self._doubted
            and self._layouts.chance_for(run) <= 1 - self._question.confidence
        )

    @property
    def _ends_are_equal(self) -> bool:
        return (
            self._rounds.compare(self._rounds.positions[0], self._rounds.positions[-1]).finding
            is Finding.EQUAL
        )

    @property
    def _possible(self) -> float:
        """The largest change between measured builds that is not excluded, a relative one or a difference."""
        return self._scale.change(max(map(_bound, self._runs), default=0.0))

    def _rest(self) -> Effect | None:
        """Return what no change explains of the difference of the ends."""
        gradual = [each for run in self._gradual for each in run.gaps]
        left = [each for each in self._gaps if each not in self._found and each not in gradual]
        return self._sum(left, [run for run in self._runs if run not in self._gradual])

    def _confidence(
        self, verdict: Verdict, changes: Sequence[Change], suspected: Sequence[Suspicion]
    ) -> float:
        if changes:
            return math.prod(change.confidence for change in changes)
        if verdict is Verdict.NONE:
            return self._question.confidence
        return max((each.confidence for each in suspected), default=0.0)

    def _positions(self, gap: Gap) -> tuple[int, ...]:
        return tuple(self._question.candidates(gap.first, gap.last).tolist())

    def _step(self, gap: Gap) -> Change:
        summary = self._summary(gap)
        before, after = self._levels(gap)
        return Change(
            positions=self._positions(gap),
            confidence=(1 - summary.error) * (1 - (self._layouts.chance(gap) or 0.0)),
            before=before,
            after=after,
            effect=self._effect(gap),
            certificate=summary,
        )

    def _ramp(self, run: Run) -> Change:
        positions = tuple(range(run.ends.first + 1, run.ends.last + 1))
        change, doubt = self._step(run.ends), self._layouts.chance_for(run)
        confidence = (1 - self._summary(run.ends).error) * (1 - doubt)
        return replace(change, positions=positions, confidence=confidence, kind=Kind.RAMP)

    def _suspicion(self, gap: Gap) -> Suspicion:
        evidence = math.exp(min(gap.evidence, LARGEST))
        doubt = self._layouts.chance(gap) if gap.is_named else None
        return Suspicion(
            positions=self._positions(gap),
            confidence=gap.reaches(self._question.threshold_on_scale) if doubt is None else 1 - doubt,
            evidence=evidence,
            needed=1 / self._rounds.level,
            blocks_left=rounds_left(gap, self._rounds.level),
            possible=self._scale.change(_largest(gap)),
            observed=self._scale.effect(gap.size),
            doubted=doubt is not None,
            scale=self._scale,
        )

    def _summary(self, gap: Gap) -> Summary:
        count = 0 if self._rounds.is_same(gap.first, gap.last) else len(gap.differences)
        is_equal = gap.finding is Finding.EQUAL
        return Summary(
            blocks=count,
            invocations=2 * count * self._question.invocations_per_sample,
            error=1 - self._question.confidence
            if is_equal
            else min(1.0, DIRECTIONS * math.exp(-gap.evidence)),
            layouts=0 if self._scale is Scale.RATE else self._evidence.layouts_of(gap.first, gap.last),
            is_only_change=not (self._undecided or self._doubted or self._possible >= self._unbounded),
            possible=self._possible,
            spread=self._spread_ratio(gap),
        )

    def _values(self, gap: Gap) -> list[Floats]:
        return [self._evidence.values_in_rounds(at) for at in (gap.first, gap.last)]

    def _levels(self, gap: Gap) -> tuple[float, float]:
        """Return the levels of both builds in the metric's own unit, around the middle of their medians."""
        middle = sum(float(np.median(each)) for each in self._values(gap)) / 2
        if self._scale is Scale.RATE:
            # With half an outcome of each kind: 8 of 8 runs do not show a rate of 100 %.
            before, after = ((float(each.sum()) + 0.5) / (len(each) + 1) for each in self._values(gap))
            return before, after
        return self._scale.as_value(middle - gap.size / 2), self._scale.as_value(middle + gap.size / 2)

    def _spread_ratio(self, gap: Gap) -> float | None:
        """Return the ratio of the two builds' spreads if it certainly is not one, by the rank-sum test of distances.

        The F test is not valid here: real samples are not normal.
        """
        values = self._values(gap)
        few = min(map(len, values)) < FEWEST_FOR_SPREAD
        if self._rounds.is_same(gap.first, gap.last) or few or self._scale is Scale.RATE:
            return None
        before, after = (np.abs(each - np.median(each)) for each in values)
        before, after = before[before > 0.0], after[after > 0.0]
        if not len(before) or not len(after):
            return None
        found = compare_unpaired(before.tolist(), after.tolist(), level=SPREAD_ERROR)
        return found.effect if found.low > 1.0 or found.high < 1.0 else None

    def _effect(self, gap: Gap) -> Effect:
        return self._interval(gap.size, self._own_error(gap))

    def _own_error(self, gap: Gap) -> float:
        """Return the standard error of a gap, not below what its differences show: one build may scatter more."""
        count = len(gap.differences)
        if self._scale is Scale.RATE or count < FEWEST_FOR_SPREAD or not gap.error:
            return gap.error
        own = float(np.median(np.abs(gap.differences - np.median(gap.differences)))) / NORMAL_DEVIATION
        return max(gap.error, own * EFFICIENCY / math.sqrt(count))

    def _interval(self, size: float, error: float) -> Effect:
        low, high = size - QUANTILE * error, size + QUANTILE * error
        if self._scale is Scale.RATE:
            low, high = max(low, -1.0), min(high, 1.0)
        value, low, high = map(self._scale.effect, (size, low, high))
        return Effect(value=value, low=low, high=high, scale=self._scale)

    def _sum(self, gaps: Sequence[Gap], runs: Sequence[Run]) -> Effect | None:
        """Return the sum of gaps. The ends of a run are compared directly where rounds ran both."""
        direct = [run for run in runs if len(run.ends.differences) >= FEWEST_ROUNDS]
        covered = [each for run in direct for each in run.gaps]
        parts = [*(run.ends for run in direct), *(each for each in gaps if each not in covered)]
        error = math.sqrt(sum(self._own_error(each) ** 2 for each in parts))
        return self._interval(sum(each.size for each in parts), error) if math.isfinite(error) else None

    @property
    def _unbounded(self) -> float:
        """The largest change that the scale has."""
        return 1.0 if self._scale is Scale.RATE else math.inf

    def _words(self, size: float) -> str:
        if self._scale is Scale.DIFFERENCE:
            return f"{size:.3g}"
        digits = ".2g" if 100 * size < 10.0 else ".0f"
        return f"{100 * size:{digits}} {'points' if self._scale is Scale.RATE else '%'}"

    def _reason(  # noqa: PLR0911 - one return for each reason, in their order
        self, changes: Sequence[Change], suspected: Sequence[Suspicion], *, whole: bool
    ) -> str:
        """Return why a search that was not ended by its budget ended here."""
        if self._tau:
            size = self._words(self._tau)
            return f"builds differ by about {size} without any change, perhaps by their memory layouts"
        if suspected:
            return f"{'a further' if changes else 'a'} change is likely, but could not be certified"
        if not changes and not whole:
            return "revisions beyond the outermost ones that could be built are unknown"
        if self._undecided:
            return (
                "whether builds between the named changes differ could not be decided"
                if changes
                else ("neither a change nor the equality of the ends could be certified")
            )
        if not changes and not self._ends_are_equal:
            return "the ends differ, but no measured revision changed it by the threshold or more"
        if not changes:
            within = f" within {self._words(self._possible)}" if self._possible else ""
            return f"the ends are equal{within}"
        if self._scale is Scale.RATE and self._possible >= self._unbounded:
            return "the rounds ran only the builds around the change"
        if any(change.kind is Kind.RAMP for change in changes):
            return "the level changes gradually: no single revision reaches the threshold where it does"
        if all(len(change.positions) == 1 for change in changes):
            return "no other difference of the threshold or more is left between measured builds"
        if all(at in self._evidence.unusable for change in changes for at in change.positions[:-1]):
            return "all revisions between the measured builds failed to build or run"
        return "the revisions between the measured ones could not be separated, or are not likely to build"


def _verdict(changes: Sequence[Change], *, is_open: bool) -> Verdict:
    if len(changes) > 1:
        return Verdict.SEVERAL
    if changes:
        alone = len(changes[0].positions) == 1 and changes[0].kind is Kind.STEP
        return Verdict.FOUND if alone else Verdict.RANGE
    return Verdict.UNCLEAR if is_open else Verdict.NONE


def _likely(gaps: Sequence[Gap]) -> list[Gap]:
    """Return the gaps that a change is likely in, the shortest of those that overlap."""
    found: list[Gap] = []
    for each in sorted(gaps, key=lambda one: one.last - one.first):
        if each.is_likely and all(each.last <= other.first or each.first >= other.last for other in found):
            found.append(each)
    return sorted(found, key=lambda one: one.first)


def _bound(run: Run) -> float:
    """Return the largest change in a run that is not excluded: by its ends, or by each of its gaps.

    A larger one than the ends allow would need another one that cancels it.
    """
    ends = _largest(run.ends)
    return ends if run.is_equal else min(ends, max(map(_largest, run.gaps)))


def _largest(gap: Gap) -> float:
    return max(0.0, -gap.limits.low, gap.limits.high)
