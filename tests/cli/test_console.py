"""Printed progress of a workflow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from perftrail.measure.events import (
    BuildFinished,
    BuildStarted,
    Calibrating,
    HistoryRead,
    Invoked,
    Invoking,
    Progress,
    Stepped,
    SuiteListed,
    SuiteListing,
)
from perftrail.model.benchmark import Point
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import InvocationKey, Measurement
from perftrail.model.plan import Cell
from perftrail.model.subject import Revision, Subject
from perftrail.opening import EngineMachines
from perftrail.present.console import Watcher

if TYPE_CHECKING:
    from collections.abc import Generator

    from perftrail.measure.events import Event


def unbuilt(number: int, message: str, *, known: bool) -> BuildFinished:
    return BuildFinished(
        subject=Subject(revision=Revision(id=f"r{number}"), variant="plain"),
        outcome=Failure(stage="build", message=message, log=f"{number}.log"),
        known=known,
    )


def test_an_equal_reason_of_several_failures_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> Generator[Event, None, None]:
        for number, message in enumerate(["no header\nremedy", "no header\nremedy", "no library"]):
            yield unbuilt(number, message, known=False)

    with Watcher() as watcher:
        watcher.follow(failing())
    assert capsys.readouterr().err.splitlines() == [
        "r0 does not build: no header (log: 0.log)",
        "r1 does not build: the same reason (log: 1.log)",
        "r2 does not build: no library (log: 2.log)",
    ]


def test_similar_lines_are_counted_after_the_first_few(capsys: pytest.CaptureFixture[str]) -> None:
    def known() -> Generator[Event, None, None]:
        for number in range(9):
            yield unbuilt(number, "no header", known=True)
            if number == 1:
                yield HistoryRead(revisions=(Revision(id="r0"),))

    with Watcher() as watcher:
        watcher.follow(known())
    assert capsys.readouterr().err.splitlines() == [
        "r0 does not build, as in an earlier run (--retry-failed repeats it): no header (log: 0.log)",
        "r1 does not build, as in an earlier run (--retry-failed repeats it): the same reason (log: 1.log)",
        "1 revision, r0",
        "r2 does not build, as in an earlier run (--retry-failed repeats it): the same reason (log: 2.log)",
        "r3 does not build, as in an earlier run (--retry-failed repeats it): the same reason (log: 3.log)",
        "r4 does not build, as in an earlier run (--retry-failed repeats it): the same reason (log: 4.log)",
        "and 4 more failed builds of earlier runs",
    ]


def test_files_of_a_suite_that_cannot_be_listed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    def listing() -> Generator[Event, None, None]:
        unlisted = tuple(f"test_{number}.py: no module" for number in range(5))
        subject = Subject(revision=Revision(id="r0"), variant="plain")
        yield SuiteListed(subject=subject, suite="bench", result=7, unlisted=unlisted)

    with Watcher() as watcher:
        watcher.follow(listing())
    assert capsys.readouterr().err.splitlines() == [
        "suite bench of r0: 7 benchmarks",
        "suite bench of r0 lacks the benchmarks of test_0.py: no module",
        "suite bench of r0 lacks the benchmarks of test_1.py: no module",
        "suite bench of r0 lacks the benchmarks of test_2.py: no module",
        "suite bench of r0 lacks those of 2 further files",
    ]


@pytest.mark.parametrize(("rounds", "expected"), [(2, "and 1 more such step"), (4, "and 3 more such steps")])
def test_steps_with_equal_words_are_counted(
    capsys: pytest.CaptureFixture[str], rounds: int, expected: str
) -> None:
    def steps() -> Generator[Event, None, None]:
        for number in range(rounds):
            yield Stepped(number=number, words="ran a round", purpose=f"round {number}")

    with Watcher() as watcher:
        watcher.follow(steps())
    assert capsys.readouterr().err.splitlines() == ["  0  ran a round (round 0)", expected]


@pytest.mark.parametrize(
    ("resumed", "expected"),
    [
        ((True, True, False), ["continues after 2 stored steps", "  2  built r2"]),
        ((True, True, True), ["3 stored steps, no new step"]),
        ((False, True), ["  0  built r0", "and 1 stored step"]),
    ],
)
def test_stored_steps_are_counted(
    capsys: pytest.CaptureFixture[str], resumed: tuple[bool, ...], expected: list[str]
) -> None:
    def steps() -> Generator[Event, None, None]:
        for number, stored in enumerate(resumed):
            yield Stepped(number=number, words=f"built r{number}", resumed=stored)

    with Watcher() as watcher:
        watcher.follow(steps())
    assert capsys.readouterr().err.splitlines() == expected


def test_a_pipe_gets_a_line_of_progress_after_a_pause_and_none_is_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]

    def steps() -> Generator[Event, None, None]:
        for number in range(9):
            now[0] += 6.0
            yield Stepped(number=number, words="ran a round", purpose=f"round {number}, 1 min left")

    with Watcher(clock=lambda: now[0]) as watcher:
        watcher.follow(steps())
    assert capsys.readouterr().err.splitlines() == [
        "  0  ran a round (round 0, 1 min left)",
        "and 2 more such steps",
        "  3  ran a round (round 3, 1 min left)",
        "and 2 more such steps",
        "  6  ran a round (round 6, 1 min left)",
        "and 2 more such steps",
    ]


def test_a_search_for_several_metrics_prints_one_form_of_progress_with_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]

    def steps() -> Generator[Event, None, None]:
        yield HistoryRead(
            revisions=(Revision(id="r0"), Revision(id="r9")),
            metrics=3,
            most_seconds=3600.0,
            builds_in_time=24,
        )
        now[0] += 18.0
        yield BuildStarted(subject=Subject(revision=Revision(id="r0"), variant="plain"))
        for number in range(1, 8):
            now[0] += 6.0
            yield Stepped(
                number=number,
                words=f"measured r{number}",
                purpose="for wall",
                metrics=3,
                decided=number // 4,
                seconds_left=(20.0 - number, 95.0),
            )
        now[0] += 18.0
        yield BuildStarted(subject=Subject(revision=Revision(id="r8"), variant="plain"))
        now[0] += 18.0
        yield Stepped(number=8, words="measured r8 of a branch", metrics=3, decided=3)

    with Watcher(clock=lambda: now[0]) as watcher:
        watcher.follow(steps())
    assert capsys.readouterr().err.splitlines() == [
        "2 revisions, r0 to r9; at most 1 h, or the time of 24 builds if that is longer (--budget)",
        "step 1: building r0; 0 of 3 metrics decided",
        "step 3: measured r3; 0 of 3 metrics decided, 17 s to 1 min 35 s left",
        "step 6: measured r6; 1 of 3 metrics decided, 14 s to 1 min 35 s left",
        "step 8: building r8; 1 of 3 metrics decided, 13 s to 1 min 35 s left",
        "step 8: measured r8 of a branch; 3 of 3 metrics decided",
        "8 steps; perftrail show --search prints each",
    ]


def test_a_run_in_a_pipe_prints_its_progress_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]

    def run() -> Generator[Event, None, None]:
        for done in range(1, 5):
            now[0] += 9.0
            yield Progress(
                done=done, left_least=4 - done, left_most=4 - done, seconds_least=9.0, seconds_most=9.0
            )

    with Watcher(clock=lambda: now[0]) as watcher:
        watcher.follow(run())
    assert capsys.readouterr().err.splitlines() == ["2 invocations done, 1.3 s left"]


def test_a_slow_step_without_events_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    end, reported = time.monotonic() + 60, ""
    with Watcher(slow=0.0) as watcher, watcher.doing("reading the history of ../program"):
        while not reported and time.monotonic() < end:
            reported = capsys.readouterr().err
    assert reported == "reading the history of ../program …\n"


def test_a_fast_step_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(slow=3600.0) as watcher, watcher.doing("reading the history of ../program"):
        pass
    assert capsys.readouterr().err == ""


def test_the_machines_of_an_engine_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher() as watcher:
        watcher.fleet(EngineMachines(machines=1, builds=2, measuring=""))
        watcher.fleet(EngineMachines(machines=3, builds=1, measuring="ann"))
    assert capsys.readouterr().err.splitlines() == [
        "2 parallel builds on 1 machine; this machine measures",
        "1 parallel build on 3 machines; machine ann measures",
    ]


def test_long_steps_are_shown_while_they_run(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    subject = Subject(revision=Revision(id="r0"), variant="plain")

    def minutes(watcher: Watcher) -> None:
        for _ in range(14):
            now[0] += 5.0
            watcher.remind()

    def work(watcher: Watcher) -> Generator[Event, None, None]:
        yield HistoryRead(revisions=(Revision(id="r0"),))
        minutes(watcher)  # nothing is known about what runs
        yield BuildStarted(subject=subject)
        minutes(watcher)
        yield SuiteListing(subject=subject, suite="bench")
        minutes(watcher)
        yield Calibrating(
            subject=subject, suite="bench", benchmarks=14, done=lambda: int(now[0] - began) // 5
        )
        began = now[0]
        minutes(watcher)

    with Watcher(clock=lambda: now[0], slow=3600.0) as watcher:
        watcher.follow(work(watcher))
    assert capsys.readouterr().err.splitlines() == [
        "1 revision, r0",
        "building r0",
        "building r0, 15 s so far",
        "building r0, 45 s so far",
        "suite bench of r0: listing its benchmarks",
        "listing the benchmarks of suite bench of r0, 15 s so far",
        "listing the benchmarks of suite bench of r0, 45 s so far",
        "suite bench of r0: running 14 benchmarks for a moment to choose iterations",
        "suite bench of r0: iterations of 3 of 14 benchmarks chosen, about 55 s left",
        "suite bench of r0: iterations of 9 of 14 benchmarks chosen, about 25 s left",
    ]


def test_a_build_of_more_than_a_second_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def built(seconds: float) -> BuildFinished:
        outcome = Built(key="k", artefact="a", directory="/", log="l", seconds=seconds, reused=False)
        return BuildFinished(
            subject=Subject(revision=Revision(id="r0"), variant="plain"), outcome=outcome, known=False
        )

    def builds() -> Generator[Event, None, None]:
        yield built(0.5)
        yield built(12.0)

    with Watcher() as watcher:
        watcher.follow(builds())
    assert capsys.readouterr().err.splitlines() == ["built r0 in 12 s"]


def test_a_first_pass_over_many_benchmarks_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    cell = Cell(
        subject=Subject(revision=Revision(id="r0"), variant="plain"), benchmark="parse", point=Point()
    )
    key = InvocationKey(runnable="r", machine="m", phase="sample", ordinal=0)

    def measuring() -> Generator[Event, None, None]:
        for _ in range(8):
            yield Invoking(cell=cell)
            now[0] += 4.0
            yield Invoked(cell=cell, outcome=Measurement(key=key, started="", seconds=4.0, log="", values={}))

    with Watcher(clock=lambda: now[0], slow=3600.0) as watcher:
        watcher.follow(measuring())
    assert capsys.readouterr().err.splitlines() == [
        "measuring r0 parse, 4 invocations so far",
        "measuring r0 parse, 8 invocations so far",
    ]
