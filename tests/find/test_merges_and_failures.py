"""`find` over fakes: searches inside merges, for the metric works and for broken ranges, and their words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import StudyError
from perftrail.find.answer import FindAnswer, FindRequest, FindTable
from perftrail.find.broken_ranges import find_broken_ranges
from perftrail.find.find import Find
from perftrail.find.priors import path_priors
from perftrail.measure.events import Stepped
from perftrail.measure.session import Session
from perftrail.model.benchmark import Benchmark
from perftrail.model.build import Failure
from perftrail.model.metrics import Metric
from perftrail.model.plan import same_everywhere
from perftrail.model.process import Exited
from perftrail.model.subject import Branch, Merge, Revision
from perftrail.model.target import Goal, TargetError, Working, every_target, resolve, resolve_goal
from perftrail.present.answer_details import (
    broken_range_words,
    headline,
    inside_words,
    print_table,
    table_headline,
    two_sided,
    unchanged,
    unusable_words,
)
from perftrail.present.answer_sentence import change_facts, headline_of, levels_of, stored_answers
from perftrail.present.next_find import FindCommand
from perftrail.search.budget import Budget
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.fakes.watcher import NOISY, FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

STUDY = a_study()
TWO = a_study(benchmarks={name: Benchmark(command=f"{{build}}/{name}") for name in ("one", "two")})


def find(session: Session, goal: Goal) -> FindAnswer | FindTable:
    request = FindRequest(
        goal=goal, range=None, threshold=0.05, confidence=0.99, budget=Budget(invocations=500)
    )
    found: FindAnswer | FindTable = drain(Find(session, request).events())[1]
    stored = stored_answers(
        json.loads(json.dumps(found.as_json())), {each.id: each for each in found.revisions}
    )
    words = table_headline(found) if isinstance(found, FindTable) else headline(found)
    assert headline_of(stored) == words, "stored and new answers have the same words"
    return found


def find_answer(session: Session, goal: Goal) -> FindAnswer:
    answer = find(session, goal)
    assert isinstance(answer, FindAnswer)
    return answer


def revision(number: int) -> Revision:
    return Revision(id=f"r{number}", summary=f"change {number}")


def merging(at: int, *, base: int, branch: range) -> FakeSource:
    """Return a history in which a revision merged a branch, which is not part of the history."""
    merge = Merge(
        revision=revision(at),
        trunk=revision(at - 1),
        branches=(Branch(base=revision(base), revisions=tuple(map(revision, branch))),),
    )
    return FakeSource(30, merges={f"r{at}": merge})


def test_a_merge_is_searched_inside_and_the_revision_inside_is_named_first(tmp_path: Path) -> None:
    source = merging(20, base=12, branch=range(1000, 1016))
    heavy = {*range(20, 30), *range(1009, 1016)}
    starter = FakeStarter(seconds=lambda arguments: 0.14 if number_of(arguments) in heavy else 0.1)
    answer = find_answer(
        a_session(STUDY, tmp_path, source=source, starter=starter), (resolve(STUDY, "wall"),)
    )
    inside = answer.inside[0]
    assert (inside.origin, [each.id for each in inside.candidates]) == ("branch", ["r1009"])
    assert headline(answer).startswith("found: r1009 “change 1009”, which r20 merged, changed wall: ")
    assert next(inside_words(inside)).startswith("r20 is a merge, and the change came with the branch")


def test_the_first_step_inside_a_merge_names_the_merge(
    tmp_path: Path,
) -> None:
    heavy = {*range(20, 30), *range(1009, 1016)}
    starter = FakeStarter(
        seconds=lambda arguments: 0.12 if number_of(arguments) in heavy else 0.1, noise=0.02
    )
    source = merging(20, base=12, branch=range(1000, 1016))
    request = FindRequest(
        goal=(resolve(STUDY, "wall"),), range=None, threshold=0.05, confidence=0.99, budget=Budget()
    )
    session = a_session(STUDY, tmp_path, source=source, starter=starter)
    steps = [each for each in drain(Find(session, request).events())[0] if isinstance(each, Stepped)]
    named = [each for each in steps if each.purpose.startswith("to search inside the merge r20")]
    assert len(named) == 1
    rounds = [each.words for each in steps if each.words.startswith("round: ran ")]
    assert len(rounds) > 8


@pytest.mark.parametrize("equal", [{}, {"r19": "r18", "r12": "r11"}])
def test_unbuildable_revisions_outside_a_merge_do_not_disturb_the_search_inside(
    equal: dict[str, str], tmp_path: Path
) -> None:
    source = replace(merging(20, base=12, branch=range(1000, 1016)), same_as=equal)
    heavy = {*range(20, 30), *range(1009, 1016)}
    starter = FakeStarter(seconds=lambda arguments: 0.14 if number_of(arguments) in heavy else 0.1)
    builder = FakeBuilder(source, broken=[f"r{number}" for number in (*range(13, 17), *range(22, 29))])
    session = a_session(STUDY, tmp_path, source=source, starter=starter, builder=builder)
    answer = find_answer(session, (resolve(STUDY, "wall"),))
    assert answer.unusable
    assert [each.id for each in answer.inside[0].candidates] == ["r1009"]


def test_a_search_inside_a_merge_resumes_from_the_store(tmp_path: Path) -> None:
    store, heavy = MemoryStore(), {*range(20, 30), *range(1003, 1008)}

    def repeat() -> tuple[FindAnswer, FakeStarter]:
        source = merging(20, base=12, branch=range(1000, 1008))
        starter = FakeStarter(seconds=lambda arguments: 0.14 if number_of(arguments) in heavy else 0.1)
        session = a_session(STUDY, tmp_path, source=source, starter=starter, store=store)
        return find_answer(session, (resolve(STUDY, "wall"),)), starter

    first, _ = repeat()
    second, starter = repeat()
    assert starter.started == []
    assert second.as_json() == first.as_json()


def test_a_branch_whose_tip_does_not_build_leaves_a_range_or_unclear_but_no_culprit(
    tmp_path: Path,
) -> None:
    source = merging(20, base=12, branch=range(1000, 1008))
    heavy = {*range(20, 30), *range(1004, 1008)}
    starter = FakeStarter(seconds=lambda arguments: 0.14 if number_of(arguments) in heavy else 0.1)
    builder = FakeBuilder(source, broken={f"r{number}" for number in range(1003, 1008)})
    session = a_session(STUDY, tmp_path, source=source, starter=starter, builder=builder)
    answer = find_answer(session, (resolve(STUDY, "wall"),))
    inside = answer.inside[0]
    assert inside.origin == "unclear"
    words = f"r20 is a merge, and the origin of the change in it is unclear: {inside.reason}"
    assert list(inside_words(inside)) == [words]
    assert change_facts(answer, 0).merges == (f"{words}.",), "no probability of an unclear origin"


def failing_from(culprit: int) -> FakeStarter:
    return FakeStarter(
        seconds=lambda _: 0.1, ended=lambda arguments: Exited(code=int(number_of(arguments) >= culprit))
    )


def test_works_finds_where_the_program_began_to_fail(tmp_path: Path) -> None:
    goal = resolve_goal(STUDY, ("works",))
    answer = find_answer(a_session(STUDY, tmp_path, source=FakeSource(100), starter=failing_from(37)), goal)
    assert answer.answer.changes[0].positions == (37,)
    assert headline(answer).startswith("found: r37 “change 37” began to fail (crash), probability 99")
    assert levels_of(change_facts(answer, 0)).startswith("the program works with probability 9")
    assert unusable_words(answer, answer.unusable).startswith("Failed:")
    assert answer.builds <= 12


def test_works_includes_every_benchmark_unless_one_is_named(tmp_path: Path) -> None:
    starter = FakeStarter(
        seconds=lambda _: 0.1,
        ended=lambda words: Exited(code=int(words[0].endswith("two") and number_of(words) >= 5)),
    )
    both = find_answer(
        a_session(TWO, tmp_path, source=FakeSource(20), starter=starter), resolve_goal(TWO, ("works",))
    )
    assert both.answer.changes[0].positions == (5,)
    first = find_answer(
        a_session(TWO, tmp_path, source=FakeSource(20), starter=starter), resolve_goal(TWO, ("one.works",))
    )
    assert headline(first).startswith("none: the program did not begin to fail")


@pytest.mark.parametrize(
    ("command", "meant"), [("sort /dev/null", ""), ("./work {cpus}", "; did you mean {build}/work?")]
)
def test_a_program_that_no_revision_builds_is_refused_before_anything_is_built(
    tmp_path: Path, command: str, meant: str
) -> None:
    study = a_study(benchmarks={"work": Benchmark(command=command)})
    builder = FakeBuilder(FakeSource(20))
    session = a_session(
        study, tmp_path, source=FakeSource(20), starter=FakeStarter(seconds=lambda _: 0.1), builder=builder
    )
    for goal in ((resolve(study, "wall"),), resolve_goal(study, ("works",))):
        with pytest.raises(StudyError) as raised:
            find(session, goal)
        [mistake] = raised.value.mistakes
        assert mistake.key == "benchmark.work.command"
        assert mistake.message == (
            f"{command} names neither {{build}} nor {{out}}, so every revision would run the same program{meant}"
        )
    assert not builder.built_ids


def test_ends_that_are_the_same_build_exclude_a_change_of_any_size(tmp_path: Path) -> None:
    source = FakeSource(20, same_as={"r19": "r0"})
    session = a_session(STUDY, tmp_path, source=source, starter=FakeStarter(seconds=lambda _: 0.1))
    answer = find_answer(session, (resolve(STUDY, "wall"),))
    assert answer.answer.reason == "the ends are equal"
    assert answer.answer.minimum_detectable == 0
    assert headline(answer).startswith("none: both ends are equal in wall, probability ")


def test_a_program_that_its_environment_names_is_searched() -> None:
    benchmark = Benchmark(command="python -m timeit", env={"PYTHONPATH": "{build}"})
    assert same_everywhere(a_study(benchmarks={"work": benchmark}), "work", "plain") == ""


def test_a_program_that_always_fails_has_no_culprit(tmp_path: Path) -> None:
    answer = find_answer(
        a_session(STUDY, tmp_path, source=FakeSource(20), starter=failing_from(0)),
        resolve_goal(STUDY, ("works",)),
    )
    assert headline(answer).startswith("none: the program fails already at the old end of the range")


def test_a_metric_of_the_study_with_the_name_works_has_precedence() -> None:
    study = a_study(
        benchmarks={"work": Benchmark(command="x", metrics={"works": Metric(pattern="([0-9]+)")})}
    )
    assert not isinstance(resolve_goal(study, ("works",)), Working)
    with pytest.raises(TargetError, match="name no other metric"):
        resolve_goal(STUDY, ("wall", "works"))


def test_all_targets_are_the_declared_metrics_and_the_time_and_memory() -> None:
    study = a_study(
        benchmarks={
            "counted": Benchmark(command="x", counters=("instructions",)),
            "timed": Benchmark(
                command="x", parameters={"size": (1, 2)}, metrics={"rate": Metric(pattern="([0-9]+)")}
            ),
        }
    )
    assert [target.text for target in every_target(study)] == [
        "counted.instructions",
        "timed.rate[size=1]",
        "timed.rate[size=2]",
        "timed.wall[size=1]",
        "timed.wall[size=2]",
        "timed.peak_memory[size=1]",
        "timed.peak_memory[size=2]",
    ]


COMMAND = FindCommand(threshold=0.05, benchmarks=TWO.benchmarks)


def test_a_table_names_changed_and_unchanged_metrics(tmp_path: Path) -> None:
    def seconds(words: tuple[str, ...]) -> float:
        after = number_of(words) >= 5
        return (0.14 if after else 0.1) if words[0].endswith("one") else (0.2 if after else 0.3)

    table = find(
        a_session(TWO, tmp_path, source=FakeSource(12), starter=FakeStarter(seconds=seconds)),
        resolve_goal(TWO, ()),
    )
    assert isinstance(table, FindTable)
    assert table_headline(table) == "found: 1 change in 2 of 4 metrics: r5 “change 5”"
    (line,) = unchanged(table, COMMAND)
    assert re.fullmatch(r"No change of \S+ % or more: one.peak_memory and two.peak_memory", line)
    changed = [(answer, 0) for answer in table.answers if answer.answer.changes]
    assert two_sided(changed) == "better in two.wall, worse in one.wall"


@pytest.mark.parametrize(
    ("culprit", "metrics"),
    [
        (9, ("one.wall", "two.wall")),
        *(pytest.param(culprit, (), marks=pytest.mark.long) for culprit in (4, 9, 25, 60)),
    ],
)
def test_the_time_left_of_a_search_for_several_metrics_is_a_range_that_holds(
    tmp_path: Path, culprit: int, metrics: tuple[str, ...]
) -> None:
    count = len(metrics) or 4
    starter = FakeStarter(seconds=lambda words: 0.13 if number_of(words) >= culprit else 0.1)
    session = a_session(TWO, tmp_path, source=FakeSource(40), starter=starter)
    request = FindRequest(
        goal=resolve_goal(TWO, metrics), range=None, threshold=0.05, confidence=0.99, budget=Budget()
    )
    forecasts: list[tuple[int, tuple[float, float]]] = []
    decided = 0
    for event in Find(session, request).events():
        if isinstance(event, Stepped):
            assert event.metrics == count
            assert event.seconds_left is not None
            forecasts.append((len(starter.started), event.seconds_left))
            decided = event.decided
    ended = len(starter.started)
    holds = [
        least <= 0.14 * (ended - ran) and 0.09 * (ended - ran) <= most for ran, (least, most) in forecasts
    ]
    assert sum(holds) >= 0.8 * len(holds), [(ended - ran, left) for ran, left in forecasts]
    assert decided == count
    assert forecasts[-1][1] == (0.0, 0.0)


FAILED = Failure(stage="link", message="")


@pytest.mark.parametrize(
    ("usable", "failed", "expected"),
    [
        ({0, 9}, {4, 5}, []),
        ({0, 4}, {6, 9}, [(6, 9, 4, None)]),
        ({5, 9}, {0, 2}, [(0, 2, None, 5)]),
        ({2, 3, 8}, {0, 5, 9}, [(0, 0, None, 2), (9, 9, 8, None)]),
    ],
)
def test_a_broken_range_without_a_change_is_reported_only_at_an_end_of_the_history(
    usable: set[int], failed: set[int], expected: list[tuple[int, int, int | None, int | None]]
) -> None:
    ranges = find_broken_ranges(usable, dict.fromkeys(sorted(failed), FAILED), ())
    assert [(each.first, each.last, each.before, each.after) for each in ranges] == expected


def test_a_broken_end_is_reported_in_words(tmp_path: Path) -> None:
    answer = find_answer(
        a_session(STUDY, tmp_path, source=FakeSource(30), starter=failing_from(12)),
        (resolve(STUDY, "wall"),),
    )
    [line] = broken_range_words(answer)
    assert line.startswith("Broken (crash): ")
    assert line.endswith("and no later revision is usable")


def test_weights_are_equal_without_paths() -> None:
    assert path_priors([(), ()], suspect=("a",)).weights is None


def test_suspected_paths_count_ten_times() -> None:
    by_path = path_priors([(), ("src/a.c",), ("doc/a",)], suspect=("src",)).weights
    assert by_path is not None
    assert by_path[1] / by_path[2] == pytest.approx(10)


def test_all_metrics_share_the_budget_of_seconds(tmp_path: Path) -> None:
    session = a_session(TWO, tmp_path, source=FakeSource(60), starter=FakeStarter(seconds=lambda _: 10.0))
    request = FindRequest(
        goal=resolve_goal(TWO, ()), range=None, threshold=0.001, confidence=0.99, budget=Budget(seconds=150)
    )
    table = drain(Find(session, request).events())[1]
    assert isinstance(table, FindTable)
    assert any("budget" in answer.answer.reason for answer in table.answers)
    assert 150 <= table.seconds < 200


def test_the_table_of_several_metrics_prints_failures_and_noise_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = FakeSource(30)
    table = find(
        a_session(
            TWO,
            tmp_path,
            source=source,
            starter=FakeStarter(seconds=lambda arguments: 0.1 if number_of(arguments) < 17 else 0.14),
            builder=FakeBuilder(source, broken=["r14", "r15", "r16"]),
            watcher=FakeWatcher.with_conditions(*[NOISY] * 4),
        ),
        tuple(resolve(TWO, f"{name}.wall") for name in ("one", "two")),
    )
    assert isinstance(table, FindTable)
    print_table(table, COMMAND)
    lines = capsys.readouterr().out.splitlines()
    (broken,) = [line for line in lines if line.startswith("Broken (build): ")]
    assert "usable again at r17" in broken
    assert lines.count("Unusable revisions:") == 1
    (noise,) = [line for line in lines if "noisy sample" in line and "iscarded" in line]
    assert re.fullmatch(r"Discarded and repeated \d noisy samples?\.", noise)
