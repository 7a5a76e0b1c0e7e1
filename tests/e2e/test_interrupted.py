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

pytestmark = pytest.mark.slow

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


def start(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "perftrail", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_at_random(arguments: tuple[str, ...], *, seed: int, full_seconds: float) -> int:
    """Start the command again and again, each time killed with -9 at another instant; count the kills."""
    chance = random.Random(seed)
    kills = 0
    for _ in range(KILLS):
        process = start(*arguments)
        try:
            process.wait(timeout=chance.uniform(0.2, full_seconds * 0.4))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    return kills


def finish(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "perftrail", *arguments, "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def invocations(store: Path) -> list[tuple[object, ...]]:
    """Every stored invocation by its identity, straight from the database."""
    with sqlite3.connect(store) as database:
        return database.execute(
            "SELECT runnable_id, machine_id, phase, ordinal FROM invocation ORDER BY 1, 2, 3, 4"
        ).fetchall()


def whole(study: Path, *arguments: str) -> tuple[dict[str, Any], float]:
    """Do it without interruption and say how long that took."""
    begun = time.monotonic()
    told = finish(*arguments, str(study))
    return told, time.monotonic() - begun


def test_run_resumes_after_ten_kills_with_each_invocation_exactly_once(
    history: History, tmp_path: Path
) -> None:
    calm = write_study(tmp_path / "calm", history, RUN_STUDY)
    _, seconds = whole(calm, "run")
    rough = write_study(tmp_path / "rough", history, RUN_STUDY)
    assert kill_at_random(("run", str(rough)), seed=1, full_seconds=seconds) > 0
    finish("run", str(rough))
    stored = invocations(rough.parent / ".perftrail" / "results.db")
    assert len(stored) == len(set(stored))
    assert len(stored) == len(invocations(calm.parent / ".perftrail" / "results.db"))
    plan = finish("check", str(rough))
    assert plan["invocations"]["left_most"] == 0
    assert plan["builds"]["failed"] == len(history.unbuildable)


def test_find_resumes_after_ten_kills_with_the_answer_and_each_invocation_exactly_once(
    history: History, tmp_path: Path
) -> None:
    calm = write_study(tmp_path / "calm", history)
    _, seconds = whole(calm, "find")
    rough = write_study(tmp_path / "rough", history)
    assert kill_at_random(("find", str(rough)), seed=2, full_seconds=seconds) > 0
    answer = finish("find", str(rough))
    assert answer["verdict"] == "found"
    assert answer["changes"][0]["revisions"] == [history.commits[CULPRIT]]
    stored = invocations(rough.parent / ".perftrail" / "results.db")
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
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said, said
    assert said.splitlines()[-1] == "interrupted; all samples are stored, and the same command resumes"
    assert process.returncode == 130
    assert stored_count(store) >= before
    assert not list((study.parent / ".perftrail" / "paths").glob("*")), "its links are removed"


def stored_count(store: Path) -> int:
    """Number of stored invocations; zero while the database is created."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT count(*) FROM invocation").fetchone()[0])
    return 0
