"""All processes that perftrail started end within two seconds of its death, however it died."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.process.launcher.traces import PROMISED_SECONDS, cgroups_of, eventually, is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.process.launcher.traces import Trial

STAND_IN = Path(__file__).with_name("perftrail_stand_in.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    python: subprocess.Popen[str]
    guard: int
    server: int

    def pids(self, whom: str) -> tuple[int, ...]:
        return {
            "python": (self.python.pid,),
            "guard": (self.guard,),
            "server": (self.server,),
            "guard and server": (self.guard, self.server),
            "server and guard": (self.server, self.guard),
            "python and guard": (self.python.pid, self.guard),
            "python and server": (self.python.pid, self.server),
        }[whom]

    def nothing_left(self, trial: Trial) -> bool:
        launcher = [pid for pid in (self.guard, self.server) if is_alive(pid)]
        return not launcher and not trial.living() and not cgroups_of(self.guard)


@contextmanager
def running(launcher: Path, trial: Trial, program: str, *arguments: object) -> Iterator[Running]:
    line = [sys.executable, str(STAND_IN), str(launcher), trial.mark, str(trial.targets / program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [*line, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as python:
        try:
            assert python.stdout is not None
            guard, server = map(int, python.stdout.readline().split())
            yield Running(python=python, guard=guard, server=server)
        finally:
            python.kill()


def is_up(trial: Trial) -> bool:
    """Both processes of the daemon are there; the stand-in has the mark in its arguments only."""
    return len(trial.living()) >= 2


SINGLE = ["python", "guard", "server", "python and guard", "python and server"]


@pytest.mark.parametrize("whom", SINGLE)
def test_kill_9_leaves_nothing(launcher_file: Path, trial: Trial, whom: str) -> None:
    with running(launcher_file, trial, "daemon", 0, 1000, 1) as perftrail:
        assert eventually(lambda: is_up(trial))
        for pid in perftrail.pids(whom):
            with contextlib.suppress(ProcessLookupError):  # the second may have left already
                os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: perftrail.nothing_left(trial), PROMISED_SECONDS)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="without a cgroup, nothing finds a daemon after both have ended"
)
@pytest.mark.parametrize("whom", ["guard and server", "server and guard"])
def test_killing_both_launcher_processes_leaves_nothing_while_perftrail_lives(
    launcher_file: Path, trial: Trial, whom: str
) -> None:
    with running(launcher_file, trial, "daemon", 0, 1000, 1) as perftrail:
        assert eventually(lambda: is_up(trial))
        for pid in perftrail.pids(whom):
            with contextlib.suppress(ProcessLookupError):  # the second may have left already
                os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: perftrail.nothing_left(trial))


def test_a_server_that_hangs_when_perftrail_dies_is_killed_with_its_tree(
    launcher_file: Path, trial: Trial
) -> None:
    with running(launcher_file, trial, "daemon", 0, 1000, 1) as perftrail:
        assert eventually(lambda: is_up(trial))
        os.kill(perftrail.server, signal.SIGSTOP)
        os.kill(perftrail.python.pid, signal.SIGKILL)
        assert eventually(lambda: perftrail.nothing_left(trial))


@pytest.mark.parametrize("trials", [2, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("whom", ["python", "guard", "server"])
def test_kill_9_in_any_phase_leaves_nothing(
    plain_launcher: Path, trial: Trial, whom: str, trials: int
) -> None:
    rng = random.Random(20240607)
    for _ in range(trials):
        with running(plain_launcher, trial, "fork_bomb", 50, "sessions") as perftrail:
            time.sleep(rng.uniform(0, 0.02))  # the phase is the point: before, in and after the start
            with contextlib.suppress(ProcessLookupError):
                os.kill(perftrail.pids(whom)[0], signal.SIGKILL)
            if whom == "python":
                perftrail.python.wait(30)
            assert eventually(lambda: perftrail.nothing_left(trial))


@pytest.mark.parametrize("whom", ["guard", "server"])
def test_perftrail_notices_the_launchers_death_and_continues(
    launcher_file: Path, trial: Trial, whom: str
) -> None:
    with running(launcher_file, trial, "daemon", 0, 1000, 1) as perftrail:
        assert eventually(lambda: is_up(trial))
        os.kill(perftrail.pids(whom)[0], signal.SIGKILL)
        assert perftrail.python.stdout is not None
        output = perftrail.python.stdout.read()
        assert perftrail.python.wait(30) == 0
    assert "error: launcher — ended unexpectedly" in output
    assert "Exited(code=0)" in output


def test_ctrl_c_kills_the_tree_and_leaves_the_launcher_usable(launcher_file: Path, trial: Trial) -> None:
    with running(launcher_file, trial, "daemon", 0, 1000, 1) as perftrail:
        assert eventually(lambda: is_up(trial))
        os.killpg(perftrail.python.pid, signal.SIGINT)
        assert perftrail.python.stdout is not None
        assert perftrail.python.stdout.read().split() == ["interrupted", "Exited(code=0)"]
        assert perftrail.python.wait(30) == 0
        assert perftrail.nothing_left(trial)


def test_a_fork_with_the_pipe_open_does_not_block_the_launcher(launcher_file: Path, trial: Trial) -> None:
    with running(launcher_file, trial, "daemon", 0, 1000, 1) as perftrail:
        assert eventually(lambda: is_up(trial))
        pipe = next(
            fd
            for fd in Path(f"/proc/{perftrail.python.pid}/fd").iterdir()
            if fd.readlink() == Path(f"/proc/{perftrail.server}/fd/0").readlink()
        )
        with pipe.open("wb"):
            os.kill(perftrail.python.pid, signal.SIGKILL)
            assert eventually(lambda: perftrail.nothing_left(trial))
