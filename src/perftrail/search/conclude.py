"""Conclude a search: certain changes, what they explain of the difference of the ends, and what is left open."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import layout_guard
from perftrail.search.answer import Answer, Change, Effect, Kind, Summary, Suspicion, Verdict
from perftrail.search.rounds import Finding
from perftrail.stats.comparison import STAKES
from perftrail.stats.ratios import compare_unpaired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question
    from perftrail.search.rounds import Gap, Rounds, Run

QUANTILE = 1.96
"""Standard errors of a 95 % interval."""

LEAST_WIDTH = 8
"""Minimum number of revisions of a gradual change."""

FEWEST_FOR_SPREAD = 6
SPREAD_ERROR = 0.01
"""Probability to claim that two builds' samples scatter differently if they do not."""


def conclude(question: Question, evidence: Evidence, rounds: Rounds, reason: str) -> Answer:
    """Return the answer; `reason` states why the search ended, empty if everything is decided."""
    gaps = rounds.gaps()
    open_ones = rounds.open_pairs()
    open_ones += [each for each in gaps if each.finding is Finding.UNDECIDED]
    runs = rounds.between_changes(gaps)
    open_ones += [run.ends for run in runs if run.ends.finding is Finding.UNDECIDED]
    possible = _possible(runs)
    doubted = layout_guard.is_doubted(question, evidence)
    changes: list[Change] = []
    below: list[Change] = []
    suspected: list[Suspicion] = []
    chances = layout_guard.Separation(rounds, 1 - question.confidence).chances if doubted else {}
    for each in gaps:
        doubt = chances.get(each.last, 0.0)
        if each.is_named and doubt <= 1 - question.confidence:
            summary = _summary(each, question, evidence, only=not open_ones, possible=possible)
            found = _change(each, rounds, evidence, summary, doubt)
            (changes if each.finding is Finding.CHANGED else below).append(found)
        elif each.finding is Finding.CHANGED:
            suspected.append(_suspicion(each, rounds, 1 - doubt))
    tau = layout_guard.hides(question, evidence, rounds)
    hide = bool(suspected) or tau > 0.0
    gradual = [
        run
        for run in runs
        if _is_gradual(run, rounds, question)
        and not (doubted and (suspected or layout_guard.chance_for_gradual(run) > 1 - question.confidence))
    ]
    open_ones = [each for each in open_ones if not any(each is run.ends for run in gradual)]
    changes += [_ramp(run, question, evidence, possible) for run in gradual]
    changes.sort(key=lambda change: change.positions[0])
    suspected += [_suspicion(each, rounds, 0.5) for each in _worth_saying(open_ones)]
    whole = rounds.positions[0] == 0 and rounds.positions[-1] == question.revisions - 1
    ends = rounds.compare(rounds.positions[0], rounds.positions[-1])
    verdict = _verdict(changes, is_open=bool(open_ones or suspected) or not whole)
    explained = [each for each in gaps if each.finding is Finding.CHANGED and _is_in(each, changes)]
    explained += [each for run in gradual for each in run.gaps]
    left = [each for each in gaps if not any(each is one for one in explained)]
    others = [run for run in runs if not any(run is one for one in gradual)]
    confidence = math.prod(change.confidence for change in changes)
    if not changes:
        confidence = max(
            [question.confidence * (verdict is Verdict.NONE), *(each.confidence for each in suspected)]
        )
    return Answer(
        verdict=verdict,
        changes=tuple(changes),
        confidence=confidence,
        minimum_detectable=possible,
        reason=reason
        or _reason(
            changes, suspected, evidence, is_open=bool(open_ones), whole=whole, possible=possible, tau=tau
        ),
        ends=_sum(gaps) if len(ends.differences) < 2 else _effect(ends),
        rest=_sum(left, others),
        unseen=rounds.longest_unseen(),
        certificate=_summary(ends, question, evidence, only=True, possible=possible)
        if verdict is Verdict.NONE and ends.finding is Finding.EQUAL
        else None,
        below_threshold=tuple(below),
        suspected=tuple(suspected),
        layouts_hide=hide,
    )


def _verdict(changes: Sequence[Change], *, is_open: bool) -> Verdict:
    if len(changes) > 1:
        return Verdict.SEVERAL
    if changes:
        alone = len(changes[0].positions) == 1 and changes[0].kind is Kind.STEP
        return Verdict.FOUND if alone else Verdict.RANGE
    return Verdict.UNCLEAR if is_open else Verdict.NONE


def _is_in(gap: Gap, changes: Sequence[Change]) -> bool:
    return any(gap.first < change.positions[-1] <= gap.last for change in changes)


def _is_gradual(run: Run, rounds: Rounds, question: Question) -> bool:
    """Whether a run's ends certainly differ by the threshold, and no gap of it does."""
    return (
        run.ends.last - run.ends.first >= LEAST_WIDTH
        and len(run.gaps) > 1
        and not run.is_equal
        and abs(run.ends.size) >= question.threshold_log
        and run.ends.evidence >= math.log(1 / rounds.level)
        and all(each.finding in (Finding.EQUAL, Finding.BELOW) for each in run.gaps)
    )


def _worth_saying(gaps: Sequence[Gap]) -> list[Gap]:
    """Return the open gaps that a change is likely in, or that were compared at all; each revision once."""
    found: list[Gap] = []
    for each in sorted(gaps, key=lambda one: (not one.is_likely, one.last - one.first)):
        apart = all(each.last <= other.first or each.first >= other.last for other in found)
        if each.is_likely and apart:
            found.append(each)
    return sorted(found, key=lambda one: one.first)


def _possible(runs: Sequence[Run]) -> float:
    """Return the largest change between measured builds that is not excluded, as a ratio minus one."""
    # A change above the bound of a run's ends would need another one that cancels it.
    largest = max(map(_bound, runs), default=0.0)
    return math.expm1(min(largest, 50.0))


def _bound(run: Run) -> float:
    """Return the largest change in a run that is not excluded: by its ends, or by each of its gaps."""
    ends = _largest(run.ends)
    return ends if run.is_equal else min(ends, max(map(_largest, run.gaps)))


def _largest(gap: Gap) -> float:
    return max(-gap.limits.low, gap.limits.high)


def _effect(gap: Gap) -> Effect:
    return _interval(gap.size, gap.error)


def _interval(size: float, error: float) -> Effect:
    reach = QUANTILE * error
    return Effect(
        value=math.exp(size), low=math.exp(max(size - reach, -50.0)), high=math.exp(min(size + reach, 50.0))
    )


def _sum(gaps: Sequence[Gap], runs: Sequence[Run] = ()) -> Effect | None:
    """Return the product of gaps. The ends of a run are compared directly where rounds ran both."""
    left, size, square = list(gaps), 0.0, 0.0
    for run in runs:
        if len(run.ends.differences) > 1:
            size, square = size + run.ends.size, square + run.ends.error**2
            left = [each for each in left if not run.ends.first <= each.first < run.ends.last]
    for each in left:
        size, square = size + each.size, square + each.error**2
    return _interval(size, math.sqrt(square)) if math.isfinite(square) else None


def _change(gap: Gap, rounds: Rounds, evidence: Evidence, summary: Summary, doubt: float) -> Change:
    before, after = _levels(gap, evidence)
    return Change(
        positions=rounds.candidates(gap.first, gap.last),
        confidence=(1 - summary.error) * (1 - doubt),
        before=before,
        after=after,
        effect=_effect(gap),
        certificate=summary,
    )


def _ramp(run: Run, question: Question, evidence: Evidence, possible: float) -> Change:
    before, after = _levels(run.ends, evidence)
    summary = _summary(run.ends, question, evidence, only=True, possible=possible)
    return Change(
        positions=tuple(range(run.ends.first + 1, run.ends.last + 1)),
        confidence=1 - summary.error,
        before=before,
        after=after,
        effect=_effect(run.ends),
        kind=Kind.RAMP,
        certificate=summary,
    )


def _levels(gap: Gap, evidence: Evidence) -> tuple[float, float]:
    """Return the levels of both builds in the metric's own unit: around the middle of their medians in the rounds."""
    values = _values(gap, evidence)
    middle = sum(float(np.median(each)) for each in values) / 2 if all(map(len, values)) else 0.0
    return math.exp(middle - gap.size / 2), math.exp(middle + gap.size / 2)


def _values(gap: Gap, evidence: Evidence) -> list[list[float]]:
    builds = [evidence.build_of(at) for at in (gap.first, gap.last)]
    return [[each[build] for each in evidence.rounds if build in each] for build in builds]


def _summary(gap: Gap, question: Question, evidence: Evidence, *, only: bool, possible: float) -> Summary:
    same = evidence.build_of(gap.first) == evidence.build_of(gap.last)
    count = 0 if same else len(gap.differences)
    equal = gap.finding is Finding.EQUAL
    layouts = evidence.layouts_of(gap.first, gap.last)
    return Summary(
        blocks=count,
        invocations=2 * count * question.invocations_per_sample,
        error=(1 - question.confidence) if equal else math.exp(-min(gap.evidence, 700.0)),
        layouts=layouts,
        is_only_change=only,
        possible=possible,
        spread=_spread_ratio(gap, evidence),
    )


def _spread_ratio(gap: Gap, evidence: Evidence) -> float | None:
    """Return the ratio of the two builds' spreads if it certainly is not one, by the rank-sum test of distances.

    The F test is not valid here: real samples are not normal.
    """
    values = [np.array(each) for each in _values(gap, evidence)]
    if gap.first == gap.last or min(map(len, values)) < FEWEST_FOR_SPREAD:
        return None
    before, after = (np.abs(each - np.median(each)) for each in values)
    before, after = before[before > 0.0], after[after > 0.0]
    if not len(before) or not len(after):
        return None
    found = compare_unpaired(before.tolist(), after.tolist(), level=SPREAD_ERROR)
    return found.effect if found.low > 1.0 or found.high < 1.0 else None


def _suspicion(gap: Gap, rounds: Rounds, confidence: float) -> Suspicion:
    evidence = math.exp(min(gap.evidence, 50.0))
    return Suspicion(
        positions=rounds.candidates(gap.first, gap.last),
        confidence=confidence,
        evidence=evidence,
        needed=1 / rounds.level,
        blocks_left=rounds_left(evidence, len(gap.differences), rounds.level),
        possible=math.expm1(min(_largest(gap), 50.0)),
        observed=math.exp(gap.size),
    )


def rounds_left(evidence: float, count: int, level: float) -> int | None:
    """Forecast the number of further rounds at the present pace; `None` if the evidence does not grow."""
    pace = (math.log(max(evidence, 1e-300)) + math.log(len(STAKES))) / max(count, 1)
    if pace <= 0:
        return None
    return max(1, math.ceil(math.log(len(STAKES) / level) / pace) - count)


def _reason(  # noqa: PLR0911 - one return for each reason, in their order
    changes: Sequence[Change],
    suspected: Sequence[Suspicion],
    evidence: Evidence,
    *,
    is_open: bool,
    whole: bool,
    possible: float,
    tau: float,
) -> str:
    """Return why a search that was not ended by its budget ended here."""
    if tau:
        return f"builds differ by about {100 * tau:.2g} % without any change, perhaps by their memory layouts"
    if not changes and suspected:
        return "no change could be certified"
    if not changes and not whole:
        return "revisions beyond the outermost ones that could be built are unknown"
    if not changes and is_open:
        return "neither a change nor the equality of the ends could be certified"
    if not changes and possible == 0:
        return "the ends are equal"
    if not changes:
        return f"the ends are equal within {100 * possible:.2g} %"
    if suspected:
        return "a further change is likely, but could not be certified"
    if any(change.kind is Kind.RAMP for change in changes):
        return "the level changes gradually: no single revision reaches the threshold where it does"
    if all(len(change.positions) == 1 for change in changes):
        return "the builds before and after the change were measured in random order"
    if all(at in evidence.unusable for change in changes for at in change.positions[:-1]):
        return "all revisions between the measured builds failed to build or run"
    return "the revisions between the measured ones could not be separated, or are not likely to build"
