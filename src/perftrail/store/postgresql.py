"""Open a PostgreSQL server's database: settings, lock, required capabilities and errors."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from perftrail.errors import StoreError, StoreUnreachable, UsageError
from perftrail.model.wording import quoted, suggestion
from perftrail.store.format_version import NOTHING, create, known_version
from perftrail.store.location import parameters, shown
from perftrail.store.lock import LOCK_FAMILY, MachineLock, application_name
from perftrail.store.retried_transactions import Database, TransactionConflict, disposing

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import Conninfo
except ImportError as error:
    raise StoreError(
        "results in PostgreSQL need psycopg, which is not installed: pip install 'perftrail[postgresql]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine


REFUSALS = {
    "password": (
        "set the password in PGPASSWORD, or in ~/.pgpass, which only you may be able to read (chmod 600); "
        "also check the user"
    ),
    "no pg_hba.conf entry": "the server does not accept this user from this machine; see its pg_hba.conf",
    "authentication": "the server does not accept you as this user; name another, or see its pg_hba.conf",
    "database .* does not exist": "create it (createdb NAME), or name another with --store",
    "role .* does not exist": "name a user of this server: postgresql://USER@HOST/DATABASE",
    "role .* is not permitted to log in": "name another user: postgresql://USER@HOST/DATABASE",
    "SSL|certificate|sslmode": "compare sslmode and sslrootcert in the address with the server's configuration",
    "permission denied for database": "ask its owner to run GRANT CONNECT ON DATABASE for you, or name another",
    "^invalid": "correct it in the address, or in the variables whose names begin with PG",
}
"""Texts of permanent errors, with remedies; the first match counts."""

UNREACHABLE = {
    "failed to resolve host": "check the host's name, and the network",
    "too many|remaining connection slots": "wait for others to end, or raise the server's max_connections",
    "starting up|shutting down|recovery mode|not yet accepting": "wait until it has started, and try again",
    "": "check that the server runs, and its address",
}
"""Texts of errors of an unreachable server, with remedies; the first match counts."""

REMEDIES = {
    "42501": (
        "permission denied; ask the database's owner to run GRANT CREATE, USAGE ON SCHEMA public, or name a "
        "database of your own (createdb -O USER NAME)"
    ),
    "25006": "this server is a read-only replica: name its primary server with --store",
    "53100": "the server's disk is full; free some space and start again, all results so far are stored",
    "53200": "the server is out of memory; start again later, all results so far are stored",
    "54000": "a name or the values of a point are longer than 2700 bytes, the limit of its indexes; shorten them",
    "55P03": "another program has locked the tables; wait for it, or stop it",
    "57014": "the server's statement_timeout or its administrator cancelled this; raise that time for this user",
    "XX001": "the store is damaged; restore a backup (perftrail store restore)",
    "XX002": "the store is damaged; restore a backup (perftrail store restore)",
    "58": "the server's disk has an error; see its log",
}
"""Remedies for errors of the server, by the beginning of their codes."""

UNREACHABLE_CODES = ("08", "57P01", "57P02", "57P03", "53300")
"""Beginnings of the codes of errors that mean an unreachable server."""

CONFLICT_CODES = ("40001", "40P01")
"""Codes of a transaction that was rolled back because of another one."""


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raise a server's error as a `StoreError` with the location, the reason and the remedy."""
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):  # SQLite's error, from a file that is copied
            raise
        raise _store_error(where, error.orig) from error
    except psycopg.Error as error:
        raise _store_error(where, error) from error


def _store_error(where: str, error: BaseException | None) -> StoreError:
    code = getattr(error, "sqlstate", None) or ""
    why = _first_line(error)
    if code in CONFLICT_CODES:
        return TransactionConflict(f"{where}: {why}: other processes write at the same time; start again")
    if isinstance(error, psycopg.OperationalError) and (not code or code.startswith(UNREACHABLE_CODES)):
        refused = _matching_remedy(why, REFUSALS)
        if refused is not None:
            return StoreError(f"{where}: {why}: {refused}")
        return StoreUnreachable(f"{where}: {why}: {_matching_remedy(why, UNREACHABLE)}", why=why)
    known = next((remedy for prefix, remedy in REMEDIES.items() if code.startswith(prefix)), None)
    kind = code or type(error).__name__
    return StoreError(
        f"{where}: {why}: {known or f'this is a defect of perftrail ({kind}); please report it'}"
    )


def _matching_remedy(why: str, remedies: dict[str, str]) -> str | None:
    return next((remedy for pattern, remedy in remedies.items() if re.search(pattern, why)), None)


def _first_line(error: BaseException | None) -> str:
    """Return the server's own text, without psycopg's prefix."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"^connection (failed|is bad): |FATAL:  ", "", lines[0])


__all__ = ["MachineLock", "database", "open_to_read", "open_to_write"]

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

CREATING = 0
"""Second half of the key of the lock under which tables are created."""


def database(engine: Engine, *, where: str) -> Database:
    """Return a server's database: a reader sees one state, a writer all commits so far."""
    return Database(
        where=where,
        reading=engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True),
        writing=engine.execution_options(isolation_level="READ COMMITTED"),
        translate_errors=translate_errors,
    )


def open_to_write(url: str, *, lock: MachineLock | None = None) -> Engine:
    """Open a server's database for durable writing; create its tables if necessary.

    With a `lock`, there is one connection, which has that lock.
    """
    where = shown(url)
    engine, found = _open(url, lock)
    if found == NOTHING:
        writing = database(engine, where=where).writing
        with translate_errors(where), disposing(engine), writing.begin() as connection:
            lock_tables = text("SELECT pg_advisory_xact_lock(:family, :key)")
            connection.execute(lock_tables, {"family": LOCK_FAMILY, "key": CREATING})
            create(connection, where=where)
    return engine


def open_to_read(url: str) -> Engine | None:
    """Open a server's database without changing it; `None` without tables."""
    engine, found = _open(url, None)
    if found == NOTHING:
        engine.dispose()
        return None
    return engine


def _open(url: str, lock: MachineLock | None) -> tuple[Engine, int]:
    """Return the engine of a suitable database, and the version of its tables."""
    where = shown(url)
    engine = _engine(url, lock)
    with translate_errors(where), disposing(engine), engine.connect() as connection:
        _refuse_unsuitable(connection, where=where)
        return engine, known_version(connection, where=where)


def _engine(url: str, lock: MachineLock | None) -> Engine:
    name = lock.name if lock else application_name()
    address = make_conninfo(**_settings(url), client_encoding="utf8", application_name=name)

    def connect() -> psycopg.Connection:
        connection = psycopg.connect(address, autocommit=True)
        try:
            connection.execute(DURABLE)
            if lock is not None:
                lock.acquire(connection)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    if lock is None:
        return create_engine("postgresql+psycopg://", creator=connect)
    # A second connection would wait for the lock of the first one.
    return create_engine("postgresql+psycopg://", creator=connect, pool_size=1, max_overflow=0)


def _settings(url: str) -> dict[str, str]:
    """Return the connection settings of psycopg. Raises `UsageError` for an address that libpq would refuse."""
    where = shown(url)
    known = [each.keyword.decode() for each in Conninfo.get_defaults()]
    for name, _ in parameters(url):
        if name not in (*known, "ssl"):
            raise UsageError(f"{where}: unknown parameter {quoted(name)}{suggestion(name, known)}")
    try:
        settings = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq quotes the invalid part, which may be a part of a password.
        raise UsageError(
            f"{where}: this is not an address such as postgresql://USER@HOST:5432/DATABASE; write %25 for %"
        ) from error
    fixed = ("client_encoding", "application_name")
    return SETTINGS | {
        name: str(value) for name, value in settings.items() if value is not None and name not in fixed
    }


def _refuse_unsuitable(connection: Connection, *, where: str) -> None:
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
            f"{where}: this database stores text as {encoding}, which lacks some characters; create another "
            "(createdb --encoding UTF8 --template template0 NAME)"
        )
