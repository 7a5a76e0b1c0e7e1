"""A trial of a few revisions reports early what a whole run would report late."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perftrail.errors import UsageError
from perftrail.measure.events import RelinkedWithoutEffect
from perftrail.measure.failure_groups import without_details
from perftrail.model.benchmark import Benchmark
from perftrail.model.measurement import Quiet
from perftrail.model.process import Ended, Exited, Signalled, TimedOut
from perftrail.model.recipe import Build
from perftrail.model.study import FindPolicy, Invocations, MeasurePolicy, Study
from perftrail.model.subject import Revision
from perftrail.present.plan import print_attempt
from perftrail.results.selection import Selection
from perftrail.search.forecast import USUAL_RUNS
from perftrail.verbs.attempt import Attempt, AttemptReport, spread, without_quiet_wait
from perftrail.verbs.run import Run
from tests.fakes.memory_store import MemoryStore
from tests.fakes.subject_builder import FakeBuilder, FakeSource, FakeStarter, number_of
from tests.measure.fake_session import a_session, a_study, drain

ALL = Selection()


def steady(_: tuple[str, ...]) -> float:
    return 0.1


def revisions(count: int) -> tuple[Revision, ...]:
    return tuple(Revision(id=f"r{number}") for number in range(count))


@pytest.mark.parametrize(
    ("count", "of", "chosen"),
    [(1, 9, [8]), (2, 9, [0, 8]), (3, 9, [0, 4, 8]), (5, 3, [0, 1, 2]), (4, 1, [0]), (1, 1, [0])],
)
def test_what_is_tried_is_spread_over_the_range(count: int, of: int, chosen: list[int]) -> None:
    assert [int(each.id[1:]) for each in spread(revisions(of), count)] == chosen


def test_only_that_many_are_built_and_each_is_started_once(tmp_path: Path) -> None:
    source = FakeSource(101)
    builder, starter = FakeBuilder(source), FakeStarter(seconds=steady)
    session = a_session(a_study(), tmp_path, source=source, starter=starter, builder=builder)
    _, report = drain(Attempt(session, ALL, count=3).events())
    assert builder.built_ids == ["r0", "r50", "r100"]
    assert [number_of(arguments) for arguments in starter.started] == [0, 50, 100]
    assert (len(report.tried), report.built, report.usable, report.failure_groups) == (3, 3, 3, ())
    assert report.useful


RELINKING = a_study(build=Build(steps=("make",), outputs=("work",), relink=("link {layout}",)))


def test_what_can_be_relinked_is_relinked_and_started_once_and_no_sample_is_kept(tmp_path: Path) -> None:
    source = FakeSource(3)
    builder, starter = FakeBuilder(source), FakeStarter(seconds=steady)
    session = a_session(RELINKING, tmp_path, source=source, starter=starter, builder=builder)
    _, report = drain(Attempt(session, ALL, count=3).events())
    assert builder.relinks == [("r0", (1,)), ("r1", (1,)), ("r2", (1, 2, 3))]
    assert report.relinked == report.as_json()["relinked"] == 3
    assert [arguments[0] for arguments in starter.started] == [
        f"/builds/{tree}/work" for number in range(3) for tree in (f"r{number}", f"r{number}.1")
    ]
    assert session.store.progress().invocations == 3


def test_a_relink_that_fails_is_reported_with_its_stage(tmp_path: Path) -> None:
    source = FakeSource(3)
    builder = FakeBuilder(source, unlinkable=(1,))
    session = a_session(
        RELINKING, tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    _, report = drain(Attempt(session, ALL, count=3).events())
    assert (report.built, report.usable, report.relinked) == (3, 3, 0)
    [advised] = report.failure_groups
    assert advised.group.failure.stage == "relink"
    assert report.useful


def test_a_relinked_program_that_does_not_start_is_reported(tmp_path: Path) -> None:
    source = FakeSource(1)
    starter = FakeStarter(
        seconds=steady, ended=lambda arguments: Exited(code=5 if ".1/" in arguments[0] else 0)
    )
    session = a_session(RELINKING, tmp_path, source=source, starter=starter)
    _, report = drain(Attempt(session, ALL, count=1).events())
    assert (report.usable, report.relinked) == (1, 0)
    [advised] = report.failure_groups
    assert advised.group.failure.message == "exit code 5"


def test_a_relink_without_effect_is_reported(tmp_path: Path) -> None:
    source = FakeSource(1)
    builder = FakeBuilder(source, alike=True)
    session = a_session(
        RELINKING, tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    events, _ = drain(Attempt(session, ALL, count=1).events())
    assert sum(isinstance(event, RelinkedWithoutEffect) for event in events) == 1


def test_relinking_is_not_mentioned_where_no_line_relinks(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(1), starter=FakeStarter(seconds=steady))
    _, report = drain(Attempt(session, ALL, count=1).events())
    assert report.relinked is None


def test_a_run_uses_what_was_tried(tmp_path: Path) -> None:
    source, store = FakeSource(3), MemoryStore()
    tried = FakeStarter(seconds=steady)
    drain(
        Attempt(
            a_session(a_study(), tmp_path, source=source, starter=tried, store=store), ALL, count=3
        ).events()
    )
    again = FakeStarter(seconds=steady)
    drain(Run(a_session(a_study(), tmp_path, source=source, starter=again, store=store), ALL).events())
    assert len(tried.started) == 3
    assert len(tried.started) + len(again.started) == 3 * 4


def test_failures_with_equal_messages_are_reported_once(tmp_path: Path) -> None:
    source = FakeSource(5)
    builder = FakeBuilder(source, broken={"r0", "r1", "r4"})
    starter = FakeStarter(
        seconds=steady, ended=lambda arguments: Exited(code=7 if number_of(arguments) == 3 else 0)
    )
    session = a_session(a_study(), tmp_path, source=source, starter=starter, builder=builder)
    _, report = drain(Attempt(session, ALL, count=5).events())
    assert (report.built, report.usable) == (2, 1)
    built, crashed = (advised.group for advised in report.failure_groups)
    assert (built.failure.stage, len(built.subjects), built.oldest) == ("build", 3, False)
    assert (crashed.failure.stage, [str(each) for each in crashed.subjects]) == ("crash", ["r3"])
    assert report.as_json()["built"] == 2


def test_failures_of_the_oldest_alone_are_distinguished(tmp_path: Path) -> None:
    source = FakeSource(5)
    builder = FakeBuilder(source, broken={"r0", "r1"})
    session = a_session(
        a_study(), tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder
    )
    _, report = drain(Attempt(session, ALL, count=5).events())
    [advised] = report.failure_groups
    assert advised.group.oldest
    assert advised.group.failed_range is not None
    assert advised.group.failed_range.range == "..r1"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"r0", "r1"}, "only the oldest revisions fail like this: the failures end before r2. "),
        ({"r4"}, "only this revision fails like this: the failures begin after r3. "),
        ({"r2"}, "only this revision fails like this: the failures begin after r1 and end before r3. "),
    ],
)
def test_the_tried_revisions_between_which_failures_begin_and_end_are_named(
    broken: set[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, study = FakeSource(5), a_study()
    builder = FakeBuilder(source, broken=broken)
    session = a_session(study, tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder)
    _, report = drain(Attempt(session, ALL, count=5).events())
    assert any(line.strip().startswith(said) for line in printed(study, report, capsys))


def test_nothing_that_starts_is_of_no_use(tmp_path: Path) -> None:
    source = FakeSource(2)
    starter = FakeStarter(seconds=steady, ended=lambda _: Exited(code=1))
    session = a_session(a_study(), tmp_path, source=source, starter=starter)
    _, report = drain(Attempt(session, ALL, count=2).events())
    assert report.built == 2
    assert not report.useful


def test_the_first_point_of_each_benchmark_is_started_before_the_others(tmp_path: Path) -> None:
    benchmarks = {
        "one": Benchmark(command="{build}/one {size}", parameters={"size": (1, 2, 3)}),
        "two": Benchmark(command="{build}/two"),
    }
    starter = FakeStarter(seconds=steady)
    session = a_session(a_study(benchmarks=benchmarks), tmp_path, source=FakeSource(1), starter=starter)
    drain(Attempt(session, ALL, count=1).events())
    assert [arguments[0].rpartition("/")[2] for arguments in starter.started] == ["one", "two", "one", "one"]
    assert [arguments[-1] for arguments in starter.started if "one" in arguments[0]] == ["1", "2", "3"]


def test_the_time_for_all_is_estimated_from_the_builds(tmp_path: Path) -> None:
    policy = MeasurePolicy(invocations=Invocations(least=3, most=3), warmups=1)
    starter = FakeStarter(seconds=steady, noise=0.0)
    session = a_session(a_study(measure=policy), tmp_path, source=FakeSource(10), starter=starter)
    _, report = drain(Attempt(session, ALL, count=2).events())
    assert report.plan.seconds is not None
    # Eight builds of 2 s, and four starts of each of ten of which two are done.
    assert report.plan.seconds.least == pytest.approx(8 * 2.0 + 38 * 0.1)


def test_an_empty_selection_is_reported(tmp_path: Path) -> None:
    session = a_session(a_study(), tmp_path, source=FakeSource(2), starter=FakeStarter(seconds=steady))
    with pytest.raises(UsageError, match="--only"):
        drain(Attempt(session, Selection(rules=(("revision", "r9"),)), count=1).events())


def test_trying_waits_for_quiet_only_where_a_start_counts() -> None:
    wait = Quiet(action="wait", seconds=60.0)
    warmed = a_study(measure=MeasurePolicy(quiet=wait, warmups=1))
    cold = a_study(measure=MeasurePolicy(quiet=wait, warmups=0))
    assert without_quiet_wait(warmed).measure.quiet == Quiet()
    assert without_quiet_wait(cold).measure.quiet == wait


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/b/0f3a9c1e/tree/a.c:12:5: error: no", "/b/77aa00ff/tree/a.c:31:9: error: no", True),
        ("a.c:1: error: 'x' undeclared", "a.c:1: error: 'y' undeclared", False),
        ("lib/a.c:1: error: no", "src/a.c:1: error: no", True),
        ("exit code 2", "exit code 3", True),
    ],
)
def test_lines_are_alike_but_for_places_numbers_and_ids(one: str, other: str, *, same: bool) -> None:
    assert (without_details(one) == without_details(other)) is same


def printed(study: Study, report: AttemptReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_attempt(study, report, shared_options=())
    return capsys.readouterr().out.splitlines()


def test_the_first_run_of_each_benchmark_is_shown_with_its_unit_and_the_time_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmarks = {
        "one": Benchmark(command="{build}/one {size}", parameters={"size": (1, 2)}),
        "two": Benchmark(command="{build}/two"),
    }
    study = a_study(benchmarks=benchmarks, find=FindPolicy(metric=("two.wall",)))
    session = a_session(
        study, tmp_path, source=FakeSource(64), starter=FakeStarter(seconds=steady, noise=0.0)
    )
    _, report = drain(Attempt(session, ALL, count=2).events())
    lines = printed(study, report, capsys)
    assert lines[:3] == [
        "2 of 2 builds succeeded (100 %), 2 of them work",
        "first run    r63 one size=1: wall 100 ms, cpu 10.0 ms",
        "first run    r63 two: wall 100 ms, cpu 10.0 ms",
    ]
    assert lines[3] == "points       3 points started once: 0.1 s"
    del lines[3]
    assert lines[3].endswith("; 64 revisions with perftrail run")
    assert re.fullmatch(r" {13}\S.* s to \S.* s for most searches with perftrail find", lines[4])
    fewest, most = report.compare_pairs
    assert lines[5].endswith(
        f" for two revisions with perftrail compare ({fewest} to {most} pairs), and their builds"
    )
    assert report.compare_seconds is not None  # pairs of two sides, and three points of 0.1 s
    assert report.compare_seconds.least == pytest.approx(fewest * 2 * 3 * 0.1)
    assert report.compare_seconds.most == pytest.approx(most * 2 * 3 * 0.1)
    assert report.find_seconds is not None
    assert report.find_seconds.least > USUAL_RUNS[0] * 0.1
    _, every = drain(Attempt(session, ALL, count=64).events())
    assert every.find_seconds is not None
    assert every.find_seconds.least == pytest.approx(USUAL_RUNS[0] * 0.1)
    assert every.find_seconds.most == pytest.approx(160 * 0.1)
    assert report.as_json()["first_runs"][1] == {
        "benchmark": "two",
        "revision": "r63",
        "variant": "plain",
        "parameters": {},
        "metrics": {"wall": {"value": 0.1, "unit": "s"}, "cpu": {"value": 0.01, "unit": "s"}},
    }


def test_each_failing_benchmark_is_listed_though_another_one_fails_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("absent", "crashing", "exiting", "fine", "leaving")
    study = a_study(benchmarks={name: Benchmark(command=f"{{build}}/{name}") for name in names})
    ends: dict[str, Ended] = {
        "crashing": Signalled(signal=6),
        "exiting": Exited(code=1),
        "absent": Exited(code=1),
        "leaving": TimedOut(),
    }

    def ended(words: tuple[str, ...]) -> Ended:
        return next((end for name, end in ends.items() if words[0].endswith(name)), Exited(code=0))

    starter = FakeStarter(seconds=steady, ended=ended)
    session = a_session(study, tmp_path, source=FakeSource(2), starter=starter)
    _, report = drain(Attempt(session, ALL, count=2).events())
    assert report.partly == 2
    assert [each.benchmarks for each in report.failure_groups] == [
        ("absent", "exiting"),
        ("crashing",),
        ("leaving",),
    ]
    lines = printed(study, report, capsys)
    assert lines[0] == "2 of 2 builds succeeded (100 %), 2 of them work, all of these only in some benchmarks"
    where = f"    see {study.file}:1"
    assert [line for line in lines if line.startswith("    see ")] == [
        f"{where} (benchmark.absent.command) and {study.file}:1 (benchmark.exiting.command)",
        f"{where} (benchmark.crashing.command)",
        f"{where} (benchmark.leaving.timeout)",
    ]


def test_if_nothing_is_built_the_line_of_the_study_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, study = FakeSource(2), a_study()
    builder = FakeBuilder(source, broken={"r0", "r1"})
    session = a_session(study, tmp_path, source=source, starter=FakeStarter(seconds=steady), builder=builder)
    _, report = drain(Attempt(session, ALL, count=2).events())
    lines = printed(study, report, capsys)
    assert lines[0] == "nothing was built: all 2 builds failed"
    assert lines[-1] == (
        f"Next: correct {study.file}:1 (build.steps), set variables that the build needs in [build] env, "
        "or install what it lacks, then perftrail check --try 1"
    )
    assert not any("time left" in line for line in lines)


@pytest.mark.parametrize(
    ("ended", "next_"),
    [
        (Exited(code=1), "correct {file}:1 (benchmark.work.command), then"),
        (TimedOut(), "raise the limit, {file}:1 (benchmark.work.timeout), then"),
    ],
)
def test_if_nothing_runs_the_line_of_the_benchmark_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ended: Ended, next_: str
) -> None:
    starter, study = FakeStarter(seconds=steady, ended=lambda _: ended), a_study()
    session = a_session(study, tmp_path, source=FakeSource(2), starter=starter)
    _, report = drain(Attempt(session, ALL, count=2).events())
    lines = printed(study, report, capsys)
    assert lines[0] == "2 of 2 builds succeeded (100 %), none of them works"
    assert lines[-1] == f"Next: {next_.format(file=study.file)} perftrail check --try 1"


def test_every_point_is_started_once_and_the_slowest_one_decides_the_estimate(tmp_path: Path) -> None:
    study = a_study(
        benchmarks={"work": Benchmark(command="{build}/work {size}", parameters={"size": (1, 2, 3, 4)})},
        find=FindPolicy(metric=("wall",)),
    )
    seconds = {"1": 0.001, "2": 0.5, "3": 2.0, "4": 0.015}
    source = FakeSource(10)
    session = a_session(
        study, tmp_path, source=source, starter=FakeStarter(seconds=lambda arguments: seconds[arguments[-1]])
    )
    _, report = drain(Attempt(session, ALL, count=2).events())
    points = report.points
    assert points is not None
    assert [cell.point.as_dict()["size"] for cell in points.seconds] == [1, 2, 3, 4]
    assert {cell.subject.revision.id for cell in points.seconds} == {"r9"}
    assert [cell.point.as_dict()["size"] for cell in points.short] == [1, 4]
    assert (points.others, len(points.failed)) == (0, 0)
    assert report.find_seconds is not None
    assert report.find_seconds.least >= 28 * 2.0
