"""Open the database of a store, of either kind."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer
from perftrail.store import sqlite
from perftrail.store.damage import translate_damage
from perftrail.store.location import on_server, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from perftrail.store.retried_transactions import Database


def to_write(location: str) -> Database:
    """Open a store's database for writing; create it if necessary. Raises `StoreError`."""
    if on_server(location):
        from perftrail.store import postgresql  # noqa: PLC0415 - psycopg is an extra, and takes long to import

        return postgresql.database(postgresql.open_to_write(location), where=shown(location))
    return sqlite.database(sqlite.open_to_write(location), where=location)


def to_read(location: str) -> Database | None:
    """Open a store's database without changing it; `None` if it is empty."""
    if on_server(location):
        from perftrail.store import postgresql  # noqa: PLC0415 - as above

        engine = postgresql.open_to_read(location)
        return None if engine is None else postgresql.database(engine, where=shown(location))
    engine = sqlite.open_to_read(location)
    return None if engine is None else sqlite.database(engine, where=location)


@contextmanager
def open_snapshot(location: str) -> Iterator[Connection]:
    """Yield a connection that sees one state of a store. Raises `NoAnswer` for an empty store."""
    missing = not on_server(location) and not Path(location).exists()
    database = None if missing else to_read(location)
    if database is None:
        raise NoAnswer(f"{shown(location)}: the store is empty; measure with: perftrail run")
    try:
        with (
            translate_damage(database.where),
            database.translate_errors(database.where),
            database.reading.connect() as connection,
        ):
            yield connection
    finally:
        database.close()
