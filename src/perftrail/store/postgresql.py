"""Open a PostgreSQL server's database: settings, lock, and required capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import create_engine, text

from perftrail.errors import StoreError, UsageError
from perftrail.model.wording import quoted, suggestion
from perftrail.store.location import parameters, shown
from perftrail.store.machine_lock import FAMILY, Turn, application_name
from perftrail.store.migrations import NOTHING, refuse_newer, refuse_older, shipped, upgrade, version
from perftrail.store.transactions import Database, disposing

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import Conninfo
except ImportError as error:
    raise StoreError(
        "results in PostgreSQL need psycopg, which is not installed: pip install 'perftrail[postgresql]'"
    ) from error

from perftrail.store.postgresql_errors import translate_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Engine

    from perftrail.store.migrations import Migration

__all__ = ["Turn", "database", "open_to_read", "open_to_write"]

SETTINGS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""Timeouts after which a silent server counts as unreachable, in seconds, the last in milliseconds.

An address may override them.
"""

OLDEST = 12
"""Oldest server version that returns numbers with all digits by default."""

DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""Statement that makes commits wait until they are on disk."""

UPGRADING = 0
"""Second half of the key of the lock under which tables are created and upgraded."""


def database(engine: Engine, *, where: str) -> Database:
    """Return a server's database: a reader sees one state, a writer all commits so far."""
    return Database(
        where=where,
        reading=engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True),
        writing=engine.execution_options(isolation_level="READ COMMITTED"),
        translate_errors=translate_errors,
    )


def open_to_write(
    url: str, *, migrations: Sequence[Migration] | None = None, turn: Turn | None = None
) -> Engine:
    """Open a server's database for durable writing; create or upgrade its tables if necessary.

    With a `turn`, there is one connection, which holds that lock.
    """
    where = shown(url)
    known = migrations or shipped()
    engine = _engine(url, turn)
    with translate_errors(where), disposing(engine):
        with engine.connect() as connection:
            _refuse_unfit(connection, where=where)
            found = version(connection, where=where)
            refuse_newer(found, known[-1].number, where=where)
        if found < known[-1].number:
            with database(engine, where=where).writing.begin() as connection:
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:family, :key)"), {"family": FAMILY, "key": UPGRADING}
                )
                upgrade(connection, known, where=where)
    return engine


def open_to_read(url: str, *, newest: int | None = None) -> Engine | None:
    """Open a server's database without changing it; `None` without tables."""
    where = shown(url)
    known = newest or shipped()[-1].number
    engine = _engine(url, None)
    with translate_errors(where), disposing(engine):
        with engine.connect() as connection:
            _refuse_unfit(connection, where=where)
            found = version(connection, where=where)
        refuse_newer(found, known, where=where)
        refuse_older(found, known, where=where)
    if found == NOTHING:
        engine.dispose()
        return None
    return engine


def _engine(url: str, turn: Turn | None) -> Engine:
    name = turn.name if turn else application_name()
    address = make_conninfo(**_settings(url), client_encoding="utf8", application_name=name)

    def connect() -> psycopg.Connection:
        connection = psycopg.connect(address, autocommit=True)
        try:
            connection.execute(DURABLE)
            if turn is not None:
                turn.take(connection)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    if turn is None:
        return create_engine("postgresql+psycopg://", creator=connect)
    # A second connection would have to wait for the turn that the first one has.
    return create_engine("postgresql+psycopg://", creator=connect, pool_size=1, max_overflow=0)


def _settings(url: str) -> dict[str, str]:
    """Return the connection settings of psycopg. Raises `UsageError` for an address that libpq would refuse."""
    where = shown(url)
    known = [each.keyword.decode() for each in Conninfo.get_defaults()]
    for name, _ in parameters(url):
        if name not in (*known, "ssl"):
            raise UsageError(f"{where}: unknown parameter {quoted(name)}{suggestion(name, known)}")
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq quotes what it does not understand, which may be a part of a password.
        raise UsageError(
            f"{where}: this is not an address such as postgresql://USER@HOST:5432/DATABASE; a % is written %25"
        ) from error
    own = ("client_encoding", "application_name")
    return SETTINGS | {
        name: str(value) for name, value in given.items() if value is not None and name not in own
    }


def _refuse_unfit(connection: Connection, *, where: str) -> None:
    """Raise `StoreError` for a server or a database that cannot return stored values unchanged."""
    number = int(connection.scalar(text("SHOW server_version_num")) or 0)
    if number < OLDEST * 10_000:
        raise StoreError(
            f"{where}: this is PostgreSQL {number // 10_000}, and perftrail needs {OLDEST} or newer; "
            "name another server with --store"
        )
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise StoreError(
            f"{where}: this database keeps text as {encoding}, which not every name can be written in; make another "
            "(createdb --encoding UTF8 --template template0 NAME)"
        )
