"""On one machine several processes may build at once; a process that measures is alone."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from perftrail.cluster.worker import building, measuring
from perftrail.file_tree import try_exclusive_lock

PATIENCE_SECONDS = 10.0


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_builds_run_in_parallel() -> None:
    with building("one"), building("one"):
        pass


@pytest.mark.parametrize("first", [building, measuring])
def test_a_measurement_waits_for_running_builds_and_is_then_alone(first: type) -> None:
    order: list[str] = []

    def measure() -> None:
        with measuring("one"):
            order.append("measured")

    thread = threading.Thread(target=measure, daemon=True)
    with first("one"):
        thread.start()
        thread.join(0.1)
        order.append("first ended")
    thread.join(PATIENCE_SECONDS)
    assert order == ["first ended", "measured"]


def until_taken(lock: Path) -> None:
    """Wait until a process holds a lock."""
    free = True
    while free:
        with try_exclusive_lock(lock) as free:
            pass
        time.sleep(0.005)


def test_a_build_that_comes_later_waits_until_it_was_measured(tmp_path: Path) -> None:
    order: list[str] = []

    def measure() -> None:
        with measuring("one"):
            order.append("measured")

    def build() -> None:
        with building("one"):
            order.append("built")

    threads = [threading.Thread(target=each, daemon=True) for each in (measure, build)]
    with building("one"):
        threads[0].start()
        until_taken(tmp_path / "perftrail" / "machines" / "one" / "turn.lock")
        threads[1].start()
        threads[1].join(0.1)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert order == ["measured", "built"]


def test_machines_with_two_names_do_not_wait_for_each_other() -> None:
    with measuring("one"), measuring("two"), building("three"):
        pass
