"""A program inherits nothing unknown, also on kernels without the newer system calls."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.model.process import TimedOut
from perftrail.process.launcher import Launcher

if TYPE_CHECKING:
    from tests.process.launcher.traces import Trial

PIDFD_SEND_SIGNAL, PIDFD_OPEN, CLOSE_RANGE = 424, 434, 436


def on_kernel_without(calls: tuple[int, ...], launcher: Path, trial: Trial) -> Path:
    if not calls:
        return launcher
    script = trial.directory / "launcher"
    numbers = ",".join(map(str, calls))
    script.write_text(f"#!/bin/sh\nexec {trial.targets}/old_kernel {numbers} {launcher}\n")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("missing", [(), (CLOSE_RANGE,)], ids=["new kernel", "old kernel"])
def test_no_descriptor_of_the_client_reaches_a_program(
    plain_launcher: Path, trial: Trial, missing: tuple[int, ...]
) -> None:
    lowest = 3000
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= lowest:
        pytest.skip("descriptors cannot have large numbers here")
    read, write = os.pipe()
    inherited = [fcntl.fcntl(read, fcntl.F_DUPFD, number) for number in (3, 1024, lowest)]
    output = trial.directory / "seen"
    path = on_kernel_without(missing, plain_launcher, trial)
    job = f"id=1\targ=/bin/ls\targ=/proc/self/fd\tstdout={output}\n"
    try:
        with subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=inherited, bufsize=0
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(job.encode())
            events = [json.loads(process.stdout.readline())["event"] for _ in range(2)]
    finally:
        for descriptor in (read, write, *inherited):
            os.close(descriptor)
    assert events == ["hello", "result"]
    assert output.read_text().split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads


def test_a_kernel_without_pidfd_ends_a_tree_too(plain_launcher: Path, trial: Trial) -> None:
    path = on_kernel_without((PIDFD_SEND_SIGNAL, PIDFD_OPEN), plain_launcher, trial)
    with Launcher(path) as launcher:
        for tree_memory in ("auto", "off"):
            ran = launcher.run(
                trial.command("fork_bomb", 100, "sessions", timeout_seconds=0.5, tree_memory=tree_memory)
            )
            assert ran.ended == TimedOut()
            assert trial.living() == []
