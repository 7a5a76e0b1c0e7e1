"""The second process, which computes a report: there is only one, it may be killed, and it ends with its parent."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perftrail.local_engine import LocalEngine, SecondProcessEngine, second_process

SECONDS_TO_END = 2.0

HOLDER = """
import os, time
from perftrail.local_engine import second_process
with second_process() as engine:
    print(engine.begin(os.getpgid, 0).outcome(), flush=True)
    engine.begin(time.sleep, 60)
    time.sleep(60)
"""


def test_jobs_are_performed_in_another_process() -> None:
    with second_process() as engine:
        assert isinstance(engine, SecondProcessEngine)
        assert engine.begin(os.getpgid, 0).outcome() != os.getpgid(0)


def test_much_may_be_sent_before_anything_is_asked_for() -> None:
    with second_process() as engine:
        sent = [engine.begin(bytes, 1_000_000) for _ in range(5)]
        counted = [engine.begin(len, b"x" * 1_000_000) for _ in range(5)]
        assert [each.outcome() for each in counted] == [1_000_000] * 5
        assert [len(each.outcome()) for each in sent] == [1_000_000] * 5


def test_a_job_of_a_dead_process_is_performed_locally() -> None:
    with second_process() as engine:
        engine.begin(os._exit, 3)
        after = engine.begin(math.sqrt, 16.0)
        assert after.outcome() == 4.0
        assert engine.begin(os.getpgid, 0).outcome() == os.getpgid(0)


def test_with_one_processor_there_is_no_second_process() -> None:
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        with second_process() as engine:
            assert isinstance(engine, LocalEngine)
    finally:
        os.sched_setaffinity(0, every)


def test_no_module_of_the_working_directory_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("import os; os._exit(9)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with second_process() as engine:
        assert engine.begin(os.getpgid, 0).outcome() != os.getpgid(0)


def test_it_ends_when_its_parent_is_killed() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    second = int(holder.stdout.readline())
    assert _runs(second)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    until = time.monotonic() + SECONDS_TO_END
    while _runs(second):
        assert time.monotonic() < until
        time.sleep(0.01)


def _runs(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
