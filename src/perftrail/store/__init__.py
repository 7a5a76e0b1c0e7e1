"""Where outcomes are kept: an SQLite file, or a database of a PostgreSQL server, through SQLAlchemy Core.

Importing this package imports nothing heavy: SQLAlchemy, which takes longer than all of `perftrail --help`,
comes with the first call of `open_store` that finds a store or makes one.

A file has one writer at a time, who takes its lock first; whoever reads needs none::

    with hold(path, wait=True, on_wait=tell), open_store(path, access="write") as store:
        store.add(outcome)

A server has as many writers as there are machines, and `open_shared` lets one of each measure::

    with open_shared(url, machine=machine.id, wait=True, on_wait=tell) as store:
        store.add(outcome)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never, overload

from perftrail.store.location import on_server, server_of, shown
from perftrail.store.lock import Holder, hold, writing
from perftrail.store.memory import MemoryStore
from perftrail.store.server_outage import LIMIT_SECONDS, Away, Back, Patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.store.sql import SqlStore

__all__ = [
    "Access",
    "Away",
    "Back",
    "Holder",
    "MemoryStore",
    "hold",
    "on_server",
    "open_shared",
    "open_store",
    "server_of",
    "shown",
    "writing",
]

Access = Literal["read", "write"]
"""What a store is opened for."""


@overload
def open_store(location: str, *, access: Literal["write"], machine: str = "") -> SqlStore: ...


@overload
def open_store(location: str, *, access: Access, machine: str = "") -> SqlStore | MemoryStore: ...


def open_store(location: str, *, access: Access, machine: str = "") -> SqlStore | MemoryStore:
    """Open the store in a file or in a server's database, as a context manager.

    To write: a file is made when need be, the tables of either are made or upgraded. `machine` is the id of the
    machine that builds are made on, kept with each of them; `add_machine` must have been told of it before.

    To read: never changes anything. A file that is not there reads as an empty store, and stays so for as
    long as this one is open; so does a database without tables. Builds of `machine` count before others'.

    Raises `StoreError` for a store that is damaged, belongs to something else, was written by a newer
    perftrail, or cannot be opened.
    """
    refusal = f"{shown(location)}: it was opened to be read, and cannot be written so"
    if access == "read" and not on_server(location) and not Path(location).exists():
        return MemoryStore(refusal=refusal)
    # SQLAlchemy takes 0.3 seconds and more to import.
    from perftrail.store.databases import to_read, to_write  # noqa: PLC0415
    from perftrail.store.sql import SqlStore  # noqa: PLC0415

    match access:
        case "write":
            return SqlStore(to_write(location), machine=machine)
        case "read":
            database = to_read(location)
            if database is None:
                return MemoryStore(refusal=refusal)
            return SqlStore(database, machine=machine, refusal=refusal)
        case _:
            assert_never(access)


def open_shared(
    url: str,
    *,
    machine: str,
    wait: bool,
    on_wait: Callable[[Holder | Away | Back], None],
    limit_seconds: float = LIMIT_SECONDS,
) -> SqlStore:
    """Open a server's database to write what this machine measures, which one perftrail of each machine does at a time.

    When another does, either wait for it, having told `on_wait` who it is, or raise `StoreLocked`. A server that goes
    away later is waited for as long as `limit_seconds`; `on_wait` is told when it went and when it is back. Raises
    `StoreError` as `open_store` does, and `StoreLocked` when another has taken this one's turn meanwhile.
    """
    from perftrail.store import postgresql  # noqa: PLC0415 - it takes long to import, as above
    from perftrail.store.sql import SqlStore  # noqa: PLC0415

    turn = postgresql.Turn(machine, where=shown(url), wait=wait, on_wait=on_wait)
    engine = postgresql.open_to_write(url, turn=turn)
    return SqlStore(
        postgresql.database(engine, where=shown(url)),
        machine=machine,
        patience=Patience(tell=on_wait, seconds=limit_seconds),
    )
