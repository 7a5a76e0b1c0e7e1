"""What a run's end means: no result that is repeated (`retry_on`), and the reason whose rate changed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from perftrail.errors import NoAnswer
from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.model.benchmark import Benchmark
from perftrail.model.process import Ended, Exited, Signalled
from perftrail.model.target import resolve_goal
from perftrail.present.answer_details import headline, noise_words
from perftrail.results.selection import choose
from perftrail.search.budget import Budget
from perftrail.verbs.compare import Compare, CompareRequest
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

CULPRIT = 9
STUDY = a_study(benchmarks={"work": Benchmark(command="{build}/work", retry_on=("exit 77", "SIGKILL"))})


def starter(ended: Callable[[int], Ended], *, slower: float = 0.1) -> FakeStarter:
    return FakeStarter(
        seconds=lambda words: 0.1 if number_of(words) < CULPRIT else slower,
        ended=lambda words: ended(number_of(words)),
    )


def search(directory: Path, started: FakeStarter, metric: str) -> FindAnswer:
    session = a_session(STUDY, directory, source=FakeSource(24), starter=started)
    request = FindRequest(
        goal=resolve_goal(STUDY, (metric,)), range=None, threshold=0.1, confidence=0.99, budget=Budget()
    )
    answer = drain(Find(session, request).events())[1]
    assert isinstance(answer, FindAnswer)
    return answer


def test_runs_whose_end_is_no_result_are_repeated_and_counted(tmp_path: Path) -> None:
    rng = random.Random(3)
    ends: list[Ended] = [Exited(code=77), Signalled(signal=9), Exited(code=0), Exited(code=0)]
    started = starter(lambda _: rng.choice(ends), slower=0.15)
    answer = search(tmp_path, started, "wall")
    assert headline(answer).startswith(f"found: r{CULPRIT}")
    assert answer.unusable == ()
    assert answer.repeated > 10
    assert answer.as_json()["repeated"] == answer.repeated
    assert len(started.started) == answer.repeated + answer.invocations
    assert f"repeated {answer.repeated} runs with an end that retry_on names, which is no result" in [
        *noise_words(answer)
    ]


def test_infrastructure_that_fails_is_no_difference_between_sides(tmp_path: Path) -> None:
    rng = random.Random(3)
    started = starter(lambda number: Exited(code=77 * (number > 0 and rng.random() < 0.5)))
    session = a_session(STUDY, tmp_path, source=FakeSource(2), starter=started)
    choice = choose(STUDY, benchmarks=(), metrics=("works",))
    request = CompareRequest(base="r0", head="r1", choice=choice, threshold=0.5, most=60)
    gate = drain(Compare(session, request).events())[1]
    assert gate.verdict == "same"
    assert any("runs with an end that retry_on names" in note for note in gate.notes)


def test_an_end_that_never_passes_ends_the_search(tmp_path: Path) -> None:
    with pytest.raises(
        NoAnswer, match=r"exit code 77 in 21 runs in a row, which retry_on of \[benchmark.work\]"
    ):
        search(tmp_path, starter(lambda _: Exited(code=77)), "works")


def test_the_reason_of_an_answer_is_the_one_whose_rate_changed(tmp_path: Path) -> None:
    """Exit code 3 occurs everywhere, also at the culprit and after its last failure; exit code 1 is new."""
    rng = random.Random(5)

    def ended(number: int) -> Ended:
        if rng.random() < 0.2:
            return Exited(code=3)
        return Exited(code=int(number >= CULPRIT and rng.random() < 0.8))

    answer = search(tmp_path, starter(ended), "works")
    assert [change.positions for change in answer.answer.changes] == [(CULPRIT,)]
    reasons = {each.revision.id: each.failure.message for each in answer.unusable}
    assert reasons[f"r{CULPRIT}"] == "exit code 1"
