"""Measuring a trial: hooks around each run, failures, and cleaning up."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from perftrail.measure.noise_policy import ObservedRun
from perftrail.measure.trial import (
    CommandFailed,
    CommandLine,
    InvocationEnded,
    TrialRunner,
    trial_entries,
)
from perftrail.model.measurement import PADDING
from perftrail.model.process import Command, Ended, Exited, NotStarted, OutOfMemory, Ran, Signalled, TimedOut
from perftrail.model.trial import RunSettings, StoppingRule, Trial
from perftrail.process.launcher import Launcher
from perftrail.stats.comparison import Verdict
from perftrail.stats.trial import EndReason
from tests.fakes.subject_builder import FakeStarter

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.stats.trial import TrialResult

SECONDS = {"slow": 2.0, "sh": 0.5}


@dataclass
class TimedStarter(FakeStarter):
    """Records every command and advances the time by its duration."""

    def __post_init__(self) -> None:
        self.commands: list[Command] = []
        self.time = 0.0

    def run(self, command: Command) -> Ran:
        self.commands.append(command)
        ran = super().run(command)
        self.time += ran.wall_seconds
        return ran

    def clock(self) -> float:
        return self.time


def a_starter(
    ended: Callable[[tuple[str, ...]], Ended] = lambda _: Exited(code=0), *, noise: float = 0.002
) -> TimedStarter:
    return TimedStarter(seconds=lambda arguments: SECONDS.get(arguments[0], 1.0), noise=noise, ended=ended)


def a_trial(
    *commands: str,
    run_settings: dict[str, object] | None = None,
    stopping_rule: StoppingRule | None = None,
    **options: object,
) -> Trial:
    found = trial_entries(CommandLine(**{"commands": commands, "parameters": {}, **options}))  # type: ignore[arg-type] # loosely
    around = RunSettings(environment={"A": "1"}, directory="/")
    return Trial(
        entries=found.entries,
        groups=found.groups,
        stopping_rule=stopping_rule or StoppingRule(least=10, most=20, budget_seconds=1e6),
        run_settings=replace(around, **(run_settings or {})),  # type: ignore[arg-type] # loosely
        shell=found.shell,
    )


def drain(events: Generator[InvocationEnded, None, TrialResult]) -> TrialResult:
    while True:
        try:
            next(events)
        except StopIteration as stop:
            found: TrialResult = stop.value
            return found


def measured(trial: Trial, starter: TimedStarter) -> TrialResult:
    return drain(TrialRunner(trial, starter, clock=starter.clock).events())


def test_a_slower_command_is_distinguished_from_a_faster_one() -> None:
    found = measured(a_trial("fast", "slow"), a_starter())
    wall = next(each for each in found.contrasts if each.metric == "wall")
    assert wall.comparison.verdict is Verdict.SLOWER
    assert wall.comparison.effect == pytest.approx(2.0, rel=0.01)
    assert found.results[1].metrics["wall"].estimate.value == pytest.approx(2.0, rel=0.01)


def test_hooks_run_around_the_runs_and_are_not_measured() -> None:
    starter = a_starter()
    trial = a_trial(
        "one",
        "two",
        setup=("setup",),
        prepare=("prepare",),
        conclude=("conclude",),
        cleanup=("cleanup",),
        stopping_rule=StoppingRule(least=3, most=3, warmups=0),
    )
    found = measured(trial, starter)
    order = [command.arguments[0] for command in starter.commands]
    first, second = order[2], order[6]
    assert {first, second} == {"one", "two"}
    assert order[:4] == ["setup", "prepare", first, "conclude"]
    assert order[4:8] == ["setup", "prepare", second, "conclude"]
    assert [order[8], order[10]] == ["prepare", "conclude"]
    assert order[9] in {"one", "two"}
    assert order[-2:] == ["cleanup", "cleanup"]
    assert order.count("setup") == 2
    assert found.results[0].metrics["wall"].estimate.value == pytest.approx(1.0, rel=0.02)


def test_the_environment_changes_its_size_with_each_pair_and_for_both_alike() -> None:
    starter = a_starter()
    measured(a_trial("one", "two"), starter)
    sizes = [len(command.environment[PADDING]) for command in starter.commands]
    assert len(set(sizes)) > 5
    assert max(sizes) < 4096
    assert sizes[::2] == sizes[1::2]
    again = a_starter()
    measured(a_trial("one", "two"), again)
    assert [len(command.environment[PADDING]) for command in again.commands] == sizes
    assert all(command.environment["A"] == "1" and command.aslr for command in starter.commands)


def test_both_commands_of_a_pair_hash_with_one_seed_unless_the_environment_has_its_own() -> None:
    starter = a_starter()
    measured(a_trial("one", "two"), starter)
    seeds = [command.environment["PYTHONHASHSEED"] for command in starter.commands]
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) > 5
    starter, trial = a_starter(), a_trial("one", "two")
    run_settings = replace(trial.run_settings, environment={"PYTHONHASHSEED": "0"})
    measured(replace(trial, run_settings=run_settings), starter)
    assert {command.environment["PYTHONHASHSEED"] for command in starter.commands} == {"0"}


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (Exited(code=3), "exit code 3"),
        (Signalled(signal=11), "signal 11"),
        (TimedOut(), "timed out after 5.0 s"),
        (OutOfMemory(), "memory"),
        (NotStarted(errno=2, message="exec: No such file or directory", stage="exec"), "No such file"),
    ],
)
def test_a_command_that_fails_ends_it_with_a_message_and_is_cleaned_up(ended: Ended, expected: str) -> None:
    starter = a_starter(lambda arguments: Exited(code=0) if arguments[0] == "cleanup" else ended)
    trial = a_trial("broken", cleanup=("cleanup",), run_settings={"timeout_seconds": 5.0})
    with pytest.raises(CommandFailed, match=expected) as raised:
        measured(trial, starter)
    assert '"broken"' in str(raised.value)
    assert [command.arguments[0] for command in starter.commands] == ["broken", "cleanup"]


def test_failures_are_measured_on_request_but_not_timeouts() -> None:
    trial = a_trial("broken", run_settings={"tolerant": True})
    found = measured(trial, a_starter(lambda _: Exited(code=3)))
    assert set(found.results[0].exit_codes) == {3}
    assert found.results[0].flags["failed"] == found.results[0].runs
    with pytest.raises(CommandFailed):
        measured(trial, a_starter(lambda _: TimedOut()))


def test_a_failing_preparation_is_named() -> None:
    with pytest.raises(CommandFailed, match="--prepare of"):
        measured(
            a_trial("one", prepare=("bad",)), a_starter(lambda arguments: Exited(code=arguments[0] == "bad"))
        )


def test_time_spent_preparing_counts_for_the_budget() -> None:
    starter = a_starter()
    found = measured(
        a_trial("one", prepare=("slow",), stopping_rule=StoppingRule(budget_seconds=30.0)), starter
    )
    assert found.results[0].end_reason is EndReason.BUDGET
    assert found.results[0].runs <= 10


def test_the_shells_own_time_is_measured_and_nothing_is_subtracted() -> None:
    found = measured(a_trial("one; two", shell=("sh",)), a_starter())
    assert found.shell is not None
    assert found.shell.runs >= 10
    assert found.shell.metrics["wall"].estimate.value == pytest.approx(0.5, rel=0.02)
    assert found.results[0].metrics["wall"].estimate.value == pytest.approx(0.5, rel=0.02)


def test_an_interruption_leaves_what_was_measured() -> None:
    starter = a_starter()
    measure = TrialRunner(
        a_trial("one", cleanup=("cleanup",), stopping_rule=StoppingRule(least=30, most=30)),
        starter,
        clock=starter.clock,
    )
    events = measure.events()
    for _ in range(12):
        next(events)
    with pytest.raises(KeyboardInterrupt):
        events.throw(KeyboardInterrupt())
    found = measure.result()
    assert found.stopped
    assert found.results[0].runs == 12
    assert starter.commands[-1].arguments == ("cleanup",)


def test_the_observer_of_the_machine_marks_runs() -> None:
    starter = a_starter()

    def observe(run: Callable[[], Ran]) -> ObservedRun:
        return ObservedRun(ran=run(), flags=("busy",), values={"foreign_cpu": 0.7})

    found = drain(TrialRunner(a_trial("one"), starter, observe=observe, clock=starter.clock).events())
    assert found.results[0].flags == {"busy": found.results[0].runs}


def test_real_programs_are_measured_with_nothing_left_running() -> None:
    program = shutil.which("true")
    assert program
    trial = a_trial(program, f"{program} x", stopping_rule=StoppingRule(least=4, most=4, warmups=1))
    with Launcher() as launcher:
        found = drain(TrialRunner(trial, launcher).events())
    for result in found.results:
        assert result.runs == 4
        assert 0.0 < result.metrics["wall"].estimate.value < 1.0
        assert result.metrics["peak_memory"].method == "rusage"
        assert result.metrics["peak_memory"].estimate.value < 20e6
        assert result.warmup.count == 1
