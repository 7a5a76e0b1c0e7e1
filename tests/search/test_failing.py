"""Search for the revision where a program began to fail, always or sometimes, with a calibrated probability."""

from __future__ import annotations

import random

import pytest

from perftrail.search.answer import Measure, Settled, Verdict
from perftrail.search.budget import Budget
from perftrail.search.failing import MOST_ATTEMPTS, Attempts, FailureSearch
from perftrail.search.question import Question


def search(
    question: Question, *, culprit: int, before: float, after: float, seed: int = 1, final: bool = False
) -> tuple[Settled, FailureSearch, list[Measure]]:
    """Let attempts fail by chance, at one rate before the culprit and at another from it on."""
    rng, failure_search, actions = random.Random(seed), FailureSearch(question), list[Measure]()
    seen: set[int] = set()
    while isinstance(action := failure_search.ask(), Measure):
        actions.append(action)
        (position,) = action.positions
        failed = rng.random() < (before if position < culprit else after)
        observation = Attempts(
            position=position,
            worked=int(not failed),
            failed=int(failed),
            final=final and failed,
            seconds=1.0,
            build_seconds=None if position in seen else 10.0,
        )
        seen.add(position)
        failure_search.tell(observation)
    return action, failure_search, actions


@pytest.mark.parametrize("culprit", [1, 2, 500, 998, 999])
def test_a_failure_without_flakiness_is_found_in_few_builds(culprit: int) -> None:
    settled, failure_search, actions = search(Question(revisions=1000), culprit=culprit, before=0, after=1)
    assert settled.answer.changes[0].positions == (culprit,)
    assert settled.answer.confidence >= 0.99
    assert failure_search.builds <= 14
    assert len(actions) <= 24


def test_a_final_failure_is_tried_once() -> None:
    settled, _, actions = search(Question(revisions=300), culprit=100, before=0, after=1, final=True)
    assert settled.answer.changes[0].positions == (100,)
    failing = [action.order[0] for action in actions if action.order[0] >= 100]
    assert len(failing) == len(set(failing))


def test_the_revision_that_repaired_the_program_is_found_too() -> None:
    settled, _, _ = search(Question(revisions=200), culprit=77, before=1, after=0)
    [change] = settled.answer.changes
    assert change.positions == (77,)
    assert change.before is not None
    assert change.after is not None
    assert change.before < 0.05 < 0.95 < change.after  # noqa: PLR0133 - reads as the order it states


@pytest.mark.parametrize("trials", [10, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize(("before", "after"), [(0.0, 0.9), (0.05, 0.95), (0.0, 0.5), (0.3, 1.0)])
def test_answers_on_flaky_programs_are_right_as_often_as_their_probability(
    before: float, after: float, trials: int
) -> None:
    right = claimed = 0.0
    for seed in range(trials):
        culprit = random.Random(100 + seed).randrange(1, 100)
        settled, _, _ = search(
            Question(revisions=100), culprit=culprit, before=before, after=after, seed=seed
        )
        assert settled.answer.verdict is Verdict.FOUND
        right += settled.answer.changes[0].positions == (culprit,)
        claimed += settled.answer.confidence
    assert claimed >= 0.99 * trials
    assert right >= 0.95 * trials


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_no_culprit_is_named_if_nothing_changed(rate: float) -> None:
    settled, failure_search, _ = search(Question(revisions=100), culprit=50, before=rate, after=rate)
    assert settled.answer.verdict is Verdict.NONE
    assert failure_search.builds == 2


def test_a_single_failing_revision_is_not_the_culprit() -> None:
    failure_search = FailureSearch(Question(revisions=64))
    while isinstance(action := failure_search.ask(), Measure):
        (position,) = action.positions
        fails = position == 31 or position >= 50
        failure_search.tell(Attempts(position=position, worked=not fails, failed=fails, final=fails))
    assert action.answer.changes[0].positions == (50,)


def test_equal_observations_lead_to_equal_actions() -> None:
    first = search(Question(revisions=80), culprit=30, before=0.05, after=0.8)
    again = search(Question(revisions=80), culprit=30, before=0.05, after=0.8)
    assert first[2] == again[2]
    assert first[0] == again[0]


def test_a_spent_budget_ends_the_search_with_a_range_or_unclear() -> None:
    question = Question(revisions=1000, budget=Budget(invocations=6))
    settled, failure_search, _ = search(question, culprit=400, before=0, after=1)
    assert failure_search.invocations == 6
    assert settled.answer.verdict in (Verdict.RANGE, Verdict.UNCLEAR)
    assert "budget" in settled.answer.reason


def test_a_search_ends_even_if_the_rates_hardly_differ() -> None:
    settled, failure_search, _ = search(Question(revisions=30), culprit=15, before=0.45, after=0.55)
    assert failure_search.invocations <= MOST_ATTEMPTS
    assert settled.answer.reason


def test_invalid_attempts_are_refused() -> None:
    with pytest.raises(ValueError, match="report one or more"):
        Attempts(position=1)
    with pytest.raises(ValueError, match="positions 0 to 9"):
        FailureSearch(Question(revisions=10)).tell(Attempts(position=10, worked=1))
