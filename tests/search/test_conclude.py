"""Answers of a search: the account of the ends, gradual changes, suspicions, and what is unmeasured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from perftrail.search import Budget, Built, Costs, Kind, Question, Search, Verdict
from perftrail.search.conclude import conclude
from perftrail.search.evidence import Evidence
from perftrail.search.forecast import rounds_left
from perftrail.search.layout_guard import LayoutGuard
from perftrail.search.rounds import Finding, Gap, Rounds
from perftrail.stats.comparison import Bounds
from tests.search.oracle import Oracle, batch, normal, step, steps

if TYPE_CHECKING:
    from perftrail.search import Answer
    from perftrail.search.answer import Effect
    from tests.search.oracle import Level

CHEAP = 0.2
"""Seconds of a build that costs less than a sample."""


def logs(*changes: tuple[int, float]) -> Level:
    """Return levels that change by these shares at these positions."""
    return steps(*((at, math.log1p(share)) for at, share in changes))


def answer_of(level: Level, sigma: float = 0.01, *, build: float = CHEAP, **more: object) -> Answer:
    """Return the answer of a search that no layouts disturb."""
    plain: dict[str, Any] = {"revisions": 100, "linked": False, "costs": Costs(build=build, sample=1.0)}
    question = Question(**plain | more)
    seed = question.seed
    return Oracle(level, normal(seed, sigma), build_seconds=build).settle(question, most=2000)


def contains(effect: Effect | None, ratio: float, tolerance: float = 0.01) -> bool:
    """Whether an interval, slightly widened, contains a ratio."""
    assert effect is not None
    return effect.low * (1 - tolerance) <= ratio <= effect.high * (1 + tolerance)


def culprits(answer: Answer) -> list[tuple[int, ...]]:
    return [change.positions for change in answer.changes]


def answer_to(rounds: int, levels: dict[int, float], revisions: int = 2) -> Answer:
    """Return the answer after this number of rounds of builds with these levels, hardly disturbed."""
    question = Question(revisions=revisions, linked=False)
    evidence, rng = Evidence(question), np.random.default_rng(1)
    found = Rounds(question, evidence)
    found.add(levels)
    for _ in range(rounds):
        values = [(at, level + float(rng.normal(0, 0.002))) for at, level in levels.items()]
        evidence.add(batch(*values, certificate=True))
    return conclude(question, evidence, found, LayoutGuard(question, evidence, found), "")


# The account of the difference of the ends.


STEPS = ((20, -0.07), (45, -0.08), (70, -0.16), (101, -0.06), (130, -0.19))


def test_five_steps_are_found_completely_where_builds_are_cheap() -> None:
    answer = answer_of(logs(*STEPS), revisions=151)
    assert answer.verdict is Verdict.SEVERAL
    assert culprits(answer) == [(at,) for at, _ in STEPS]
    assert answer.suspected == ()
    for change, (_, share) in zip(answer.changes, STEPS, strict=True):
        assert contains(change.effect, 1 + share)
    assert contains(answer.ends, math.prod(1 + share for _, share in STEPS))
    assert contains(answer.rest, 1.0, 0.03)


def test_the_rest_is_what_the_changes_do_not_explain_of_the_difference_of_the_ends() -> None:
    answer = answer_to(14, {0: 0.0, 1: 0.2, 2: 0.23, 3: 0.26}, revisions=4)
    assert culprits(answer) == [(1,)]
    assert contains(answer.ends, math.exp(0.26))
    assert contains(answer.rest, math.exp(0.06))
    assert answer.ends is not None
    assert answer.rest is not None
    assert answer.ends.value / answer.rest.value == pytest.approx(math.exp(0.2), rel=0.01)


def test_one_change_explains_everything_and_leaves_no_rest() -> None:
    answer = answer_of(step(30, 0.1))
    assert culprits(answer) == [(30,)]
    assert contains(answer.ends, math.exp(0.1))
    assert answer.rest is not None
    assert answer.rest.value == pytest.approx(1.0, abs=0.02)


def test_a_search_without_a_round_has_no_account() -> None:
    answer = answer_of(step(30, 0.5), 0.02, budget=Budget(invocations=4))
    assert answer.verdict is Verdict.UNCLEAR
    assert answer.ends is answer.rest is None


def test_several_changes_are_in_the_order_of_the_history() -> None:
    answer = answer_of(logs((80, 0.3), (20, 0.1), (50, -0.15)))
    assert culprits(answer) == [(20,), (50,), (80,)]
    assert answer.confidence <= min(change.confidence for change in answer.changes)


def test_two_neighbouring_revisions_that_both_changed_are_both_named() -> None:
    for build in (CHEAP, 10.0):
        answer = answer_of(logs((20, 0.15), (21, 0.2)), build=build, revisions=40)
        assert culprits(answer) == [(20,), (21,)]
        assert answer.verdict is Verdict.SEVERAL


@pytest.mark.parametrize("counted", [False, True])
def test_a_plateau_is_found_where_builds_are_cheap(counted: bool) -> None:
    """Both ends are equal: only builds between them show the change and its reverse."""
    level = logs((30, 0.5), (75, -1 / 3))
    answer = answer_of(level, 0.0 if counted else 0.01, counted=counted)
    assert answer.verdict is Verdict.SEVERAL
    assert culprits(answer) == [(30,), (75,)]
    assert contains(answer.ends, 1.0)


def test_an_odd_build_is_two_opposite_changes() -> None:
    answer = answer_to(12, dict.fromkeys((0, 1), 0.0) | {2: 0.3, 3: 0.0, 4: 0.0}, revisions=5)
    assert culprits(answer) == [(2,), (3,)]
    first, second = (change.effect for change in answer.changes)
    assert first is not None
    assert second is not None
    assert first.value * second.value == pytest.approx(1.0, abs=0.01)


# Gradual changes.


SMALL_STEPS = tuple((at, 0.015) for at in (15, 33, 52, 70, 88))


def test_five_steps_below_the_threshold_are_gradual_with_ends_and_rest_and_not_none() -> None:
    answer = answer_of(logs(*SMALL_STEPS), 0.004)
    assert answer.verdict is Verdict.RANGE
    (change,) = answer.changes
    assert change.kind is Kind.RAMP
    assert {at for at, _ in SMALL_STEPS} <= set(change.positions)
    assert contains(change.effect, 1.015**5)
    assert contains(answer.ends, 1.015**5)
    assert contains(answer.rest, 1.0), "the gradual change explains all of it"
    assert "no single revision reaches the threshold" in answer.reason


def test_a_step_is_not_gradual_although_small_changes_surround_it() -> None:
    answer = answer_of(logs((50, 0.1), (30, 0.01), (70, 0.01)), 0.004)
    assert culprits(answer) == [(50,)]
    assert answer.changes[0].kind is Kind.STEP


def test_a_short_run_is_not_called_gradual() -> None:
    """Two changes below the threshold in a history of three revisions are below it, not a ramp."""
    answer = answer_to(14, {0: 0.0, 1: 0.035, 2: 0.07}, revisions=3)
    assert not any(change.kind is Kind.RAMP for change in answer.changes)


def test_equal_artefacts_on_both_sides_of_a_step_are_not_gradual() -> None:
    """A metric printed in tens, 40 before and 50 after, where neighbours of both ends have the same artefacts."""
    oracle = Oracle(
        lambda position: math.log(50.0 if position >= 9 else 40.0),
        content=lambda position: 0 if position < 9 else max(position, 13),
        build_seconds=CHEAP,
    )
    answer = oracle.settle(Question(revisions=20, linked=False, costs=Costs(build=CHEAP, sample=1.0)))
    assert not any(change.kind is Kind.RAMP for change in answer.changes)
    assert not any(9 not in change.positions for change in answer.changes)


# Below the threshold.


def test_certain_changes_below_the_threshold_are_a_list() -> None:
    answer = answer_to(14, {0: 0.0, 1: 0.03, 2: 0.03, 3: 0.06}, revisions=4)
    assert answer.changes == ()
    assert answer.verdict is Verdict.NONE
    assert answer.certificate is None, "the ends differ by 6 %"
    assert answer.reason == "the ends differ, but no measured revision changed it by the threshold or more"
    assert [change.positions for change in answer.below_threshold] == [(1,), (3,)]
    for change in answer.below_threshold:
        assert contains(change.effect, math.exp(0.03))
        assert change.certificate is not None
        assert change.certificate.error <= 0.01


def test_the_interval_of_a_change_is_as_wide_as_its_own_builds_scatter() -> None:
    question, rng = Question(revisions=12, linked=False), np.random.default_rng(5)
    evidence = Evidence(question)
    found = Rounds(question, evidence)
    found.add(range(12))
    for _ in range(30):
        values = [
            (at, 0.3 * (at >= 11) + float(rng.normal(0, 0.02 if at == 11 else 0.002))) for at in range(12)
        ]
        evidence.add(batch(*values, certificate=True))
    (change,) = conclude(question, evidence, found, LayoutGuard(question, evidence, found), "").changes
    assert change.positions == (11,)
    assert change.effect is not None
    assert math.log(change.effect.high / change.effect.low) > 2 * 1.96 * 0.6 * 0.02 / math.sqrt(30)


def test_a_smaller_difference_of_the_ends_is_none_and_stated() -> None:
    answer = answer_of(step(15, -0.024), 0.002, revisions=30, build=10.0)
    assert answer.verdict is Verdict.NONE
    assert answer.changes == ()
    assert answer.ends is not None
    assert contains(answer.ends, math.exp(-0.024), 0.001)
    assert answer.ends.high < 1
    assert 0.024 < answer.minimum_detectable <= 0.05


def test_no_change_below_the_threshold_is_reported_if_nothing_changed() -> None:
    for seed in range(2):
        answer = answer_of(lambda position: 1.0, revisions=30, seed=seed)
        assert answer.verdict is Verdict.NONE
        assert answer.below_threshold == ()


# None.


def test_none_has_a_certificate_and_the_largest_possible_change() -> None:
    answer = answer_of(lambda position: 1.0, revisions=30)
    largest = 100 * answer.minimum_detectable
    assert answer.reason == f"the ends are equal within {largest:.2g} %"
    assert answer.certificate is not None
    assert answer.certificate.blocks >= 6
    assert answer.certificate.error <= 0.0101
    assert answer.certificate.invocations == 2 * answer.certificate.blocks


def test_none_states_the_longest_gap_without_a_measured_revision() -> None:
    answer = answer_of(lambda position: 1.0, build=10.0, revisions=1000)
    assert answer.verdict is Verdict.NONE
    assert answer.unseen is not None
    first, last = answer.unseen
    # The looks inside halve the longest gap: a quarter of the history is the longest after three of them.
    assert 1 < last - first <= 500
    whole = answer_to(12, dict.fromkeys(range(3), 0.0), revisions=3)
    assert whole.verdict is Verdict.NONE
    assert whole.unseen is None


def test_equal_builds_at_both_ends_are_none_without_a_round_of_them() -> None:
    oracle = Oracle(lambda position: 1.0, normal(1, 0.01), content=lambda position: position % 29)
    answer = oracle.settle(Question(revisions=30))
    assert answer.verdict is Verdict.NONE
    assert answer.certificate is not None
    assert answer.certificate.blocks == 0
    assert answer.reason == "the ends are equal"
    assert answer.minimum_detectable == 0


def test_the_minimum_detectable_change_falls_with_the_noise() -> None:
    found = [
        answer_of(lambda position: 1.0, sigma, revisions=30, build=10.0).minimum_detectable
        for sigma in (0.002, 0.01, 0.03)
    ]
    assert found[0] < 0.05
    assert np.isfinite(found).all()


# Suspicions and reservations.


def test_two_revisions_that_differ_leave_no_room_for_another_change() -> None:
    answer = answer_to(14, {0: 0.0, 1: 0.2})
    (change,) = answer.changes
    assert change.certificate is not None
    assert change.certificate.is_only_change
    assert not answer.suspected


def test_a_gap_that_was_not_decided_leaves_room_for_another_change() -> None:
    answer = answer_to(14, {0: 0.0, 1: 0.2, 2: 0.2, 40: 0.2}, revisions=41)
    assert answer.changes[0].certificate is not None
    assert answer.changes[0].certificate.is_only_change
    spoilt = answer_to(14, {0: 0.0, 1: 0.2, 2: 0.2, 40: 0.29}, revisions=41)
    assert spoilt.changes[0].certificate is not None
    assert not spoilt.changes[0].certificate.is_only_change
    assert spoilt.minimum_detectable > 0.05


def test_a_change_that_cannot_be_certified_is_suspected_with_the_needed_evidence() -> None:
    answer = answer_of(step(40, 0.2), 0.02, build=10.0, budget=Budget(invocations=40))
    assert answer.verdict is Verdict.UNCLEAR
    assert answer.reason == "the budget of invocations is spent"
    (suspected,) = answer.suspected
    assert 40 in suspected.positions
    assert suspected.needed == pytest.approx(200)
    assert suspected.evidence < suspected.needed
    assert 0 <= suspected.confidence <= 1


def test_each_certified_change_has_at_most_the_permitted_error() -> None:
    answer = answer_of(logs((6, 0.3), (14, 0.2)), 0.02, revisions=20)
    errors = [change.certificate.error for change in answer.changes if change.certificate is not None]
    assert len(errors) == 2
    assert max(errors) <= 0.01


def compared(evidence: float, *, rounds: int) -> Gap:
    """Return two builds with this logarithm of the evidence after some rounds."""
    limits = Bounds(low=-0.1, high=0.1)
    differences = np.zeros(rounds)
    return Gap(
        first=0,
        last=1,
        finding=Finding.OPEN,
        differences=differences,
        size=0.0,
        error=0.01,
        limits=limits,
        evidence=evidence,
    )


def test_evidence_that_does_not_grow_has_no_forecast() -> None:
    assert rounds_left(compared(math.log(1.1), rounds=40), 0.005) is None
    few, many = (rounds_left(compared(math.log(wealth), rounds=10), 0.005) for wealth in (150.0, 2.0))
    assert few is not None
    assert many is not None
    assert few < many


# Sizes.


@pytest.mark.parametrize(("trials", "fewest"), [(3, 2), pytest.param(20, 17, marks=pytest.mark.long)])
def test_the_size_and_its_interval_are_those_of_the_rounds(trials: int, fewest: int) -> None:
    covered = 0
    for seed in range(trials):
        (change,) = answer_of(step(10, math.log(1.1)), 0.02, revisions=30, seed=seed).changes
        assert change.effect is not None
        assert change.before is not None
        assert change.after is not None
        assert change.effect.low <= change.effect.value <= change.effect.high
        assert change.after / change.before == pytest.approx(change.effect.value, rel=1e-9)
        covered += change.effect.low <= 1.1 <= change.effect.high
    assert covered >= fewest


def reported_spread(rng: np.random.Generator, *, rounds: int, later: float) -> float | None:
    """Return the ratio of spreads that an answer reports; `later` is the new build's, whose change is 30 %."""
    question = Question(revisions=2, linked=False)
    evidence = Evidence(question)
    found = Rounds(question, evidence)
    found.add((0, 1))
    for _ in range(rounds):
        values = (0, rng.normal(0, 0.01)), (1, 0.3 + rng.normal(0, later))
        evidence.add(batch(*values, certificate=True))
    guard = LayoutGuard(question, evidence, found)
    (change,) = conclude(question, evidence, found, guard, "").changes
    assert change.certificate is not None
    return change.certificate.spread


def test_the_larger_scatter_of_the_new_build_is_reported() -> None:
    spread = reported_spread(np.random.default_rng(4), rounds=60, later=0.05)
    assert spread == pytest.approx(5.0, rel=0.4)


@pytest.mark.parametrize("trials", [25, pytest.param(200, marks=pytest.mark.long)])
def test_a_difference_of_scatter_is_rarely_reported_if_there_is_none(trials: int) -> None:
    """The ratio of two estimates exceeds 2 in about a third of these cases."""
    rng, claimed = np.random.default_rng(4), 0
    for _ in range(trials):
        claimed += reported_spread(rng, rounds=9, later=0.01) is not None
    assert claimed <= max(1, trials // 25)


def test_equal_artefacts_around_a_change_leave_only_the_revisions_between_them() -> None:
    oracle = Oracle(step(16, 0.2), normal(1, 0.02), content=lambda position: position // 4)
    answer = oracle.settle(Search(Question(revisions=40)))
    assert answer.changes[0].positions == (16,)
    assert any(isinstance(each, Built) and each.same_as is not None for each in oracle.observations)


def test_a_small_difference_of_the_only_two_builds_is_unclear_because_of_layouts() -> None:
    oracle = Oracle(step(5, 0.05), normal(1, 0.002), content=lambda position: int(position >= 5))
    answer = oracle.settle(Question(revisions=8, threshold=0.02))
    assert answer.verdict is Verdict.UNCLEAR
    assert answer.layouts_hide
    [suspected] = answer.suspected
    assert suspected.positions == (5,)
    assert suspected.observed == pytest.approx(math.exp(0.05), rel=0.005)


def test_a_change_just_below_the_threshold_does_not_make_its_surroundings_gradual() -> None:
    levels = {at: 0.047 * (at >= 30) + 0.004 * (at >= 60) for at in range(0, 90, 6)}
    levels |= {29: 0.0}
    answer = answer_to(30, levels, revisions=85)
    assert answer.changes == ()
    assert [change.positions for change in answer.below_threshold] == [(30,)]


def test_a_part_that_differs_most_in_one_place_is_not_gradual() -> None:
    levels = {0: 0.0, 20: 0.002, 40: 0.042, 60: 0.054}
    answer = answer_to(30, levels, revisions=61)
    assert not any(change.kind is Kind.RAMP for change in answer.changes)
