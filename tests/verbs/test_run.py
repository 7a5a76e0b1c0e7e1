"""`run` builds and measures the missing cells of the plan once, in interleaved order."""

from __future__ import annotations

import gc
import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import NoAnswer, UsageError
from perftrail.measure.events import BuildFinished, GivenUp, Invoked, OutputsRead, Progress, SameArtefact
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure
from perftrail.model.measurement import Measurement
from perftrail.model.metrics import Metric
from perftrail.model.plan import cells, subjects
from perftrail.model.process import Exited, TimedOut
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.results.selection import Selection
from perftrail.verbs.run import Run
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

if TYPE_CHECKING:
    from perftrail.measure.session import Session
    from perftrail.model.measurement import Outcome
    from perftrail.model.study import Order, Study

ALL = Selection()


def steady(_: tuple[str, ...]) -> float:
    return 0.1


def test_a_coin_decides_which_subject_of_a_block_is_measured_first(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=steady)
    custom_study = a_study(measure=MeasurePolicy(invocations=Invocations(least=60, most=60), warmups=0))
    drain(Run(a_session(custom_study, tmp_path, source=FakeSource(2), starter=starter), ALL).events())
    order = [number_of(arguments) for arguments in starter.started]
    blocks = [tuple(order[at : at + 2]) for at in range(0, len(order), 2)]
    assert set(blocks) == {(0, 1), (1, 0)}
    # of 60 fair coins fewer than 15 on a side are less likely than 1 in 10,000
    assert 15 <= blocks.count((0, 1)) <= 45
    # neither always the same nor always the other one: 59 neighbours, of which half differ
    assert 15 <= sum(one != other for one, other in itertools.pairwise(blocks)) <= 45


def test_the_subjects_of_a_point_are_measured_next_to_each_other(tmp_path: Path) -> None:
    benchmark = Benchmark(command="{build}/work {size}", parameters={"size": (1, 2)})
    starter = FakeStarter(seconds=steady)
    study = a_study(
        benchmarks={"work": benchmark}, measure=MeasurePolicy(invocations=Invocations(least=1, most=1))
    )
    drain(Run(a_session(study, tmp_path, source=FakeSource(2), starter=starter), ALL).events())
    order = [(int(arguments[-1]), number_of(arguments)) for arguments in starter.started]
    assert [size for size, _ in order] == [1, 1, 2, 2, 2, 2, 1, 1]
    assert all({order[at][1], order[at + 1][1]} == {0, 1} for at in range(0, 8, 2))


def outcomes_in_order(session: Session) -> list[Outcome]:
    return [outcome for _, outcome in reversed(session.store.recent(1000))]


def test_the_subjects_of_a_point_are_a_block_with_one_seed(tmp_path: Path) -> None:
    benchmark = Benchmark(command="{build}/work {size}", parameters={"size": (1, 2)})
    study = a_study(
        benchmarks={"work": benchmark},
        measure=MeasurePolicy(invocations=Invocations(least=2, most=2), warmups=1),
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=steady))
    drain(Run(session, ALL).events())
    draws = [outcome.draw for outcome in outcomes_in_order(session)]
    blocks = [draws[at : at + 3] for at in range(0, len(draws), 3)]
    assert len(blocks) == 6
    assert all([draw.turn for draw in block] == [0, 1, 2] for block in blocks)
    assert all(len({(draw.block, draw.seed) for draw in block}) == 1 for block in blocks)
    assert len({block[0].block for block in blocks}) == 6
    rounds = [{draw.seed for draw in draws[at : at + 6]} for at in range(0, len(draws), 6)]
    assert [len(seeds) for seeds in rounds] == [1, 1, 1]
    assert len(set.union(*rounds)) == 3


@pytest.mark.parametrize("order", ["interleaved", "random", "sequential"])
def test_the_subjects_of_a_block_follow_each_other_in_every_order(tmp_path: Path, order: Order) -> None:
    benchmark = Benchmark(command="{build}/work {size}", parameters={"size": (1, 2, 3)})
    study = a_study(
        benchmarks={"work": benchmark},
        measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0, order=order),
    )
    session = a_session(study, tmp_path, source=FakeSource(3), starter=FakeStarter(seconds=steady))
    drain(Run(session, ALL).events())
    points = {each.key: each.point for each in session.store.runnables()}
    outcomes = outcomes_in_order(session)
    for at in range(0, len(outcomes), 3):
        block = outcomes[at : at + 3]
        assert len({outcome.draw.block for outcome in block}) == 1
        assert len({points[outcome.key.runnable] for outcome in block}) == 1


def test_a_resumed_run_begins_a_new_block_with_the_seed_of_its_round(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(2)
    session = a_session(a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), store=store)
    run = Run(session, ALL).events()
    started = 0
    while started < 3:  # both warm-ups and the first sample
        started += isinstance(next(run), Invoked)
    run.close()
    again = a_session(a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), store=store)
    drain(Run(again, ALL).events())
    first = [outcome for outcome in outcomes_in_order(again) if outcome.key.phase == "sample"][:2]
    assert [outcome.key.ordinal for outcome in first] == [0, 0]
    assert first[0].draw.block != first[1].draw.block


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(2)
    for expected in (8, 0):
        starter = FakeStarter(seconds=steady)
        session = a_session(a_study(), tmp_path, source=source, starter=starter, store=store)
        _, report = drain(Run(session, ALL).events())
        assert len(starter.started) == expected
        assert report.measured == report.cells == 2


def test_a_run_resumes_from_any_stored_outcome(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(2)
    starter = FakeStarter(seconds=steady)
    interrupted = Run(
        a_session(a_study(), tmp_path, source=source, starter=starter, store=store), ALL
    ).events()
    for event in interrupted:
        if isinstance(event, Invoked) and len(starter.started) == 5:
            break
    again = FakeStarter(seconds=steady)
    drain(Run(a_session(a_study(), tmp_path, source=source, starter=again, store=store), ALL).events())
    assert len(starter.started) + len(again.started) == 8


def test_a_failed_build_is_recorded_and_stops_nothing(tmp_path: Path) -> None:
    source = FakeSource(3)
    builder = FakeBuilder(source, broken={"r1"})
    session = a_session(
        a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    _, report = drain(Run(session, ALL).events())
    assert report.measured == 2
    assert list(report.failures) == ["r1"]


def test_a_failed_build_is_tried_again_only_on_request(tmp_path: Path) -> None:
    source, store = FakeSource(2), MemoryStore()
    tried = []
    for retry in (False, False, True):
        builder = FakeBuilder(source, broken={"r1"})
        starter = FakeStarter(seconds=steady)
        session = a_session(
            a_study(),
            tmp_path,
            source=source,
            starter=starter,
            builder=builder,
            store=store,
            retry_failed=retry,
        )
        drain(Run(session, ALL).events())
        tried.append("r1" in builder.built_ids)
    assert tried == [True, False, True]


def test_a_failed_start_is_tried_again_on_request(tmp_path: Path) -> None:
    source, store = FakeSource(2), MemoryStore()

    def report(code: int, *, retry: bool) -> tuple[int, int]:
        starter = FakeStarter(
            seconds=steady, ended=lambda arguments: Exited(code=code * (number_of(arguments) == 1))
        )
        session = a_session(
            a_study(), tmp_path, source=source, starter=starter, store=store, retry_failed=retry
        )
        _, found = drain(Run(session, ALL).events())
        return found.measured, sum(number_of(arguments) == 1 for arguments in starter.started)

    assert report(1, retry=False) == (1, 1)
    assert report(0, retry=False) == (1, 0)
    assert report(1, retry=True) == (1, 1)
    assert report(0, retry=True) == (2, 4)
    assert report(0, retry=False) == (2, 0)


def test_equal_artefacts_are_measured_once_and_reported(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=steady)
    source = FakeSource(3, same_as={"r1": "r0"})
    events, report = drain(Run(a_session(a_study(), tmp_path, source=source, starter=starter), ALL).events())
    assert {number_of(arguments) for arguments in starter.started} == {0, 2}
    assert len(starter.started) == 8
    assert report.measured == 3
    [same] = [event for event in events if isinstance(event, SameArtefact)]
    assert [subject.revision.id for subject in same.subjects] == ["r0", "r1"]


def test_measuring_stops_when_the_interval_is_narrow_enough(tmp_path: Path) -> None:
    policy = MeasurePolicy(invocations=Invocations(least=6, most=40), precision=0.02)
    counts = {}
    for noise in (0.001, 0.2):
        starter = FakeStarter(seconds=steady, noise=noise)
        session = a_session(a_study(measure=policy), tmp_path, source=FakeSource(1), starter=starter)
        drain(Run(session, ALL).events())
        counts[noise] = len(starter.started) - policy.warmups
    assert counts == {0.001: 6, 0.2: 40}


def test_a_point_whose_first_start_fails_is_not_started_again(tmp_path: Path) -> None:
    starter = FakeStarter(
        seconds=steady, ended=lambda arguments: Exited(code=1 if number_of(arguments) == 1 else 0)
    )
    session = a_session(a_study(), tmp_path, source=FakeSource(3), starter=starter)
    _, report = drain(Run(session, ALL).events())
    assert sum(number_of(arguments) == 1 for arguments in starter.started) == 1
    assert report.measured == 2


def test_larger_points_are_given_up_after_a_timeout(tmp_path: Path) -> None:
    benchmark = Benchmark(
        command="{build}/work {size}", parameters={"size": (1, 10, 100)}, give_up=True, timeout_seconds=1.0
    )
    study = a_study(benchmarks={"work": benchmark})
    starter = FakeStarter(
        seconds=steady, ended=lambda arguments: TimedOut() if int(arguments[1]) >= 10 else Exited(code=0)
    )
    store = MemoryStore()
    session = a_session(study, tmp_path, source=FakeSource(1), starter=starter, store=store)
    events, report = drain(Run(session, ALL).events())
    [given_up] = [event for event in events if isinstance(event, GivenUp)]
    assert [cell.point["size"] for cell in given_up.cells] == [100]
    assert not any(arguments[1] == "100" for arguments in starter.started)
    assert report.skipped == 1

    again = a_session(study, tmp_path, source=FakeSource(1), starter=starter, store=store)
    events, report = drain(Run(again, ALL).events())
    assert not any(arguments[1] == "100" for arguments in starter.started)
    assert [event.cells for event in events if isinstance(event, GivenUp)] == [given_up.cells]
    assert (report.invocations, report.skipped) == (0, 1)


def test_only_what_is_selected_is_made(tmp_path: Path) -> None:
    source = FakeSource(4)
    builder = FakeBuilder(source)
    starter = FakeStarter(seconds=steady)
    session = a_session(a_study(), tmp_path, source=source, starter=starter, builder=builder)
    _, report = drain(Run(session, Selection(rules=(("revision", "r2"),))).events())
    assert builder.built_ids == ["r2"]
    assert report.cells == report.measured == 1


def test_a_selection_of_nothing_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    source = FakeSource(4)
    builder = FakeBuilder(source)
    session = a_session(
        a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    with pytest.raises(UsageError, match=r"--only revision=none\*: nothing in the plan matches"):
        drain(Run(session, Selection(rules=(("revision", "none*"),))).events())
    assert builder.built_ids == []


def test_progress_ends_with_nothing_left(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(2), starter=FakeStarter(seconds=steady))
    events, _ = drain(Run(session, ALL).events())
    lefts = [event.left_most for event in events if isinstance(event, Progress)]
    assert lefts == sorted(lefts, reverse=True)
    assert lefts[-1] == 0


def test_builds_are_reported_as_they_end(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(2), starter=FakeStarter(seconds=steady))
    events, _ = drain(Run(session, ALL).events())
    built = [event.subject.revision.id for event in events if isinstance(event, BuildFinished)]
    assert built == ["r0", "r1"]


def test_builds_that_all_fail_for_one_reason_end_the_run_after_three(tmp_path: Path) -> None:
    source = FakeSource(40)
    builder = FakeBuilder(source, broken={f"r{number}" for number in range(40)})
    session = a_session(
        a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    with pytest.raises(NoAnswer) as raised:
        drain(Run(session, ALL).events())
    assert str(raised.value).startswith("r0, r1 and r39 all failed for one reason: build: ")
    assert "perftrail check --try 3; or continue with --keep-going" in str(raised.value)
    assert len(set(builder.built_ids)) == 3
    report = drain(Run(replace(session, keep_going=True), ALL).events())[1]
    assert (len(report.failures), len(set(builder.built_ids))) == (40, 40)


def test_old_revisions_that_fail_do_not_end_the_run(tmp_path: Path) -> None:
    source = FakeSource(10)
    builder = FakeBuilder(source, broken={f"r{number}" for number in range(8)})
    session = a_session(
        a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    report = drain(Run(session, ALL).events())[1]
    assert (len(report.failures), report.measured) == (8, 2)


def test_programs_that_all_fail_for_one_reason_end_the_run_after_three(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=steady, ended=lambda _: Exited(code=127))
    session = a_session(a_study(), tmp_path, source=FakeSource(40), starter=starter)
    with pytest.raises(NoAnswer, match="all failed for one reason: crash: "):
        drain(Run(session, ALL).events())
    assert len(starter.started) == 3
    report = drain(Run(replace(session, keep_going=True), ALL).events())[1]
    assert (report.measured, len(report.failures)) == (0, 37), "three failures are known"


class ForgetfulStore(MemoryStore):
    """A store that holds no outcome in this process's memory, like a database."""

    def add(self, outcome: Outcome) -> None:
        pass


def test_a_run_keeps_no_outcome_in_memory(tmp_path: Path) -> None:
    """A run of 50,000 invocations would otherwise need 100 MB more than one of a few."""
    study = a_study(measure=MeasurePolicy(invocations=Invocations(least=100, most=100), warmups=1))
    session = a_session(
        study, tmp_path, source=FakeSource(2), starter=FakeStarter(seconds=steady), store=ForgetfulStore()
    )
    gc.collect()
    of_other_tests = live_measurements()
    started = most_alive = 0
    for event in Run(session, ALL).events():
        if isinstance(event, Invoked):
            started += 1
            if started % 50 == 0:  # looking at all objects takes a fifth of a second
                most_alive = max(most_alive, live_measurements() - of_other_tests)
    assert started == 202
    assert most_alive <= 4


def live_measurements() -> int:
    """Return the number of measurements that are in memory."""
    return sum(isinstance(each, Measurement) for each in gc.get_objects())


def test_outcomes_of_a_run_are_still_known_to_others_afterwards(tmp_path: Path) -> None:
    """A verb may compare after a run in the same session: it reads what the run did not keep."""
    study = a_study(measure=MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=0))
    session = a_session(study, tmp_path, source=FakeSource(1), starter=FakeStarter(seconds=steady))
    cell = cells(study, subjects(study, session.source.history())[0])[0]
    _, ready = drain(session.subject_builder.ready(cell))
    assert not isinstance(ready, Failure)
    assert session.runner.known(ready) == {}
    drain(Run(session, ALL).events())
    assert session.runner.next_ordinal(ready) == 3


def test_a_stored_failure_that_is_tried_again_keeps_its_ordinal(tmp_path: Path) -> None:
    study = a_study(measure=MeasurePolicy(invocations=Invocations(least=2, most=2), warmups=0))
    store = MemoryStore()
    failing = FakeStarter(seconds=steady, ended=lambda _: Exited(code=3))
    drain(Run(a_session(study, tmp_path, source=FakeSource(1), starter=failing, store=store), ALL).events())
    again = a_session(
        study,
        tmp_path,
        source=FakeSource(1),
        starter=FakeStarter(seconds=steady),
        store=store,
        retry_failed=True,
    )
    drain(Run(again, ALL).events())
    assert [each.key.ordinal for each in outcomes_in_order(again)] == [0, 1, 2]


RATE, COST = Metric(pattern="rate ([0-9]+)"), Metric(pattern="cost ([0-9]+)")


def printing(*, metrics: dict[str, Metric]) -> Study:
    return a_study(benchmarks={"work": Benchmark(command="{build}/work", metrics=metrics)})


def test_a_metric_that_is_added_is_read_from_stored_outputs(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(2)
    starter = FakeStarter(seconds=steady, output="rate 7\ncost 9\n")
    for metrics in ({"rate": RATE}, {"rate": RATE, "cost": COST}):
        session = a_session(printing(metrics=metrics), tmp_path, source=source, starter=starter, store=store)
        events, _ = drain(Run(session, ALL).events())
    assert len(starter.started) == 2 * 4
    read = [each for each in events if isinstance(each, OutputsRead)]
    assert [(each.metrics, each.read, each.missing) for each in read] == [(("cost",), 4, 0)] * 2
    newest = [each.key for each in store.runnables()][-2:]
    found = store.outcomes(tuple(newest), session.machine.id)
    values = [each.values for those in found.values() for each in those if isinstance(each, Measurement)]
    assert [(each["rate"], each["cost"], "wall" in each) for each in values] == [(7.0, 9.0, True)] * 8


def test_invocations_whose_output_lacks_an_added_metric_are_repeated(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(1)
    starter = FakeStarter(seconds=steady, output="rate 7\n")
    session = a_session(
        printing(metrics={"rate": RATE}), tmp_path, source=source, starter=starter, store=store
    )
    drain(Run(session, ALL).events())
    [log] = (tmp_path / "logs").rglob("*-sample-1.out")
    log.write_text("rate 7\ncost 8\n")
    starter.output = "rate 7\ncost 9\n"
    both = printing(metrics={"rate": RATE, "cost": COST})
    session = a_session(both, tmp_path, source=source, starter=starter, store=store)
    events, report = drain(Run(session, ALL).events())
    [read] = [each for each in events if isinstance(each, OutputsRead)]
    assert (read.read, read.missing, report.invocations) == (1, 3, 3)


def test_a_changed_pattern_is_measured_again(tmp_path: Path) -> None:
    store, source = MemoryStore(), FakeSource(1)
    starter = FakeStarter(seconds=steady, output="rate 7\ncost 9\n")
    changed = {"rate": replace(RATE, pattern="rate ([0-9])"), "cost": COST}
    for metrics in ({"rate": RATE}, changed):
        session = a_session(printing(metrics=metrics), tmp_path, source=source, starter=starter, store=store)
        events, report = drain(Run(session, ALL).events())
    assert not [each for each in events if isinstance(each, OutputsRead)]
    assert report.invocations == 4
