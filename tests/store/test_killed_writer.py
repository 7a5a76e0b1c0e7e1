"""The store after a writer was killed at any instant."""

from __future__ import annotations

import random
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from perftrail.store import open_store
from tests.store.examples import MACHINE, RUNNABLE, key, measurement
from tests.store.processes import heard, start

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.measurement import Outcome
    from tests.store.processes import Process


@dataclass(frozen=True)
class Kill:
    """An instant: some time after a writer printed the ordinals of so many stored outcomes."""

    count: int
    seconds: float


def killed_after(writer: Process, kill: Kill) -> list[int]:
    """Kill a writer; return the ordinals that it printed as stored."""
    numbers = [int(heard(writer)) for _ in range(kill.count)]
    return numbers + killed_within(writer, kill.seconds)


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


def random_kills(count: int) -> list[Kill]:
    rng = random.Random(20)
    return [Kill(rng.randrange(8), rng.uniform(0.0, 0.02)) for _ in range(count)]


KILLS = [Kill(0, 0.0), Kill(1, 0.0), Kill(7, 0.004), Kill(2, 0.015)]
MANY = [pytest.mark.long, pytest.mark.slow("processor")]


@pytest.mark.parametrize(
    "kills", [pytest.param(KILLS, id="chosen"), pytest.param(random_kills(20), id="random", marks=MANY)]
)
def test_every_outcome_that_was_added_is_there_once_after_kills_at_any_instant(
    tmp_path: Path, kills: list[Kill]
) -> None:
    path = tmp_path / "results.db"
    numbers: list[int] = []
    for kill in kills:
        with start("writes", path) as writer:
            assert heard(writer) == "started"
            assert heard(writer) == "ready"  # it also has the lock: the killed one before it left none
            numbers += killed_after(writer, kill)
        found = kept(path)
        assert found == tuple(measurement(key(ordinal), wall=ordinal / 7) for ordinal in range(len(found)))
        assert set(numbers) <= set(range(len(found)))
        assert len(numbers) == len(set(numbers))
    assert len(numbers) > len(kills)
    assert_sound(path)


def random_seconds(count: int) -> list[float]:
    rng = random.Random(21)
    return [rng.uniform(0.0, 0.08) for _ in range(count)]


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param([0.0, 0.015, 0.03, 0.06], id="chosen"),
        pytest.param(random_seconds(20), id="random", marks=MANY),
    ],
)
def test_a_writer_killed_while_it_makes_the_store_leaves_one_that_works(
    tmp_path: Path, seconds: list[float]
) -> None:
    for number, instant in enumerate(seconds):
        path = tmp_path / f"{number}.db"
        with start("writes", path) as writer:
            assert heard(writer) == "started"
            numbers = killed_within(writer, instant)
        assert len(kept(path)) >= len(numbers)
        with open_store(str(path), access="write") as store:
            assert store.searches() == []
        assert_sound(path)
