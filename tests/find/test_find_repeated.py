"""Repeated searches with any budget repeat no stored work, and their answers get no worse."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

import pytest

from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.find.journal import Ledger
from perftrail.measure.session import Session
from perftrail.model.process import Exited
from perftrail.model.recipe import Build
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.model.subject import Revision
from perftrail.model.target import resolve_goal
from perftrail.model.wording import duration
from perftrail.present.answer_sentence import cost_words
from perftrail.present.next_find import FindCommand, next_commands
from perftrail.results.selection import Selection
from perftrail.search.budget import Budget
from perftrail.verbs.run import Run
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.find.test_answers import relinked_at
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study()
CHANGED = 8


class RepeatedFind:
    """Calls of `find` with a common store, and the number of invocations that the last one started."""

    def __init__(self, directory: Path, *, pause: float = 0.0) -> None:
        self._directory = directory
        self._pause = pause
        self._store = MemoryStore()
        self.started = 0

    def find(self, budget: Budget, *, metric: str = "wall") -> FindAnswer:
        starter = FakeStarter(
            seconds=lambda arguments: 0.13 if number_of(arguments) >= CHANGED else 0.1, pause=self._pause
        )
        session = a_session(STUDY, self._directory, source=FakeSource(20), starter=starter, store=self._store)
        request = FindRequest(
            goal=resolve_goal(STUDY, (metric,)), range=None, threshold=0.05, confidence=0.99, budget=budget
        )
        answer = drain(Find(session, request).events())[1]
        assert isinstance(answer, FindAnswer)
        self.started = len(starter.started)
        return answer


def test_a_smaller_budget_has_the_stored_answer_and_starts_nothing(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    first = repeated.find(Budget())
    assert first.answer.verdict == "found"
    for smaller in (Budget(seconds=0.01), Budget(invocations=3), Budget(builds=2)):
        assert repeated.find(smaller).as_json() == first.as_json()
        assert repeated.started == 0


def test_a_finished_search_that_relinks_builds_of_earlier_commands_starts_nothing(tmp_path: Path) -> None:
    study = a_study(build=Build(relink=("sh relink.sh {layout}",)))
    store, started, answers = MemoryStore(), [], []
    for threshold in (0.05, 0.03, 0.03):
        time.sleep(0.002)  # the store knows times to the millisecond
        starter = relinked_at(8)
        session = a_session(study, tmp_path, source=FakeSource(20), starter=starter, store=store)
        request = FindRequest(
            goal=resolve_goal(study, ("wall",)),
            range=None,
            threshold=threshold,
            confidence=0.99,
            budget=Budget(),
        )
        answers.append(drain(Find(session, request).events())[1].as_json())
        started.append(len(starter.started))
    assert started[1] > 0
    assert started[2] == 0
    assert answers[2] == answers[1]


def test_a_larger_budget_continues_where_the_search_stopped(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    short = repeated.find(Budget(invocations=12))
    assert (short.answer.verdict, short.answer.reason) == ("unclear", "the budget of invocations is spent")
    first_invocations = repeated.started
    assert first_invocations > 0
    full = repeated.find(Budget())
    assert full.answer.verdict == "found"
    assert repeated.started == full.invocations - first_invocations

    uninterrupted = RepeatedFind(tmp_path / "other").find(Budget())
    assert full.candidates(full.answer.changes[0]) == uninterrupted.candidates(
        uninterrupted.answer.changes[0]
    )


def test_the_same_budget_of_builds_repeats_each_step(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    first = repeated.find(Budget(builds=4, invocations=60))
    again = repeated.find(Budget(builds=4, invocations=60))
    assert repeated.started == 0
    assert again.as_json() == first.as_json()
    assert repeated.find(Budget(builds=4, invocations=5)).as_json() == first.as_json()
    assert repeated.started == 0


def test_a_search_for_works_resumes_with_any_budget(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    first = repeated.find(Budget(), metric="works")
    assert repeated.find(Budget(invocations=1), metric="works").as_json() == first.as_json()
    assert repeated.started == 0


@pytest.mark.parametrize("breaks", ["build", "crash"])
def test_a_search_for_works_uses_the_stored_results_of_every_revision(tmp_path: Path, breaks: str) -> None:
    study = a_study(measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0))
    source, store = FakeSource(20), MemoryStore()

    def session(starter: FakeStarter) -> Session:
        broken = [f"r{number}" for number in range(7, 20)] if breaks == "build" else []
        builder = FakeBuilder(source, broken=broken)
        return a_session(study, tmp_path, source=source, starter=starter, store=store, builder=builder)

    def failing() -> FakeStarter:
        return FakeStarter(seconds=lambda _: 0.1, ended=lambda words: Exited(code=int(number_of(words) >= 7)))

    drain(Run(session(failing()), Selection()).events())
    time.sleep(0.002)  # the store knows times to the millisecond
    goal = resolve_goal(study, ("works",))
    request = FindRequest(
        goal=goal, range=None, threshold=0.1, confidence=0.99, budget=Budget(invocations=300)
    )
    answers = []
    for _ in range(2):
        starter = failing()
        answer = drain(Find(session(starter), request).events())[1]
        assert isinstance(answer, FindAnswer)
        # The stored results locate the change; only rounds of the builds around it are run.
        assert {number_of(arguments) for arguments in starter.started} <= {6, 7}
        answers.append(answer)
    assert not starter.started
    assert answers[0].answer.changes[0].positions == (7,)
    assert len(answers[0].unusable) == 13
    assert answers[1].as_json() == answers[0].as_json()


def next_of(answer: FindAnswer, budget: Budget, *study: str) -> list[str]:
    command = FindCommand(study=study, threshold=0.05, budget=budget, benchmarks=STUDY.benchmarks)
    return list(next_commands(answer, command))


def test_a_search_stopped_by_a_budget_prints_how_to_continue(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    few = Budget(invocations=12)
    short = repeated.find(few)
    assert short.invocations >= 12
    first, *_ = next_of(short, few, "study")
    found = re.fullmatch(
        r"Next: set budget_invocations = (\d+) under \[find\], and run perftrail find study: "
        r"it continues from the stored samples",
        first,
    )
    assert found is not None, first
    assert int(found[1]) >= 3 * short.invocations
    first, *_ = next_of(short, Budget(), "study")
    assert first.endswith("min    continue this search without its limit of invocations")
    first, *_ = next_of(repeated.find(Budget(seconds=3)), Budget(seconds=3))
    assert re.fullmatch(
        r"Next: perftrail find --budget \dmin    continue this search from what is stored", first
    )
    assert next_of(repeated.find(Budget()), Budget()) == [
        "Next: perftrail explain r8 --metric work.wall    name the functions that are responsible"
    ]


def test_the_cost_separates_new_from_stored_work(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    short = repeated.find(Budget(invocations=12))
    assert "\n" not in cost_words(short)
    full = repeated.find(Budget())
    builds = full.builds - short.builds
    total, new = cost_words(full).splitlines()
    assert total == f"{full.builds} of 20 revisions built, {full.invocations} invocations"
    assert new.startswith(f"New: {builds} builds and {repeated.started} invocations, ")
    assert new.endswith(f"The rest was stored before ({duration(short.seconds)}).")
    again = repeated.find(Budget())
    assert cost_words(again).endswith(
        f", all of them stored before ({duration(again.seconds)} of building and measuring)"
    )


def test_a_time_budget_counts_pauses_and_computing_too(tmp_path: Path) -> None:
    short = RepeatedFind(tmp_path / "short")
    busy = RepeatedFind(tmp_path / "busy", pause=0.3)
    budget = Budget(seconds=2.0)
    assert short.find(budget).answer.reason == busy.find(budget).answer.reason == "the time budget is spent"
    assert 0 < busy.started < short.started / 2


def test_without_a_limit_of_time_a_search_has_an_hour_or_the_time_of_some_builds(tmp_path: Path) -> None:
    given, usual = Budget(builds=9).with_time(60.0), Budget(builds=9).with_time(None)
    assert (given.seconds, given.builds_in_time) == (60.0, 0)
    assert (usual.seconds, usual.builds, usual.builds_in_time) == (3600.0, 9, 24)
    starter = FakeStarter(seconds=lambda _: 1.0)
    session = a_session(STUDY, tmp_path, source=FakeSource(20), starter=starter)
    ledger = Ledger(session)
    ledger.count_build(Revision(id="r1"), "plain", 600.0)
    starter.spent = 1000.0
    assert ledger.seconds_left(usual) == 24 * 600.0, "the time before the first result does not count"
    assert ledger.seconds_left(given) == 60.0
    assert ledger.seconds_left(Budget()) == math.inf


def test_a_time_budget_is_that_of_one_command(tmp_path: Path) -> None:
    repeated = RepeatedFind(tmp_path)
    budget = Budget(seconds=1.0)
    first = repeated.find(budget)
    assert first.answer.reason == "the time budget is spent"
    second = repeated.find(budget)
    assert repeated.started > 0
    assert second.seconds > first.seconds
    assert second.new.seconds == pytest.approx(second.seconds - first.seconds)
