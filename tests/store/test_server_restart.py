"""A server that stops during work: the client waits for it, and nothing is lost or duplicated."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import psycopg
import pytest

from perftrail.errors import StoreError, StoreLocked, StoreUnreachable
from perftrail.model.store_records import RegressionNote
from perftrail.store import ServerBack, ServerUnreachable, open_shared, open_store
from perftrail.store.backup import backup, restore
from tests.needs import skip_for
from tests.store.breakable_connection import proxy_to
from tests.store.examples import BUILD, LISTING, MACHINE, RUNNABLE, acquaint, key, measurement
from tests.store.server import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from perftrail.store.sql import SqlStore
    from tests.store.server import Server

Result = TypeVar("Result")

pytestmark = [pytest.mark.long, pytest.mark.slow("postgresql")]

COMMIT = b"COMMIT\0"
"""The request is matched as a whole word: each transaction begins with READ COMMITTED."""

NOTE = RegressionNote(
    regression="cost plain 1",
    status="acknowledged",
    text="seen",
    author="Ada",
    written="2026-01-31T12:00:00Z",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for this module that keeps committed data through a crash."""
    with running(durable=True) as started:
        if started is None:
            skip_for("postgres")
        yield started


@pytest.fixture
def url(server: Server) -> str:
    return server.schema()


def shared(url: str, events: list[object], *, limit_seconds: float = 60.0) -> SqlStore:
    return open_shared(
        url, machine=MACHINE.id, wait=False, on_wait=events.append, limit_seconds=limit_seconds
    )


def ordinals(url: str) -> list[int]:
    with open_store(url, access="read") as store:
        return [each.key.ordinal for each in store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]]


def while_away(server: Server, events: list[object], work: Callable[[], Result]) -> Result:
    """Run a function while a server is stopped; it starts again once a message has reported that."""
    with ThreadPoolExecutor(1) as thread:
        server.stop()
        doing = thread.submit(work)
        while not any(isinstance(each, ServerUnreachable) for each in events) and not doing.done():
            time.sleep(0.05)
        server.start()
        return doing.result()


def test_outcomes_added_while_the_server_is_away_are_stored_once_it_is_back(server: Server, url: str) -> None:
    events: list[object] = []
    with shared(url, events) as store:
        acquaint(store)
        store.add(measurement(key(0)))
        while_away(server, events, lambda: store.add(measurement(key(1))))
        store.add(measurement(key(2)))
    assert ordinals(url) == [0, 1, 2]
    assert [type(each) for each in events] == [ServerUnreachable, ServerBack]
    assert "cret" not in repr(events)


def test_a_read_while_the_server_is_away_ends_once_it_is_back(server: Server, url: str) -> None:
    events: list[object] = []
    with shared(url, events) as store:
        acquaint(store)
        assert while_away(server, events, lambda: store.runnables("mt")) == [RUNNABLE]
    assert [type(each) for each in events] == [ServerUnreachable, ServerBack]


def test_an_unnoticed_restart_is_not_reported(server: Server, url: str) -> None:
    events: list[object] = []
    with shared(url, events) as store, open_store(url, access="write") as other:
        acquaint(store)
        server.stop()
        server.start()
        store.add(measurement(key(0)))
        assert other.revisions() == store.revisions()
    assert events == []
    assert ordinals(url) == [0]


def test_a_server_that_stays_away_is_an_error_with_its_remedy(server: Server, url: str) -> None:
    events: list[object] = []
    with shared(url, events, limit_seconds=0.2) as store, open_store(url, access="read") as reader:
        acquaint(store)
        server.stop()
        try:
            with pytest.raises(
                StoreError,
                match=r"has not answered for .*; start it and repeat the command, which then resumes",
            ):
                store.add(measurement(key(0)))
            with pytest.raises(StoreUnreachable, match="check that the server runs"):
                reader.machines()
        finally:
            server.start()
    assert [type(each) for each in events] == [ServerUnreachable]
    assert ordinals(url) == []


def test_the_measuring_lock_is_taken_again_with_the_server(server: Server, url: str) -> None:
    events: list[object] = []
    with shared(url, events) as store:
        acquaint(store)
        server.stop()
        server.start()
        store.add(measurement(key(0)))
        with pytest.raises(StoreLocked):
            shared(url, [])


def test_a_process_that_lost_the_lock_while_the_server_was_away_ends(server: Server, url: str) -> None:
    events: list[object] = []
    with shared(url, events) as store:
        acquaint(store)
        server.stop()
        server.start()
        with shared(url, []) as other:
            with pytest.raises(
                StoreLocked, match="began to measure on this machine; all samples so far are stored"
            ):
                store.add(measurement(key(0)))
            other.add(measurement(key(0), wall=2.0))
    assert ordinals(url) == [0]


def test_a_connection_that_the_server_does_not_know_to_be_dead_gives_its_turn_to_its_owner(
    server: Server, url: str
) -> None:
    events: list[object] = []
    with proxy_to(server.socket) as (line, directory), shared(over(url, server, directory), events) as store:
        acquaint(store)
        line.cut_after = COMMIT
        store.add(measurement(key(0)))
    assert line.cuts == 1
    assert ordinals(url) == [0]


def over(url: str, server: Server, directory: str) -> str:
    """Return the address of a database through a proxy."""
    return url.replace(str(server.socket), directory)


# A commit with an unknown result


def test_an_outcome_whose_commit_was_not_answered_is_stored_once(server: Server, url: str) -> None:
    with (
        proxy_to(server.socket) as (line, directory),
        open_store(over(url, server, directory), access="write") as store,
    ):
        acquaint(store)
        for ordinal in range(3):
            line.cut_after = COMMIT
            store.add(measurement(key(ordinal), wall=ordinal / 7))
    assert line.cuts == 3
    with open_store(url, access="read") as store:
        kept = store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key]
    assert kept == tuple(measurement(key(ordinal), wall=ordinal / 7) for ordinal in range(3))


def test_a_build_whose_commit_was_not_answered_is_stored_once(server: Server, url: str) -> None:
    with (
        proxy_to(server.socket) as (line, directory),
        open_store(over(url, server, directory), access="write") as store,
    ):
        line.cut_after = COMMIT
        store.add_build(BUILD)
    assert line.cuts == 1
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM build").fetchone() == (1,)


def test_a_listing_whose_commit_was_not_answered_is_stored_once(server: Server, url: str) -> None:
    with (
        proxy_to(server.socket) as (line, directory),
        open_store(over(url, server, directory), access="write") as store,
    ):
        line.cut_after = COMMIT
        store.add_listing(LISTING)
    assert line.cuts == 1
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM document").fetchone() == (1,)


def test_a_note_whose_commit_was_not_answered_is_stored_once(server: Server, url: str) -> None:
    with (
        proxy_to(server.socket) as (line, directory),
        open_store(over(url, server, directory), access="write") as store,
    ):
        line.cut_after = COMMIT
        store.add_note(NOTE)
        store.add_note(replace(NOTE, text="seen again"))
    assert line.cuts == 1
    with open_store(url, access="read") as store:
        assert store.notes() == [NOTE, replace(NOTE, text="seen again")]


def test_another_outcome_under_the_key_is_no_proof_of_an_unanswered_commit(server: Server, url: str) -> None:
    with (
        proxy_to(server.socket) as (line, directory),
        open_store(over(url, server, directory), access="write") as store,
    ):
        acquaint(store)
        with open_store(url, access="write") as other:
            other.add(measurement(key(0), wall=9.0))
        line.cut_after = b"INSERT INTO invocation"
        with pytest.raises(StoreError, match="exists already"):
            store.add(measurement(key(0), wall=1.0))
    assert line.cuts == 1


def test_a_restore_into_a_server_that_stops_is_reported_and_leaves_nothing(
    server: Server, url: str, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "results.db"), access="write") as store:
        acquaint(store)
        store.add(measurement(key(0)))
    backup(str(tmp_path / "results.db"), tmp_path / "saved")
    try:
        with pytest.raises(StoreUnreachable, match=r"postgresql://.*check that the server runs"):
            restore(tmp_path / "saved", url, on_progress=lambda *_: server.stop())
    finally:
        server.start()
    restore(tmp_path / "saved", url)
    assert ordinals(url) == [0]
