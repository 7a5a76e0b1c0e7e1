"""Statistics of a store, and which samples `forget` removes."""

from __future__ import annotations

import threading
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from perftrail.errors import NoAnswer, StoreLocked
from perftrail.store import lock_for_writing, open_store
from perftrail.store.upkeep import compact, forget, preview_forget, statistics
from tests.store.examples import (
    MACHINE,
    OTHER_MACHINE,
    OTHER_RUNNABLE,
    RUNNABLE,
    acquaint,
    failed,
    fill,
    key,
    measurement,
)
from tests.store.server import until_waiting

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.model.measurement import Outcome
    from perftrail.store.upkeep import Forgetting


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    found = (
        str(tmp_path / "results.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")
    )
    return str(found)


def dated(outcome: Outcome, started: str) -> Outcome:
    return replace(outcome, started=started)


OLD, NEW = "2024-01-01T00:00:00.000+00:00", "2025-01-01T00:00:00.000+00:00"


@pytest.fixture
def aged(location: str) -> str:
    """A store with outcomes of two years, and one of unknown time."""
    with open_store(location, access="write") as store:
        fill_with_ages = [
            dated(measurement(key(0, phase="warmup")), OLD),
            dated(measurement(key(0)), OLD),
            dated(failed(key(1)), OLD),
            dated(measurement(key(2)), NEW),
            dated(measurement(key(3)), ""),
            dated(measurement(key(machine=OTHER_MACHINE, runnable=OTHER_RUNNABLE)), OLD),
        ]
        acquaint(store)
        store.add_all(fill_with_ages)
    return location


def test_statistics_count_what_is_there(location: str) -> None:
    with open_store(location, access="write") as store:
        fill(store)
        store.add_runnable(replace(RUNNABLE, revision="4" * 40))
    found = statistics(location)
    assert found.bytes > 10_000
    assert (found.rows["invocation"], found.rows["value"], found.rows["failure"]) == (5, 11, 1)
    assert [(part.name, part.invocations, part.samples, part.failures) for part in found.machines] == [
        (MACHINE.id, 4, 2, 1),
        (OTHER_MACHINE.id, 1, 1, 0),
    ]
    assert [(part.name, part.invocations) for part in found.benchmarks] == [("mt", 4), ("st", 1)]
    assert found.machines[0].oldest == "2025-11-21T02:37:00.123456+00:00"
    assert found.machines[0].newest == "2025-11-21T02:38:00+00:00"
    assert "cret" not in str(asdict(found))


def test_an_unknown_time_is_neither_the_first_nor_the_last(aged: str) -> None:
    (own, _) = statistics(aged).machines
    assert (own.oldest, own.newest, own.invocations) == (OLD, NEW, 5)


def test_statistics_of_nothing_say_what_to_do(location: str) -> None:
    with pytest.raises(NoAnswer, match="the store is empty; measure with: perftrail run"):
        statistics(location)


def test_samples_that_would_be_removed_are_listed_and_stay(aged: str) -> None:
    gone = preview_forget(aged, "2024-06-01")
    assert (gone.invocations, gone.values, gone.done) == (4, 9, False)
    assert [(part.name, part.invocations) for part in gone.machines] == [
        (MACHINE.id, 3),
        (OTHER_MACHINE.id, 1),
    ]
    assert statistics(aged).rows["invocation"] == 6


def test_removed_samples_are_gone_with_their_values_and_all_others_stay(aged: str) -> None:
    gone = forget(aged, "2024-06-01")
    assert (gone.invocations, gone.values, gone.done) == (4, 9, True)
    found = statistics(aged)
    assert (found.rows["invocation"], found.rows["value"], found.rows["failure"]) == (2, 6, 0)
    assert found.rows["stands_for"] == 2
    with open_store(aged, access="write") as store:
        kept = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
        assert [each.key.ordinal for each in kept] == [2, 3]
        store.add(measurement(key(0)))
    assert forget(aged, "2024-06-01").invocations == 0


@pytest.mark.long
def test_an_old_sample_that_is_added_meanwhile_stays_whole(postgresql: str) -> None:
    """Another process copies into the database while its old samples are removed."""
    with open_store(postgresql, access="write") as store:
        acquaint(store)
        store.add_all(dated(measurement(key(ordinal)), OLD) for ordinal in range(2))
    gone: list[Forgetting] = []
    forgetting = threading.Thread(target=lambda: gone.append(forget(postgresql, "2024-06-01")))
    with psycopg.connect(postgresql) as holding:
        holding.execute("SELECT * FROM value FOR UPDATE")
        forgetting.start()
        until_waiting(postgresql, forgetting)
        with open_store(postgresql, access="write") as store:
            store.add(dated(measurement(key(7)), OLD))
    forgetting.join(30)
    assert [each.invocations for each in gone] == [2]
    with open_store(postgresql, access="read") as store:
        assert store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key] == (dated(measurement(key(7)), OLD),)


def test_the_moment_itself_is_not_before_it(aged: str) -> None:
    assert preview_forget(aged, OLD).invocations == 0
    assert preview_forget(aged, "2024-01-01T00:00:00.001+00:00").invocations == 4


def test_a_compacted_store_is_smaller_and_has_the_same_content(location: str) -> None:
    with open_store(location, access="write") as store:
        acquaint(store)
        store.add_all(dated(measurement(key(ordinal)), OLD if ordinal else NEW) for ordinal in range(3000))
    forget(location, "2024-06-01")
    done = compact(location)
    assert done.after_bytes < 0.7 * done.before_bytes
    assert statistics(location).bytes == done.after_bytes
    with open_store(location, access="read") as store:
        assert len(store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]) == 1


@pytest.mark.parametrize("change", [lambda path: forget(path, NEW), compact])
def test_a_file_that_another_writes_to_is_left_alone(tmp_path: Path, change: object) -> None:
    path = str(tmp_path / "results.db")
    with open_store(path, access="write") as store:
        fill(store)
    with lock_for_writing(path, wait=False), pytest.raises(StoreLocked):
        change(path)  # type: ignore[operator]  # both take a path
    with pytest.raises(NoAnswer):
        change(str(tmp_path / "none.db"))  # type: ignore[operator]  # as above
