"""`find` performs the actions of the search, reports the outcomes to it, and stores each step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perftrail.errors import NoAnswer
from perftrail.find.answer import FindAnswer, FindRequest, FindTable
from perftrail.find.find import Find
from perftrail.measure.events import Stepped
from perftrail.measure.session import Session
from perftrail.model.benchmark import Benchmark
from perftrail.model.metrics import Derived, Metric
from perftrail.model.noisy_samples import LEAST_TO_DECIDE
from perftrail.model.process import Exited
from perftrail.model.target import Goal, resolve, resolve_goal
from perftrail.present.answer_details import noise_words, print_find
from perftrail.present.next_find import FindCommand
from perftrail.search.budget import Budget
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.fakes.watcher import NOISY, QUIET, FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study()


def request(session: Session, metric: str = "wall", *, range: str | None = None) -> FindRequest:
    return FindRequest(
        goal=(resolve(session.study, metric),),
        range=range,
        threshold=0.05,
        confidence=0.99,
        budget=Budget(invocations=300),
    )


def request_for(goal: Goal, **more: Any) -> FindRequest:
    return FindRequest(
        goal=goal, range=None, threshold=0.05, confidence=0.99, budget=Budget(invocations=600), **more
    )


def stepping_at(culprit: int) -> FakeStarter:
    return FakeStarter(seconds=lambda arguments: 0.1 if number_of(arguments) < culprit else 0.13)


def find(session: Session, metric: str = "wall") -> tuple[list[Stepped], FindAnswer]:
    events, answer = drain(Find(session, request(session, metric)).events())
    assert isinstance(answer, FindAnswer)
    return [event for event in events if isinstance(event, Stepped)], answer


@pytest.mark.parametrize("culprit", [1, 17, 39])
def test_the_culprit_is_found_by_its_full_id(tmp_path: Path, culprit: int) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(40), starter=stepping_at(culprit))
    _, answer = find(session)
    answer_json = answer.as_json()
    assert answer_json["verdict"] == "found"
    assert answer_json["changes"][0]["revisions"] == [f"r{culprit}"]
    assert json.loads(json.dumps(answer_json)) == answer_json


def test_unbuildable_revisions_are_listed_with_stage_and_log(tmp_path: Path) -> None:
    source = FakeSource(30)
    builder = FakeBuilder(source, broken={f"r{number}" for number in range(9, 21)})
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(14), builder=builder)
    _, answer = find(session)
    answer_json = answer.as_json()
    assert answer_json["verdict"] == "range"
    assert answer_json["changes"][0]["revisions"] == [f"r{number}" for number in range(9, 22)]
    assert answer_json["failures"]
    assert {each["stage"] for each in answer_json["failures"]} == {"build"}


def test_a_revision_that_crashes_is_unusable_not_fatal(tmp_path: Path) -> None:
    starter = stepping_at(14)
    starter.ended = lambda arguments: Exited(code=1 if number_of(arguments) in (14, 15) else 0)
    session = a_session(STUDY, tmp_path, source=FakeSource(30), starter=starter)
    _, answer = find(session)
    answer_json = answer.as_json()
    assert answer_json["changes"][0]["revisions"] == ["r14", "r15", "r16"]
    assert {each.failure.stage for each in answer.unusable} == {"crash"}


def test_a_search_resumes_from_the_store_with_the_same_steps(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(20)
    starter = stepping_at(8)
    whole, answer = find(a_session(STUDY, tmp_path, source=source, starter=starter, store=store))
    again = stepping_at(8)
    replayed, same = find(a_session(STUDY, tmp_path, source=source, starter=again, store=store))
    assert again.started == []
    assert all(step.resumed for step in replayed)
    assert [step.words for step in replayed] == [step.words for step in whole]
    assert same.as_json() == answer.as_json()


@pytest.mark.parametrize(
    "cuts",
    [
        (1, 12, 30),  # in the first batch, while the change is located, and in the certificate
        pytest.param(range(1, 50, 3), marks=[pytest.mark.long, pytest.mark.slow("simulation")]),
    ],
)
def test_a_search_interrupted_anywhere_repeats_only_the_interrupted_batch(
    tmp_path: Path, cuts: Sequence[int]
) -> None:
    """Samples are compared with neighbours in time, so a search does not complete the batch of an interrupted one."""
    source = FakeSource(60)
    for cut in cuts:
        store, first = MemoryStore(), stepping_at(40)
        session = a_session(STUDY, tmp_path, source=source, starter=first, store=store)
        steps = 0
        for event in Find(session, request(session)).events():
            steps += isinstance(event, Stepped)
            if len(first.started) == cut:
                break
        second = stepping_at(40)
        session = a_session(STUDY, tmp_path, source=source, starter=second, store=store)
        resumed, answer = find(session)
        if len(first.started) < cut:
            break  # This search ended before the cut.
        assert answer.as_json()["changes"][0]["revisions"] == ["r40"]
        assert sum(step.resumed for step in resumed) in (steps, steps + 1), (
            "complete batches are not repeated"
        )
        assert len(first.started) + len(second.started) - answer.invocations <= 5, "a batch is small"


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


def test_a_range_of_one_revision_contains_no_change(tmp_path: Path) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(1), starter=stepping_at(1))
    with pytest.raises(NoAnswer, match=r"one revision.*widen source\.range"):
        find(session)


def test_the_requested_range_limits_the_search(tmp_path: Path) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(50), starter=stepping_at(20))
    _, answer = drain(Find(session, request(session, range="r15..r30")).events())
    assert isinstance(answer, FindAnswer)
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
    with pytest.raises(NoAnswer, match="r0, r1 and r2 all failed for one reason: metric: speed: "):
        find(session, "speed")
    _, answer = find(replace(session, keep_going=True), "speed")
    assert answer.as_json()["verdict"] == "unclear"
    assert {each.failure.stage for each in answer.unusable} == {"metric"}


def test_a_revision_with_an_equal_build_is_not_measured_again(tmp_path: Path) -> None:
    docs_only = {f"r{number}": "r20" for number in range(21, 50)}
    starter = stepping_at(20)
    session = a_session(STUDY, tmp_path, source=FakeSource(50, same_as=docs_only), starter=starter)
    steps, answer = find(session)
    assert answer.answer.changes[0].positions == (20,)
    assert any("the same artefact as" in step.words for step in steps)
    assert not any(number_of(arguments) > 20 for arguments in starter.started)


def test_one_search_finds_the_changes_of_all_metrics_with_shared_invocations(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={
            "fast": Benchmark(command="{build}/fast"),
            "slow": Benchmark(command="{build}/slow {threads}", parameters={"threads": (1, 4)}),
        }
    )

    def seconds(arguments: tuple[str, ...]) -> float:
        number = number_of(arguments)
        if arguments[0].endswith("fast"):
            return 0.1 if number < 8 else 0.13
        return 0.2 if number < 8 or arguments[1] == "1" else 0.12

    starter = FakeStarter(seconds=seconds)
    session = a_session(study, tmp_path, source=FakeSource(20), starter=starter)
    _, table = drain(Find(session, request_for(resolve_goal(study, ()))).events())
    assert isinstance(table, FindTable)
    verdicts = {answer.target.name: str(answer.answer.verdict) for answer in table.answers}
    assert verdicts == {
        "fast.wall": "found",
        "fast.peak_memory": "none",
        "slow.wall[threads=1]": "none",
        "slow.peak_memory[threads=1]": "none",
        "slow.wall[threads=4]": "found",
        "slow.peak_memory[threads=4]": "none",
    }
    table_json = table.as_json()
    assert [change.positions for answer in table.answers for change in answer.answer.changes] == [
        (8,),
        (8,),
    ]
    assert table_json["invocations"] == len(starter.started)
    assert table.builds == len({number_of(arguments) for arguments in starter.started}) <= 14


def test_the_json_of_several_metrics_has_an_answer_with_the_usual_keys_for_each(tmp_path: Path) -> None:
    study = a_study(benchmarks={"work": Benchmark(command="{build}/work", counters=())})
    session = a_session(study, tmp_path, source=FakeSource(20), starter=stepping_at(7))
    _, table = drain(Find(session, request_for(resolve_goal(study, ()))).events())
    table_json = json.loads(json.dumps(table.as_json()))
    single_json = find(a_session(study, tmp_path, source=FakeSource(20), starter=stepping_at(7)), "wall")[
        1
    ].as_json()
    assert [each["metric"] for each in table_json["metrics"]] == ["work.wall", "work.peak_memory"]
    assert set(table_json["metrics"][0]) == set(single_json)
    assert {"revisions", "builds", "invocations", "seconds", "machine"} < set(table_json)


def test_a_failed_build_counts_for_every_metric(tmp_path: Path) -> None:
    study = a_study(benchmarks={name: Benchmark(command=f"{{build}}/{name}") for name in ("one", "two")})
    source = FakeSource(30)
    builder = FakeBuilder(source, broken={f"r{number}" for number in range(10, 20)})
    starter = FakeStarter(seconds=lambda arguments: 0.1 if number_of(arguments) < 14 else 0.14)
    session = a_session(study, tmp_path, source=source, starter=starter, builder=builder)
    targets = tuple(resolve(study, f"{name}.wall") for name in ("one", "two"))
    _, table = drain(Find(session, request_for(targets)).events())
    assert isinstance(table, FindTable)
    failed = [{each.revision.id for each in answer.unusable} for answer in table.answers]
    assert failed[0] == failed[1] != set()
    assert len(builder.built_ids) == len(set(builder.built_ids))
    assert [answer.broken_ranges[0].stage for answer in table.answers] == ["build", "build"]


def test_a_noisy_sample_is_repeated_and_discarded(tmp_path: Path) -> None:
    noisy = [NOISY if number in (3, 8, 12) else QUIET for number in range(60)]
    session = a_session(
        STUDY,
        tmp_path,
        source=FakeSource(40),
        starter=stepping_at(20),
        watcher=FakeWatcher.with_conditions(*noisy),
    )
    _, answer = find(session)
    assert answer.answer.changes[0].positions == (20,)
    assert (answer.discarded, answer.noisy) == (answer.as_json()["discarded"], 0)
    assert 1 <= answer.discarded <= 3


def test_on_a_busy_machine_noisy_samples_are_used_after_the_first_repeats(tmp_path: Path) -> None:
    starter = stepping_at(20)
    session = a_session(
        STUDY,
        tmp_path,
        source=FakeSource(40),
        starter=starter,
        watcher=FakeWatcher.with_conditions(*[NOISY] * 500),
    )
    _, answer = find(session)
    assert answer.answer.changes[0].positions == (20,)
    assert answer.discarded == LEAST_TO_DECIDE
    assert answer.noisy > LEAST_TO_DECIDE


def test_noise_is_mentioned_in_an_answer_without_a_change(tmp_path: Path) -> None:
    starter, noisy = stepping_at(1000), FakeWatcher.with_conditions(*[NOISY] * 500)
    session = a_session(STUDY, tmp_path, source=FakeSource(40), starter=starter, watcher=noisy)
    _, answer = find(session)
    assert answer.answer.verdict == "none"
    assert any("noise can hide" in words for words in noise_words(answer))


def test_memory_is_never_noisy_and_needs_no_repetition_on_a_busy_machine(tmp_path: Path) -> None:
    starter, noisy = stepping_at(1000), FakeWatcher.with_conditions(*[NOISY] * 500)
    session = a_session(STUDY, tmp_path, source=FakeSource(40), starter=starter, watcher=noisy)
    request = request_for((resolve(STUDY, "peak_memory"),))
    answer = drain(Find(session, request).events())[1]
    assert isinstance(answer, FindAnswer)
    assert answer.answer.verdict == "none"
    assert (answer.noisy, answer.discarded) == (0, 0)
    assert answer.invocations <= 50
    assert list(noise_words(answer)) == []


def test_suspected_paths_guide_the_search_and_are_reported(tmp_path: Path) -> None:
    paths = {f"r{number}": ("docs/a.md",) for number in range(200)} | {"r150": ("src/alloc.c",)}
    source = FakeSource(200, paths=paths)
    priors = {"priors": ("suspect",), "suspect": ("src/**",)}
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(150))
    _, guided = drain(Find(session, request_for((resolve(STUDY, "wall"),), **priors)).events())
    plain = find(a_session(STUDY, tmp_path, source=source, starter=stepping_at(150)))[1]
    assert isinstance(guided, FindAnswer)
    assert guided.answer.changes[0].positions == plain.answer.changes[0].positions == (150,)
    assert guided.builds < plain.builds
    assert guided.as_json()["priors"] == [
        "1 of 199 revisions touch src/** and have ten times the prior weight of the others"
    ]
    assert plain.as_json()["priors"] == []


def test_a_wrong_suspected_path_does_not_mislead_the_search(tmp_path: Path) -> None:
    paths = {f"r{number}": ("src/alloc.c",) for number in range(100)} | {"r60": ("docs/a.md",)}
    session = a_session(STUDY, tmp_path, source=FakeSource(100, paths=paths), starter=stepping_at(60))
    wrong_request = request_for((resolve(STUDY, "wall"),), priors=("suspect",), suspect=("src",))
    _, answer = drain(Find(session, wrong_request).events())
    assert isinstance(answer, FindAnswer)
    assert answer.answer.changes[0].positions == (60,)


def test_earlier_samples_guide_another_search_and_are_reported(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(200)
    first = request_for((resolve(STUDY, "wall"),), priors=("measured",))
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(120), store=store)
    _, before = drain(Find(session, first).events())
    again = replace(first, confidence=0.95)
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(120), store=store)
    _, after = drain(Find(session, again).events())
    assert isinstance(before, FindAnswer)
    assert isinstance(after, FindAnswer)
    assert before.priors == ()
    assert after.priors == (
        "earlier samples show changes, and revisions near them have a larger prior weight",
    )
    assert after.answer.changes[0].positions == (120,)
    assert after.builds <= before.builds


def test_a_repeated_search_refers_to_its_own_steps_even_after_another_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = a_session(STUDY, tmp_path, source=FakeSource(20), starter=stepping_at(7))
    for range_, expected in ((None, "--search  "), ("r2..r5", "--search  "), (None, "--search 1  ")):
        _, answer = drain(Find(session, request(session, range=range_)).events())
        assert isinstance(answer, FindAnswer)
        print_find(answer, FindCommand(threshold=0.05, benchmarks=STUDY.benchmarks))
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == f"Next: perftrail show {expected}  how the search went"


def test_a_resumed_search_does_not_use_its_own_samples_as_a_prior(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(20)
    measured_prior = request_for((resolve(STUDY, "wall"),), priors=("measured",))
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(8), store=store)
    _, first = drain(Find(session, measured_prior).events())
    session = a_session(STUDY, tmp_path, source=source, starter=stepping_at(8), store=store)
    _, again = drain(Find(session, measured_prior).events())
    assert again.as_json() == first.as_json()
