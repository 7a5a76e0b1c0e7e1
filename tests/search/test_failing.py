"""Where it began to fail: found in programs that always, never and sometimes fail, with an honest probability."""

from __future__ import annotations

import random

import pytest

from perftrail.search.answer import Measure, Settled, Verdict
from perftrail.search.failing import MOST_ATTEMPTS, Attempts, FailureSearch
from perftrail.search.question import Budget, Question


def search(
    question: Question, *, culprit: int, before: float, after: float, seed: int = 1, final: bool = False
) -> tuple[Settled, FailureSearch, list[Measure]]:
    """Let attempts fail by chance, at one rate before the culprit and at another from it on."""
    chance, works, asked = random.Random(seed), FailureSearch(question), list[Measure]()
    seen: set[int] = set()
    while isinstance(action := works.ask(), Measure):
        asked.append(action)
        (position,) = action.positions
        failed = chance.random() < (before if position < culprit else after)
        observation = Attempts(
            position=position,
            worked=int(not failed),
            failed=int(failed),
            final=final and failed,
            seconds=1.0,
            build_seconds=None if position in seen else 10.0,
        )
        seen.add(position)
        works.tell(observation)
    return action, works, asked


@pytest.mark.parametrize("culprit", [1, 2, 500, 998, 999])
def test_what_never_failed_and_always_fails_is_found_in_few_builds(culprit: int) -> None:
    settled, works, asked = search(Question(revisions=1000), culprit=culprit, before=0, after=1)
    assert settled.answer.changes[0].positions == (culprit,)
    assert settled.answer.confidence >= 0.99
    assert works.builds <= 14
    assert len(asked) <= 24


def test_a_failure_that_comes_again_is_asked_for_once() -> None:
    settled, _, asked = search(Question(revisions=300), culprit=100, before=0, after=1, final=True)
    assert settled.answer.changes[0].positions == (100,)
    failing = [action.order[0] for action in asked if action.order[0] >= 100]
    assert len(failing) == len(set(failing))


def test_the_revision_that_made_it_work_is_found_too() -> None:
    settled, _, _ = search(Question(revisions=200), culprit=77, before=1, after=0)
    [change] = settled.answer.changes
    assert change.positions == (77,)
    assert change.before is not None
    assert change.after is not None
    assert change.before < 0.05 < 0.95 < change.after  # noqa: PLR0133 - reads as the order it states


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.9), (0.05, 0.95), (0.0, 0.5), (0.3, 1.0)])
def test_flaky_programs_are_tried_until_the_answer_is_right_as_often_as_it_says(
    before: float, after: float
) -> None:
    right = claimed = 0.0
    for seed in range(40):
        culprit = random.Random(100 + seed).randrange(1, 100)
        settled, _, _ = search(
            Question(revisions=100), culprit=culprit, before=before, after=after, seed=seed
        )
        assert settled.answer.verdict is Verdict.FOUND
        right += settled.answer.changes[0].positions == (culprit,)
        claimed += settled.answer.confidence
    assert claimed >= 0.99 * 40
    assert right >= 38


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_no_culprit_is_named_where_nothing_changed(rate: float) -> None:
    settled, works, _ = search(Question(revisions=100), culprit=50, before=rate, after=rate)
    assert settled.answer.verdict is Verdict.NONE
    assert works.builds == 2


def test_one_revision_that_fails_by_itself_is_not_the_culprit() -> None:
    works = FailureSearch(Question(revisions=64))
    while isinstance(action := works.ask(), Measure):
        (position,) = action.positions
        fails = position == 31 or position >= 50
        works.tell(Attempts(position=position, worked=not fails, failed=fails, final=fails))
    assert action.answer.changes[0].positions == (50,)


def test_the_same_news_lead_to_the_same_questions() -> None:
    first = search(Question(revisions=80), culprit=30, before=0.05, after=0.8)
    again = search(Question(revisions=80), culprit=30, before=0.05, after=0.8)
    assert first[2] == again[2]
    assert first[0] == again[0]


def test_a_budget_ends_it_with_what_is_known() -> None:
    question = Question(revisions=1000, budget=Budget(invocations=6))
    settled, works, _ = search(question, culprit=400, before=0, after=1)
    assert works.invocations == 6
    assert settled.answer.verdict in (Verdict.RANGE, Verdict.UNCLEAR)
    assert "budget" in settled.answer.reason


def test_rates_that_hardly_differ_end_the_search_all_the_same() -> None:
    settled, works, _ = search(Question(revisions=30), culprit=15, before=0.45, after=0.55)
    assert works.invocations <= MOST_ATTEMPTS
    assert settled.answer.reason


def test_news_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="report one or more"):
        Attempts(position=1)
    with pytest.raises(ValueError, match="positions 0 to 9"):
        FailureSearch(Question(revisions=10)).tell(Attempts(position=10, worked=1))
