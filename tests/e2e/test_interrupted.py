"""perftrail resumes after a kill at any time, with each planned invocation exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.histories import STUDY, History, make_history, write_study
from tests.starting import Started, start

WARMUP, SAMPLE = 0, 1
"""Phases of invocations in the database."""

KILLS = 10
CULPRIT = 4
UNBUILDABLE = range(1, 2)
DOCS_ONLY = (3,)
"""Has the artefact of the revision before it."""

RUN_STUDY = (
    STUDY
    + """
[measure]
invocations = 3
warmups = 1
"""
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    root = tmp_path_factory.mktemp("interrupted")
    return make_history(
        root / "repository", commits=7, culprit=CULPRIT, unbuildable=UNBUILDABLE, steps=4_000_000
    )


class Killed:
    """Starts a command and kills it with SIGKILL; counts the kills."""

    def __init__(self, command: str, study: Path) -> None:
        self._words = (command, str(study))
        self._store = study.parent / ".perftrail" / "results.db"
        self.kills = 0

    def after(self, seconds: float) -> None:
        """Kill the command after some seconds, unless it has ended."""
        self._start_and_kill(lambda process: wait_for_end(process, seconds))

    def at_invocations(self, number: int) -> None:
        """Kill the command as soon as its database has so many further invocations; with 0, as soon as it exists."""
        wanted = stored_count(self._store) + number if number else 0
        until = time.monotonic() + 60

        def reached(process: Started) -> bool:
            while not (self._store.exists() and stored_count(self._store) >= wanted):
                assert time.monotonic() < until
                if wait_for_end(process, 0.005):
                    return True
            return False

        self._start_and_kill(reached)

    def _start_and_kill(self, ended: Callable[[Started], bool]) -> None:
        with (
            Path(os.devnull).open("wb") as output,
            Started(self._words, output.fileno(), output.fileno()) as process,
        ):
            if not ended(process):
                process.send_signal(signal.SIGKILL)
                self.kills += 1


def wait_for_end(process: Started, seconds: float) -> bool:
    """Wait for the end of a process, at most some seconds; return whether it has ended."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


CUTS = (0, 1, 2, 4)
"""Numbers of further stored invocations at which the tests kill a command."""


def kill_at_cuts(command: str, study: Path) -> int:
    """Kill a command as its database appears, and after a few invocations; return the number of kills."""
    killed = Killed(command, study)
    for number in CUTS:
        killed.at_invocations(number)
    return killed.kills


def kill_at_random(command: str, study: Path, *, seed: int, full_seconds: float) -> int:
    """Kill a command ten times at random instants; return the number of kills."""
    rng = random.Random(seed)
    killed = Killed(command, study)
    for _ in range(KILLS):
        killed.after(rng.uniform(0.02, full_seconds * 0.4))
    return killed.kills


def finish(*arguments: str) -> dict[str, Any]:
    """Run a command to its end, and return its JSON."""
    done = start(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def invocations(store: Path) -> list[tuple[int, int, int, int]]:
    """Return the identity of every stored invocation, read directly from the database."""
    with closing(sqlite3.connect(store)) as database:
        return database.execute(
            "SELECT runnable_id, machine_id, phase, ordinal FROM invocation ORDER BY 1, 2, 3, 4"
        ).fetchall()


def stored_count(store: Path) -> int:
    """Number of stored invocations; zero while the database is created."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT count(*) FROM invocation").fetchone()[0])
    return 0


def uninterrupted_seconds(study: Path, command: str) -> float:
    """Return the seconds of a command that nothing interrupts."""
    start_time = time.monotonic()
    finish(command, str(study))
    return time.monotonic() - start_time


def check_run(study: Path, history: History) -> None:
    """Check that a resumed run ends with each planned invocation exactly once."""
    finish("run", str(study))
    ordinals: dict[int, list[tuple[int, int]]] = {}
    for runnable, _, phase, ordinal in invocations(study.parent / ".perftrail" / "results.db"):
        ordinals.setdefault(runnable, []).append((phase, ordinal))
    plan = finish("check", str(study))
    assert plan["invocations"]["left_most"] == 0
    assert plan["builds"]["failed"] == len(history.unbuildable)
    assert len(ordinals) == len(history.commits) - len(history.unbuildable) - len(DOCS_ONLY)
    once = [[(WARMUP, 0), (SAMPLE, 0), (SAMPLE, 1), (SAMPLE, 2)]] * len(ordinals)
    assert list(ordinals.values()) == once


def check_search(study: Path, history: History) -> None:
    """Check that a resumed search ends with the answer and each invocation exactly once."""
    answer = finish("find", str(study))
    assert answer["verdict"] == "found"
    assert answer["changes"][0]["revisions"] == [history.commits[CULPRIT]]
    stored = invocations(study.parent / ".perftrail" / "results.db")
    assert len(stored) == len(set(stored)) == answer["invocations"]


@pytest.mark.slow("starts")
def test_run_resumes_after_four_kills_with_each_invocation_exactly_once(
    history: History, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "study", history, RUN_STUDY)
    assert kill_at_cuts("run", study) == len(CUTS)
    check_run(study, history)


@pytest.mark.slow("starts")
def test_find_resumes_after_four_kills_with_the_answer_and_each_invocation_exactly_once(
    history: History, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "study", history)
    assert kill_at_cuts("find", study) == len(CUTS)
    check_search(study, history)


@pytest.mark.long
@pytest.mark.slow("starts")
@pytest.mark.parametrize(
    ("command", "text", "seed", "check"),
    [("run", RUN_STUDY, 1, check_run), ("find", STUDY, 2, check_search)],
)
def test_a_command_resumes_after_ten_kills_at_random_instants(
    history: History,
    tmp_path: Path,
    command: str,
    text: str,
    seed: int,
    check: Callable[[Path, History], None],
) -> None:
    seconds = uninterrupted_seconds(write_study(tmp_path / "calm", history, text), command)
    study = write_study(tmp_path / "rough", history, text)
    assert kill_at_random(command, study, seed=seed, full_seconds=seconds) > 0
    check(study, history)


@pytest.mark.slow("starts")
@pytest.mark.parametrize(
    "pause", [*(pytest.param(each, marks=pytest.mark.long) for each in (0.0, 0.001, 0.2)), 0.02]
)
def test_ctrl_c_twice_ends_without_a_traceback_and_keeps_what_is_stored(
    history: History, tmp_path: Path, pause: float
) -> None:
    study = write_study(tmp_path / "study", history, RUN_STUDY)
    store = study.parent / ".perftrail" / "results.db"
    process = subprocess.Popen(
        [sys.executable, "-m", "perftrail", "run", str(study)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not (store.exists() and stored_count(store)):
        assert process.poll() is None, "it ended before the interruption"
        assert time.monotonic() < until
        time.sleep(0.02)
    before = stored_count(store)
    for _ in range(2):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(pause)
    _, stderr = process.communicate(timeout=60)
    assert "Traceback" not in stderr, stderr
    assert stderr.splitlines()[-1] == "interrupted; all samples are stored, and the same command resumes"
    assert process.returncode == 130
    assert stored_count(store) >= before
    assert not list((study.parent / ".perftrail" / "paths").glob("*")), "its links are removed"
