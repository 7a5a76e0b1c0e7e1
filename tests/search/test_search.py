"""Edge cases of the search, and every kind of change."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perftrail.search import (
    Batch,
    BootSession,
    Budget,
    Built,
    CannotRelink,
    Costs,
    Kind,
    Measure,
    Question,
    Sample,
    Search,
    Settled,
    Unusable,
    Verdict,
)
from perftrail.search.rounds import USUALLY_PROMISING
from perftrail.search.search import LOOKS
from tests.search.oracle import Oracle, batch, layouts, normal, posterior_of, search_after, step, steps

if TYPE_CHECKING:
    from tests.search.oracle import Level

SIGMA = 0.03


def ramp(begin: int, end: int, size: float) -> Level:
    return lambda position: 1.0 + size * min(max((position - begin) / (end - begin), 0.0), 1.0)


def batch_of(measure: Measure, level: float = 0.0) -> Batch:
    return batch(*((position, level) for position in measure.order), certificate=measure.certificate)


def test_both_ends_are_measured_first_with_the_first_as_the_reference_in_between() -> None:
    search = Search(Question(revisions=100))
    first = search.ask()
    assert first == Measure(order=(0,))
    search.tell(batch_of(first))
    second = search.ask()
    assert second == Measure(order=(99, 0, 99, 0, 99))
    assert isinstance(second, Measure)
    assert second.positions == (99, 0)


def test_equal_ends_are_certified_with_few_looks_inside() -> None:
    oracle = Oracle(lambda position: 2.0)
    answer = oracle.settle(Question(revisions=1000))
    assert answer.verdict is Verdict.NONE
    assert answer.changes == ()
    assert answer.confidence >= 0.99
    assert answer.certificate is not None
    assert answer.certificate.error <= 0.0101
    assert 0 < answer.minimum_detectable <= 0.05
    assert oracle.builds == 2 + LOOKS


def test_where_several_changes_are_named_cheap_builds_show_others_that_cancel_each_other() -> None:
    level = steps((20, 0.3), (60, 0.3), (84, 0.3), (88, -0.3))
    oracle = Oracle(level, normal(1, 0.01), build_seconds=0.1)
    question = Question(revisions=120, linked=False, costs=Costs(build=0.1, sample=1.0))
    answer = oracle.settle(question)
    assert [change.positions for change in answer.changes] == [(20,), (60,), (84,), (88,)]
    few = oracle.settle(replace(question, budget=Budget(invocations=oracle.sample_count // 2)))
    assert [change.positions for change in few.changes] == [(20,), (60,)]
    assert few.verdict is Verdict.SEVERAL
    alone = Oracle(steps((20, 0.3)), normal(1, 0.01), build_seconds=0.1)
    alone.settle(question)
    assert alone.builds < 20, "one change is no reason to expect others"


@pytest.mark.parametrize("revisions", [2, 3])
@pytest.mark.parametrize("size", [0.7, -0.7])
def test_the_shortest_histories_are_answered(revisions: int, size: float) -> None:
    answer = Oracle(step(revisions - 1, size)).settle(Question(revisions=revisions))
    assert answer.verdict is Verdict.FOUND
    assert answer.changes[0].positions == (revisions - 1,)


@pytest.mark.parametrize("culprit", [1, 98])
def test_a_change_next_to_an_end_is_found(culprit: int) -> None:
    oracle = Oracle(step(culprit, 0.2), normal(culprit, SIGMA))
    answer = oracle.settle(Question(revisions=100))
    assert [change.positions for change in answer.changes] == [(culprit,)]


def test_a_change_smaller_than_the_threshold_is_none_even_without_noise() -> None:
    for revisions in (2, 100):
        answer = Oracle(step(1, 0.01)).settle(Question(revisions=revisions, threshold=0.05))
        assert answer.verdict is Verdict.NONE


def test_broken_ends_are_replaced_by_the_nearest_usable_revisions() -> None:
    answer = Oracle(step(40, 0.2, frozenset({0, 1, 2, 98, 99}))).settle(Question(revisions=100))
    assert answer.verdict is Verdict.FOUND
    assert answer.changes[0].positions == (40,)


def test_equal_ends_inside_broken_ones_are_not_called_none() -> None:
    answer = Oracle(step(20, 0.2, frozenset(range(30)) | {98, 99})).settle(Question(revisions=100))
    assert answer.verdict is Verdict.UNCLEAR
    assert "revisions beyond the outermost ones" in answer.reason


def test_a_history_without_a_usable_revision_is_unclear() -> None:
    answer = Oracle(lambda position: None).settle(Question(revisions=12))
    assert answer.verdict is Verdict.UNCLEAR
    assert "all 12 tried revisions failed" in answer.reason
    assert math.isinf(answer.minimum_detectable)


def test_a_search_of_a_long_broken_history_ends_after_forty_builds() -> None:
    oracle = Oracle(lambda position: None)
    assert oracle.settle(Question(revisions=100_000)).verdict is Verdict.UNCLEAR
    assert oracle.builds == 40


def test_a_single_usable_revision_is_unclear() -> None:
    answer = Oracle(lambda position: 1.0 if position == 5 else None).settle(Question(revisions=12))
    assert answer.verdict is Verdict.UNCLEAR
    assert "only one revision" in answer.reason


def test_a_long_broken_range_is_not_tried_one_by_one() -> None:
    oracle = Oracle(step(500, 0.3, frozenset(range(400, 700))))
    answer = oracle.settle(Question(revisions=1000))
    assert answer.verdict is Verdict.RANGE
    assert set(range(400, 701)) <= set(answer.changes[0].positions)
    assert oracle.builds < 70


def test_a_spent_budget_leaves_suspected_changes_without_a_certificate() -> None:
    for invocations in (8, 12, 20, 30):
        oracle = Oracle(step(30, 0.5), normal(1, 0.02))
        answer = oracle.settle(Question(revisions=100, budget=Budget(invocations=invocations)))
        assert answer.verdict is Verdict.UNCLEAR
        assert "invocations" in answer.reason
        assert oracle.sample_count <= invocations
        for suspected in answer.suspected:
            assert 30 in suspected.positions


def test_a_budget_of_seconds_ends_the_search() -> None:
    oracle = Oracle(step(300, 0.5), normal(1, 0.02))
    answer = oracle.settle(Question(revisions=1000, budget=Budget(seconds=60.0)))
    assert "time budget" in answer.reason


def test_a_smaller_budget_during_a_search_ends_it() -> None:
    question = Question(revisions=100)
    search = Search(question)
    assert isinstance(search.ask(), Measure)
    search.allow(replace(question.budget, invocations=0))
    assert isinstance(search.ask(), Settled)


def test_one_outlier_is_measured_again() -> None:
    ends = batch((2, 0.5), (0, 0.0), (2, 0.51), (0, 0.01), (2, 0.49), (0, -0.01))
    search = search_after(Question(revisions=3), batch((0, 0.0)))
    search.ask()
    for observation in (ends, batch((1, 3.0), (0, 0.0))):
        search.tell(observation)
    action = search.ask()
    assert isinstance(action, Measure)
    assert 1 in action.positions
    assert not action.certificate


@pytest.mark.parametrize("samples", [(0.7529, 0.0564, 0.7549), (0.7529, 0.0564, 0.7549, 0.0594)])
def test_as_many_outliers_as_good_samples_of_an_end_do_not_hide_the_change(
    samples: tuple[float, ...],
) -> None:
    first = batch((0, -0.002), (0, -0.0019), (0, -0.0016))
    search = search_after(Question(revisions=1000, threshold=0.03), first)
    search.ask()
    search.tell(batch(*((999, value) for value in samples), (0, -0.0018), (0, -0.002)))
    assert posterior_of(search).no_change < 0.3
    action = search.ask()
    assert isinstance(action, Measure)
    assert not action.certificate


def test_a_search_with_many_earlier_samples_needs_few_new_builds() -> None:
    search = Search(Question(revisions=100))
    for position in range(0, 100, 9):
        level = 0.0 if position < 45 else 0.3
        search.tell(batch((position, level), (0, 0.0), (position, level), (position, level)))
    action = search.ask()
    assert isinstance(action, Measure)
    assert any(36 < position < 45 for position in action.positions)


def test_a_prior_moves_the_search_and_excludes_what_it_rules_out() -> None:
    prior = tuple(1.0 if position in (30, 31) else 0.0 for position in range(100))
    oracle = Oracle(step(31, 0.3))
    answer = oracle.settle(Question(revisions=100, prior=prior))
    assert answer.changes[0].positions == (31,)
    assert oracle.builds == 3


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_a_wrong_prior_costs_samples_but_not_the_answer(seed: int) -> None:
    prior = tuple(1.0 if 600 <= position < 900 else 0.02 for position in range(1000))
    oracle = Oracle(step(123, 0.1), normal(seed, 0.02))
    answer = oracle.settle(Question(revisions=1000, prior=prior))
    assert answer.changes[0].positions == (123,)
    assert answer.confidence >= 0.99
    assert oracle.builds < 22


def test_a_prior_of_zero_excludes_and_any_other_does_not() -> None:
    weights = Question(revisions=4, prior=(5.0, 1.0, 0.0, 1e-12)).weights()
    assert weights.tolist() == pytest.approx([0.0, 0.95, 0.0, 0.05])


def test_a_hundred_thousand_revisions_are_searched() -> None:
    oracle = Oracle(step(77_777, 0.1), normal(3, 0.01))
    answer = oracle.settle(Question(revisions=100_000))
    assert answer.changes[0].positions == (77_777,)
    assert oracle.builds <= 22


def test_levels_a_million_times_apart_are_compared() -> None:
    answer = Oracle(step(7, 13.8)).settle(Question(revisions=20))
    assert answer.changes[0].positions == (7,)


def test_two_changes_are_both_named_each_with_its_certificate() -> None:
    oracle = Oracle(steps((6, 0.3), (14, -0.15)), normal(1, 0.01))
    answer = oracle.settle(Question(revisions=20))
    assert answer.verdict is Verdict.SEVERAL
    assert [change.positions for change in answer.changes] == [(6,), (14,)]
    for change, size in zip(answer.changes, (0.3, -0.15), strict=True):
        assert change.kind is Kind.STEP
        assert change.certificate is not None
        assert change.effect is not None
        assert change.effect.low <= math.exp(size) <= change.effect.high
    assert answer.confidence >= 0.97


def test_equal_changes_do_not_make_the_search_name_the_middle_as_culprit() -> None:
    answer = Oracle(steps((6, 0.12), (14, 0.12)), normal(2, 0.005)).settle(Question(revisions=20))
    assert [change.positions for change in answer.changes] == [(6,), (14,)]


def test_three_changes_without_noise_are_named() -> None:
    answer = Oracle(steps((3, 0.1), (10, 0.2), (17, -0.15))).settle(Question(revisions=20))
    assert [change.positions for change in answer.changes] == [(3,), (10,), (17,)]


def test_only_a_thorough_search_finds_a_change_reverted_soon() -> None:
    level = steps((57, 0.15), (60, -0.15))
    plain = Oracle(level, normal(4, 0.005)).settle(Question(revisions=100))
    assert plain.verdict is Verdict.NONE
    assert plain.unseen is not None
    assert 3 < plain.unseen[1] - plain.unseen[0] <= 26
    thorough = Oracle(level, normal(4, 0.005)).settle(Question(revisions=100, thorough=True))
    assert [change.positions for change in thorough.changes] == [(57,), (60,)]


def test_a_look_inside_finds_a_long_reverted_change() -> None:
    oracle = Oracle(steps((30, 0.15), (75, -0.15)), normal(4, 0.005))
    answer = oracle.settle(Question(revisions=100))
    assert [change.positions for change in answer.changes] == [(30,), (75,)]
    assert oracle.builds < 30


def test_a_thorough_search_without_a_change_is_none_after_evenly_spread_builds() -> None:
    oracle = Oracle(steps(broken=frozenset(range(210, 230))), normal(5, 0.005))
    search = Search(Question(revisions=1000, thorough=True))
    answer = oracle.settle(search)
    assert answer.verdict is Verdict.NONE
    assert answer.unseen is not None
    assert answer.unseen[1] - answer.unseen[0] <= 1000 // 24 + 1
    assert max(np.diff(search.evidence.positions)) <= 1000 // 24 + 1


def test_a_change_between_broken_revisions_is_a_range_among_several() -> None:
    broken = frozenset(range(25, 34))
    answer = Oracle(steps((30, 0.2), (80, 0.2), broken=broken), normal(6, 0.01)).settle(
        Question(revisions=100)
    )
    assert [change.positions for change in answer.changes] == [tuple(range(25, 35)), (80,)]


def test_a_ramp_is_reported_as_a_ramp_and_not_blamed_on_one_revision() -> None:
    answer = Oracle(ramp(10, 40, 0.2), normal(7, 0.004)).settle(Question(revisions=50, linked=False))
    assert answer.verdict is Verdict.RANGE
    (change,) = answer.changes
    assert change.kind is Kind.RAMP
    assert set(range(11, 41)) <= set(change.positions)
    assert change.effect is not None
    assert change.effect.low <= math.exp(0.2) <= change.effect.high
    assert change.confidence >= 0.99
    assert "no single revision" in answer.reason


def test_a_history_in_which_most_commits_change_nothing_needs_no_samples_of_them() -> None:
    oracle = Oracle(
        lambda position: 0.1 * (position >= 230), normal(2, 0.01), content=lambda position: position // 10
    )
    search = Search(Question(revisions=400))
    answer = oracle.settle(search)
    assert answer.changes[0].positions == (230,)
    assert oracle.sample_count < 90


def test_a_new_boot_session_is_not_taken_for_a_change() -> None:
    shift = 0.0
    quiet = normal(4, 0.02)
    oracle = Oracle(step(32, 0.2), lambda position: shift + quiet(position))
    search = Search(Question(revisions=100))
    count = 0
    while isinstance(action := search.ask(), Measure):
        count += 1
        if count in (4, 9):
            shift += 0.4
            search.tell(BootSession(name=f"boot {count}"))
        for observation in oracle.perform(action):
            search.tell(observation)
    assert count > 9
    assert [change.positions for change in action.answer.changes] == [(32,)]


def test_noisy_samples_do_not_certify_a_change() -> None:
    """The noisy sample of a round cancels its pair, even if it fits the change."""
    search = search_after(Question(revisions=2), batch((0, 0.0)))
    search.ask()
    search.tell(batch((1, 0.5), (0, 0.0), (1, 0.5), (0, 0.0), (1, 0.5)))
    for _ in range(20):
        done = search.ask()
        assert isinstance(done, Measure)
        assert done.certificate
        observation = batch(*((position, 0.5 * position) for position in done.order), certificate=True)
        noisy = replace(observation.samples[0], noisy=True)
        search.tell(replace(observation, samples=(noisy, *observation.samples[1:])))
        search.tell(batch(*((position, 0.0) for position in (0, 1) * 6)))


def test_a_search_draws_a_new_layout_for_each_round() -> None:
    oracle = Oracle(step(10, 0.2), normal(1, 0.01), layouts(1, 0.02))
    answer = oracle.settle(Question(revisions=20, relinks=True))
    (change,) = answer.changes
    assert change.positions == (10,)
    assert change.certificate is not None
    assert change.certificate.layouts >= 8
    drawn_layouts = [
        observation.layout
        for observation in oracle.observations
        if isinstance(observation, Batch) and observation.certificate
    ]
    assert len(set(drawn_layouts)) == len(drawn_layouts)
    assert 0 not in drawn_layouts


def test_a_build_that_cannot_be_relinked_is_certified_as_it_is() -> None:
    oracle = Oracle(step(10, 0.2), normal(1, 0.01))
    search = Search(Question(revisions=20, relinks=True))
    search.tell(CannotRelink(reason="no lld"))
    answer = oracle.settle(search)
    assert answer.changes[0].certificate is not None
    assert answer.changes[0].certificate.layouts == 1


def test_expensive_relinks_are_sampled_several_times() -> None:
    for seconds, times in ((0.5, 1), (30.0, 4)):
        oracle = Oracle(step(10, 0.2), normal(1, 0.01), layouts(1, 0.02), relink_seconds=seconds)
        oracle.settle(Question(revisions=20, relinks=True))
        blocks = [
            observation
            for observation in oracle.observations
            if isinstance(observation, Batch) and observation.certificate
        ]
        assert len(blocks) > 4
        for block in blocks[1:]:
            runs = Counter(sample.position for sample in block.samples)
            assert set(runs.values()) == {times}


@pytest.mark.parametrize(("workers", "most"), [(1, 40), (4, 26)])
def test_builds_begun_ahead_shorten_the_search(workers: int, most: int) -> None:
    oracle = Oracle(step(640, 0.3), normal(1, 0.01))
    search, rounds = Search(Question(revisions=1000)), 0
    while isinstance(action := search.ask(), Measure):
        rounds += 1
        begun = set(action.positions)
        ahead = search.builds_ahead(begun, workers - 1)
        assert not begun & set(ahead)
        for measure in (action, *(Measure(order=(each,)) for each in ahead)):
            for observation in oracle.perform(measure):
                search.tell(observation)
    assert action.answer.changes[0].positions == (640,)
    assert rounds <= most


def test_builds_ahead_do_not_exceed_the_budget_of_builds() -> None:
    search = search_after(Question(revisions=1000, budget=Budget(builds=4)), batch((0, 0.0)))
    search.ask()
    search.tell(batch((999, 0.3), (0, 0.0), (999, 0.3), (0, 0.0), (999, 0.3)))
    action = search.ask()
    assert isinstance(action, Measure)
    assert len(search.builds_ahead(action.positions, 8)) <= 1


def test_a_batch_costs_its_builds_and_its_samples() -> None:
    search = Search(Question(revisions=100))
    assert search.expected_seconds(Measure(order=(0, 99, 0))) == pytest.approx(23.0)
    search = Search(Question(revisions=100, built=frozenset({0, 99})))
    assert search.expected_seconds(Measure(order=(0, 99, 0))) == pytest.approx(3.0, rel=0.01)


def test_positions_outside_the_history_are_rejected() -> None:
    with pytest.raises(ValueError, match="positions 0 to 9"):
        Search(Question(revisions=10)).tell(Unusable(position=10))


@pytest.mark.parametrize(
    "wrong",
    [
        {"revisions": 1},
        {"threshold": 0.0},
        {"confidence": 1.0},
        {"prior": (1.0,)},
        {"prior": (1.0,) + (0.0,) * 9},
        {"samples_at_ends": 1},
        {"invocations_per_sample": 0},
        {"no_change": 0.0},
    ],
)
def test_invalid_questions_are_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"question.{next(iter(wrong))}"):
        Question(**{"revisions": 10} | wrong)  # type: ignore[arg-type]  # that is the point


def test_a_search_with_a_limit_of_builds_repeats_its_steps_when_it_resumes() -> None:
    """A resumed search first asks without a limit; only if the recorded step is another one, with the limit."""
    oracle, limit = Oracle(step(5, 0.3), normal(1, 0.01), build_seconds=0.01), Budget(builds=5)
    question = Question(revisions=20, costs=Costs(build=0.01, sample=1.0))
    begun, resumed = Search(replace(question, budget=limit)), Search(question)
    count = 0
    while isinstance(recorded := begun.ask(), Measure):
        resumed.allow(Budget())
        if resumed.ask() != recorded:
            resumed.allow(limit)
        assert resumed.ask() == recorded
        for observation in oracle.perform(recorded):
            begun.tell(observation)
            resumed.tell(observation)
        count += 1
    assert count > 3


def test_a_search_that_names_nothing_goes_on_while_a_decision_is_forecast() -> None:
    oracle = Oracle(lambda _: 1.0, normal(2, 0.12), build_seconds=0.01)
    answer = oracle.settle(Question(revisions=2, costs=Costs(build=0.01, sample=1.0), linked=False))
    assert answer.verdict is Verdict.NONE
    assert len(oracle.batches) > USUALLY_PROMISING


def test_the_rounds_of_a_second_change_correct_its_first_samples() -> None:
    """A search on a busy machine: two of three samples of the second culprit were slow, none in its nine rounds."""
    recorded = json.loads((Path(__file__).parent / "cases" / "two_changes.json").read_text())
    search = Search(Question(revisions=recorded["revisions"]))
    for told in recorded["steps"]:
        search.ask()
        if "built" in told:
            search.tell(Built(position=told["built"], same_as=told["same_as"]))
            continue
        [(kind, values)] = told.items()
        samples = [Sample(position=at, value=value, noisy=bool(noisy)) for at, value, noisy in values]
        search.tell(Batch(samples=tuple(samples), certificate=kind == "block"))
    assert search.belief is not None
    steps_of_belief = itertools.pairwise(search.belief.at_or_before)
    jumps = [before for (before, least), (_, most) in steps_of_belief if most - least > 0.05]
    assert jumps == recorded["before"]


def test_ends_that_certainly_differ_are_not_said_to_become_equal() -> None:
    """Three gaps of 2.2 % are each not likely yet, while the ends differ for certain."""
    search = Search(Question(revisions=4, costs=Costs(build=0.01, sample=1.0), linked=False))
    noise = np.random.default_rng(3).normal(0, 0.05, (40, 4))
    for row in noise - noise.mean(axis=0):
        search.ask()
        search.tell(batch(*((at, 0.022 * at + float(row[at])) for at in range(4)), certificate=True))
    belief = search.belief
    assert belief is not None
    assert belief.changes == 0
    assert belief.no_change < 0.1
    assert belief.claim is None


@pytest.mark.parametrize(("seed", "size"), [(0, 0.05), (2, 0.0)])
def test_the_progress_of_a_claim_is_that_of_builds_that_the_next_round_runs(seed: int, size: float) -> None:
    oracle = Oracle(steps((10, size), (20, -size), (30, size)), normal(seed, 0.03), build_seconds=0.01)
    search = Search(Question(revisions=40, costs=Costs(build=0.01, sample=1.0), linked=False))
    claims = 0
    while isinstance(action := search.ask(), Measure):
        claim = None if search.belief is None else search.belief.claim
        if action.certificate and claim is not None:
            claims += 1
            assert {*(claim.around or (0, 39))} <= {*action.positions}
        for observation in oracle.perform(action):
            search.tell(observation)
    assert claims > 3


def test_a_budget_of_two_builds_compares_the_ends_where_builds_are_cheap() -> None:
    oracle = Oracle(step(5, 0.3), normal(1, 0.01), build_seconds=0.01)
    budget = Budget(builds=2)
    answer = oracle.settle(Question(revisions=20, costs=Costs(build=0.01, sample=1.0), budget=budget))
    assert oracle.builds == 2
    assert answer.changes or answer.suspected
