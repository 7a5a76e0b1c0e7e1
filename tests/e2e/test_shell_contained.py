"""`perftrail build --shell` in a real sandbox; a killed shell leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, perftrail_here, program, write_study
from tests.e2e.terminal import build_shell, run_from_pipe
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.process.sandbox.test_limits import alive
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")


@pytest.fixture
def revision(tmp_path: Path) -> str:
    repository = Repository(tmp_path / "repository")
    commit = repository.commit(program(100))
    write_study(tmp_path / "study", repository)
    return commit


@needs_sandbox
def test_commands_from_a_pipe_run_in_the_sandbox(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/secret").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "outside").write_text("unchanged")
    script = "sh ../steps.sh && ./program; pwd; ls -R ~ $HERE/home | grep -c secret; echo x > $HERE/outside; exit 4\n"
    script = script.replace("$HERE", str(tmp_path))
    done = run_from_pipe(tmp_path / "study", revision, script, "--sandbox")
    cost, _, directory, home = done.stdout.splitlines()
    assert cost.startswith("cost 100")
    assert directory.endswith("shells/1/tree")
    assert (home, done.returncode) == ("0", 1)
    assert (tmp_path / "outside").read_text() == "unchanged"
    assert not (tmp_path / "study/.perftrail/shells").exists()


@needs_sandbox
def test_a_shell_in_the_sandbox_has_a_separate_terminal(tmp_path: Path, revision: str) -> None:
    with build_shell(tmp_path / "study", revision, "--sandbox") as terminal:
        terminal.read_until("perftrail$ ")
        terminal.type("sleep 60\n")
        time.sleep(0.3)
        terminal.type("\x03")
        terminal.type("sh ../steps.sh && ./program; test -t 0 && echo on $((40 + 2))\n")
        assert "cost 100" in terminal.read_until("on 42")
        terminal.type("exit\n")
        assert terminal.exit_code() == 0


@needs_sandbox
def test_the_printed_next_command_finds_the_samples(tmp_path: Path, revision: str) -> None:
    store = tmp_path / "its results"
    ran = perftrail("run", tmp_path / "study", "--sandbox", "--store", store)
    next_line = next(line for line in ran.stdout.splitlines() if line.startswith("Next: "))
    assert f"perftrail show {tmp_path / 'study'} --sandbox --store '{store}'" in next_line
    assert "cost" in perftrail_here("show", tmp_path / "study", "--sandbox", "--store", store).stdout


@pytest.mark.parametrize(
    "kill_signal", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_shell_on_a_pipe_that_is_killed_leaves_no_child(
    tmp_path: Path, revision: str, kill_signal: signal.Signals
) -> None:
    sleep = f"sleep 62.{os.getpid()}{kill_signal.value}"
    command = [sys.executable, "-m", "perftrail", "build", revision, str(tmp_path / "study"), "--shell"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(f"setsid {sleep}1 & {sleep}2\n".encode())
        process.stdin.flush()
        wait_for(lambda: alive(f"{sleep}1") and alive(f"{sleep}2"))
        process.send_signal(kill_signal)
        process.wait(10)
    wait_for(lambda: not alive(f"{sleep}1") and not alive(f"{sleep}2"))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
