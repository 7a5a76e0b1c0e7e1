"""Open an SQLite file: settings, transactions and errors."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from perftrail.errors import StoreError
from perftrail.results_directory import create_parent
from perftrail.store.damage import DAMAGED
from perftrail.store.format_version import NOTHING, create, known_version
from perftrail.store.retried_transactions import Database, disposing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

BUSY_SECONDS = 30.0
"""Time that a statement waits for another process; perftrail's commits take milliseconds."""

BEGIN = "perftrail_begin"
"""Execution option that selects how a transaction begins."""

REMEDIES = {
    "SQLITE_NOTADB": "this is not a store, or it is damaged; name another with --store, or restore a copy",
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_CANTOPEN": "the file cannot be opened; check that its directory exists and is writable",
    "SQLITE_READONLY": "the store is open for reading only, or its file or directory is not writable",
    "SQLITE_PERM": "permission denied; ask the file's owner, or name another with --store",
    "SQLITE_FULL": "the disk is full; free some space and start again, all results so far are stored",
    "SQLITE_BUSY": "another process has locked the store; wait for it, or stop it",
    "SQLITE_IOERR": "the disk has an error; see the system's log",
}


OTHER_CONTENT = ("no such table", "no such column", "Could not decode to UTF-8")
"""Beginnings of SQLite's errors for a store whose tables, columns or texts are not perftrail's."""


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raise an SQLite error as a `StoreError` with the location, the reason and the remedy."""
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, sqlite3.Error):  # the server's error, while a file is copied into it
            raise
        raise StoreError(f"{where}: {error.orig}: {_remedy(error.orig)}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{where}: {error}: {_remedy(error)}") from error
    except UnicodeDecodeError as error:  # sqlite3 decodes SQLite's message, which quotes the damaged text
        raise StoreError(f"{where}: {error}: {REMEDIES['SQLITE_CORRUPT']}") from error


def _remedy(error: BaseException | None) -> str:
    name = str(getattr(error, "sqlite_errorname", ""))
    if str(error).startswith(OTHER_CONTENT):
        return DAMAGED
    for prefix, remedy in REMEDIES.items():
        if name.startswith(prefix):
            return remedy
    return f"this is a defect of perftrail ({name or type(error).__name__}); please report it"


def database(engine: Engine, *, where: str) -> Database:
    """Return a store's file as a database: a reader takes no write lock, a writer takes it first."""
    writing = engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
    opened = _file_id(where)

    @contextmanager
    def translated(location: str) -> Iterator[None]:
        """Translate errors, and refuse a removed file: SQLite would write to it, and the data would be lost."""
        if opened is not None and _file_id(where) != opened:
            raise StoreError(
                f"{location}: was removed or replaced while perftrail used it; later samples would be lost. "
                "Repeat the command: it creates the file again"
            )
        with translate_errors(location):
            yield

    return Database(where=where, reading=engine, writing=writing, translate_errors=translated)


def _file_id(path: str) -> tuple[int, int] | None:
    """Return the identity of a file; `None` if it does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a microsecond, before every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_to_write(path: str) -> Engine:
    """Open a store's file for durable writing; create it if necessary."""
    try:
        create_parent(Path(path))
    except OSError as error:
        raise StoreError(
            f"{path}: its directory cannot be created: {error.strerror}; name another with --store"
        ) from error
    _refuse_special(path)
    engine = _engine(lambda: _connect(path))
    with translate_errors(path), disposing(engine):
        with engine.connect() as connection:
            found = known_version(connection, where=path)
        with engine.connect().execution_options(**{BEGIN: ""}) as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        if found == NOTHING:
            with engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"}).begin() as connection:
                create(connection, where=path)
    return engine


def open_to_read(path: str) -> Engine | None:
    """Open a store's file without changing it; `None` if it is empty."""
    _refuse_special(path)
    engine = _engine(lambda: connect_to_read(path))
    with translate_errors(path), disposing(engine), engine.connect() as connection:
        found = known_version(connection, where=path)
    if found == NOTHING:
        engine.dispose()
        return None
    return engine


def bare_engine(path: str) -> Engine:
    """Open any file of tables that no other process uses."""
    return _engine(lambda: _connect(path))


def file_engine(path: str) -> Engine:
    """Open an unchanging file of tables, for reading; SQLite writes no other file."""
    return _engine(lambda: connect_to_file(path))


def _refuse_special(path: str) -> None:
    """Raise `StoreError` for a directory, a device, and a pipe, whose opening would wait for its other end."""
    if Path(path).exists() and not Path(path).is_file():
        kind = "a directory" if Path(path).is_dir() else "a pipe or a device"
        raise StoreError(f"{path}: this is {kind}, not a store's file; move it away, or name another place")


def _engine(connect: Callable[[], sqlite3.Connection]) -> Engine:
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Begin a transaction, which Python's sqlite3 leaves to the caller: a reader must not take the write lock."""
    if how := connection.get_execution_options().get(BEGIN, "BEGIN"):
        connection.exec_driver_sql(how)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def connect_to_read(path: str) -> sqlite3.Connection:
    """Open a file read-only.

    In a directory that is not writable, SQLite cannot create the shared index of its journal. Without a journal
    no process is writing, and the file can be read as it is.
    """
    address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    try:
        return _opened(address)
    except sqlite3.OperationalError:
        if Path(f"{path}-wal").exists():
            raise
        return _opened(f"{address}&immutable=1")


def connect_to_file(path: str) -> sqlite3.Connection:
    """Open an unchanging file read-only, without locks or a journal."""
    return _opened(f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1")


def _opened(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
