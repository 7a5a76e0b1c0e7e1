"""The steps that bring a store from nothing to the newest schema, one module each, in order of their numbers.

A module is named ``NNNN_what.py`` and has one function, ``apply(connection)``, that changes tables and rows.
It says whatever it needs itself and never imports `schema`: that one moves on, a migration never changes once
released. It runs inside the caller's transaction, so it neither commits nor begins.

With each new one, put a file written by the version before it beside the tests (``tests/store/files``).

Which version a store has, and how it comes to the newest: migrations in order, all of them or none.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text, func, insert, inspect, select

from perftrail._version import __version__
from perftrail.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema: what its number is, what it is called and what it does."""

    number: int
    name: str
    apply: Callable[[Connection], None]


def shipped() -> tuple[Migration, ...]:
    """Give the migrations of this perftrail, in order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[:4].isdigit())
    return tuple(
        Migration(number=int(name[:4]), name=name, apply=importlib.import_module(f"{__name__}.{name}").apply)
        for name in names
    )


NOTHING = 0
"""The version of a database without any table."""

applied = Table(
    "perftrail_schema",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("migration", Text, nullable=False),
    Column("perftrail", Text, nullable=False),
)
"""The migrations that a store has seen, and the perftrail that applied each."""


def version(connection: Connection, *, where: str) -> int:
    """Give the version of a store, `NOTHING` when it has no table yet.

    Raises `StoreError` for a database that is not perftrail's.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return NOTHING
    if applied.name not in tables:
        raise StoreError(
            f"{where}: this database belongs to something else, with tables {', '.join(sorted(tables)[:5])}; "
            "name another with --store"
        )
    return connection.scalar(select(func.max(applied.c.version))) or NOTHING


def refuse_newer(found: int, newest: int, *, where: str) -> None:
    """Raise `StoreError` for a store that a newer perftrail has written."""
    if found > newest:
        raise StoreError(
            f"{where}: a newer perftrail has written this store: its schema is version {found}, "
            f"perftrail {__version__} knows {newest}; install a newer one, or name another store with --store"
        )


def refuse_older(found: int, newest: int, *, where: str) -> None:
    """Raise `StoreError` for a store that must be upgraded before it can be read."""
    if NOTHING < found < newest:
        raise StoreError(
            f"{where}: an older perftrail has written this store: its schema is version {found}, perftrail "
            f"{__version__} reads {newest}; `perftrail run` brings it up to date and keeps every sample"
        )


def upgrade(connection: Connection, migrations: Sequence[Migration], *, where: str) -> None:
    """Apply what a store still lacks, inside the caller's transaction, to be undone on an error."""
    found = version(connection, where=where)
    refuse_newer(found, migrations[-1].number, where=where)
    if not inspect(connection).has_table(applied.name):
        applied.create(connection)
    for migration in migrations:
        if migration.number > found:
            migration.apply(connection)
            connection.execute(
                insert(applied).values(
                    version=migration.number, migration=migration.name, perftrail=__version__
                )
            )
