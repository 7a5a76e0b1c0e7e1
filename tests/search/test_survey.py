"""All changes of a series: several steps, ramps, and what stays one step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.search import (
    Answer,
    Budget,
    Kind,
    Measure,
    Question,
    Readings,
    Same,
    Search,
    Settled,
    Survey,
    Unusable,
    Verdict,
)
from tests.search.oracle import Oracle, step

if TYPE_CHECKING:
    from collections.abc import Callable

SIGMA = 0.03


def steps(*changes: tuple[int, float], broken: frozenset[int] = frozenset()) -> Callable[[int], float | None]:
    def level(position: int) -> float | None:
        return None if position in broken else 1.0 + sum(size for at, size in changes if position >= at)

    return level


def ramp(begin: int, end: int, size: float) -> Callable[[int], float | None]:
    def level(position: int) -> float | None:
        return 1.0 + size * min(max((position - begin) / (end - begin), 0.0), 1.0)

    return level


def noise(seed: int, scatter: float = SIGMA) -> Callable[[], float]:
    rng = np.random.default_rng(seed)
    return lambda: float(rng.normal(0, scatter))


def settle(survey: Survey | Search, oracle: Oracle, most: int = 600) -> Answer:
    for _ in range(most):
        action = survey.ask()
        if isinstance(action, Settled):
            return action.answer
        news = oracle.news(action)
        oracle.told.append(news)
        survey.tell(news)
    raise AssertionError("the survey never settles")


def test_two_steps_are_both_named_with_their_own_levels() -> None:
    oracle = Oracle(steps((120, 0.3), (660, -0.15)), noise(1))
    answer = settle(Survey(Question(revisions=1000)), oracle)
    assert answer.verdict is Verdict.SEVERAL
    assert [change.positions for change in answer.changes] == [(120,), (660,)]
    first, second = answer.changes
    assert first.kind is second.kind is Kind.STEP
    assert first.effect is not None
    assert second.effect is not None
    assert first.effect.low <= math.exp(0.3) <= first.effect.high
    assert second.effect.low <= math.exp(-0.15) <= second.effect.high
    assert first.after == pytest.approx(second.before, rel=0.02)
    assert answer.confidence >= 0.97


def test_equal_steps_do_not_make_the_search_accuse_the_middle() -> None:
    oracle = Oracle(steps((300, 0.12), (700, 0.12)), noise(2))
    answer = settle(Survey(Question(revisions=1000)), oracle)
    assert [change.positions for change in answer.changes] == [(300,), (700,)]


def test_without_noise_three_steps_are_named() -> None:
    oracle = Oracle(steps((10, 0.1), (50, 0.2), (90, -0.15)))
    answer = settle(Survey(Question(revisions=100)), oracle)
    assert [change.positions for change in answer.changes] == [(10,), (50,), (90,)]


def test_one_step_costs_no_more_than_the_search_for_one() -> None:
    cost = []
    for make in (Search, Survey):
        oracle = Oracle(step(321, 0.2), noise(3))
        answer = settle(make(Question(revisions=1000)), oracle)
        assert answer.changes[0].positions == (321,)
        assert answer.changes[0].kind is Kind.STEP
        cost.append(sum(len(news.values) for news in oracle.told if isinstance(news, Readings)))
    assert cost[1] <= cost[0] + 4


def test_no_change_is_none_after_the_two_ends() -> None:
    oracle = Oracle(lambda position: 2.0)
    assert settle(Survey(Question(revisions=1000)), oracle).verdict is Verdict.NONE
    assert oracle.builds == 2


def test_a_change_taken_back_again_is_seen_only_by_a_thorough_survey() -> None:
    level = steps((120, 0.15), (140, -0.15))
    assert settle(Survey(Question(revisions=300)), Oracle(level, noise(4, 0.01))).verdict is Verdict.NONE
    answer = settle(Survey(Question(revisions=300), thorough=True), Oracle(level, noise(4, 0.01)))
    assert [change.positions for change in answer.changes] == [(120,), (140,)]


def test_a_thorough_survey_of_nothing_says_none_after_a_spread_of_builds() -> None:
    oracle = Oracle(steps(broken=frozenset(range(210, 230))), noise(5, 0.005))
    answer = settle(Survey(Question(revisions=1000), thorough=True), oracle)
    assert answer.verdict is Verdict.NONE
    positions = sorted({news.position for news in oracle.told if isinstance(news, Readings)})
    assert max(np.diff(positions)) <= 1000 // 24


def test_a_step_between_broken_revisions_is_a_range_among_several() -> None:
    broken = frozenset(range(295, 304))
    oracle = Oracle(steps((300, 0.2), (800, 0.2), broken=broken), noise(6))
    answer = settle(Survey(Question(revisions=1000)), oracle)
    assert [change.positions for change in answer.changes] == [tuple(range(295, 305)), (800,)]


def test_a_ramp_is_told_as_one_and_not_pinned_on_a_revision() -> None:
    oracle = Oracle(ramp(300, 500, 0.25), noise(7))
    answer = settle(Survey(Question(revisions=1000)), oracle)
    assert answer.verdict is Verdict.RANGE
    (change,) = answer.changes
    assert change.kind is Kind.RAMP
    assert abs(change.positions[0] - 300) < 60
    assert abs(change.positions[-1] - 500) < 60
    assert change.effect is not None
    assert change.effect.low <= math.exp(0.25) <= change.effect.high
    assert change.confidence >= 0.99
    assert "no one of them" in answer.reason


def test_steps_far_above_the_noise_are_steps() -> None:
    oracle = Oracle(steps((20, 5.0), (70, 3.0)), noise(7, 0.001))
    answer = settle(Survey(Question(revisions=100)), oracle)
    assert [change.positions for change in answer.changes] == [(20,), (70,)]


def test_equal_artefacts_are_read_once_and_hold_no_step_between_them() -> None:
    survey = Survey(Question(revisions=100))
    for position, level in ((0, 1.0), (50, 1.3), (99, 1.6)):
        survey.tell(Readings(position=position, values=(level, level + 0.01, level - 0.01)))
    survey.tell(Same(position=60, like=50))
    survey.tell(Same(position=10, like=0))
    answer = settle(survey, Oracle(steps((30, 0.3), (80, 0.3)), noise(3, 0.01)))
    assert [change.positions for change in answer.changes] == [(30,), (80,)]


def test_a_spent_budget_ends_the_survey_with_what_is_known() -> None:
    for invocations in (8, 20, 35):
        question = Question(revisions=1000, budget=Budget(invocations=invocations))
        survey = Survey(question)
        answer = settle(survey, Oracle(steps((120, 0.3), (660, 0.2)), noise(8)))
        assert survey.invocations <= invocations
        named = [set(change.positions) for change in answer.changes]
        assert all(places & {120, 660} for places in named)


def test_a_budget_of_builds_is_not_overdrawn() -> None:
    survey = Survey(Question(revisions=1000, budget=Budget(builds=12)))
    answer = settle(survey, Oracle(steps((120, 0.3), (660, 0.2)), noise(9)))
    assert survey.builds <= 12
    assert answer.verdict in {Verdict.SEVERAL, Verdict.RANGE, Verdict.UNCLEAR}


def test_a_prior_rules_out_revisions_for_every_step() -> None:
    prior = tuple(1.0 if position % 2 else 0.0 for position in range(400))
    oracle = Oracle(steps((101, 0.3), (301, 0.2)))
    answer = settle(Survey(Question(revisions=400, prior=prior)), oracle)
    assert [change.positions for change in answer.changes] == [(101,), (301,)]


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(0, 30))
def test_a_survey_resumes_from_what_was_told(seed: int, cut: int) -> None:
    oracle = Oracle(steps((15, 0.3), (40, 0.2)), noise(seed, 0.02))
    settle(Survey(Question(revisions=60)), oracle)
    asked, resumed = Survey(Question(revisions=60)), Survey(Question(revisions=60))
    for news in oracle.told[:cut]:
        asked.ask()
        asked.tell(news)
        resumed.tell(news)
    assert resumed.ask() == asked.ask()
    assert resumed.ask() == resumed.ask()


def test_the_belief_is_that_of_the_step_in_search_in_positions_of_the_whole() -> None:
    survey = Survey(Question(revisions=1000))
    for position, level in ((0, 1.0), (999, 1.6), (500, 1.3), (600, 1.3)):
        survey.tell(Readings(position=position, values=(level, level + 0.01, level - 0.01)))
    action = survey.ask()
    assert isinstance(action, Measure)
    assert 0 < action.position < 500
    assert survey.belief is not None
    assert survey.belief.heaviest == (0, 500)
    survey.tell(Readings(position=1, values=(1.3, 1.31, 1.29)))
    assert isinstance(survey.ask(), Measure)
    assert survey.belief.heaviest == (600, 999)


def test_positions_outside_the_history_are_rejected() -> None:
    with pytest.raises(ValueError, match="positions 0 to 9"):
        Survey(Question(revisions=10)).tell(Unusable(position=10))


def test_a_smaller_allowance_ends_the_survey() -> None:
    question = Question(revisions=100)
    survey = Survey(question)
    assert isinstance(survey.ask(), Measure)
    survey.allow(replace(question.budget, invocations=0))
    assert isinstance(survey.ask(), Settled)
