"""Many writers of one server's database: nothing is lost or duplicated; one process per machine measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perftrail.errors import StoreError, StoreLocked
from perftrail.model.measurement import Machine, Measurement
from perftrail.store import Holder, open_shared, open_store
from tests.store.examples import MACHINE, OTHER_MACHINE, RUNNABLE, acquaint, key, measurement

if TYPE_CHECKING:
    from perftrail.store.sql import SqlStore

pytestmark = [pytest.mark.long, pytest.mark.slow("postgresql")]

WRITERS = 8
SAMPLES = 3200


def written(store: SqlStore, machine: Machine) -> list[int]:
    """Return the stored ordinals of a machine."""
    return [each.key.ordinal for each in store.outcomes([RUNNABLE.key], machine.id)[RUNNABLE.key]]


def machines(count: int) -> list[Machine]:
    return [Machine(id=f"{number:016x}", facts={}) for number in range(count)]


# Writing at once


def test_writers_that_open_an_empty_database_at_once_all_find_its_tables(postgresql: str) -> None:
    begin = threading.Barrier(4)

    def come(machine: Machine) -> None:
        begin.wait()
        with open_store(postgresql, access="write") as store:
            store.add_machine(machine)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(come, machines(4)))
    with open_store(postgresql, access="read") as store:
        assert set(store.machines()) == {machine.id for machine in machines(4)}


def test_outcomes_of_eight_machines_at_once_are_all_stored(postgresql: str) -> None:
    every = machines(WRITERS)

    def measure(machine: Machine) -> None:
        with open_store(postgresql, access="write", machine=machine.id) as store:
            store.add_machine(machine)
            store.add_runnable(RUNNABLE)
            for ordinal in range(20):
                store.add(measurement(key(ordinal, machine=machine), wall=ordinal / 7))

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(measure, every))
    with open_store(postgresql, access="write") as store:
        for machine in every:
            assert store.outcomes([RUNNABLE.key], machine.id)[RUNNABLE.key] == tuple(
                measurement(key(ordinal, machine=machine), wall=ordinal / 7) for ordinal in range(20)
            )
        assert store.runnables() == [RUNNABLE]


def test_of_two_writers_with_one_key_one_gets_an_error(postgresql: str) -> None:
    begin = threading.Barrier(2)

    def measure(wall: float) -> str:
        with open_store(postgresql, access="write") as store:
            acquaint(store)
            begin.wait()
            try:
                store.add(measurement(key(), wall=wall))
            except StoreError as error:
                return str(error)
            return "kept"

    with ThreadPoolExecutor(2) as threads:
        outcomes = sorted(threads.map(measure, (1.0, 2.0)), reverse=True)
    assert outcomes[1] == "kept" or "exists already" in outcomes[1]
    assert sorted(each == "kept" for each in outcomes) == [False, True]
    with open_store(postgresql, access="write") as store:
        assert written(store, MACHINE) == [0]


def test_new_metrics_in_opposite_orders_cause_no_deadlock(postgresql: str) -> None:
    with open_store(postgresql, access="write") as store:
        acquaint(store)
    begin = threading.Barrier(2)

    def measure(number: int) -> None:
        with open_store(postgresql, access="write") as store:
            for turn in range(10):
                names = [f"metric {turn} {index}" for index in range(20)]
                values = dict.fromkeys(names if number else reversed(names), 1.0)
                begin.wait()
                store.add(Measurement(key=key(2 * turn + number), started="", seconds=1.0, values=values))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(measure, (0, 1)))
    with open_store(postgresql, access="write") as store:
        assert written(store, MACHINE) == list(range(20))


def test_two_transactions_in_a_deadlock_both_end(postgresql: str) -> None:
    with open_store(postgresql, access="write") as store:
        acquaint(store)
    begin = threading.Barrier(2)
    ordinals = range(400)

    def measure(number: int) -> bool:
        order = ordinals if number else reversed(ordinals)
        with open_store(postgresql, access="write") as store:
            begin.wait()
            try:
                store.add_all(measurement(key(ordinal), wall=number + 1.0) for ordinal in order)
            except StoreError as error:
                assert "exists already" in str(error)
                return False
            return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(measure, (0, 1))) == [False, True]
    with open_store(postgresql, access="write") as store:
        assert written(store, MACHINE) == list(ordinals)


def test_eight_processes_at_once_lose_nothing(postgresql: str) -> None:
    command = [sys.executable, "-m", "benchmarks.store", "writers", "--samples", str(SAMPLES), "--json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*command, "--store", postgresql], env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["writers"], data["missing"], data["different"]) == (WRITERS, 0, 0)
    assert data["samples"] >= SAMPLES
    assert "cret" not in done.stdout + done.stderr


# One of a machine at a time


def shared(
    url: str, machine: Machine = MACHINE, *, events: list[object] | None = None, wait: bool = False
) -> SqlStore:
    return open_shared(url, machine=machine.id, wait=wait, on_wait=([] if events is None else events).append)


def test_a_second_perftrail_of_a_machine_learns_which_process_measures(postgresql: str) -> None:
    with shared(postgresql), pytest.raises(StoreLocked) as refused:
        shared(postgresql)
    assert f"process {os.getpid()} (perftrail), started 20" in str(refused.value)
    assert "measures on this machine into the same store" in str(refused.value)
    shared(postgresql).close()


def test_a_waiting_second_perftrail_is_notified_once_and_starts_when_the_first_ends(postgresql: str) -> None:
    events: list[object] = []
    first = shared(postgresql)
    waiting = threading.Thread(target=lambda: shared(postgresql, events=events, wait=True).close())
    waiting.start()
    while not events:
        time.sleep(0.05)
    waiting.join(0.2)
    assert waiting.is_alive()
    first.close()
    waiting.join(30)
    assert not waiting.is_alive()
    assert [type(each) for each in events] == [Holder]


def test_several_machines_measure_at_once(postgresql: str) -> None:
    with ExitStack() as stack:
        stores = [stack.enter_context(shared(postgresql, machine)) for machine in (MACHINE, OTHER_MACHINE)]
        acquaint(stores[0])
        for machine, store in zip((MACHINE, OTHER_MACHINE), stores, strict=True):
            store.add(measurement(key(machine=machine)))


def test_others_may_read_copy_and_note_while_a_machine_measures(postgresql: str) -> None:
    with shared(postgresql) as measuring, open_store(postgresql, access="write") as other:
        acquaint(measuring)
        measuring.add(measurement(key(0)))
        other.add_runnable(replace(RUNNABLE, revision="9" * 40))
        assert written(other, MACHINE) == [0]
