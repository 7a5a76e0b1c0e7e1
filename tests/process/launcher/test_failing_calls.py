"""Calls of the launcher that fail, one after the other: it answers, or ends; it never crashes or hangs."""

from __future__ import annotations

import array
import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import termios
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.process.launcher.conftest import COVERAGE, LAUNCHER
from tests.process.launcher.traces import eventually, is_alive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.process.launcher.traces import Trial

UNITS = Path(__file__).parent / "units"
CANNOT_START = 70
ALONE = ("name=alone",)
"""Arguments of a launcher that looks for no cgroups."""
ALWAYS = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The answers of a launcher to some lines, and its exit code."""

    events: list[dict[str, Any]]
    code: int

    @property
    def result(self) -> dict[str, Any]:
        assert self.code == 0
        assert self.events[-1]["event"] == "result"
        return self.events[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingLauncher:
    """The launcher, with calls that fail."""

    program: Path

    def start(
        self,
        *arguments: str,
        name: str = "launcher",
        fail: str = "",
        stdin: int = subprocess.PIPE,
        inherited: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start it with failures ``NAME:FIRST:COUNT:ERRNO`` and inherited descriptors."""
        return subprocess.Popen(
            [name, *arguments],
            executable=self.program,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            env={"FAIL": fail},
        )

    def serve(
        self, *lines: str, fail: str, arguments: Sequence[str] = ALONE, inherited: Sequence[int] = ()
    ) -> Served:
        """Send lines to a new launcher, and wait for its end."""
        with self.start(*arguments, fail=fail, inherited=inherited) as process:
            stop = threading.Timer(60.0, process.kill)
            stop.start()
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            with suppress(BrokenPipeError):
                process.stdin.write("".join(f"{line}\n" for line in lines).encode())
                process.stdin.flush()
            # The end of its input ends a launcher and its job.
            answers = 1 + sum(line != "cancel" for line in lines)
            events = [json.loads(line) for line in itertools.islice(process.stdout, answers)]
            with suppress(BrokenPipeError):
                process.stdin.close()
            events += [json.loads(line) for line in process.stdout]
            output = process.stderr.read().decode()
            process.wait()
            stop.cancel()
        for name in re.findall(r"(\w+):\d+:", fail):
            assert f"{name} failed\n" in output, f"{name} was not called so often"
        return Served(events=events, code=process.returncode)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> FailingLauncher:
    program = tmp_path_factory.mktemp("failing") / "launcher"
    source = UNITS / "failing_launcher.c"
    wrapped = {"syscall", *re.findall(r"^FAILING\([\w *]+, (\w+)", source.read_text(), re.MULTILINE)}
    wrapped |= {"main", "mkdir", "rmdir"}
    options = ["-std=c11", "-D_GNU_SOURCE", "-g", f"-I{LAUNCHER}"]
    options += ['-DLAUNCHER_VERSION="0"', '-DLAUNCHER_LINKING="dynamic"']
    options += [f"-Wl,--wrap={name}" for name in sorted(wrapped)]
    sources = [source, *sorted(LAUNCHER.glob("*.c"))]
    if COVERAGE:
        options += ["--coverage", "-fprofile-update=atomic", "-O0", "-Wl,--wrap=_exit,--wrap=execve"]
        sources.append(UNITS / "counted_exit.c")
    else:
        options += ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    subprocess.run([shutil.which("cc") or "gcc", *options, "-o", program, *sources], check=True)
    return FailingLauncher(program=program)


OF_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="another user's launcher makes other calls, as it may not create cgroups"
)
TRUE = "id=1\targ=/bin/true"
SLEEP = "id=1\targ=/bin/sh\targ=-c\targ=setsid sleep 60 & sleep 60\ttimeout_ns=200000000\ttree_memory=off"
"""A child in its own session does not end with its parent's process group."""


def test_nothing_fails_by_default(failing: FailingLauncher) -> None:
    assert failing.serve(TRUE, fail="").result["ended"] == {"how": "exited", "code": 0}


@pytest.mark.parametrize(
    "fail",
    [
        f"pipe2:1:1:{errno.EMFILE}",
        f"fork:1:{ALWAYS}:{errno.EAGAIN}",
        f"signalfd:1:1:{errno.EMFILE}",
        f"mmap:1:1:{errno.ENOMEM}",
    ],
)
def test_a_launcher_without_what_it_needs_does_not_start(failing: FailingLauncher, fail: str) -> None:
    assert failing.serve(TRUE, fail=fail) == Served(events=[], code=CANNOT_START)


@pytest.mark.parametrize(
    ("fail", "more", "stage"),
    [
        (f"open:3:1:{errno.EMFILE}", "", "stdin"),
        (f"open:4:1:{errno.EMFILE}", "", "stdout"),
        (f"fcntl:5:1:{errno.EMFILE}", "", "stderr"),
        (f"open:5:1:{errno.EMFILE}", "\tstderr=/dev/zero", "stderr"),
        (f"sched_setaffinity:1:1:{errno.EINVAL}", "\tcpus=0", "cpus"),
        (f"clone:1:1:{errno.EAGAIN}", "", "clone"),
        (f"chdir:1:1:{errno.EACCES}", "", "chdir"),
        (f"prlimit:1:1:{errno.EPERM}", "\trlimit=nofile:100", "rlimit"),
        (f"prlimit:1:1:{errno.EPERM}", "\tmemory_limit=100000000\ttree_memory=off", "rlimit"),
        (f"personality:2:1:{errno.EPERM}", "\taslr=off", "aslr"),
        (f"dup2:1:1:{errno.EBADF}", "", "dup2"),
        (f"dup2:2:1:{errno.EBADF}", "", "dup2"),
        (f"dup2:3:1:{errno.EBADF}", "", "dup2"),
    ],
)
def test_a_job_whose_start_fails_is_answered_with_the_stage(
    failing: FailingLauncher, fail: str, more: str, stage: str
) -> None:
    served = failing.serve(TRUE + more, TRUE, fail=fail)
    assert [each["event"] for each in served.events] == ["hello", "result", "result"]
    wanted = {"how": "not_started", "stage": stage, "errno": int(fail.rpartition(":")[2])}
    assert served.events[1]["ended"] == wanted


@pytest.mark.parametrize(
    "fail",
    [
        f"read:3:1:{errno.EINTR}",
        f"write:2:1:{errno.EINTR}",
        f"poll:1:1:{errno.EINTR}",
        f"ppoll:1:1:{errno.EINTR}",
        f"wait4:1:1:{errno.EINTR}",
        f"waitpid:1:1:{errno.EINTR}",
        f"waitpid:2:1:{errno.EINTR}",
    ],
)
def test_a_signal_that_interrupts_a_call_changes_nothing(failing: FailingLauncher, fail: str) -> None:
    assert failing.serve(TRUE, fail=fail).result["ended"] == {"how": "exited", "code": 0}


@pytest.mark.parametrize(
    "fail",
    [
        f"open:1:1:{errno.EACCES}",
        pytest.param(f"write:1:1:{errno.EACCES}", marks=OF_ROOT),
        f"fstat:1:{ALWAYS}:{errno.EIO}",
        f"close_range:1:1:{errno.ENOSYS},open:1:1:{errno.EMFILE}",
        f"close_range:1:1:{errno.ENOSYS},getdents64:1:1:{errno.EIO}",
        f"pidfd_open:1:{ALWAYS}:{errno.ENOSYS}",
        f"pidfd_open:1:{ALWAYS}:{errno.ENOSYS},waitpid:1:1:{errno.EINTR}",
        f"perf_event_open:1:{ALWAYS}:{errno.EACCES}",
    ],
)
def test_a_program_runs_without_what_the_kernel_refuses(failing: FailingLauncher, fail: str) -> None:
    served = failing.serve(f"{TRUE}\tcounters=on\toutput_cap=100", fail=fail)
    assert served.result["ended"] == {"how": "exited", "code": 0}


def test_an_unknown_peak_is_not_a_number_of_bytes(failing: FailingLauncher) -> None:
    served = failing.serve(TRUE, fail=f"open:2:1:{errno.EACCES}")
    assert served.events[0]["own_peak_bytes"] < 0
    assert served.result["ended"] == {"how": "exited", "code": 0}


@pytest.mark.parametrize(
    "fail",
    [
        f"mmap:1:1:{errno.ENOMEM}",
        f"open:1:1:{errno.EACCES}",
        f"open:2:1:{errno.EACCES}",
        f"read:1:1:{errno.EIO}",
        f"mkdir:1:{ALWAYS}:{errno.EROFS}",
        pytest.param(f"fork:1:1:{errno.EAGAIN}", marks=OF_ROOT),
    ],
)
def test_a_launcher_that_finds_no_cgroup_works_without(failing: FailingLauncher, fail: str) -> None:
    served = failing.serve(TRUE, fail=fail, arguments=())
    assert served.result["ended"] == {"how": "exited", "code": 0}


def test_a_request_that_cannot_be_read_ends_the_launcher(failing: FailingLauncher) -> None:
    served = failing.serve(TRUE, fail=f"read:3:1:{errno.EIO}")
    assert ([each["event"] for each in served.events], served.code) == (["hello"], 0)


@OF_ROOT
@pytest.mark.parametrize(("call", "events"), [(2, []), (3, ["hello"])])
def test_an_answer_that_cannot_be_sent_ends_the_launcher(
    failing: FailingLauncher, call: int, events: list[str]
) -> None:
    served = failing.serve(TRUE, TRUE, fail=f"write:{call}:1:{errno.EPIPE}")
    assert ([each["event"] for each in served.events], served.code) == (events, 0)


def test_a_line_for_which_there_is_no_memory_ends_the_launcher_or_is_refused(
    failing: FailingLauncher,
) -> None:
    served = failing.serve(f"{TRUE}\targ={'x' * 20_000}", fail=f"mremap:1:1:{errno.ENOMEM}")
    assert ([each["event"] for each in served.events], served.code) == (["hello"], 0)
    served = failing.serve(TRUE, TRUE, fail=f"mmap:3:1:{errno.ENOMEM}")
    assert [each["event"] for each in served.events] == ["hello", "error", "result"]
    assert served.events[1]["message"] == "not enough memory for this line"


@pytest.mark.parametrize(
    "fail",
    [
        f"open:5:2:{errno.EMFILE}",
        f"getdents64:1:2:{errno.EIO}",
        f"pidfd_open:1:1:{errno.ESRCH}",
        f"pidfd_send_signal:1:1:{errno.ESRCH}",
        f"pidfd_send_signal:1:{ALWAYS}:{errno.EPERM}",
        f"wait4:2:3:{errno.EINTR}",
    ],
)
def test_a_tree_ends_at_its_timeout_also_if_listing_or_killing_fails_at_first(
    failing: FailingLauncher, fail: str
) -> None:
    assert failing.serve(SLEEP, fail=fail).result["timed_out"]


@pytest.mark.parametrize("fail", [f"fstat:6:{ALWAYS}:{errno.EIO}", f"ftruncate:1:{ALWAYS}:{errno.EIO}"])
def test_output_that_cannot_be_cut_is_not_reported_as_cut(
    failing: FailingLauncher, tmp_path: Path, fail: str
) -> None:
    line = f"id=1\targ=/bin/sh\targ=-c\targ=echo 0123456789\tstdout={tmp_path}/out\toutput_cap=5"
    assert not failing.serve(line, fail=fail).result["stdout_truncated"]
    assert (tmp_path / "out").read_text() == "0123456789\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (TRUE + "\trlimit=core:0" * 40, "rlimit: too many limits"),
        ("id=1\targ=true\tprogram=/bin/true\tenv=NAME", "env: must be NAME=VALUE"),
    ],
)
def test_an_invalid_line_is_refused(failing: FailingLauncher, line: str, message: str) -> None:
    assert failing.serve(line, fail="").events[1]["message"] == message


def test_a_bare_name_is_found_without_a_path_variable(failing: FailingLauncher) -> None:
    assert failing.serve("id=1\targ=true", fail="").result["ended"] == {"how": "exited", "code": 0}


def test_a_directory_is_not_an_input(failing: FailingLauncher) -> None:
    ended = failing.serve(f"{TRUE}\tstdin=/", fail="").result["ended"]
    assert ended == {"how": "not_started", "stage": "stdin", "errno": errno.EISDIR}


def test_a_launcher_refuses_arguments_that_it_does_not_know(failing: FailingLauncher) -> None:
    done = subprocess.run([failing.program, "sandbox=1"], check=False, stdin=subprocess.DEVNULL, env={})
    assert done.returncode == CANNOT_START


def test_a_cancellation_after_the_end_is_ignored(failing: FailingLauncher) -> None:
    served = failing.serve("cancel", TRUE, fail="")
    assert [each["event"] for each in served.events] == ["hello", "result"]


@pytest.mark.parametrize(
    ("fail", "code"),
    [
        # The guard cannot watch the server, and kills it.
        (f"poll:1:1:{errno.ENOMEM}", 128 + signal.SIGKILL),
        (f"pidfd_open:1:{ALWAYS}:{errno.ENOSYS},waitpid:1:1:{errno.ECHILD}", 0),
    ],
)
def test_a_guard_that_cannot_wait_for_the_server_ends_everything(
    failing: FailingLauncher, trial: Trial, fail: str, code: int
) -> None:
    line = f"id=1\targ=/bin/sleep\targ=60\tenv=PERFTRAIL_TRIAL={trial.mark}"
    served = failing.serve(line, fail=fail)
    assert [each["event"] for each in served.events] in ([], ["hello"])  # it may end before it greets
    assert served.code == code
    assert trial.living() == []


def test_a_launcher_whose_client_ended_while_it_started_does_not_watch_another_process(
    failing: FailingLauncher,
) -> None:
    served = failing.serve(TRUE, fail=f"getppid:2:1:{errno.ESRCH}", arguments=())
    assert served.result["ended"] == {"how": "exited", "code": 0}


def states_of_children(parent: int) -> list[str]:
    states = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, its_parent, *_ = stat.read_text().rpartition(")")[2].split()
            states += [state] * (int(its_parent) == parent)
    return states


def test_processes_that_ended_by_themselves_just_before_the_kill_were_not_killed(
    failing: FailingLauncher,
) -> None:
    orphans = """sh -c 'exit 3 &'; sh -c 'sh -c "kill -TERM \\$\\$" &'; sh -c 'sleep 60 &'"""
    wanted = [False, False, True, True]
    # The launcher gets no signal at an end: so it notices none before it kills.
    with failing.start(*ALONE, fail=f"sigprocmask:2:1:{errno.EINVAL}") as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None
        server = json.loads(answers.readline())["server_pid"]
        requests.write(f"id=1\targ=/bin/sh\targ=-c\targ={orphans}; exec sleep 60\ttree_memory=off\n".encode())
        requests.flush()
        # The program, and three orphans, of which two have ended.
        assert eventually(lambda: sorted(state == "Z" for state in states_of_children(server)) == wanted)
        requests.write(b"cancel\n")
        requests.flush()
        result = json.loads(answers.readline())
        requests.close()
        assert process.wait(30) == 0
    assert result["cancelled"]
    assert result["orphans"] == {"waited": 2, "killed": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCgroups:
    """A directory in which the launcher can make cgroups with certain files; see ``simulated_cgroups.h``."""

    failing: FailingLauncher
    directory: Path

    def serve(
        self, *lines: str, files: Mapping[str, str], fail: str = "", name: str = "leaf", times: int = 1
    ) -> Served:
        """Send lines to a launcher that inherits the directory, perhaps several times; it must leave no cgroup."""
        (self.directory / "template").mkdir()
        for file, content in files.items():
            (self.directory / "template" / file).write_text(content)
        descriptor = os.open(self.directory, os.O_RDONLY)
        arguments = (f"name={name}", *[f"cgroup={descriptor}"] * times)
        try:
            served = self.failing.serve(*lines, fail=fail, arguments=arguments, inherited=(descriptor,))
        finally:
            os.close(descriptor)
        assert [path.name for path in self.directory.iterdir()] == ["template"]
        kept = {path.replace(f"/{descriptor}/", "/N/") for path in served.events[0]["cgroup"]["paths"]}
        assert kept <= {f"/proc/self/fd/N/{name}"}
        return served


@pytest.fixture
def cgroups(failing: FailingLauncher, tmp_path: Path) -> SimulatedCgroups:
    (tmp_path / "cgroups").mkdir()
    return SimulatedCgroups(failing=failing, directory=tmp_path / "cgroups")


ONLY_PROCESSES = {"cgroup.controllers": "", "cgroup.procs": "", "pids.max": "", "pids.events": "max 4"}
EVERYTHING = {
    **ONLY_PROCESSES,
    "cgroup.kill": "",
    "memory.peak": "4096000",
    "memory.stat": "file 8192",
    "memory.events": "oom_kill 0",
    "cpu.stat": "usage_usec 70",
}


def test_a_job_in_a_cgroup_2_is_counted_by_it(cgroups: SimulatedCgroups) -> None:
    served = cgroups.serve(TRUE, files=EVERYTHING)
    hello = served.events[0]["cgroup"]
    assert len(hello.pop("paths")) == 1
    assert hello == dict.fromkeys(("memory", "cpu", "kill", "processes"), "cgroup2")
    memory = {"bytes": 4096000, "method": "cgroup2", "file_bytes_at_end": 8192}
    assert served.result["peak_memory_tree"] == memory
    assert served.result["cpu_tree"] == {"ns": 70000, "method": "cgroup2"}
    assert served.result["refused_processes"] == 4


def test_a_cgroup_that_only_limits_processes_counts_only_them(cgroups: SimulatedCgroups) -> None:
    line = f"id=1\targ=/bin/sleep\targ=0.1\tmemory_limit={1 << 30}\tprocess_limit=9"
    served = cgroups.serve(line, files=ONLY_PROCESSES)
    hello = served.events[0]["cgroup"]
    assert len(hello.pop("paths")) == 1
    assert hello == {"memory": None, "cpu": None, "kill": "cgroup2", "processes": "cgroup2"}
    assert served.result["refused_processes"] == 4
    assert served.result["cpu_tree"] is None
    assert served.result["peak_memory_tree"]["method"] == "sampled"
    assert served.result["memory_limit_method"] == "rlimit_as"


@OF_ROOT
def test_a_program_that_cannot_enter_its_cgroup_is_not_started(cgroups: SimulatedCgroups) -> None:
    fail = f"write:3:1:{errno.EINTR}"  # in the child; the launcher's own third write is tried again
    served = cgroups.serve(TRUE, files=ONLY_PROCESSES, fail=fail)
    assert served.result["ended"] == {"how": "not_started", "stage": "cgroup", "errno": errno.EINTR}


@pytest.mark.parametrize(
    ("name", "missing", "fail"),
    [
        ("leaf", "pids.max", ""),  # it neither counts nor limits
        ("leaf", "cgroup.procs", ""),  # no process can enter
        ("leaf", "", f"fork:1:1:{errno.EAGAIN}"),  # nor is it known whether one can
        ("leaf", "", f"waitpid:1:1:{errno.ECHILD}"),
        ("n" * 600, "", ""),
    ],
)
def test_an_unsuitable_inherited_cgroup_is_not_used(
    cgroups: SimulatedCgroups, name: str, missing: str, fail: str
) -> None:
    files = {file: content for file, content in ONLY_PROCESSES.items() if file != missing}
    served = cgroups.serve(TRUE, files=files, name=name, fail=fail)
    assert served.events[0]["cgroup"]["paths"] == []
    assert served.result["ended"] == {"how": "exited", "code": 0}


@pytest.mark.parametrize("descriptor", ["99", "99999999999", "-1"])
def test_a_descriptor_that_is_not_a_directory_gives_no_cgroup(
    failing: FailingLauncher, descriptor: str
) -> None:
    served = failing.serve(TRUE, fail="", arguments=("name=leaf", f"cgroup={descriptor}"))
    assert served.events[0]["cgroup"]["paths"] == []
    assert served.result["ended"] == {"how": "exited", "code": 0}


def test_a_cgroup_that_a_killed_launcher_left_is_used_and_no_more_than_four(
    cgroups: SimulatedCgroups,
) -> None:
    left = cgroups.directory / "leaf"
    left.mkdir()
    for file in ONLY_PROCESSES:
        (left / file).touch()
    served = cgroups.serve(TRUE, files=ONLY_PROCESSES, times=5)
    assert len(served.events[0]["cgroup"]["paths"]) == 4
    # The four are one directory, which can be made only once: the job runs without.
    assert "refused_processes" not in served.result
    assert served.result["ended"] == {"how": "exited", "code": 0}


def test_a_launcher_ends_with_the_client_whose_pipe_it_inherits(
    failing: FailingLauncher, trial: Trial
) -> None:
    lifeline, client = os.pipe()
    with failing.start(f"client={lifeline}", inherited=(lifeline,)) as process:
        os.close(lifeline)
        assert process.stdin is not None
        process.stdin.write(f"id=1\targ=/bin/sleep\targ=60\tenv=PERFTRAIL_TRIAL={trial.mark}\n".encode())
        process.stdin.flush()
        assert eventually(lambda: trial.living() != [])
        os.close(client)
        assert process.wait(30) == 0
        assert trial.living() == []


def test_a_launcher_without_a_job_ends_with_its_client_though_its_input_is_open(
    failing: FailingLauncher,
) -> None:
    lifeline, client = os.pipe()
    with failing.start(f"client={lifeline}", inherited=(lifeline,)) as process:
        os.close(lifeline)
        assert process.stdout is not None
        process.stdout.readline()
        os.close(client)
        assert process.wait(30) == 0
        assert process.stdout.read() == b""


def test_a_server_without_a_job_ends_with_its_guard(failing: FailingLauncher) -> None:
    with failing.start(*ALONE) as process:
        assert process.stdout is not None
        server = json.loads(process.stdout.readline())["server_pid"]
        process.kill()
        assert process.stdout.read() == b""  # its end is closed
        assert eventually(lambda: not is_alive(server))


def unread_bytes(pipe: int) -> int:
    unread = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return unread[0]


def test_a_line_that_comes_during_a_job_is_served_after_it(failing: FailingLauncher, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with failing.start(*ALONE) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(f"id=1\targ=/bin/cat\tstdin={fifo}\n".encode())
        requests.flush()
        with fifo.open("wb"):  # waits until the launcher has opened it; the job runs until it is closed
            requests.write(b"id=2\targ=/bin/true\n")
            requests.flush()
            assert eventually(lambda: unread_bytes(requests.fileno()) == 0)
        answered = [json.loads(answers.readline()) for _ in range(3)]
        requests.close()
        assert process.wait(30) == 0
    assert [each.get("id") for each in answered] == [None, "1", "2"]
    assert all(each["ended"] == {"how": "exited", "code": 0} for each in answered[1:])


def test_a_client_that_closes_a_socket_during_a_job_ends_the_job(
    failing: FailingLauncher, trial: Trial
) -> None:
    ours, theirs = socket.socketpair()
    with failing.start(*ALONE, stdin=theirs.fileno()) as process:
        theirs.close()
        ours.sendall(f"id=1\targ=/bin/sleep\targ=60\tenv=PERFTRAIL_TRIAL={trial.mark}\n".encode())
        assert eventually(lambda: trial.living() != [])
        ours.close()
        assert process.wait(30) == 0
        assert trial.living() == []


def test_a_launcher_with_a_short_name_has_no_name_in_its_guard(failing: FailingLauncher) -> None:
    with failing.start(*ALONE, name="pt") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        guard = Path(f"/proc/{process.pid}")
        assert eventually(lambda: (guard / "comm").read_text() == "pt-guard\n")
        assert eventually(lambda: (guard / "cmdline").read_bytes() == b"\0\0\0name=alone\0")
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_launcher_without_a_name_serves_jobs(failing: FailingLauncher) -> None:
    with subprocess.Popen(
        [failing.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"UNNAMED": "1"}
    ) as process:
        answered, _ = process.communicate(TRUE.encode() + b"\n", timeout=60)
    hello, *_ = map(json.loads, answered.splitlines())
    assert hello["event"] == "hello"
    assert process.returncode == 0
