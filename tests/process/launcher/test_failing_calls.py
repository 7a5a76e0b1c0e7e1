"""Calls of the launcher that fail, one after the other: it answers, or ends; it never crashes or hangs."""

from __future__ import annotations

import errno
import itertools
import json
import re
import shutil
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.process.launcher.conftest import COVERAGE, LAUNCHER

UNITS = Path(__file__).parent / "units"
CANNOT_START = 70
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

    def serve(self, *lines: str, fail: str, alone: bool = True) -> Served:
        """Send lines; each failure is ``NAME:FIRST:COUNT:ERRNO``. With `alone`, the launcher looks for no cgroups."""
        with subprocess.Popen(
            [self.program, *(["name=alone"] if alone else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"FAIL": fail},
        ) as process:
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
            said = process.stderr.read().decode()
            process.wait()
            stop.cancel()
        for name in re.findall(r"(\w+):\d+:", fail):
            assert f"{name} failed\n" in said, f"{name} was not called so often"
        return Served(events=events, code=process.returncode)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> FailingLauncher:
    program = tmp_path_factory.mktemp("failing") / "launcher"
    source = UNITS / "failing_launcher.c"
    wrapped = {"syscall", *re.findall(r"^FAILING\([\w *]+, (\w+)", source.read_text(), re.MULTILINE)}
    options = ["-std=c11", "-D_GNU_SOURCE", "-g", f"-I{LAUNCHER}"]
    options += ['-DLAUNCHER_VERSION="0"', '-DLAUNCHER_LINKING="dynamic"']
    options += [f"-Wl,--wrap={name}" for name in sorted(wrapped)]
    sources = [source, *sorted(LAUNCHER.glob("*.c"))]
    if COVERAGE:
        options += ["--coverage", "-fprofile-update=atomic", "-O0", "-Wl,--wrap=_exit"]
        sources.append(UNITS / "counted_exit.c")
    else:
        options += ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    subprocess.run([shutil.which("cc") or "gcc", *options, "-o", program, *sources], check=True)
    return FailingLauncher(program=program)


TRUE = "id=1\targ=/bin/true"
SLEEP = "id=1\targ=/bin/sh\targ=-c\targ=setsid sleep 60 & sleep 60\ttimeout_ns=200000000\ttree_memory=off"
"""A child in its own session does not end with its parent's process group."""


def test_nothing_fails_unless_asked(failing: FailingLauncher) -> None:
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
        f"write:1:1:{errno.EACCES}",
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
        f"fork:1:1:{errno.EAGAIN}",
    ],
)
def test_a_launcher_that_finds_no_cgroup_works_without(failing: FailingLauncher, fail: str) -> None:
    served = failing.serve(TRUE, fail=fail, alone=False)
    assert served.result["ended"] == {"how": "exited", "code": 0}


def test_an_answer_that_cannot_be_sent_ends_the_launcher(failing: FailingLauncher) -> None:
    assert failing.serve(TRUE, fail=f"write:2:1:{errno.EPIPE}") == Served(events=[], code=0)


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
        f"pidfd_send_signal:1:{ALWAYS}:{errno.EPERM}",
        f"wait4:2:3:{errno.EINTR}",
    ],
)
def test_a_tree_ends_at_its_timeout_also_if_listing_or_killing_fails_at_first(
    failing: FailingLauncher, fail: str
) -> None:
    assert failing.serve(SLEEP, fail=fail).result["timed_out"]


def test_output_that_cannot_be_cut_is_not_reported_as_cut(failing: FailingLauncher, tmp_path: Path) -> None:
    line = f"id=1\targ=/bin/sh\targ=-c\targ=echo 0123456789\tstdout={tmp_path}/out\toutput_cap=5"
    assert not failing.serve(line, fail=f"ftruncate:1:{ALWAYS}:{errno.EIO}").result["stdout_truncated"]
    assert (tmp_path / "out").read_text() == "0123456789\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (TRUE + "\trlimit=core:0" * 40, "rlimit: too many limits"),
        ("id=1\targ=true\tprogram=/bin/true\tenv=NAME", "env: must be NAME=VALUE"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused(failing: FailingLauncher, line: str, message: str) -> None:
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
