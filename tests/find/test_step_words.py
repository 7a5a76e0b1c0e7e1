"""The words of the steps of a search, printed live and from the store."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perftrail.find.answer import FindRequest
from perftrail.find.find import Find
from perftrail.find.step_record import candidates_words
from perftrail.measure.events import Stepped
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.model.target import resolve_goal
from perftrail.present.shared_sentences import step_words
from perftrail.present.tables import print_search
from perftrail.search import Belief
from perftrail.search.budget import Budget
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.fakes.watcher import NOISY, FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study(measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0))
CHANGED, CHANGED_AGAIN = 8, 16


class Searched:
    """A search over fakes: its steps as printed live, and those of the store."""

    def __init__(self, directory: Path, *, watcher: FakeWatcher | None = None) -> None:
        def seconds(arguments: tuple[str, ...]) -> float:
            number = number_of(arguments)
            return 0.1 if number < CHANGED else 0.13 if number < CHANGED_AGAIN else 0.16

        self.store = MemoryStore()
        self._directory, self._seconds, self._watcher = directory, seconds, watcher
        self.steps = self.find()
        self.lines = [step_words(step.words, step.purpose) for step in self.steps]

    def find(self) -> list[Stepped]:
        session = a_session(
            STUDY,
            self._directory,
            source=FakeSource(24),
            starter=FakeStarter(seconds=self._seconds),
            store=self.store,
            watcher=self._watcher,
        )
        request = FindRequest(
            goal=resolve_goal(STUDY, ("wall",)), range=None, threshold=0.05, confidence=0.99, budget=Budget()
        )
        return [each for each in drain(Find(session, request).events())[0] if isinstance(each, Stepped)]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """A search for two changes, which its tests do not continue."""
    return Searched(tmp_path_factory.mktemp("searched"))


def test_each_round_names_its_number_and_what_it_certifies(searched: Searched) -> None:
    assert searched.lines[0].endswith(" (to compare the ends)")
    assert any("; 2 changes likely, 1 candidate each" in line for line in searched.lines)
    assert not any("nothing changed" in line for line in searched.lines)
    done = [line for line in searched.lines if line.startswith("round: ran ")]
    assert all(re.search(r"\((round \d+.*, to certify |to decide what is still open)", line) for line in done)
    numbers = [int(found[1]) for line in done if (found := re.search(r"\(round (\d+)", line))]
    assert numbers == sorted(numbers)
    named = {at for line in done for at in re.findall(r"to certify the change at (r\d+)\)", line)}
    assert named
    assert named <= {f"r{CHANGED}", f"r{CHANGED_AGAIN}"}


def test_a_stored_search_has_the_words_of_the_live_one(
    searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    again = searched.find()
    assert [step_words(step.words, step.purpose) for step in again] == searched.lines
    (record,) = searched.store.searches()
    print_search(record, searched.store.steps(record.key, record.machine), [])
    printed = capsys.readouterr().out.splitlines()
    at = 0
    for line in printed[1:]:
        if at == len(searched.lines):
            break
        found = re.fullmatch(r" *(\d+)(?: to (\d+), (\d+) rounds, the last)?  (.*)", line)
        assert found, line
        first, last = int(found[1]), int(found[2] or found[1])
        assert first == at + 1
        assert last - first + 1 == int(found[3] or 1)
        assert found[4] == searched.lines[last - 1]
        at = last
    assert at == len(searched.lines)
    assert len(printed) < len(searched.lines)


def test_a_search_on_a_busy_machine_does_not_repeat_the_noise_in_every_step(tmp_path: Path) -> None:
    busy = FakeWatcher.with_conditions(*[NOISY] * 1000)
    mentions_noise = [" noisy sample" in line for line in Searched(tmp_path, watcher=busy).lines]
    assert mentions_noise[:3] == [True, True, True]
    assert not any(mentions_noise[3:])
    assert len(mentions_noise) > 10


def test_metrics_without_a_second_revision_do_not_hide_the_candidates_of_the_others() -> None:
    belief = Belief(
        at_or_before=((0, 0.0), (9, 1.0)),
        no_change=0.1,
        candidates=9,
        before=1.0,
        after=2.0,
        sigma=0.01,
        tau=0.0,
    )
    assert candidates_words({"wall": None, "cpu": belief}) == "candidates: cpu 9"
    assert candidates_words({"wall": None}) == "no other revision to compare with yet"
