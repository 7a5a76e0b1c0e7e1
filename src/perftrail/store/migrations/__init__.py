"""Migrations from an empty database to the newest schema, one module each, in the order of their numbers.

A module is named ``NNNN_what.py`` and has one function, ``apply(connection)``, which changes tables and rows. It
defines the tables that it needs and never imports `schema`, which changes later: a released migration never does. It
runs inside the caller's transaction, so it neither commits nor begins one.

Each new migration needs a test file written by the version before it (``tests/store/files``). A store gets all
missing migrations, or none.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text, func, insert, inspect, select

from perftrail._version import __version__
from perftrail.errors import StoreError
from perftrail.store.damage import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One migration: number, name and function."""

    number: int
    name: str
    apply: Callable[[Connection], None]


@cache
def shipped() -> tuple[Migration, ...]:
    """Return the migrations of this perftrail version, in order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[:4].isdigit())
    return tuple(
        Migration(number=int(name[:4]), name=name, apply=importlib.import_module(f"{__name__}.{name}").apply)
        for name in names
    )


NOTHING = 0
"""Version of a database without tables."""

applied = Table(
    "perftrail_schema",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("migration", Text, nullable=False),
    Column("perftrail", Text, nullable=False),
)
"""Table of the migrations that a store has, with the perftrail version that applied each."""


def version(connection: Connection, *, where: str) -> int:
    """Return the version of a store, `NOTHING` without tables.

    Raises `StoreError` for a database of another program.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return NOTHING
    if applied.name not in tables:
        raise StoreError(
            f"{where}: this database belongs to another program, with tables {', '.join(sorted(tables)[:5])}; "
            "name another with --store"
        )
    found: object = connection.scalar(select(func.max(applied.c.version)))
    if not isinstance(found, int) or found <= NOTHING:
        raise StoreError(f"{where}: its schema version is {found!r}, which is not valid: {DAMAGED}")
    return found


def refuse_newer(found: int, newest: int, *, where: str) -> None:
    """Raise `StoreError` for a store that a newer perftrail wrote."""
    if found > newest:
        raise StoreError(
            f"{where}: this store has the format of a newer perftrail: its schema is version {found}, "
            f"perftrail {__version__} supports {newest}; install a newer one, or name another store with --store"
        )


def refuse_older(found: int, newest: int, *, where: str) -> None:
    """Raise `StoreError` for a store that must be upgraded before it can be read."""
    if NOTHING < found < newest:
        raise StoreError(
            f"{where}: this store has the format of an older perftrail: its schema is version {found}, perftrail "
            f"{__version__} reads {newest}; `perftrail run` upgrades it and keeps every sample"
        )


def upgrade(connection: Connection, migrations: Sequence[Migration], *, where: str) -> None:
    """Apply the missing migrations inside the caller's transaction."""
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
