"""The store of outcomes: an SQLite file, or a database of a PostgreSQL server, through SQLAlchemy Core.

Importing this package imports nothing heavy: SQLAlchemy takes longer than all of `perftrail --help`, and comes with
the first call of `open_store` that finds or creates a store.

A file has one writer at a time, which locks it first; readers need no lock::

    with lock_for_writing(path, wait=True, on_wait=notify), open_store(path, access="write") as store:
        store.add(outcome)

A server has as many writers as there are machines; `open_shared` lets one process of each machine measure::

    with open_shared(url, machine=machine.id, wait=True, on_wait=notify) as store:
        store.add(outcome)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never, overload

from perftrail.store.empty import EmptyStore
from perftrail.store.location import on_server, parse_server, shown
from perftrail.store.lock import Holder, current_writer, lock_for_writing
from perftrail.store.retried_transactions import LIMIT_SECONDS, ServerBack, ServerUnreachable, ServerWait

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.store.sql import SqlStore

__all__ = [
    "Access",
    "Holder",
    "ServerBack",
    "ServerUnreachable",
    "current_writer",
    "lock_for_writing",
    "on_server",
    "open_shared",
    "open_store",
    "parse_server",
    "shown",
]

Access = Literal["read", "write"]
"""Access to a store."""


@overload
def open_store(location: str, *, access: Literal["write"], machine: str = "") -> SqlStore: ...


@overload
def open_store(location: str, *, access: Access, machine: str = "") -> SqlStore | EmptyStore: ...


def open_store(location: str, *, access: Access, machine: str = "") -> SqlStore | EmptyStore:
    """Open the store in a file or in a server's database, as a context manager.

    For writing, a missing file is created, and so are its tables. `machine` is the id of the machine of
    builds and listings, stored with each of them; `add_machine` must have stored it before.

    For reading, nothing changes. A missing file is an empty store, and stays empty while it is open; so is a database
    without tables. Builds of `machine` count before others'.

    Raises `StoreError` for a store that is damaged, belongs to another program, has the format of another perftrail,
    or cannot be opened.
    """
    refusal = f"{shown(location)}: the store is open for reading only"
    if access == "read" and not on_server(location) and not Path(location).exists():
        return EmptyStore(refusal=refusal)
    # SQLAlchemy takes 0.3 seconds and more to import.
    from perftrail.store.databases import to_read, to_write  # noqa: PLC0415
    from perftrail.store.sql import SqlStore  # noqa: PLC0415

    match access:
        case "write":
            return SqlStore(to_write(location), machine=machine)
        case "read":
            database = to_read(location)
            if database is None:
                return EmptyStore(refusal=refusal)
            return SqlStore(database, machine=machine, refusal=refusal)
        case _:
            assert_never(access)


def open_shared(
    url: str,
    *,
    machine: str,
    wait: bool,
    on_wait: Callable[[Holder | ServerUnreachable | ServerBack], None],
    limit_seconds: float = LIMIT_SECONDS,
) -> SqlStore:
    """Open a server's database for writing; one perftrail process of each machine may do so at a time.

    If another one does, wait and call `on_wait` with that process, or raise `StoreLocked`. If the server does not
    answer later, wait up to `limit_seconds`; `on_wait` is called when it stops answering and when it answers again.
    Raises `StoreError` as `open_store` does, and `StoreLocked` if another process got the lock meanwhile.
    """
    from perftrail.store import postgresql  # noqa: PLC0415 - it takes long to import, as above
    from perftrail.store.sql import SqlStore  # noqa: PLC0415

    lock = postgresql.MachineLock(machine, where=shown(url), wait=wait, on_wait=on_wait)
    engine = postgresql.open_to_write(url, lock=lock)
    return SqlStore(
        postgresql.database(engine, where=shown(url)),
        machine=machine,
        server_wait=ServerWait(on_change=on_wait, seconds=limit_seconds),
    )
