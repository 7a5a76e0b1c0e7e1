"""`find --metric works` over fakes: parallel builds, several benchmarks, stored results, and the words of its steps."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.measure.events import Stepped
from perftrail.model.benchmark import Benchmark
from perftrail.model.process import Exited
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.model.target import resolve_goal
from perftrail.search.budget import Budget
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study(
    benchmarks={name: Benchmark(command=f"{{build}}/{name}") for name in ("one", "two")},
    measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=2),
)
REVISIONS, CULPRIT = 40, 13


class Lab:
    """Searches with a common store, in a history whose revisions from the culprit on crash in one benchmark."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._source = FakeSource(REVISIONS)
        self.store = MemoryStore()

    def find(
        self, *, threshold: float = 0.1, workers: int = 1, broken: range = range(0)
    ) -> tuple[list[Stepped], FindAnswer]:
        self.starter = FakeStarter(
            seconds=lambda _: 0.1,
            ended=lambda words: Exited(code=int(words[0].endswith("two") and number_of(words) >= CULPRIT)),
        )
        self.builder = FakeBuilder(
            self._source, parallel_builds=workers, broken=[f"r{number}" for number in broken]
        )
        session = a_session(
            STUDY,
            self._directory,
            source=self._source,
            starter=self.starter,
            builder=self.builder,
            store=self.store,
        )
        request = FindRequest(
            goal=resolve_goal(STUDY, ("works",)),
            range=None,
            threshold=threshold,
            confidence=0.99,
            budget=Budget(),
        )
        events, answer = drain(Find(session, request).events())
        assert isinstance(answer, FindAnswer)
        return [each for each in events if isinstance(each, Stepped)], answer


@pytest.mark.parametrize(
    ("broken", "culprit", "stage"),
    [(range(0), CULPRIT, "crash"), (range(5, REVISIONS), 5, "build")],
)
def test_builds_that_begin_ahead_change_no_answer(
    tmp_path: Path, broken: range, culprit: int, stage: str
) -> None:
    lab = Lab(tmp_path)
    first, answer = lab.find(workers=3, broken=broken)
    assert {"r0", f"r{REVISIONS - 1}"} <= set(lab.builder.begun[:3])
    assert [change.positions for change in answer.answer.changes] == [(culprit,)]
    assert {each.failure.stage for each in answer.unusable} == {stage}
    again, same = lab.find(workers=3, broken=broken)
    assert not lab.starter.started
    assert [step.words for step in again] == [step.words for step in first]
    assert same.as_json() == answer.as_json()


def test_the_results_of_an_earlier_search_locate_the_change(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    _, first = lab.find()
    time.sleep(0.002)  # the store knows times to the millisecond
    _, second = lab.find(threshold=0.2)
    assert lab.starter.started
    assert {number_of(words) for words in lab.starter.started} <= {CULPRIT - 1, CULPRIT}
    assert [change.positions for change in second.answer.changes] == [(CULPRIT,)]
    failed = {each.revision.id for each in first.unusable}
    assert {each.revision.id for each in second.unusable} == failed


def test_steps_say_what_worked(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    steps, _ = lab.find()
    assert steps[0].words == "measured r0 once: works"
    assert steps[1].words.startswith(f"measured r{REVISIONS - 1} once: failed (crash)")
    rounds = [step.words for step in steps if step.words.startswith("round: ")]
    pattern = rf"round: ran r{CULPRIT - 1} and r{CULPRIT} in random order: 1 of 2 worked; .*"
    assert rounds
    assert all(re.fullmatch(pattern, each) for each in rounds), rounds
    (key,) = {each.key for each in lab.store.searches()}
    observations = [step.observation for step in lab.store.steps(key, lab.store.searches()[0].machine)]
    assert [each.get("stage") for each in observations[:2]] == [None, "crash"]
    assert [each["values"] for each in observations[:2]] == [[1.0], [0.0]]
