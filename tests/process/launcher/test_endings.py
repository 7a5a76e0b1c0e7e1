"""Each way in which a process can end is distinguished."""

from __future__ import annotations

import errno
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import (
    Cancelled,
    Exited,
    NotStarted,
    OutOfMemory,
    Signalled,
    TimedOut,
)
from tests.process.launcher.traces import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.process import Command, Ran
    from perftrail.process.launcher import Launcher
    from tests.process.launcher.traces import Trial


@pytest.mark.parametrize("code", [0, 1, 127, 255])
def test_an_exit_code_is_given_as_it_is(launcher: Launcher, trial: Trial, code: int) -> None:
    assert launcher.run(trial.shell(f"exit {code}")).ended == Exited(code=code)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_a_signal_that_was_not_ours_is_named(
    launcher: Launcher, trial: Trial, number: signal.Signals
) -> None:
    assert launcher.run(trial.shell(f"kill -{number.value} $$")).ended == Signalled(signal=number)


def test_a_missing_program_is_not_the_same_as_exit_127(launcher: Launcher, trial: Trial) -> None:
    ended = launcher.run(trial.command("/nowhere/at-all")).ended
    assert isinstance(ended, NotStarted)
    assert (ended.errno, ended.stage) == (errno.ENOENT, "exec")


def test_a_program_that_may_not_be_executed_says_so(launcher: Launcher, trial: Trial) -> None:
    (trial.directory / "data").write_text("no program")
    ended = launcher.run(trial.command(str(trial.directory / "data"))).ended
    assert isinstance(ended, NotStarted)
    assert ended.errno == errno.EACCES


def path_with(directory: Path, *, mode: int) -> str:
    """Return a PATH in whose last directory alone there is a program, which exits with 7."""
    (directory / "before" / "hello-from-path").mkdir(parents=True)
    program = directory / "here" / "hello-from-path"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(mode)
    return f"relative::/{'x' * 1100}:/nowhere:{directory / 'before'}:{program.parent}"


def named(name: str, trial: Trial, path: str) -> Command:
    command = trial.command("/bin/true", environment={"PATH": path})
    object.__setattr__(command, "arguments", (name,))
    return command


def test_a_bare_name_is_looked_for_in_the_path_that_is_given(launcher: Launcher, trial: Trial) -> None:
    path = path_with(trial.directory, mode=0o755)
    assert launcher.run(named("hello-from-path", trial, path)).ended == Exited(code=7)
    assert launcher.run(trial.shell("hello-from-path", environment={"PATH": path})).ended == Exited(code=7)


def test_a_bare_name_whose_only_file_may_not_be_executed_says_so(launcher: Launcher, trial: Trial) -> None:
    ended = launcher.run(named("hello-from-path", trial, path_with(trial.directory, mode=0o644))).ended
    assert isinstance(ended, NotStarted)
    assert (ended.errno, ended.stage) == (errno.EACCES, "exec")


def test_a_bare_name_is_never_taken_from_the_working_directory(launcher: Launcher, trial: Trial) -> None:
    (trial.directory / "local").write_text("#!/bin/sh\n")
    (trial.directory / "local").chmod(0o755)
    assert isinstance(launcher.run(named("local", trial, "/usr/bin:/bin")).ended, NotStarted)


@pytest.mark.parametrize(
    ("stream", "path", "number"),
    [
        ("stdin", "missing", errno.ENOENT),
        ("stdout", "missing/file", errno.ENOENT),
        ("stderr", ".", errno.EISDIR),
    ],
)
def test_a_stream_that_cannot_be_opened_is_named(
    launcher: Launcher, trial: Trial, stream: str, path: str, number: int
) -> None:
    command = trial.command("/bin/true", **{stream: str(trial.directory / path)})
    ended = launcher.run(command).ended
    assert isinstance(ended, NotStarted)
    assert (ended.stage, ended.errno) == (stream, number)


def test_a_working_directory_that_is_missing_is_named(launcher: Launcher, trial: Trial) -> None:
    command = trial.command("/bin/true")
    object.__setattr__(command, "directory", str(trial.directory / "missing"))
    ended = launcher.run(command).ended
    assert isinstance(ended, NotStarted)
    assert (ended.stage, ended.errno) == ("chdir", errno.ENOENT)


def test_a_program_that_never_ends_meets_its_timeout(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("daemon", 0, 1000, 1, timeout_seconds=0.3))
    assert ran.ended == TimedOut()
    assert ran.wall_seconds >= 0.25
    assert trial.living() == []


def test_a_fifo_without_a_writer_does_not_delay_the_timeout(launcher: Launcher, trial: Trial) -> None:
    import os

    os.mkfifo(trial.directory / "fifo")
    command = trial.shell("sleep 1000", stdin=str(trial.directory / "fifo"), timeout_seconds=0.2)
    assert launcher.run(command).ended == TimedOut()


def test_ignoring_sigterm_does_not_help_against_a_timeout(launcher: Launcher, trial: Trial) -> None:
    script = "trap '' TERM INT HUP; while :; do sleep 1000; done"
    assert launcher.run(trial.shell(script, timeout_seconds=0.3)).ended == TimedOut()
    assert trial.living() == []


def test_a_program_that_closes_its_streams_is_still_waited_for(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.shell("exec 0<&- 1>&- 2>&-; sleep 0.2; exit 5"))
    assert ran.ended == Exited(code=5)
    assert ran.wall_seconds >= 0.2


def test_memory_up_to_the_limit_is_a_separate_ending(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("eat_memory", 400, memory_limit_bytes=50 << 20))
    if launcher.start().memory_cgroup:
        assert ran.ended == OutOfMemory()
        assert ran.memory_limit_method == launcher.start().memory_cgroup
    else:
        assert ran.ended == Exited(code=1)
        assert ran.memory_limit_method == "rlimit_as"
    assert ran.max_rss_bytes < 60 << 20


def test_a_limit_that_is_not_reached_changes_nothing(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("eat_memory", 10, memory_limit_bytes=200 << 20))
    assert ran.ended == Exited(code=0)


def test_a_child_at_the_limit_takes_its_parent_with_it(launcher: Launcher, trial: Trial) -> None:
    if not launcher.start().memory_cgroup:
        pytest.skip("address space limits hold for each process alone")
    script = f"{trial.targets}/eat_memory 400; sleep 1000"
    ran = launcher.run(trial.shell(script, memory_limit_bytes=50 << 20, timeout_seconds=60))
    assert ran.ended == OutOfMemory()
    assert trial.living() == []


def test_without_a_cgroup_the_limit_is_on_address_space(launcher: Launcher, trial: Trial) -> None:
    ran = launcher.run(trial.command("eat_memory", 400, memory_limit_bytes=50 << 20, tree_memory="off"))
    assert ran.ended == Exited(code=1)
    assert ran.memory_limit_method == "rlimit_as"


def test_another_thread_can_cancel(launcher: Launcher, trial: Trial) -> None:
    results: list[Ran] = []
    command = trial.command("daemon", 0, 1000, 1)
    thread = threading.Thread(target=lambda: results.append(launcher.run(command)))
    thread.start()
    assert eventually(lambda: len(trial.living()) == 2)
    launcher.cancel()
    thread.join(30)
    assert [ran.ended for ran in results] == [Cancelled()]
    assert trial.living() == []
    assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)


def test_another_thread_can_send_a_signal(launcher: Launcher, trial: Trial) -> None:
    results: list[Ran] = []
    ready = trial.directory / "ready"
    script = "trap 'exit 7' USR1; echo > ready; while :; do sleep 0.05; done"
    command = trial.shell(script, environment={"PATH": "/usr/bin:/bin"})
    thread = threading.Thread(target=lambda: results.append(launcher.run(command)))
    launcher.start()
    thread.start()
    assert eventually(ready.exists)
    launcher.signal(signal.SIGUSR1)
    thread.join(30)
    assert [ran.ended for ran in results] == [Exited(code=7)]
    launcher.signal(signal.SIGKILL)  # nothing runs
    assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)


def test_a_process_has_the_niceness_and_the_memory_nodes_asked_for(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "place"
    environment = {"PATH": "/usr/bin:/bin"}
    launcher.run(trial.shell("nice", stdout=str(output), nice=19, environment=environment))
    assert output.read_text() == "19\n"
    bound = launcher.run(
        trial.shell("cat /proc/self/numa_maps", stdout=str(output), numa=(0,), environment=environment)
    )
    if isinstance(bound.ended, NotStarted):
        assert bound.ended.stage == "numa"
        pytest.skip("this system does not allow memory policies")
    assert " bind:0 " in output.read_text()
    missing = launcher.run(trial.command("/bin/true", numa=(1023,))).ended
    assert isinstance(missing, NotStarted)
    assert missing.stage == "numa"


def test_limits_of_the_kernel_are_set(launcher: Launcher, trial: Trial) -> None:
    output = trial.directory / "limits"
    command = trial.shell("ulimit -n; ulimit -c", stdout=str(output), limits={"nofile": 77, "core": 0})
    assert launcher.run(command).ended == Exited(code=0)
    assert output.read_text().split() == ["77", "0"]


def test_a_process_is_bound_to_the_cpus_asked_for_and_to_no_others(launcher: Launcher, trial: Trial) -> None:
    import os

    output = trial.directory / "cpus"
    script = "grep Cpus_allowed_list /proc/self/status"
    everything = sorted(os.sched_getaffinity(0))
    seen = []
    for cpus in ((everything[-1],), None, (everything[0],)):
        launcher.run(
            trial.shell(script, stdout=str(output), cpus=cpus, environment={"PATH": "/usr/bin:/bin"})
        )
        seen.append(output.read_text().split()[1])
    assert seen[0] == str(everything[-1])
    assert seen[2] == str(everything[0])
    assert seen[1] not in (seen[0], seen[2]) or len(everything) == 1


def test_a_missing_cpu_is_no_crash(launcher: Launcher, trial: Trial) -> None:
    ended = launcher.run(trial.command("/bin/true", cpus=(1000,))).ended
    assert isinstance(ended, NotStarted)
    assert ended.stage == "cpus"


def test_addresses_are_random_only_on_request(launcher: Launcher, trial: Trial) -> None:
    def stacks(*, aslr: bool) -> set[str]:
        output = trial.directory / "maps"
        found = set()
        for _ in range(4):
            launcher.run(
                trial.shell(
                    "grep stack /proc/self/maps",
                    stdout=str(output),
                    aslr=aslr,
                    environment={"PATH": "/usr/bin:/bin"},
                )
            )
            found.add(output.read_text().split()[0])
        return found

    assert len(stacks(aslr=False)) == 1
    assert len(stacks(aslr=True)) > 1
