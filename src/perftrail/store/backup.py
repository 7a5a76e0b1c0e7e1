"""Back up a store at one moment into a file that describes its content, and restore it.

A backup is an SQLite file with the same tables, whatever database the store is in, and one more table: a note that
lets a restore check that nothing is missing.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from sqlalchemy import Column, Integer, MetaData, Table, Text, insert, inspect, select

from perftrail._version import __version__
from perftrail.errors import NoAnswer, StoreError
from perftrail.file_tree import publish
from perftrail.store import schema, sqlite
from perftrail.store.copying import Digest, StoreCopy, digests
from perftrail.store.damage import translate_damage
from perftrail.store.databases import open_snapshot, to_write
from perftrail.store.format_version import create, refuse_others, version
from perftrail.store.location import on_server, shown
from perftrail.store.upkeep import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Connection, Engine


note = Table(
    "perftrail_backup",
    MetaData(),
    Column("made", Text, nullable=False),
    Column("perftrail", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digests", Text, nullable=False),
)
"""The note of a backup: its time, perftrail version and schema, and the digests of its rows."""


FIRST_FILLED = (schema.machine, schema.build, schema.runnable)
"""Every store that is not empty has a row in at least one of these tables."""


class BackupContentJson(TypedDict):
    """Content of a backup."""

    file: str
    made: str
    schema: int
    bytes: int
    rows: dict[str, int]
    digests: dict[str, str]


class BackupJson(BackupContentJson):
    """A backup, and the store that it belongs to."""

    store: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupContent:
    """Content of a backup: its time, the version of its schema, and its rows by kind."""

    file: str
    made: str
    version: int
    digests: Mapping[str, Digest]
    size_bytes: int

    def as_json(self) -> BackupContentJson:
        """Return the note as `store backup --json` prints it."""
        return {
            "file": self.file,
            "made": self.made,
            "schema": self.version,
            "bytes": self.size_bytes,
            "rows": {kind: digest.rows for kind, digest in self.digests.items()},
            "digests": {kind: digest.sum for kind, digest in self.digests.items()},
        }


def backup(
    location: str, file: Path, *, on_progress: Callable[[int, int], None] = lambda *_: None
) -> BackupContent:
    """Write the present state of a store into a new file; other processes may continue to write to the store.

    `on_progress` is called with the number of copied invocations and their total. Raises `StoreError` if the file
    exists and for a damaged store, `NoAnswer` if the store does not exist.
    """
    if file.exists():
        raise StoreError(f"{file}: exists already; name another file, or remove it")
    with _replacing(file) as fresh:
        with open_snapshot(location) as connection:
            if on_server(location):
                _copy_from_server(connection, fresh, on_progress, where=shown(location))
            else:
                _copy_file(sqlite.connect_to_read, location, fresh)
        with _open(fresh, where=shown(location)) as connection:
            if (damage := _damage(connection)) is not None:
                raise StoreError(
                    f"{shown(location)}: the store is damaged ({damage}); restore an earlier backup, or copy the "
                    "readable rows to a new store with perftrail store copy"
                )
            note.create(connection)
            connection.execute(
                insert(note).values(
                    made=datetime.now(UTC).isoformat(timespec="seconds"),
                    perftrail=__version__,
                    version=version(connection, where=str(file)),
                    digests=json.dumps(
                        {kind: [each.rows, each.sum] for kind, each in digests(connection).items()}
                    ),
                )
            )
    return read_note(file)


def restore(
    file: Path, location: str, *, on_progress: Callable[[int, int], None] = lambda *_: None
) -> BackupContent:
    """Restore a backup into a missing or empty store, and check it against the backup's note.

    The restore is complete or has no effect. Raises `StoreError` for a damaged or incomplete file, and for a store
    with content.
    """
    expected = read_note(file)
    with locked(location):
        _check_backup(file, expected)
        if on_server(location):
            _restore_to_server(file, expected, location, on_progress)
            return expected
        journal = Path(f"{location}-wal")
        if journal.exists() and not Path(location).exists():
            raise StoreError(
                f"{journal}: the journal of a store whose file is missing; it may contain the newest samples; move it "
                "back next to that file, or move the whole directory away"
            )
        with suppress(NoAnswer), open_snapshot(location) as connection:
            _refuse_full(connection, where=location)
        with _replacing(Path(location)) as fresh:
            _copy_file(sqlite.connect_to_file, str(file), fresh)
            with _open(fresh) as connection:
                _refuse_different(expected, connection, where=location)
                note.drop(connection)
            for suffix in ("-wal", "-shm"):  # of the empty store that was there
                Path(f"{location}{suffix}").unlink(missing_ok=True)
    return expected


def read_note(file: Path) -> BackupContent:
    """Return the note of a backup. Raises `StoreError` for a file that is not a backup."""
    if not file.is_file():
        raise StoreError(f"{file}: no such file; name a backup by perftrail store backup")
    with _open_backup(file) as connection:
        if not inspect(connection).has_table(note.name):
            raise StoreError(
                f"{file}: this is not a complete backup; copy a store itself with perftrail store copy"
            )
        if note.name in inspect(connection).get_view_names():  # a view could run for hours
            raise _unknown_object(file, "view", note.name)
        rows = connection.execute(select(note)).all()
    try:
        (row,) = rows
        kinds = json.loads(row.digests).items()
        expected = {str(kind): Digest(rows=int(number), sum=str(sum_)) for kind, (number, sum_) in kinds}
        number = int(row.version)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{file}: this backup's description of its content is not readable ({error}); use another one"
        ) from error
    return BackupContent(
        file=str(file), made=row.made, version=number, digests=expected, size_bytes=file.stat().st_size
    )


def _check_backup(file: Path, expected: BackupContent) -> None:
    """Raise `StoreError` for a backup that is damaged, incomplete, or of another format."""
    refuse_others(expected.version, where=str(file))
    with _open_backup(file) as connection:
        _refuse_unknown_objects(connection, file)
        if (damage := _damage(connection)) is not None:
            raise StoreError(f"{file}: this backup is damaged ({damage}); use another one")
        if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
            raise StoreError(
                f"{file}: this backup is incomplete, rows refer to missing ones; use another one"
            )
        _refuse_different(expected, connection, where=str(file))


def _damage(connection: Connection) -> str | None:
    """Return the first damage of a file's structure, `None` without one."""
    checked = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    return None if checked == "ok" else str(checked)


def _refuse_unknown_objects(connection: Connection, file: Path) -> None:
    """Raise `StoreError` for a trigger, view, table or index that the schema does not define like this."""
    known = _known_objects()
    for kind, name, definition in _objects(connection):
        is_note = (kind, name) == ("table", note.name)
        if not (is_note or name in INTERNAL_TABLES or (kind, name, definition) in known):
            raise _unknown_object(file, kind, name)


def _unknown_object(file: Path, kind: str, name: str) -> StoreError:
    return StoreError(
        f"{file}: this backup contains the {kind} {name!r}, which is not part of a store of perftrail; use another "
        "backup, or copy only the rows of this one with perftrail store copy"
    )


INTERNAL_TABLES = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")
"""Tables that SQLite itself creates."""


def _known_objects() -> set[tuple[str, str, str]]:
    """Return the objects of the schema."""
    with _open(Path(":memory:")) as connection:
        create(connection, where="the schema")
        return set(_objects(connection))


def _objects(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """Yield the type, the name and the definition of every object in a file of tables."""
    for kind, name, definition in connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master"):
        yield str(kind), str(name), "".join(str(definition).replace('"', "").split())


def _refuse_different(expected: BackupContent, connection: Connection, *, where: str) -> None:
    """Raise `StoreError` unless a store has the expected rows."""
    try:
        found = digests(connection)
    except (LookupError, TypeError, ValueError) as error:
        raise StoreError(f"{where}: some of its rows cannot be read ({error}); use another backup") from error
    for kind, wanted in expected.digests.items():
        number = found[kind].rows if kind in found else 0
        if number != wanted.rows:
            raise StoreError(
                f"{where}: {number} {kind} instead of {wanted.rows} as in the backup of "
                f"{expected.made}; use another one"
            )
        if found.get(kind) != wanted:
            raise StoreError(
                f"{where}: its {kind} differ from those of the backup of {expected.made}; use another backup"
            )


def _refuse_full(connection: Connection, *, where: str) -> None:
    """Raise `StoreError` for a store with content."""
    if any(connection.execute(select(table).limit(1)).first() for table in FIRST_FILLED):
        raise StoreError(
            f"{where}: this store is not empty; move its whole directory away, restore to another place with "
            "--store, or add the missing rows with perftrail store copy"
        )


def _copy_file(connect: Callable[[str], sqlite3.Connection], source: str, target: Path) -> None:
    """Copy a file of tables at one moment."""
    with (
        sqlite.translate_errors(source),
        closing(connect(source)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")


def _copy_from_server(
    source: Connection, target: Path, on_progress: Callable[[int, int], None], *, where: str
) -> None:
    """Copy a server's database at one moment into a file, and check that both are equal."""
    copy = to_write(str(target))
    try:
        StoreCopy(source, copy, on_progress=on_progress).run()
    finally:
        copy.close()
    with closing(sqlite3.connect(target)) as file:
        file.execute("PRAGMA journal_mode=DELETE")
    with _open(target) as connection:
        if digests(connection) != digests(source):
            raise StoreError(
                f"{where}: the backup differs from the store; this is a defect of perftrail, please report it"
            )


def _restore_to_server(
    file: Path, expected: BackupContent, location: str, on_progress: Callable[[int, int], None]
) -> None:
    """Copy a backup into a server's database in one transaction, while no other process writes to it."""
    target = to_write(location)
    try:
        with (
            target.translate_errors(target.where),
            target.writing.begin() as connection,
            _open_backup(file) as source,
        ):
            quoted = map(connection.dialect.identifier_preparer.quote, schema.metadata.tables)
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(quoted)} IN SHARE ROW EXCLUSIVE MODE")
            _refuse_full(connection, where=target.where)
            StoreCopy(source, connection, on_progress=on_progress).run().refuse_differences(target.where)
            _refuse_different(expected, connection, where=target.where)
    finally:
        target.close()


@contextmanager
def _open(file: Path, *, where: str = "") -> Iterator[Connection]:
    """Yield a file of tables that no other process uses; changes are committed. `where` names it in errors."""
    with _transaction(sqlite.bare_engine(str(file)), where or str(file)) as connection:
        yield connection


@contextmanager
def _open_backup(file: Path) -> Iterator[Connection]:
    """Yield a backup for reading: a hostile one must not make SQLite write other files."""
    with _transaction(sqlite.file_engine(str(file)), str(file)) as connection:
        yield connection


@contextmanager
def _transaction(engine: Engine, where: str) -> Iterator[Connection]:
    try:
        with translate_damage(where), sqlite.translate_errors(where), engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces the target once it is complete and on disk."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        fresh.touch()
    except OSError as error:
        raise StoreError(f"{file}: cannot be created: {error.strerror}; name another place") from error
    try:
        yield fresh
        publish(fresh, file)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{fresh}{suffix}").unlink(missing_ok=True)
