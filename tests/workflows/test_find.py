"""`find` does what the search asks, tells it what came of it, and remembers each step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perftrail.model.process import Exited
from perftrail.model.study import Benchmark, Derived, Metric
from perftrail.model.target import resolve
from perftrail.search.question import Budget
from perftrail.store.memory import MemoryStore
from perftrail.workflows.events import Stepped
from perftrail.workflows.find import Find, FindRequest
from perftrail.workflows.found import FindAnswer
from perftrail.workflows.session import Session
from tests.fakes.workshop import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.workflows.bench import a_session, a_study, drain

STUDY = a_study()


def request(session: Session, metric: str = "wall", *, range: str | None = None) -> FindRequest:
    return FindRequest(
        target=resolve(session.study, metric),
        range=range,
        smallest=0.05,
        confidence=0.99,
        budget=Budget(invocations=300),
    )


def stepping_at(culprit: int) -> FakeStarter:
    return FakeStarter(seconds=lambda arguments: 0.1 if number_of(arguments) < culprit else 0.13)


def find(session: Session, metric: str = "wall") -> tuple[list[Stepped], FindAnswer]:
    events, answer = drain(Find(session, request(session, metric)).events())
    return [event for event in events if isinstance(event, Stepped)], answer


@pytest.mark.parametrize("culprit", [1, 17, 99])
def test_the_culprit_is_found_by_its_full_id(tmp_path: Path, culprit: int) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(100), starter=stepping_at(culprit))
    _, answer = find(session)
    told = answer.as_json()
    assert told["verdict"] == "found"
    assert told["changes"][0]["revisions"] == [f"r{culprit}"]  # type: ignore[index,call-overload] # plain JSON
    assert json.loads(json.dumps(told)) == told


def test_unbuildable_revisions_are_listed_with_stage_and_log(tmp_path: Path) -> None:
    source = FakeSource(30)
    builder = FakeBuilder(source, broken={f"r{number}" for number in range(9, 21)})
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(14), builder=builder)
    _, answer = find(session)
    told = answer.as_json()
    assert told["verdict"] == "range"
    assert told["changes"][0]["revisions"] == [f"r{number}" for number in range(9, 22)]  # type: ignore[index,call-overload] # plain JSON
    assert told["failures"]
    assert {each["stage"] for each in told["failures"]} == {"build"}  # type: ignore[index,union-attr,call-overload] # plain JSON


def test_a_revision_that_crashes_is_unusable_not_fatal(tmp_path: Path) -> None:
    starter = stepping_at(14)
    starter.ended = lambda arguments: Exited(code=1 if number_of(arguments) in (14, 15) else 0)
    session = a_session(STUDY, tmp_path, source=FakeSource(30), starter=starter)
    _, answer = find(session)
    told = answer.as_json()
    assert told["changes"][0]["revisions"] == ["r14", "r15", "r16"]  # type: ignore[index,call-overload] # plain JSON
    assert {each.failure.stage for each in answer.unusable} == {"crash"}


def test_a_search_resumes_from_the_store_with_the_same_steps(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(60)
    starter = stepping_at(40)
    whole, answer = find(a_session(STUDY, tmp_path, source=source, starter=starter, store=store))
    again = stepping_at(40)
    replayed, same = find(a_session(STUDY, tmp_path, source=source, starter=again, store=store))
    assert again.started == []
    assert all(step.resumed for step in replayed)
    assert [step.words for step in replayed] == [step.words for step in whole]
    assert same.as_json() == answer.as_json()


def test_a_search_cut_anywhere_starts_each_invocation_once(tmp_path: Path) -> None:
    source = FakeSource(60)
    reference = stepping_at(40)
    find(a_session(STUDY, tmp_path, source=source, starter=reference, store=MemoryStore()))
    for cut in range(1, len(reference.started), 3):
        store, first = MemoryStore(), stepping_at(40)
        session = a_session(STUDY, tmp_path, source=source, starter=first, store=store)
        for _ in Find(session, request(session)).events():
            if len(first.started) == cut:
                break
        rest = stepping_at(40)
        rest.chance = first.chance
        find(a_session(STUDY, tmp_path, source=source, starter=rest, store=store))
        assert [*first.started, *rest.started] == reference.started


def test_steps_and_answer_are_in_the_store(tmp_path: Path) -> None:
    store = MemoryStore()
    session = a_session(STUDY, tmp_path, source=FakeSource(50), starter=stepping_at(20), store=store)
    steps, answer = find(session)
    [record] = store.searches()
    assert record.answer == answer.as_json()
    assert [step.words for step in store.steps(record.key, record.machine)] == [step.words for step in steps]


def test_no_change_is_an_answer(tmp_path: Path) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(50), starter=FakeStarter(seconds=lambda _: 0.1))
    _, answer = find(session)
    assert answer.as_json()["verdict"] == "none"


def test_the_range_limits_the_search(tmp_path: Path) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(50), starter=stepping_at(20))
    _, answer = drain(Find(session, request(session, range="r15..r30")).events())
    assert answer.as_json()["revisions"] == 16
    assert answer.as_json()["verdict"] == "found"


def test_a_derived_metric_is_read_at_all_its_points(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={"mt": Benchmark(command="{build}/mt {threads}", parameters={"threads": (2, 8)})},
        derived={
            "ratio": Derived(benchmark="mt", value="wall[threads=2] / wall[threads=8]", better="higher")
        },
    )

    def seconds(arguments: tuple[str, ...]) -> float:
        scales = number_of(arguments) >= 12
        return 0.2 if arguments[1] == "2" or not scales else 0.1

    session = a_session(study, tmp_path, source=FakeSource(30), starter=FakeStarter(seconds=seconds))
    _, answer = find(session, "ratio")
    [change] = answer.answer.changes
    assert change.positions == (12,)
    assert change.effect is not None
    assert change.effect.low <= 2.0 <= change.effect.high


def test_a_metric_that_is_never_printed_makes_revisions_unusable(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={
            "work": Benchmark(command="{build}/work", metrics={"speed": Metric(pattern="speed ([0-9]+)")})
        }
    )
    session = a_session(study, tmp_path, source=FakeSource(4), starter=FakeStarter(seconds=lambda _: 0.1))
    _, answer = find(session, "speed")
    assert answer.as_json()["verdict"] == "unclear"
    assert {each.failure.stage for each in answer.unusable} == {"metric"}
