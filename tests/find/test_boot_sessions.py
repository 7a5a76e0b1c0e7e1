"""Searches over several boot sessions: levels are compared only through builds that were measured in both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from perftrail.find.answer import FindAnswer, FindRequest, FindTable
from perftrail.find.find import Find
from perftrail.measure.events import now
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import Machine
from perftrail.model.store_records import StepRecord
from perftrail.model.study import Study
from perftrail.model.subject import Branch, Merge
from perftrail.model.target import Goal, resolve, resolve_goal
from perftrail.present.answer_details import reboot_words
from perftrail.search.budget import Budget
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.measure.fake_session import MACHINE, a_session, a_study, drain

STUDY = a_study()
WALL = (resolve(STUDY, "wall"),)
SLOWER = 1.3
"""The factor of every metric in some boot sessions: far more than the searched change."""


@dataclass
class Lab:
    """One machine over several boots, and one store that outlives them; revision 40 makes the program 13 % slower."""

    tmp_path: Path
    store: MemoryStore
    study: Study = STUDY
    source: FakeSource | None = None
    heavy: Iterable[int] = range(40, 1000)

    def find(
        self,
        number: int,
        goal: Goal,
        *,
        interrupt_after: int | None = None,
        interrupt_inside: bool = False,
        machine: Machine = MACHINE,
    ) -> FindAnswer | FindTable | None:
        factor = SLOWER if number % 2 else 1.0
        self.starter = FakeStarter(
            seconds=lambda arguments: factor * (0.113 if number_of(arguments) in self.heavy else 0.1)
        )
        self.starter.chance.seed(number)
        session = a_session(
            self.study,
            self.tmp_path,
            source=self.source or FakeSource(60),
            starter=self.starter,
            store=self.store,
        )
        session = replace(session, machine=replace(machine, facts=_facts(number)))
        finding = Find(session, request_for(goal)).events()
        if interrupt_after is None and not interrupt_inside:
            return drain(finding)[1]
        for _ in finding:
            if len(self.starter.started) == interrupt_after or (interrupt_inside and self.inside() == 3):
                return None
        raise AssertionError("the search ended before the interruption")

    def inside(self) -> int:
        """Return the number of steps inside a merge."""
        return sum("inside" in step.action for step in self.steps()) if self.store.searches() else 0

    def steps(self) -> list[StepRecord]:
        [record] = self.store.searches()
        return list(self.store.steps(record.key, record.machine))


def _facts(number: int) -> dict[str, str]:
    """Return the facts of a boot session that begins in a later millisecond than every stored sample."""
    before = now()
    while (booted := now()) == before:
        pass
    return {"boot_id": f"boot-{number}", "kernel": "6.18", "booted": booted}


def request_for(goal: Goal) -> FindRequest:
    return FindRequest(goal=goal, range=None, threshold=0.05, confidence=0.99, budget=Budget(invocations=600))


def boots(steps: Iterable[StepRecord]) -> list[Any]:
    return [step.action["boot_session"]["boot"] for step in steps]  # type: ignore[index,call-overload] # plain JSON


@pytest.mark.parametrize("interrupt_after", [2, 14])
def test_a_search_that_resumes_after_a_reboot_is_not_misled_by_it(
    tmp_path: Path, interrupt_after: int
) -> None:
    lab = Lab(tmp_path, MemoryStore())
    lab.find(0, WALL, interrupt_after=interrupt_after)
    before = len(lab.steps())
    answer = lab.find(1, WALL)
    assert isinstance(answer, FindAnswer)
    assert answer.answer.changes[0].positions == (40,)
    assert [boot.id for boot in answer.boots] == ["boot-0", "boot-1"][1 - (before > 0) :]
    assert boots(lab.steps()) == ["boot-0"] * before + ["boot-1"] * (len(lab.steps()) - before)


def test_the_first_step_after_a_reboot_measures_the_reference_and_mentions_the_reboot(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MemoryStore())
    lab.find(0, WALL, interrupt_after=13)
    before = lab.steps()
    answer = lab.find(1, WALL)
    first = lab.steps()[len(before)]
    assert "r0" in first.action["order"], "the reference, which was sampled before the reboot"  # type: ignore[operator] # plain JSON
    assert first.words.startswith("the machine was rebooted; measured ")
    assert isinstance(answer, FindAnswer)
    [words] = reboot_words(answer)
    assert "2 boot sessions" in words


def test_samples_of_a_step_that_a_reboot_interrupted_are_not_reused(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MemoryStore())
    lab.find(0, WALL, interrupt_after=5)
    assert len(lab.steps()) == 1, "interrupted in the second step"
    lab.find(1, WALL)
    steps: list[Any] = [(step.action, step.observation) for step in lab.steps()]
    values: list[float] = [
        value / SLOWER if action["boot_session"]["boot"] == "boot-1" else value
        for action, observation in steps
        for value in observation["values"]
    ]
    assert all(0.095 < value < 0.119 for value in values)


def test_a_finished_search_has_its_answer_after_a_reboot_without_measuring(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MemoryStore())
    lab.find(0, WALL, interrupt_after=13)
    answer = lab.find(1, WALL)
    repeated = lab.find(2, WALL)
    assert lab.starter.started == []
    assert answer is not None
    assert repeated is not None
    assert repeated.as_json() == answer.as_json()


def test_a_reboot_does_not_mislead_a_search_for_several_metrics(tmp_path: Path) -> None:
    study = a_study(benchmarks={name: Benchmark(command=f"{{build}}/{name}") for name in ("one", "two")})
    lab = Lab(tmp_path, MemoryStore(), study=study)
    goal = resolve_goal(study, ("one.wall", "two.wall", "one.peak_memory"))
    lab.find(0, goal, interrupt_after=25)
    table = lab.find(1, goal)
    assert isinstance(table, FindTable)
    assert [[change.positions for change in each.answer.changes] for each in table.answers] == [
        [(40,)],
        [(40,)],
        [],
    ]


def test_a_search_inside_a_merge_resumes_after_a_reboot(tmp_path: Path) -> None:
    source = _merging(at=20, branch=range(1000, 1016))
    heavy = {*range(20, 60), *range(1009, 1016)}
    lab = Lab(tmp_path, MemoryStore(), source=source, heavy=heavy)
    lab.find(0, WALL, interrupt_inside=True)
    assert 0 < lab.inside() < len(lab.steps())
    answer = lab.find(1, WALL)
    assert isinstance(answer, FindAnswer)
    assert [each.id for each in answer.inside[0].candidates] == ["r1009"]


def test_a_search_resumes_from_stored_steps_without_a_boot_session(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MemoryStore())
    lab.find(0, WALL, interrupt_after=13)
    [record] = lab.store.searches()
    for step in lab.steps():
        action = {name: value for name, value in step.action.items() if name != "boot_session"}
        lab.store.add_step(record.key, record.machine, replace(step, action=action))
    answer = lab.find(1, WALL)
    assert isinstance(answer, FindAnswer)
    assert answer.answer.changes[0].positions == (40,)


def test_another_kernel_is_another_machine_and_its_search_is_mentioned(tmp_path: Path) -> None:
    lab = Lab(tmp_path, MemoryStore())
    older = Machine(id="machine-old", facts={"kernel": "6.1\x1b[31m"})
    lab.store.add_machine(older)
    lab.find(0, WALL)
    [record] = lab.store.searches()
    lab.store.open_search(replace(record, machine=older.id, answer=None))
    answer = lab.find(0, WALL)
    assert isinstance(answer, FindAnswer)
    [words] = reboot_words(answer)
    assert "kernel 6.1" in words
    assert "\x1b" not in words


def _merging(*, at: int, branch: range) -> FakeSource:
    def revision(number: int) -> Any:
        return FakeSource(2000).history(f"r{number}..r{number}")[0]

    merge = Merge(
        revision=revision(at),
        trunk=revision(at - 1),
        branches=(Branch(base=revision(12), revisions=tuple(map(revision, branch))),),
    )
    return FakeSource(30, merges={f"r{at}": merge})
