"""A store needs no more memory for a long run than for a short one."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.model.measurement import Draw
from perftrail.store import open_store, outcomes
from tests.store.examples import MACHINE, RUNNABLE, acquaint, key, measurement

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from perftrail.store.sql import SqlStore

MOST_BYTES = 40_000
"""Allowed growth: a block of each added outcome, kept in memory, would need half as much again."""


def test_a_store_keeps_nothing_of_an_added_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "MOST_BLOCKS", 10)
    with open_store(str(tmp_path / "results.db"), access="write") as store:
        acquaint(store)
        tracemalloc.start()
        try:
            add_blocks(store, range(60))
            before = traced_bytes()
            add_blocks(store, range(60, 360))
            grown = traced_bytes() - before
        finally:
            tracemalloc.stop()
        stored = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
    assert grown < MOST_BYTES
    assert [each.draw.block for each in stored] == [block(number) for number in range(360)]


def add_blocks(store: SqlStore, numbers: range) -> None:
    """Add an outcome of another block for each number, as a run with one benchmark does."""
    for number in numbers:
        store.add(replace(measurement(key(number)), draw=Draw(block=block(number), turn=1)))


def block(number: int) -> str:
    return f"{number:016x}"


def traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
