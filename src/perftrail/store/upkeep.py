"""Size and content of a store, deletion of old samples, and compaction.

Statistics contain the size on disk, the rows by table, and the number and times of samples by machine and benchmark.
"""

from __future__ import annotations

# The schema of JSON reads the annotations at run time, so these imports must not be in TYPE_CHECKING.
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sqlalchemy import Integer, case, delete, func, literal_column, select, text

from perftrail.store import schema
from perftrail.store.databases import open_snapshot, to_write
from perftrail.store.documents import KINDS
from perftrail.store.format_version import format_table, version
from perftrail.store.location import on_server, shown
from perftrail.store.lock import lock_for_writing
from perftrail.store.outcomes import PHASES
from perftrail.store.sqlite import BEGIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import ColumnElement, Connection, Select

    from perftrail.store.retried_transactions import Database


SAMPLE = PHASES.index("sample")

EARLIEST_TIME = "1"
"""Text that sorts before every time and after an empty one, which stands for an unknown time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a store: the rows of one machine or one benchmark.

    `samples` are invocations other than warm-ups and failures; times are ISO 8601, empty if unknown.
    """

    name: str
    invocations: int
    samples: int
    failures: int
    oldest: str
    newest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Size and content of a store.

    `bytes` is the size on disk with the journal; `rows` are by table, and documents by kind.
    """

    store: str
    kind: str
    schema: int
    bytes: int
    rows: Mapping[str, int]
    machines: Sequence[Part]
    benchmarks: Sequence[Part]


def statistics(location: str) -> Statistics:
    """Return the statistics of one state of a store. Raises `NoAnswer` for an empty store."""
    where = shown(location)
    with open_snapshot(location) as connection:
        return Statistics(
            store=where,
            kind=connection.dialect.name,
            schema=version(connection, where=where),
            bytes=size_bytes(connection, location),
            rows=_row_counts(connection),
            machines=parts_where(connection),
            benchmarks=_by_benchmark(connection),
        )


def _row_counts(connection: Connection) -> dict[str, int]:
    """Count the rows of each table, those of documents by kind."""
    tables = {table.name: select(func.count()).select_from(table) for table in schema.metadata.sorted_tables}
    documents = tables.pop(schema.document.name)
    kinds = {kind.name: documents.where(schema.document.c.kind == kind.name) for kind in KINDS.values()}
    return {name: connection.scalar(counted) or 0 for name, counted in (tables | kinds).items()}


def size_bytes(connection: Connection, location: str) -> int:
    """Return the size of a store on disk, with indexes and journal."""
    if connection.dialect.name == "postgresql":
        return sum(
            connection.scalar(
                text("SELECT pg_total_relation_size(quote_ident(:name)::regclass)"), {"name": name}
            )
            for name in (*schema.metadata.tables, format_table.name)
        )
    files = (Path(f"{location}{suffix}") for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def start_time_column(connection: Connection) -> ColumnElement[str]:
    """Return the column of start times, which compare as text: they are all in UTC."""
    collation = "C" if connection.dialect.name == "postgresql" else "BINARY"
    return schema.invocation.c.started.collate(collation)


def parts_where(connection: Connection, *conditions: ColumnElement[bool]) -> Sequence[Part]:
    """Count the invocations of each machine that fulfil some conditions."""
    table, machine = schema.invocation, schema.machine
    wanted = (
        select(machine.c.fingerprint.label("name"), *_counts(connection))
        .join_from(table, machine)
        .outerjoin(schema.failure, schema.failure.c.invocation_id == table.c.id)
        .where(*conditions)
        .group_by(machine.c.id, machine.c.fingerprint)
        .order_by(machine.c.id)
    )
    return _parts(connection, wanted)


def _counts(connection: Connection) -> Sequence[ColumnElement[Any]]:
    started = start_time_column(connection)
    known = case((started >= EARLIEST_TIME, started))
    failed = func.count(schema.failure.c.invocation_id)
    sampled = case((schema.invocation.c.phase == SAMPLE, 1), else_=0)
    sampled_well = case((schema.failure.c.invocation_id.is_(None), sampled), else_=0)
    return (
        func.count().label("invocations"),
        func.sum(sampled_well, type_=Integer).label("samples"),
        failed.label("failures"),
        func.coalesce(func.min(known), "").label("oldest"),
        func.coalesce(func.max(known), "").label("newest"),
    )


def _by_benchmark(connection: Connection) -> Sequence[Part]:
    """Count by benchmark; a runnable of several revisions counts once."""
    table, subject = schema.invocation, schema.runnable_subject
    of = select(subject.c.runnable_id, subject.c.benchmark.label("name")).distinct().subquery()
    wanted = (
        select(of.c.name, *_counts(connection))
        .join_from(table, of, of.c.runnable_id == table.c.runnable_id)
        .outerjoin(schema.failure, schema.failure.c.invocation_id == table.c.id)
        .group_by(of.c.name)
        .order_by(literal_column("2").desc(), of.c.name)
    )
    return _parts(connection, wanted)


def _parts(connection: Connection, wanted: Select[Any]) -> Sequence[Part]:
    return [Part(**row._asdict()) for row in connection.execute(wanted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Size of a store before and after it was compacted."""

    store: str
    before_bytes: int
    after_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Samples that were deleted, or would be."""

    store: str
    before: Annotated[str, "the date before which samples are deleted"]
    done: Annotated[bool, "whether they were deleted"]
    invocations: int
    values: int
    machines: Sequence[Part]


def locked(location: str) -> AbstractContextManager[None]:
    """Lock a store's file for writing; a server's database needs no lock. Raises `StoreLocked`."""
    return nullcontext() if on_server(location) else lock_for_writing(location, wait=False)


def compact(location: str) -> Compacted:
    """Free unused space of a store; no other process writes meanwhile. Raises `NoAnswer` for an empty store."""
    with _writing(location) as database:
        options = {"isolation_level": "AUTOCOMMIT"} if on_server(location) else {BEGIN: ""}
        with database.translate_errors(database.where), database.writing.connect() as connection:
            connection.execution_options(**options)
            _checkpoint(connection)
            before = size_bytes(connection, location)
            if connection.dialect.name == "postgresql":
                for name in (*schema.metadata.tables, format_table.name):
                    quoted = connection.dialect.identifier_preparer.quote(name)
                    connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {quoted}")
            else:
                connection.exec_driver_sql("VACUUM")
                _checkpoint(connection)
            after = size_bytes(connection, location)
    return Compacted(store=database.where, before_bytes=before, after_bytes=after)


def preview_forget(location: str, before: str) -> Forgetting:
    """Return what `forget` would delete. Raises `NoAnswer` for an empty store."""
    with open_snapshot(location) as connection:
        return _count_old(connection, before, where=shown(location), done=False)


def forget(location: str, before: str) -> Forgetting:
    """Delete every invocation that started before a time (ISO 8601, UTC).

    Builds, searches and notes stay, and so do invocations with an unknown start. Raises `StoreLocked` while another
    perftrail process writes to the file.
    """
    table = schema.invocation
    with (
        _writing(location) as database,
        database.translate_errors(database.where),
        database.writing.connect() as connection,
    ):
        if on_server(location):
            # An old sample that is added meanwhile stays complete.
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            deleted = _count_old(connection, before, where=database.where, done=True)
            ids = select(table.c.id).where(*_old(connection, before))
            for part in (schema.value, schema.failure):
                connection.execute(delete(part).where(part.c.invocation_id.in_(ids)))
            connection.execute(delete(table).where(*_old(connection, before)))
    return deleted


def _count_old(connection: Connection, before: str, *, where: str, done: bool) -> Forgetting:
    old = _old(connection, before)
    value, table = schema.value, schema.invocation
    values = select(func.count()).join_from(value, table, value.c.invocation_id == table.c.id).where(*old)
    machines = parts_where(connection, *old)
    return Forgetting(
        store=where,
        before=before,
        done=done,
        invocations=sum(part.invocations for part in machines),
        values=connection.scalar(values) or 0,
        machines=machines,
    )


def _old(connection: Connection, before: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    started = start_time_column(connection)
    return (started >= EARLIEST_TIME, started < before)


def _checkpoint(connection: Connection) -> None:
    """Move the content of a file's journal into the file."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _writing(location: str) -> Iterator[Database]:
    """Open an existing store for writing, with its file locked. Raises `NoAnswer` for an empty store."""
    with open_snapshot(location):
        pass
    with locked(location):
        database = to_write(location)
        try:
            yield database
        finally:
            database.close()
