"""What `find` proposes after an answer that leaves something open."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from perftrail.find.answer import FindAnswer, FindTable, InsideMerge, UnusableRevision
from perftrail.find.find import Find
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure
from perftrail.model.metrics import Metric
from perftrail.model.program import MANUAL
from perftrail.model.study import Study
from perftrail.model.subject import Merge
from perftrail.model.suite import SuiteBenchmark
from perftrail.model.target import resolve
from perftrail.present.answer_sentence import elapsed_words, headline_of, stored_answers
from perftrail.present.next_find import FindCommand, detectable_words, next_commands
from perftrail.search import Budget
from perftrail.search.answer import Suspicion, Verdict
from perftrail.search.merges import Origin
from tests.fakes.subject_builder import FakeSource, FakeStarter, number_of
from tests.find.test_find import STUDY, find, request_for
from tests.measure.fake_session import a_session, a_study, drain

COUNTING = a_study(
    benchmarks={
        **STUDY.benchmarks,
        "counts": replace(STUDY.benchmarks["work"], counters=("instructions",)),
    }
)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> FindAnswer:
    """A search whose samples scatter so much that it cannot tell whether the time changed."""
    starter = FakeStarter(seconds=lambda _: 0.1, noise=0.8)
    session = a_session(STUDY, tmp_path_factory.mktemp("noisy"), source=FakeSource(12), starter=starter)
    _, answer = find(session)
    assert answer.unclear
    assert answer.answer.minimum_detectable > 0.05
    return answer


def lines(answer: FindAnswer | FindTable, *options: str, study: Study = STUDY) -> list[str]:
    command = FindCommand(
        study=("study",),
        options=options,
        threshold=0.05,
        budget=Budget(invocations=300),
        benchmarks=study.benchmarks,
    )
    return list(next_commands(answer, command))


def test_an_unclear_answer_states_the_minimum_detectable_change_and_the_threshold(noisy: FindAnswer) -> None:
    command = FindCommand(threshold=0.05, benchmarks=STUDY.benchmarks)
    quiet = replace(noisy, answer=replace(noisy.answer, minimum_detectable=0.12))
    assert detectable_words(quiet, command) == (
        "minimum detectable change with these samples: 12 %; the threshold is 5 %"
    )
    assert detectable_words(replace(noisy, answer=replace(quiet.answer, verdict=Verdict.NONE)), command) == ""
    nothing = replace(noisy, answer=replace(quiet.answer, minimum_detectable=math.inf))
    assert detectable_words(nothing, command) == ""


def test_a_larger_threshold_that_the_samples_can_show_is_proposed(noisy: FindAnswer) -> None:
    unclear = replace(noisy, answer=replace(noisy.answer, minimum_detectable=0.1234))
    assert (
        "Next: perftrail find study --metric wall --threshold 13%    "
        "search for changes of 13 % or more, which samples with this noise can show"
    ) in lines(unclear, "--metric", "wall", "--threshold", "0.05")
    clear = replace(noisy, answer=replace(noisy.answer, minimum_detectable=0.04))
    assert not any("--threshold" in line for line in lines(clear))


def test_on_a_busy_machine_cpu_time_and_instructions_are_proposed(noisy: FindAnswer) -> None:
    busy = replace(noisy, noisy=5, discarded=0)
    assert (
        "Next: perftrail find study --metric work.cpu    "
        "search CPU time: other processes disturb it less than wall time"
    ) in lines(busy)
    quiet = replace(noisy, noisy=0, discarded=0)
    assert not any("work.cpu" in line for line in lines(quiet))
    cpu = replace(busy, target=resolve(STUDY, "cpu"))
    assert not any("CPU time" in line for line in lines(cpu))
    assert (
        'Next: add [benchmark.work-instructions] with the same command and counters = ["instructions"], and run '
        "perftrail find study --metric work-instructions.instructions: instruction counts hardly depend on other load"
    ) in lines(cpu)


def test_a_benchmark_of_a_suite_has_no_quieter_metric(noisy: FindAnswer) -> None:
    time = Metric(reads="jsonl", unit="s")
    suite = SuiteBenchmark(suite="bench", command="work", commands={}, metrics={"wall": time})
    study = a_study(benchmarks={"work": suite})
    assert not any("instructions" in line for line in lines(replace(noisy, noisy=5), study=study))


def test_a_benchmark_that_counts_the_same_commands_instructions_is_named(noisy: FindAnswer) -> None:
    assert (
        "Next: perftrail find study --metric counts.instructions    "
        "instruction counts hardly depend on other load"
    ) in lines(noisy, study=COUNTING)


def test_a_metric_that_is_not_a_time_has_no_quieter_metric(noisy: FindAnswer) -> None:
    memory = replace(noisy, target=resolve(STUDY, "peak_memory"), noisy=5)
    assert not any("instructions" in line or "cpu" in line for line in lines(memory))


def test_a_likely_change_that_no_budget_stopped_can_be_certified_with_less_evidence(
    noisy: FindAnswer,
) -> None:
    likely = Suspicion(
        positions=(7,), confidence=0.9, evidence=50.0, needed=200.0, blocks_left=None, possible=0.2
    )
    ended = replace(
        noisy.answer, suspected=(likely,), minimum_detectable=0.03, reason="no change could be certified"
    )
    line = "Next: perftrail find study --confidence 0.95    certify the likely change with less evidence"
    assert line in lines(replace(noisy, answer=ended))
    spent = replace(ended, reason="the time budget is spent")
    assert line not in lines(replace(noisy, answer=spent))


def test_an_end_that_cannot_be_built_is_left_out_of_the_range(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=lambda _: 0.1)
    _, answer = find(a_session(STUDY, tmp_path, source=FakeSource(9), starter=starter))
    assert answer.answer.verdict == "none"
    failed = UnusableRevision(
        revision=answer.revisions[8], failure=Failure(stage="build", message="no", log="")
    )
    unclear = replace(answer, unusable=(failed,), answer=replace(answer.answer, verdict=Verdict.UNCLEAR))
    assert (
        "Next: perftrail find study --range r0..r7    search only between the outermost usable revisions"
    ) in lines(unclear)


def test_more_memory_layouts_are_proposed_where_they_hide_the_answer(noisy: FindAnswer) -> None:
    hidden = replace(noisy, linked=True, answer=replace(noisy.answer, layouts_hide=True))
    line = (
        f"Next: add relink lines to [build] ({MANUAL}), and run perftrail find study: "
        "it measures several memory layouts"
    )
    assert line in lines(hidden)
    assert line not in lines(replace(hidden, linked=False))
    assert line not in lines(replace(hidden, can_relink=True))
    assert line not in lines(noisy)


def test_nothing_usable_proposes_to_try_some_revisions(noisy: FindAnswer) -> None:
    nothing = replace(noisy, answer=replace(noisy.answer, minimum_detectable=math.inf, reason="all failed"))
    assert lines(nothing) == [
        "Next: perftrail check study --try 3    build and run three revisions, after you correct the study"
    ]


def test_unmeasured_revisions_are_in_the_answer_with_the_command_that_looks_into_them(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=lambda words: 0.1 if number_of(words) < 17 else 0.104)
    _, answer = find(a_session(STUDY, tmp_path, source=FakeSource(40), starter=starter))
    assert answer.answer.verdict == "none"
    thorough = "Next: perftrail find study --thorough    look into revisions between the measured ones, too"
    assert lines(answer) == [thorough]
    assert lines(answer, "--thorough") == []
    (found,) = stored_answers(cast("Any", answer.as_json()), {})
    assert re.search(
        r"\d+ revisions between r\d+ and r\d+ are unmeasured: "
        "a change there that a later revision reverted would not have been seen$",
        headline_of([found]),
    )
    assert re.match(r"from end to end (3|4)\.\d % more", found.account)


def test_a_culprit_is_explained_first_at_the_point_where_it_was_found(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={"work": Benchmark(command="{build}/work {size}", parameters={"size": ("a", "b")})}
    )
    starter = FakeStarter(seconds=lambda arguments: 0.2 if number_of(arguments) >= 7 else 0.1)
    session = a_session(study, tmp_path, source=FakeSource(12), starter=starter)
    request = request_for((resolve(study, "wall[size=b]"),))
    _, answer = drain(Find(session, request).events())
    assert isinstance(answer, FindAnswer)
    assert [each.positions for each in answer.answer.changes] == [(7,)]
    assert lines(answer, study=study)[0] == (
        "Next: perftrail explain r7 study --metric 'work.wall[size=b]'    name the functions that are responsible"
    )


def test_the_time_of_the_command_agrees_with_the_clock(noisy: FindAnswer) -> None:
    ended = replace(noisy, new=replace(noisy.new, seconds=105.0))
    assert list(elapsed_words(ended, 190.0)) == [
        "The command took 3 min 10 s: 1 min 45 s of building and measuring, and 1 min 25 s of the rest: "
        "reading the history, profiles, counts and pauses."
    ]
    assert not list(elapsed_words(ended, 106.0))
    assert not list(elapsed_words(ended, 0.0))
    assert "parallel builds" in next(elapsed_words(ended, 60.0))


def test_a_table_names_the_metric_of_each_command(noisy: FindAnswer) -> None:
    table = FindTable(
        answers=(noisy, replace(noisy, target=resolve(STUDY, "peak_memory"))),
        revisions=noisy.revisions,
        builds=1,
        invocations=1,
        seconds=1.0,
        machine="m",
    )
    found = lines(table, "--all")
    assert any(line.startswith("Next: perftrail find study --all --threshold ") for line in found)
    clear = replace(noisy, answer=replace(noisy.answer, verdict=Verdict.NONE))
    some = lines(replace(table, answers=(clear, table.answers[1])), "--all")
    assert any(
        line.startswith("Next: perftrail find study --metric peak_memory --threshold ") for line in some
    )
    assert not any("--all --metric" in line for line in found)


def test_a_benchmark_with_parameters_keeps_its_point(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={"mt": Benchmark(command="{build}/work {threads}", parameters={"threads": (1, 2)})}
    )
    starter = FakeStarter(seconds=lambda _: 0.1, noise=0.8)
    _, answer = find(a_session(study, tmp_path, source=FakeSource(12), starter=starter), "wall[threads=2]")
    found = lines(replace(answer, noisy=3), study=study)
    assert any("--metric 'mt.cpu[threads=2]'" in line for line in found)


def test_a_found_merge_whose_branch_was_not_searched_to_its_end_proposes_that_search(tmp_path: Path) -> None:
    starter = FakeStarter(seconds=lambda words: 0.1 if number_of(words) < 7 else 0.2)
    _, answer = find(a_session(STUDY, tmp_path, source=FakeSource(12), starter=starter))
    assert answer.answer.verdict == "found"
    merge = Merge(revision=answer.revisions[7], trunk=answer.revisions[6], branches=())
    inside = InsideMerge(
        merge=merge, origin=Origin.UNCLEAR, confidence=0.6, reason="the time budget is spent"
    )
    line = "Next: perftrail find study --range r6..r7    search only the branch of r7"
    assert line in lines(replace(answer, inside={0: inside}))
    assert line not in lines(replace(answer, inside={0: replace(inside, origin=Origin.COMBINATION)}))
