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
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.histories import STUDY, History, make_history, write_study
from tests.starting import Started, start

pytestmark = pytest.mark.slow("starts")

KILLS = 10
CULPRIT = 7

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
    return make_history(root / "repository", commits=11, culprit=CULPRIT, unbuildable=range(4, 6))


def kill_at_random(arguments: tuple[str, ...], *, seed: int, full_seconds: float) -> int:
    """Start a command repeatedly, and kill it with SIGKILL at random instants; return the number of kills."""
    rng = random.Random(seed)
    kills = 0
    for _ in range(KILLS):
        with (
            Path(os.devnull).open("wb") as output,
            Started(arguments, output.fileno(), output.fileno()) as process,
        ):
            try:
                process.wait(timeout=rng.uniform(0.02, full_seconds * 0.4))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
    return kills


def finish(*arguments: str) -> dict[str, Any]:
    """Run a command to its end, and return its JSON."""
    done = start(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def invocations(store: Path) -> list[tuple[object, ...]]:
    """Return the identity of every stored invocation, read directly from the database."""
    with sqlite3.connect(store) as database:
        return database.execute(
            "SELECT runnable_id, machine_id, phase, ordinal FROM invocation ORDER BY 1, 2, 3, 4"
        ).fetchall()


def run_uninterrupted(study: Path, *arguments: str) -> tuple[dict[str, Any], float]:
    """Run a command without interruption; return its JSON and its seconds."""
    start_time = time.monotonic()
    parsed = finish(*arguments, str(study))
    return parsed, time.monotonic() - start_time


def test_run_resumes_after_ten_kills_with_each_invocation_exactly_once(
    history: History, tmp_path: Path
) -> None:
    uninterrupted = write_study(tmp_path / "calm", history, RUN_STUDY)
    _, seconds = run_uninterrupted(uninterrupted, "run")
    interrupted = write_study(tmp_path / "rough", history, RUN_STUDY)
    assert kill_at_random(("run", str(interrupted)), seed=1, full_seconds=seconds) > 0
    finish("run", str(interrupted))
    stored = invocations(interrupted.parent / ".perftrail" / "results.db")
    assert len(stored) == len(set(stored))
    assert len(stored) == len(invocations(uninterrupted.parent / ".perftrail" / "results.db"))
    plan = finish("check", str(interrupted))
    assert plan["invocations"]["left_most"] == 0
    assert plan["builds"]["failed"] == len(history.unbuildable)


def test_find_resumes_after_ten_kills_with_the_answer_and_each_invocation_exactly_once(
    history: History, tmp_path: Path
) -> None:
    uninterrupted = write_study(tmp_path / "calm", history)
    _, seconds = run_uninterrupted(uninterrupted, "find")
    interrupted = write_study(tmp_path / "rough", history)
    assert kill_at_random(("find", str(interrupted)), seed=2, full_seconds=seconds) > 0
    answer = finish("find", str(interrupted))
    assert answer["verdict"] == "found"
    assert answer["changes"][0]["revisions"] == [history.commits[CULPRIT]]
    stored = invocations(interrupted.parent / ".perftrail" / "results.db")
    assert len(stored) == len(set(stored)) == answer["invocations"]


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.02, 0.2])
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


def stored_count(store: Path) -> int:
    """Number of stored invocations; zero while the database is created."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT count(*) FROM invocation").fetchone()[0])
    return 0
