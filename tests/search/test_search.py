"""What the search does at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perftrail.search import Budget, Costs, Measure, Question, Readings, Search, Settled, Unusable, Verdict
from tests.search.oracle import Oracle, step


def noisy(seed: int, scatter: float) -> object:
    rng = np.random.default_rng(seed)
    return lambda: float(rng.normal(0, scatter))


def test_both_ends_are_measured_first_and_in_turns() -> None:
    search = Search(Question(revisions=100))
    asked = []
    for _ in range(3):
        action = search.ask()
        assert isinstance(action, Measure)
        asked.append((action.position, action.readings))
        search.tell(Readings(position=action.position, values=(0.0,) * action.readings))
    assert asked == [(0, 2), (99, 3), (0, 1)]


def test_ends_that_do_not_differ_end_the_search_without_going_inside() -> None:
    oracle = Oracle(lambda position: 2.0)
    answer = oracle.settle(Question(revisions=1000, smallest=0.05))
    assert answer.verdict is Verdict.NONE
    assert answer.changes == ()
    assert answer.confidence >= 0.99
    assert 0 < answer.smallest_seen <= 0.05
    assert oracle.builds == 2


@pytest.mark.parametrize("revisions", [2, 3])
@pytest.mark.parametrize("size", [0.1, -0.1])
def test_the_shortest_histories_are_answered(revisions: int, size: float) -> None:
    answer = Oracle(step(revisions - 1, size)).settle(Question(revisions=revisions))
    assert answer.verdict is Verdict.FOUND
    assert answer.changes[0].positions == (revisions - 1,)


def test_a_change_smaller_than_the_smallest_is_none_even_without_noise() -> None:
    for revisions in (2, 100):
        answer = Oracle(step(1, 0.01)).settle(Question(revisions=revisions, smallest=0.05))
        assert answer.verdict is Verdict.NONE


def test_broken_ends_are_replaced_by_the_nearest_usable_revisions() -> None:
    broken = frozenset({0, 1, 2, 98, 99})
    answer = Oracle(step(40, 0.1, broken)).settle(Question(revisions=100))
    assert answer.verdict is Verdict.FOUND
    assert answer.changes[0].positions == (40,)


def test_a_change_beyond_the_usable_ends_is_a_range_of_what_could_not_be_built() -> None:
    broken = frozenset(range(30)) | frozenset({98, 99})
    answer = Oracle(step(20, 0.1, broken)).settle(Question(revisions=100))
    assert answer.verdict is Verdict.RANGE
    assert answer.changes[0].positions == (*range(1, 31), 98, 99)
    assert answer.changes[0].effect is None
    assert "before the first" in answer.reason


def test_nothing_usable_is_unclear_and_says_so() -> None:
    oracle = Oracle(lambda position: None)
    answer = oracle.settle(Question(revisions=12))
    assert answer.verdict is Verdict.UNCLEAR
    assert "none of the 12 revisions" in answer.reason
    assert math.isinf(answer.smallest_seen)


def test_a_long_broken_history_is_given_up() -> None:
    oracle = Oracle(lambda position: None)
    assert oracle.settle(Question(revisions=100_000)).verdict is Verdict.UNCLEAR
    assert oracle.builds == 40


def test_one_usable_revision_is_nothing_to_compare() -> None:
    answer = Oracle(lambda position: 1.0 if position == 5 else None).settle(Question(revisions=12))
    assert answer.verdict is Verdict.UNCLEAR
    assert "only one revision" in answer.reason


def test_a_long_broken_stretch_is_not_tried_one_by_one() -> None:
    oracle = Oracle(step(500, 0.3, frozenset(range(400, 700))))
    answer = oracle.settle(Question(revisions=1000))
    assert answer.verdict is Verdict.RANGE
    assert set(range(400, 701)) <= set(answer.changes[0].positions)
    assert oracle.builds < 70


def test_layout_as_large_as_the_change_ends_in_an_answer_with_a_reason() -> None:
    rng = np.random.default_rng(5)
    layout = rng.normal(0, 0.03, 200)
    oracle = Oracle(lambda position: layout[position] + (0.06 if position >= 120 else 0.0), noisy(6, 0.005))  # type: ignore[arg-type]  # the noise of a test
    answer = oracle.settle(Question(revisions=200, smallest=0.05), most=600)
    assert answer.reason
    if answer.changes:
        assert 120 in answer.changes[0].positions


def test_a_spent_budget_gives_the_range_reached_or_unclear() -> None:
    for invocations in (7, 12, 16, 20):
        oracle = Oracle(step(300, 0.5), noisy(1, 0.02))  # type: ignore[arg-type]  # the noise of a test
        answer = oracle.settle(Question(revisions=1000, budget=Budget(invocations=invocations)))
        assert answer.verdict in (Verdict.RANGE, Verdict.UNCLEAR)
        assert "invocations" in answer.reason
        if answer.changes:
            assert 300 in answer.changes[0].positions
            assert len(answer.changes[0].positions) < 999


def test_a_budget_of_seconds_ends_the_search() -> None:
    oracle = Oracle(step(300, 0.5), noisy(1, 0.02))  # type: ignore[arg-type]  # the noise of a test
    answer = oracle.settle(Question(revisions=1000, budget=Budget(seconds=60.0)))
    assert "seconds" in answer.reason


def test_one_wild_reading_decides_nothing() -> None:
    search = Search(Question(revisions=3))
    for position, values in ((0, (0.0, 0.01, -0.01)), (2, (0.5, 0.51, 0.49)), (1, (3.0,))):
        search.tell(Readings(position=position, values=values))
    assert not isinstance(search.ask(), Settled)
    assert search.ask() == Measure(position=1, readings=1)


@pytest.mark.parametrize("readings", [(0.7529, 0.0564, 0.7549), (0.7529, 0.0564, 0.7549, 0.0594)])
def test_as_many_outliers_as_good_readings_of_an_end_do_not_hide_the_change(
    readings: tuple[float, ...],
) -> None:
    search = Search(Question(revisions=1000, smallest=0.03))
    search.tell(Readings(position=0, values=(-0.002, -0.0019, -0.0016)))
    search.tell(Readings(position=999, values=readings))
    assert search.posterior.nothing + search.posterior.small < 0.2
    assert not isinstance(search.ask(), Settled)


def test_warm_start_needs_few_new_builds() -> None:
    search = Search(Question(revisions=100))
    for position in range(0, 100, 9):
        search.tell(Readings(position=position, values=(0.0 if position < 45 else 0.3,) * 3))
    action = search.ask()
    assert isinstance(action, Measure)
    assert 36 < action.position < 45


def test_a_prior_moves_the_search_and_excludes_what_it_rules_out() -> None:
    prior = tuple(1.0 if position in (30, 31) else 0.0 for position in range(100))
    oracle = Oracle(step(31, 0.3))
    answer = oracle.settle(Question(revisions=100, prior=prior))
    assert answer.changes[0].positions == (31,)
    assert oracle.builds == 3


def test_dear_builds_make_it_read_more_and_build_less() -> None:
    def builds(cost: float) -> float:
        counts = []
        for seed in range(4):
            oracle = Oracle(step(70, 0.1), noisy(seed, 0.04))  # type: ignore[arg-type]  # the noise of a test
            question = Question(revisions=200, costs=Costs(build=cost, reading=1.0))
            search = Search(question)
            while not isinstance(action := search.ask(), Settled):
                news = oracle.news(action)
                oracle.told.append(news)
                if isinstance(news, Readings):
                    search.tell(
                        Readings(
                            position=news.position,
                            values=news.values,
                            build_seconds=cost,
                            seconds=news.seconds,
                        )
                    )
            counts.append(oracle.builds)
        return float(np.mean(counts))

    assert builds(100.0) < builds(0.5)


def test_a_hundred_thousand_revisions_need_few_builds() -> None:
    oracle = Oracle(step(77_777, 0.1))
    answer = oracle.settle(Question(revisions=100_000))
    assert answer.changes[0].positions == (77_777,)
    assert oracle.builds <= 22


def test_levels_far_apart_are_held() -> None:
    answer = Oracle(step(7, 13.8)).settle(Question(revisions=20))
    assert answer.changes[0].positions == (7,)


@pytest.mark.parametrize("values", [(), (math.nan,), (math.inf, 0.0)])
def test_values_that_are_no_logarithms_are_rejected(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="readings of position 3"):
        Readings(position=3, values=values)


def test_positions_outside_the_history_are_rejected() -> None:
    search = Search(Question(revisions=10))
    with pytest.raises(ValueError, match="positions 0 to 9"):
        search.tell(Unusable(position=10))


@pytest.mark.parametrize(
    "wrong",
    [
        {"revisions": 1},
        {"smallest": 0.0},
        {"confidence": 1.0},
        {"prior": (1.0,)},
        {"prior": (1.0,) + (0.0,) * 9},
        {"readings_at_ends": 1},
        {"invocations_per_reading": 0},
        {"no_change": 0.0},
    ],
)
def test_questions_without_sense_are_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"question.{next(iter(wrong))}"):
        Question(**{"revisions": 10} | wrong)  # type: ignore[arg-type]  # that is the point
