"""Time and orphans: every descendant counts, whichever process waited for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import Exited

if TYPE_CHECKING:
    from perftrail.process.launcher import Launcher
    from tests.process.launcher.traces import Trial


@pytest.mark.parametrize("tree_memory", ["auto", "off"])
def test_a_daemonised_grandchild_that_is_waited_for_is_counted(
    launcher: Launcher, trial: Trial, tree_memory: str
) -> None:
    ran = launcher.run(trial.command("daemon", 200, 0, 0, orphans="wait", tree_memory=tree_memory))
    assert ran.ended == Exited(code=0)
    assert 0.200 <= ran.cpu_seconds <= 0.300
    assert (ran.orphans.waited, ran.orphans.killed) == (1, 0)
    assert ran.tree_ended_at - ran.started_at >= 0.200


def test_a_grandchild_is_killed_at_the_end_on_request(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("daemon", 0, 1000, 0, orphans="kill"))
    assert ran.ended == Exited(code=0)
    assert ran.orphans.killed == 1
    assert trial.living() == []


@pytest.mark.parametrize(("at_the_signal", "killed"), [("echo >ended; exit", 0), ("", 1)])
def test_terminated_orphans_may_end_by_themselves(
    launcher: Launcher, trial: Trial, at_the_signal: str, killed: int
) -> None:
    daemon = f"trap '{at_the_signal}' TERM; echo >ready; while true; do read line <never; done"
    script = f'mkfifo ready never; sh -c "{daemon}" & read line <ready'
    environment = {"PATH": "/usr/bin:/bin"}
    ran = launcher.run(
        trial.shell(script, orphans="terminate", timeout_seconds=30.0, environment=environment)
    )
    assert ran.ended == Exited(code=0)
    assert ran.orphans.killed == killed
    assert (trial.directory / "ended").exists() == (not killed)
    assert trial.living() == []


def test_waiting_for_orphans_ends_at_the_timeout_without_blaming_the_program(
    launcher: Launcher, trial: Trial
) -> None:
    ran = launcher.run(trial.command("daemon", 0, 1000, 0, orphans="wait", timeout_seconds=0.5))
    assert ran.ended == Exited(code=0)
    assert ran.orphans.killed == 1
    assert trial.living() == []


def test_cpu_time_of_children_is_within_one_per_cent_of_the_cgroups(launcher: Launcher, trial: Trial) -> None:
    if not launcher.start().cpu_cgroup:
        pytest.skip("no cgroup to compare with")
    ran = launcher.run(trial.command("burn", 4, 100, 1))
    assert ran.tree_cpu is not None
    assert ran.cpu_seconds == pytest.approx(ran.tree_cpu.seconds, rel=0.01)
    assert 0.4 <= ran.cpu_seconds < 0.6


def test_the_cgroup_sees_children_that_nobody_waits_for(launcher: Launcher, trial: Trial) -> None:
    if not launcher.start().cpu_cgroup:
        pytest.skip("only a cgroup sees them")
    ran = launcher.run(trial.command("burn", 2, 100, 0))
    assert ran.tree_cpu is not None
    assert ran.tree_cpu.seconds >= 0.2 > ran.cpu_seconds


@pytest.mark.parametrize("tree_memory", ["auto", "off"])
def test_wall_time_covers_the_program_and_little_else(
    launcher: Launcher, trial: Trial, tree_memory: str
) -> None:
    output = trial.directory / "truth"
    ran = launcher.run(trial.command("time_itself", 20, stdout=str(output), tree_memory=tree_memory))
    begin, end = (int(number) / 1e9 for number in output.read_text().split())
    assert ran.prepared_at <= ran.started_at <= begin
    assert end <= ran.ended_at <= ran.tree_ended_at
    assert ran.wall_seconds == pytest.approx(ran.ended_at - ran.started_at)


def test_orphans_that_end_early_are_reaped_while_the_program_runs(launcher: Launcher, trial: Trial) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do (true &) ; done; sleep 0.3; ps -o stat= --ppid $PPID | grep -c Z"
    output = trial.directory / "zombies"
    environment = {"PATH": "/usr/bin:/bin"}
    ran = launcher.run(trial.shell(script, stdout=str(output), environment=environment))
    assert output.read_text().strip() == "0"
    assert ran.orphans.waited == 8


def stolen_seconds() -> float:
    """CPU seconds that a hypervisor has stolen since boot."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK") if len(words) > 8 else 0.0


def test_counters_of_the_kernel_cover_the_tree_where_there_are_any(launcher: Launcher, trial: Trial) -> None:
    before = stolen_seconds()
    ran = launcher.run(trial.command("burn", 2, 100, 1, counters=True))
    assert ran.ended == Exited(code=0)
    if "task_clock_ns" not in ran.counters:
        pytest.skip("perf_event_open is not permitted here")
    # The task clock runs while a hypervisor gives the CPU to another guest; CPU time does not.
    stolen = stolen_seconds() - before
    seconds = ran.counters["task_clock_ns"] / 1e9
    assert 0.95 * ran.cpu_seconds <= seconds <= 1.05 * ran.cpu_seconds + stolen
    assert launcher.run(trial.command("/bin/true")).counters == {}
