"""The store after a writer was killed at any instant."""

from __future__ import annotations

import random
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from perftrail.store import open_store
from tests.store.examples import MACHINE, RUNNABLE, key, measurement
from tests.store.processes import heard, start

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.measurement import Outcome
    from tests.store.processes import Process


def killed_after(writer: Process, count: int, seconds: float) -> list[int]:
    """Kill a writer some time after it printed the ordinals of so many stored outcomes; return the printed ordinals."""
    numbers = [int(heard(writer)) for _ in range(count)]
    return numbers + killed_within(writer, seconds)


def killed_within(writer: Process, seconds: float) -> list[int]:
    """Kill a writer after some time; return the ordinals that it printed as stored."""
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(seconds)
    writer.kill()
    assert writer.stdout is not None
    return [int(line) for line in writer.stdout.read().split() if line.isdigit()]


def kept(path: Path) -> tuple[Outcome, ...]:
    with open_store(str(path), access="read") as store:
        return store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]


def assert_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow("processor"))])
def test_every_outcome_that_was_added_is_there_once_after_kills_at_random_instants(
    tmp_path: Path, kills: int
) -> None:
    path = tmp_path / "results.db"
    rng = random.Random(20)
    numbers: list[int] = []
    for _ in range(kills):
        with start("writes", path) as writer:
            assert heard(writer) == "started"
            assert heard(writer) == "ready"  # it also has the lock: the killed one before it left none
            numbers += killed_after(writer, rng.randrange(8), rng.uniform(0.0, 0.02))
        found = kept(path)
        assert found == tuple(measurement(key(ordinal), wall=ordinal / 7) for ordinal in range(len(found)))
        assert set(numbers) <= set(range(len(found)))
        assert len(numbers) == len(set(numbers))
    assert len(numbers) > kills
    assert_sound(path)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow("processor"))])
def test_a_writer_killed_while_it_makes_the_store_leaves_one_that_works(tmp_path: Path, kills: int) -> None:
    rng = random.Random(21)
    for number in range(kills):
        path = tmp_path / f"{number}.db"
        with start("writes", path) as writer:
            assert heard(writer) == "started"
            numbers = killed_within(writer, rng.uniform(0.0, 0.08))
        assert len(kept(path)) >= len(numbers)
        with open_store(str(path), access="write") as store:
            assert store.searches() == []
        assert_sound(path)
