"""Where outcomes are kept: an SQLite file, through SQLAlchemy Core.

Importing this package imports nothing heavy: SQLAlchemy, which takes longer than all of `perftrail --help`,
comes with the first call of `open_store` that finds a store or makes one.

Whoever writes takes the lock first; whoever reads needs none::

    with hold(path, wait=True, on_wait=tell), open_store(path, access="write") as store:
        store.add(outcome)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never, overload

from perftrail.store.lock import Holder, hold
from perftrail.store.memory import MemoryStore

if TYPE_CHECKING:
    from perftrail.store.sql import SqlStore

__all__ = ["Access", "Holder", "MemoryStore", "hold", "open_store"]

Access = Literal["read", "write"]
"""What a store is opened for."""


@overload
def open_store(path: str, *, access: Literal["write"], machine: str = "") -> SqlStore: ...


@overload
def open_store(path: str, *, access: Access, machine: str = "") -> SqlStore | MemoryStore: ...


def open_store(path: str, *, access: Access, machine: str = "") -> SqlStore | MemoryStore:
    """Open the store at `path`, as a context manager.

    To write: the file is made or upgraded when need be. `machine` is the id of the machine that builds are
    made on, kept with each of them; `add_machine` must have been told of it before.

    To read: never changes anything. A file that is not there reads as an empty store, and stays so for as
    long as this one is open.

    Raises `StoreError` for a file that is damaged, belongs to something else, was written by a newer
    perftrail, or cannot be opened.
    """
    refusal = f"{path}: it was opened to be read, and cannot be written so"
    if access == "read" and not Path(path).exists():
        return MemoryStore(refusal=refusal)
    # SQLAlchemy takes 0.3 seconds and more to import.
    from perftrail.store import sqlite  # noqa: PLC0415
    from perftrail.store.sql import SqlStore  # noqa: PLC0415

    match access:
        case "write":
            return SqlStore(sqlite.open_to_write(path), where=path, machine=machine)
        case "read":
            engine = sqlite.open_to_read(path)
            if engine is None:
                return MemoryStore(refusal=refusal)
            return SqlStore(engine, where=path, refusal=refusal)
        case _:
            assert_never(access)
