"""The format of a store: one version of its tables, which this perftrail creates and reads.

The number grows with every change of a table or of stored JSON. A store of another version is refused with a remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text, func, insert, inspect, select

from perftrail._version import __version__
from perftrail.errors import StoreError
from perftrail.store import schema
from perftrail.store.damage import DAMAGED

if TYPE_CHECKING:
    from sqlalchemy import Connection

FORMAT = 11
"""Version of the tables in `schema`."""

NOTHING = 0
"""Version of a database without tables."""

format_table = Table(
    "perftrail_schema",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("perftrail", Text, nullable=False),
)
"""The version of a store, and the perftrail version that created it."""


def version(connection: Connection, *, where: str) -> int:
    """Return the version of a store, `NOTHING` without tables.

    Raises `StoreError` for a database of another program.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return NOTHING
    if format_table.name not in tables:
        raise StoreError(
            f"{where}: this database belongs to another program, with tables {', '.join(sorted(tables)[:5])}; "
            "name another with --store"
        )
    found: object = connection.scalar(select(func.max(format_table.c.version)))
    if not isinstance(found, int) or found <= NOTHING:
        raise StoreError(f"{where}: its schema version is {found!r}, which is not valid: {DAMAGED}")
    return found


def known_version(connection: Connection, *, where: str) -> int:
    """Return `FORMAT`, or `NOTHING` without tables. Raises `StoreError` for a store of any other version."""
    found = version(connection, where=where)
    refuse_others(found, where=where)
    return found


def refuse_others(found: int, *, where: str) -> None:
    """Raise `StoreError` for the version of a store that a newer or an older perftrail wrote."""
    if found in (NOTHING, FORMAT):
        return
    age, remedy = "a newer", "install a newer one, or name another store with --store"
    if found < FORMAT:
        age, remedy = (
            "an older",
            "move it away and measure again, or name another store with --store; its samples can be read with the "
            "perftrail that wrote it (perftrail export), and its files are not changed",
        )
    raise StoreError(
        f"{where}: this store has the format of {age} perftrail: "
        f"its schema is version {found}, perftrail {__version__} supports {FORMAT}; {remedy}"
    )


def create(connection: Connection, *, where: str) -> None:
    """Create the tables inside the caller's transaction, unless another process has done so."""
    if known_version(connection, where=where) == NOTHING:
        schema.metadata.create_all(connection, checkfirst=False)
        format_table.create(connection)
        connection.execute(insert(format_table).values(version=FORMAT, perftrail=__version__))
