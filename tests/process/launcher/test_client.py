"""The launcher's client in Python: finding, starting and closing the launcher."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import LauncherError
from perftrail.model.process import Command, Exited
from perftrail.process.launcher import Launcher
from tests.process.launcher.traces import eventually, is_alive

if TYPE_CHECKING:
    from tests.process.launcher.traces import Trial


def test_a_missing_launcher_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="nowhere"):
        Launcher(tmp_path / "nowhere").start()


def test_something_else_than_a_launcher_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="launcher"):
        Launcher(Path("/bin/true")).start()
    chatty = tmp_path / "chatty"
    chatty.write_text("#!/bin/sh\necho Good day\n")
    chatty.chmod(0o755)
    with pytest.raises(LauncherError, match="not JSON"):
        Launcher(chatty).start()


@pytest.mark.parametrize(
    ("script", "message"),
    [("exec sleep 1000", "does not answer"), ("exec cat /dev/zero", "without a newline")],
)
def test_waiting_for_the_first_line_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setattr("perftrail.process.launcher.SECONDS_TO_START", 0.5)
    monkeypatch.setattr("perftrail.process.launcher.SECONDS_TO_END", 0.5)
    path = tmp_path / "launcher"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    with pytest.raises(LauncherError, match=message):
        Launcher(path).start()


def test_a_launcher_states_its_capabilities(plain_launcher: Path) -> None:
    with Launcher(plain_launcher) as launcher:
        can = launcher.start()
    assert can.libc == ("musl" if shutil.which("musl-gcc") else "glibc")
    assert 0 < can.clock_resolution_seconds <= 1e-6
    if can.libc == "musl":
        assert can.own_peak_bytes <= 64 << 10


def test_starting_twice_starts_once(launcher: Launcher) -> None:
    assert launcher.start() == launcher.start()


def test_closing_ends_both_processes_and_may_be_repeated(launcher: Launcher, trial: Trial) -> None:
    can = launcher.start()
    launcher.close()
    launcher.close()
    assert not is_alive(can.pid)
    assert not is_alive(can.server_pid)
    assert launcher.run(trial.command("/bin/true")).ended == Exited(code=0)


def test_closing_ends_what_another_thread_runs(launcher: Launcher, trial: Trial) -> None:
    thread = threading.Thread(target=launcher.run, args=[trial.command("daemon", 0, 1000, 1)])
    thread.start()
    assert eventually(lambda: len(trial.living()) == 2)
    launcher.close()
    thread.join(30)
    assert not thread.is_alive()
    assert trial.living() == []


def test_threads_wait_for_each_other(launcher: Launcher, trial: Trial) -> None:
    codes: list[object] = []

    def run(code: int) -> None:
        codes.append((code, launcher.run(trial.shell(f"exit {code}")).ended))

    threads = [threading.Thread(target=run, args=[code]) for code in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(codes, key=str) == sorted(((code, Exited(code=code)) for code in range(20)), key=str)


@pytest.mark.parametrize(
    "wrong",
    [
        {"arguments": ()},
        {"cpus": ()},
        {"timeout_seconds": 0},
        {"timeout_seconds": float("nan")},
        {"environment": {"A=B": ""}},
        {"environment": {"": ""}},
    ],
)
def test_an_invalid_command_is_refused_when_it_is_made(wrong: dict[str, object]) -> None:
    good: dict[str, object] = {"arguments": ("true",), "environment": {}, "directory": "/"}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Command(**{**good, **wrong})  # type: ignore[arg-type] # the point is that it is wrong
