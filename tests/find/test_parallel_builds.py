"""A search with parallel builds has the same answer and repeats no work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.find.answer import FindAnswer, FindRequest
from perftrail.find.find import Find
from perftrail.measure.events import Stepped
from perftrail.model.target import resolve
from perftrail.search.budget import Budget
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study()
CULPRIT, REVISIONS = 27, 40


class Lab:
    """A machine with a store that outlives a search; the culprit makes the program 13 % slower by default."""

    def __init__(
        self,
        tmp_path: Path,
        *,
        culprit: int = CULPRIT,
        slower: float = 0.113,
        same_as: dict[str, str] | None = None,
    ) -> None:
        self._tmp_path = tmp_path
        self._slower = slower
        self._culprit = culprit
        self._source = FakeSource(REVISIONS, same_as=same_as or {})
        self.store = MemoryStore()

    def find(self, at_once: int) -> tuple[list[Stepped], FindAnswer]:
        self.starter = FakeStarter(
            seconds=lambda words: self._slower if number_of(words) >= self._culprit else 0.1
        )
        self.builder = FakeBuilder(self._source, parallel_builds=at_once)
        session = a_session(
            STUDY,
            self._tmp_path,
            source=self._source,
            starter=self.starter,
            builder=self.builder,
            store=self.store,
        )
        request = FindRequest(
            goal=(resolve(STUDY, "wall"),),
            range=None,
            threshold=0.05,
            confidence=0.99,
            budget=Budget(invocations=900),
        )
        events, answer = drain(Find(replace(session, at_once=at_once), request).events())
        assert isinstance(answer, FindAnswer)
        return [event for event in events if isinstance(event, Stepped)], answer


@pytest.mark.parametrize("at_once", [pytest.param(2, marks=pytest.mark.long), 4])
def test_the_culprit_is_the_same_for_any_number_of_parallel_builds(tmp_path: Path, at_once: int) -> None:
    lab = Lab(tmp_path)
    _, answer = lab.find(at_once)
    assert [change.positions for change in answer.answer.changes] == [(CULPRIT,)]
    assert len(lab.builder.begun) > at_once
    assert len(lab.builder.built_ids) == len(set(lab.builder.built_ids))


def test_a_history_without_a_change_has_no_culprit(tmp_path: Path) -> None:
    _, answer = Lab(tmp_path, culprit=REVISIONS).find(3)
    assert answer.answer.verdict == "none"


def test_a_search_with_parallel_builds_is_replayed_without_starting_anything(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    first, answer = lab.find(3)
    again, same = lab.find(3)
    assert not lab.starter.started
    assert [step.words for step in again] == [step.words for step in first]
    assert all(step.resumed for step in again)
    assert same.as_json() == answer.as_json()


def test_a_search_continues_with_fewer_workers(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.find(4)
    _, answer = lab.find(1)
    assert [change.positions for change in answer.answer.changes] == [(CULPRIT,)]


def test_equal_builds_of_one_round_are_measured_once(tmp_path: Path) -> None:
    same = {f"r{number}": "r0" for number in range(1, CULPRIT)} | {
        f"r{number}": f"r{CULPRIT}" for number in range(CULPRIT + 1, REVISIONS)
    }
    lab = Lab(tmp_path, slower=0.13, same_as=same)  # two builds only: layouts might explain less
    _, answer = lab.find(4)
    assert [change.positions for change in answer.answer.changes] == [(CULPRIT,)]
    assert {number_of(words) for words in lab.starter.started} == {0, CULPRIT}
