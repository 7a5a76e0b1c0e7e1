"""Makes a store smaller: what nobody needs any more is forgotten on explicit order, and its room given back."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from perftrail.store import schema
from perftrail.store.databases import looked_at, to_write
from perftrail.store.location import on_server, shown
from perftrail.store.lock import hold
from perftrail.store.sqlite import BEGIN
from perftrail.store.statistics import DATED, Part, dated, parts_where, size_bytes
from perftrail.store.upgrade import applied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import ColumnElement, Connection

    from perftrail.model.search_record import Json
    from perftrail.store.transactions import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """How large a store was and is, in bytes."""

    where: str
    before_bytes: int
    after_bytes: int

    def as_json(self) -> dict[str, Json]:
        """As `store compact --json` prints it."""
        return {"store": self.where, "before_bytes": self.before_bytes, "after_bytes": self.after_bytes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What goes, or went: every invocation before a time of day, by machine, with so many values."""

    where: str
    before: str
    machines: Sequence[Part]
    values: int
    done: bool

    @property
    def invocations(self) -> int:
        """How many invocations that is."""
        return sum(part.invocations for part in self.machines)

    def as_json(self) -> dict[str, Json]:
        """As `store forget --json` prints it."""
        return {
            "store": self.where,
            "before": self.before,
            "done": self.done,
            "invocations": self.invocations,
            "values": self.values,
            "machines": [part.as_json() for part in self.machines],
        }


def guarded(location: str) -> AbstractContextManager[None]:
    """Keep others from writing to a store's file; a server's database is open to all. Raises `StoreHeld`."""
    return nullcontext() if on_server(location) else hold(location, wait=False)


def compact(location: str) -> Compacted:
    """Give the room back that a store does not need; nobody writes meanwhile. Raises `NoAnswer` for one not there."""
    with _writing(location) as database:
        alone = {"isolation_level": "AUTOCOMMIT"} if on_server(location) else {BEGIN: ""}
        with database.told(database.where), database.writing.connect() as connection:
            connection.execution_options(**alone)
            _settle(connection)
            before = size_bytes(connection, location)
            if connection.dialect.name == "postgresql":
                for name in (*schema.metadata.tables, applied.name):
                    quoted = connection.dialect.identifier_preparer.quote(name)
                    connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {quoted}")
            else:
                connection.exec_driver_sql("VACUUM")
                _settle(connection)
            after = size_bytes(connection, location)
    return Compacted(where=database.where, before_bytes=before, after_bytes=after)


def to_forget(location: str, before: str) -> Forgetting:
    """Say what `forget` would take away. Raises `NoAnswer` for a store that is not there."""
    with looked_at(location) as connection:
        return _goes(connection, before, where=shown(location), done=False)


def forget(location: str, before: str) -> Forgetting:
    """Take every invocation away that was started before a time of day (ISO 8601, UTC), for good.

    What was built, searched and said stays. Those whose start nobody noted stay. Raises `StoreHeld` while another
    perftrail writes to the file.
    """
    table = schema.invocation
    with (
        _writing(location) as database,
        database.told(database.where),
        database.writing.connect() as connection,
    ):
        if on_server(location):
            # An old sample that is added meanwhile stays, whole.
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            gone = _goes(connection, before, where=database.where, done=True)
            ids = select(table.c.id).where(*_old(connection, before))
            for part in (schema.value, schema.failure):
                connection.execute(delete(part).where(part.c.invocation_id.in_(ids)))
            connection.execute(delete(table).where(*_old(connection, before)))
    return gone


def _goes(connection: Connection, before: str, *, where: str, done: bool) -> Forgetting:
    old = _old(connection, before)
    value, table = schema.value, schema.invocation
    values = select(func.count()).join_from(value, table, value.c.invocation_id == table.c.id).where(*old)
    return Forgetting(
        where=where,
        before=before,
        machines=parts_where(connection, *old),
        values=connection.scalar(values) or 0,
        done=done,
    )


def _old(connection: Connection, before: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    started = dated(connection)
    return (started >= DATED, started < before)


def _settle(connection: Connection) -> None:
    """Put what lies in the journal of a file into it."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _writing(location: str) -> Iterator[Database]:
    """Open a store that is there to change it, with nobody else writing to its file. Raises `NoAnswer` without one."""
    with looked_at(location):
        pass
    with guarded(location):
        database = to_write(location)
        try:
            yield database
        finally:
            database.close()
