"""A run that exceeds its time is a value of at least the limit, for times."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from perftrail.errors import NoAnswer
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.model.benchmark import Benchmark
from perftrail.model.process import Exited, TimedOut
from perftrail.model.target import resolve_goal
from perftrail.present.answer_details import headline
from perftrail.search.budget import Budget
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.find.test_merges_and_failures import merging
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study(benchmarks={"work": Benchmark(command="{build}/work", timeout_seconds=3.0)})
CULPRIT = 13


def search(
    directory: Path, *, first: int, last: int = 40, share: float = 1.0, metric: str = "wall"
) -> FindAnswer:
    """Search a history whose revisions from `first` up to `last` exceed their time in a share of the runs."""
    rng = random.Random(2)

    def hangs(words: tuple[str, ...]) -> bool:
        return first <= number_of(words) < last and rng.random() < share

    starter = FakeStarter(
        seconds=lambda _: 0.1, ended=lambda words: TimedOut() if hangs(words) else Exited(code=0)
    )
    session = a_session(STUDY, directory, source=FakeSource(40), starter=starter)
    request = FindRequest(
        goal=resolve_goal(STUDY, (metric,)), range=None, threshold=0.05, confidence=0.99, budget=Budget()
    )
    answer = drain(Find(session, request).events())[1]
    assert isinstance(answer, FindAnswer)
    return answer


def test_revisions_that_hang_from_one_on_are_a_change_of_at_least_the_limit(tmp_path: Path) -> None:
    answer = search(tmp_path, first=CULPRIT)
    assert headline(answer).startswith(f"found: r{CULPRIT}")
    assert "changed wall: at least 30" in headline(answer)
    assert "as runs timed out" in headline(answer)
    [change] = answer.as_json()["changes"]
    assert change["at_least"] is True
    assert answer.unusable == ()


def test_the_revision_from_which_no_run_hangs_any_more_is_found(tmp_path: Path) -> None:
    answer = search(tmp_path, first=0, last=CULPRIT)
    assert headline(answer).startswith(f"found: r{CULPRIT}")
    assert "at least" in headline(answer)


def test_revisions_that_hang_in_some_runs_do_not_move_the_end(tmp_path: Path) -> None:
    answer = search(tmp_path, first=CULPRIT, share=0.3)
    assert answer.answer.verdict == "unclear"
    assert "timed out, and medians do not show whether more do; --metric works" in answer.answer.reason
    assert answer.unusable == ()


def test_a_history_that_always_hangs_has_no_answer(tmp_path: Path) -> None:
    with pytest.raises(
        NoAnswer, match=r"exceeded its time limit of 3.0 s, at both ends: write a larger timeout"
    ):
        search(tmp_path, first=0)


def test_a_branch_whose_revisions_hang_is_searched_inside_its_merge(tmp_path: Path) -> None:
    """Inside the merge, only revisions that hang are new: those that end were measured before."""
    hang = {*range(20, 30), *range(1001, 1016)}
    starter = FakeStarter(
        seconds=lambda _: 0.1,
        ended=lambda words: TimedOut() if number_of(words) in hang else Exited(code=0),
    )
    session = a_session(
        STUDY, tmp_path, source=merging(20, base=19, branch=range(1000, 1016)), starter=starter
    )
    request = FindRequest(
        goal=resolve_goal(STUDY, ("wall",)), range=None, threshold=0.05, confidence=0.99, budget=Budget()
    )
    answer = drain(Find(session, request).events())[1]
    assert isinstance(answer, FindAnswer)
    assert headline(answer).startswith(
        "found: r1001 “change 1001”, which r20 merged, changed wall: at least "
    )


def test_memory_of_a_run_that_hangs_is_unknown(tmp_path: Path) -> None:
    answer = search(tmp_path, first=CULPRIT, metric="peak_memory")
    assert answer.answer.verdict == "unclear"
    assert {each.failure.stage for each in answer.unusable} == {"timeout"}
