"""Compare and copy stores.

The content of a store does not depend on row ids. Existing rows stay; different content under one key is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from perftrail.errors import StoreError, UsageError
from perftrail.model.measurement import InvocationKey
from perftrail.store import schema
from perftrail.store.databases import open_snapshot, to_write
from perftrail.store.documents import KINDS
from perftrail.store.identifiers import TextIds, chunks, insert_many, insert_unless_exists
from perftrail.store.location import on_server, shown
from perftrail.store.lock import LOCK_FAMILY
from perftrail.store.outcomes import PHASES
from perftrail.store.retried_transactions import MOST_ATTEMPTS, Transactions
from perftrail.store.rows import describe_invocation
from perftrail.store.upkeep import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Row, Select, Table

    from perftrail.store.documents import Kind
    from perftrail.store.retried_transactions import Database

    Cell = str | int | float | bool | None
    NamedRow = Mapping[str, Any]
    Work = Callable[[Connection], None]


BATCH = 1000
"""Number of invocations that are Python objects at a time, with all their values."""

MODULUS = 1 << 256
"""Digests of rows are added modulo this number, so that their order does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInvocation:
    """An invocation with its own columns, its values as (metric, value, method), and its failure, if any."""

    id: int
    key: InvocationKey
    own: tuple[Cell, ...]
    values: tuple[tuple[str, float, str | None], ...]
    failure: tuple[Cell, ...] | None

    @property
    def content(self) -> tuple[object, ...]:
        """Everything except the row id."""
        key = (self.key.runnable, self.key.machine, self.key.phase, self.key.ordinal)
        return (key, self.own, self.values, self.failure)


OWN_COLUMNS = ("started", "seconds", "flags", "log", "turn", "seed", "layout")
"""Own columns of an invocation; the name of its block and the version of perftrail follow."""

FAILURE_COLUMNS = ("stage", "message", "log", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Number of rows of a kind, and the sum of their digests: equal for equal rows in any order."""

    rows: int
    sum: str


def digests(connection: Connection) -> Mapping[str, Digest]:
    """Return the digests of a store by kind of row; ids and order of rows do not matter."""
    return {kind: _digest(rows) for kind, rows in _contents(connection).items()}


def invocations(connection: Connection) -> Iterator[Sequence[StoredInvocation]]:
    """Yield every invocation in batches, in the order in which they were stored."""
    table = schema.invocation
    last = 0
    while True:
        rows = connection.execute(
            _invocations().where(table.c.id > last).order_by(table.c.id).limit(BATCH)
        ).all()
        if not rows:
            return
        span = (rows[0].id, rows[-1].id)
        values = _values(connection, _value_rows().where(schema.value.c.invocation_id.between(*span)))
        failures = _failures(
            connection, select(schema.failure).where(schema.failure.c.invocation_id.between(*span))
        )
        yield [_stored_invocation(row, values, failures) for row in rows]
        last = span[1]


def invocations_at(
    connection: Connection, keys: Sequence[tuple[int, int, int, int]]
) -> Iterator[StoredInvocation]:
    """Yield those invocations that exist, each named by the ids of runnable and machine, phase and ordinal."""
    table = schema.invocation
    statement = _invocations().add_columns(table.c.runnable_id, table.c.machine_id)
    key = (table.c.runnable_id, table.c.machine_id, table.c.phase, table.c.ordinal)
    for chunk in chunks(keys):
        # Conditions on single columns use an index, but also match a few other rows.
        near = (column.in_(set(values)) for column, values in zip(key, zip(*chunk, strict=True), strict=True))
        wanted = set(chunk)
        rows = [
            row
            for row in connection.execute(statement.where(*near))
            if (row.runnable_id, row.machine_id, row.phase, row.ordinal) in wanted
        ]
        ids = [row.id for row in rows]
        values = _values(connection, _value_rows().where(schema.value.c.invocation_id.in_(ids)))
        failures = _failures(
            connection, select(schema.failure).where(schema.failure.c.invocation_id.in_(ids))
        )
        yield from (_stored_invocation(row, values, failures) for row in rows)


TEXT_COLUMNS = {
    "runnable_id": (schema.runnable, schema.runnable.c.key),
    "machine_id": (schema.machine, schema.machine.c.fingerprint),
    "perftrail_id": (schema.perftrail, schema.perftrail.c.version),
    "block_id": (schema.block, schema.block.c.name),
    "origin_id": (schema.origin, schema.origin.c.text),
}
"""The texts behind ids, by the columns with these ids."""


def named_rows(table: Table) -> Select[Any]:
    """Return a statement that selects a table's rows in order, with texts instead of their ids."""
    columns = [
        TEXT_COLUMNS[column.name][1].label(column.name) if column.name in TEXT_COLUMNS else column
        for column in table.c
    ]
    wanted = select(*columns).select_from(table)
    for name, (other, _) in TEXT_COLUMNS.items():
        if name in table.c:
            wanted = wanted.join(other, table.c[name] == other.c.id, isouter=bool(table.c[name].nullable))
    return wanted.order_by(table.c.id)


def _contents(connection: Connection) -> dict[str, Iterable[object]]:
    """Return every row of each kind, as plain data."""
    steps = (
        select(
            schema.search.c.key,
            schema.machine.c.fingerprint,
            *(c for c in schema.step.c if c.name != "search_id"),
        )
        .join_from(schema.step, schema.search)
        .join(schema.machine)
    )
    machines = select(schema.machine.c.fingerprint, schema.machine.c.facts)
    return {
        "machines": (tuple(row) for row in connection.execute(machines)),
        "builds": _numbered_by_key(connection, schema.build),
        "runnables": _without_id(connection, schema.runnable_subject),
        "revisions": _without_id(connection, schema.revision),
        "invocations": (each.content for batch in invocations(connection) for each in batch),
        "searches": _without_id(connection, schema.search),
        "steps": (tuple(row) for row in connection.execute(steps)),
        **{kind.title: _documents(connection, kind) for kind in KINDS.values()},
    }


def _documents(connection: Connection, kind: Kind) -> Iterator[tuple[Cell, ...]]:
    own = schema.document.c.kind == kind.name
    read = _numbered_by_key if kind.replaces else _without_id
    return read(connection, schema.document, own)


def _without_id(
    connection: Connection, table: Table, *where: ColumnElement[bool]
) -> Iterator[tuple[Cell, ...]]:
    for row in connection.execute(named_rows(table).where(*where)):
        yield tuple(row)[1:]


def _numbered_by_key(
    connection: Connection, table: Table, *where: ColumnElement[bool]
) -> Iterator[tuple[Cell, ...]]:
    """Yield rows with their position among those of their key: the last of these counts."""
    seen: dict[str, int] = defaultdict(int)
    for row in connection.execute(named_rows(table).where(*where)):
        seen[row.key] += 1
        yield (seen[row.key], *tuple(row)[1:])


def _digest(rows: Iterable[object]) -> Digest:
    count, total = 0, 0
    for row in rows:
        count += 1
        text = json.dumps(row, ensure_ascii=True, separators=(",", ":"))
        total += int.from_bytes(hashlib.blake2b(text.encode(), digest_size=32).digest())
    return Digest(rows=count, sum=f"{total % MODULUS:064x}")


def _invocations() -> Select[Any]:
    table = schema.invocation
    return (
        select(
            table.c.id,
            schema.runnable.c.key,
            schema.machine.c.fingerprint,
            table.c.phase,
            table.c.ordinal,
            *(table.c[name] for name in OWN_COLUMNS),
            schema.block.c.name.label("block"),
            schema.perftrail.c.version,
        )
        .join_from(table, schema.runnable)
        .join(schema.machine)
        .join(schema.perftrail)
        .outerjoin(schema.block, table.c.block_id == schema.block.c.id)
    )


def _value_rows() -> Select[Any]:
    table = schema.value
    return (
        select(
            table.c.invocation_id, schema.metric.c.name, table.c.value, schema.method.c.name.label("method")
        )
        .join_from(table, schema.metric)
        .outerjoin(schema.method, table.c.method_id == schema.method.c.id)
    )


def _values(connection: Connection, wanted: Select[Any]) -> Mapping[int, list[tuple[str, float, str | None]]]:
    found: dict[int, list[tuple[str, float, str | None]]] = defaultdict(list)
    for id, metric, value, method in connection.execute(wanted):
        if not isfinite(value):
            raise ValueError(f"a value of {metric} is not finite")
        found[id].append((metric, value, method))
    return found


def _failures(connection: Connection, wanted: Select[Any]) -> Mapping[int, tuple[Cell, ...]]:
    return {
        row.invocation_id: tuple(getattr(row, name) for name in FAILURE_COLUMNS)
        for row in connection.execute(wanted)
    }


def _stored_invocation(
    row: Row[Any],
    values: Mapping[int, list[tuple[str, float, str | None]]],
    failures: Mapping[int, tuple[Cell, ...]],
) -> StoredInvocation:
    return StoredInvocation(
        id=row.id,
        key=InvocationKey(
            runnable=row.key, machine=row.fingerprint, phase=PHASES[row.phase], ordinal=row.ordinal
        ),
        own=(*(getattr(row, name) for name in OWN_COLUMNS), row.block, row.version),
        values=tuple(sorted(values.get(row.id, ()), key=lambda value: value[0])),
        failure=failures.get(row.id),
    )


def insert_invocations(
    connection: Connection, batch: Sequence[StoredInvocation], numbering: Numbering, done: Copied
) -> None:
    """Insert those invocations that are missing; record which exist with different content."""
    rows = [_row(connection, each, numbering) for each in batch]
    keys = [(row["runnable_id"], row["machine_id"], row["phase"], row["ordinal"]) for row in rows]
    existing = {each.key: each for each in invocations_at(connection, keys)}
    done.differs += (
        describe_invocation(each.key)
        for each in batch
        if each.key in existing and existing[each.key].content != each.content
    )
    new = [(row, each) for row, each in zip(rows, batch, strict=True) if each.key not in existing]
    if new:
        table = schema.invocation
        adding = insert(table).returning(table.c.id, sort_by_parameter_order=True)
        ids = connection.scalars(adding, [row for row, _ in new]).all()
        _insert_values(connection, zip(ids, (each for _, each in new), strict=True), numbering)
    done.count("invocations", added=len(new), of=len(batch))


def _row(connection: Connection, each: StoredInvocation, numbering: Numbering) -> dict[str, Any]:
    own = dict(zip((*OWN_COLUMNS, "block_id", "perftrail_id"), each.own, strict=True))
    names = {"runnable_id": each.key.runnable, "machine_id": each.key.machine}
    numbers = {"phase": PHASES.index(each.key.phase), "ordinal": each.key.ordinal}
    return numbering.row(connection, own | names) | numbers


def _insert_values(
    connection: Connection, new: Iterable[tuple[int, StoredInvocation]], numbering: Numbering
) -> None:
    values: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for id, each in new:
        values += (
            {
                "invocation_id": id,
                "metric_id": numbering.find(connection, "metric", metric),
                "value": value,
                "method_id": numbering.find(connection, "method", method),
            }
            for metric, value, method in each.values
        )
        if each.failure is not None:
            failures.append({"invocation_id": id, **dict(zip(FAILURE_COLUMNS, each.failure, strict=True))})
    insert_many(connection, schema.value, values)
    insert_many(connection, schema.failure, failures)


TEXT_TABLES = (
    (schema.perftrail, "version"),
    (schema.runnable, "key"),
    (schema.metric, "name"),
    (schema.method, "name"),
    (schema.block, "name"),
    (schema.origin, "text"),
)
"""Tables that map a text to its id."""

MOST_DIFFERENCES = 5
"""Maximum number of differences in an error."""


class Numbering:
    """The ids of texts in the target store."""

    def __init__(self) -> None:
        self.names = {table.name: TextIds(table, column) for table, column in TEXT_TABLES}
        self.names["machine"] = TextIds(schema.machine, "fingerprint")

    def row(self, connection: Connection, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of `named_rows` with ids instead of texts."""
        numbers = {
            column: self.names[table.name].find(connection, named[column])
            for column, (table, _) in TEXT_COLUMNS.items()
            if named.get(column) is not None
        }
        return {**named, **numbers}

    def find(self, connection: Connection, table: str, text: str | None) -> int | None:
        """Return the id of a text in a table; `None` for `None`."""
        return None if text is None else self.names[table].find(connection, text)

    def forget(self) -> None:
        """Forget all ids, after a failed transaction."""
        for names in self.names.values():
            names.forget()


class CopiedJson(TypedDict):
    """Rows of each kind that a copy added, and that existed already."""

    added: Annotated[dict[str, int], "added rows by kind"]
    existing: Annotated[dict[str, int], "rows by kind that the target already had"]


_FromJson = TypedDict("_FromJson", {"from": str})


class CopyJson(_FromJson, CopiedJson):
    """A copy from one store to another."""

    to: str


@dataclass(slots=True)
class Copied:
    """Result of a copy by kind of row: added rows, existing rows, and differences in words."""

    added: Counter[str] = field(default_factory=Counter)
    existing: Counter[str] = field(default_factory=Counter)
    differs: list[str] = field(default_factory=list)

    def count(self, kind: str, *, added: int, of: int) -> None:
        """Record the number of added rows, of all rows."""
        self.added[kind] += added
        self.existing[kind] += of - added

    def include(self, other: Copied) -> None:
        """Add the result of another part of the copy."""
        self.added.update(other.added)
        self.existing.update(other.existing)
        self.differs += other.differs

    def refuse_differences(self, where: str) -> None:
        """Raise `StoreError` with the differences, if there are any; everything else has been copied."""
        if self.differs:
            more = len(self.differs) - MOST_DIFFERENCES
            raise StoreError(
                f"{where}: its content differs for {'; for '.join(self.differs[:MOST_DIFFERENCES])}"
                f"{f'; and {more} more' if more > 0 else ''}; these rows did not change, all others were copied"
            )

    def as_json(self) -> CopiedJson:
        """Return the result as `store copy --json` prints it."""
        return {"added": dict(self.added), "existing": dict(self.existing)}


SUBJECT_COLUMNS = ("runnable_id", "revision", "variant", "benchmark", "point")
"""Columns that identify a row of `runnable_subject`."""


COPY_LOCK = -1
"""Second half of the key of the lock for copying a batch; the keys of machines are not negative."""


class StoreCopy:
    """One copy, from a connection that sees one state of a store, into another store.

    If the target is a connection, everything belongs to its transaction. `on_progress` is called with the number of
    copied invocations and their total.
    """

    def __init__(
        self,
        source: Connection,
        target: Database | Connection,
        *,
        on_progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        self._source = source
        self._numbering = Numbering()
        self._target = target
        self._on_progress = on_progress
        self.done = Copied()

    def run(self) -> Copied:
        """Copy everything; differences are recorded and change nothing."""
        self._machines()
        for table, column in TEXT_TABLES:
            self._texts(table, column)
        self._last_by_key(schema.build, "builds")
        self._runnable_subjects()
        self._revisions()
        self._invocations()
        self._searches()
        self._steps()
        for kind in KINDS.values():
            add = self._last_by_key if kind.replaces else self._append_only
            add(schema.document, kind.title, schema.document.c.kind == kind.name)
        return self.done

    def _in_transaction(self, work: Callable[[Connection, Copied], None]) -> None:
        """Run a part of the copy in one transaction; its result counts once, even if it is repeated."""
        part = Copied()

        def attempt(connection: Connection) -> None:
            nonlocal part
            part = Copied()
            _await_other_copies(connection)
            work(connection, part)

        if isinstance(self._target, Connection):
            attempt(self._target)
        else:
            _write(Transactions(self._target, on_rollback=self._numbering.forget), attempt)
        self.done.include(part)

    def _rows(self, table: Table, *where: ColumnElement[bool]) -> Sequence[NamedRow]:
        return [_named_row(row) for row in self._source.execute(named_rows(table).where(*where))]

    def _machines(self) -> None:
        """Copy machines; existing ones keep their first facts."""
        rows = self._rows(schema.machine)

        def copy(connection: Connection, _: Copied) -> None:
            if rows:
                connection.execute(insert_unless_exists(connection, schema.machine), rows)

        self._in_transaction(copy)

    def _texts(self, table: Table, column: str) -> None:
        names = self._numbering.names[table.name]
        for chunk in chunks([row[column] for row in self._rows(table)]):

            def copy(connection: Connection, _: Copied, wanted: Sequence[str] = chunk) -> None:
                known = names.find_all(connection, wanted)
                missing = [{column: text} for text in wanted if text not in known]
                if missing:
                    connection.execute(insert_unless_exists(connection, table), missing)

            self._in_transaction(copy)

    def _last_by_key(self, table: Table, title: str, *where: ColumnElement[bool]) -> None:
        """Copy a table where the last of several rows with one key counts: older ones never follow newer ones."""
        source_rows: dict[str, list[NamedRow]] = defaultdict(list)
        for row in self._rows(table, *where):
            source_rows[row["key"]].append(row)
        for keys in chunks(list(source_rows)):

            def copy(connection: Connection, part: Copied, keys: Sequence[str] = keys) -> None:
                existing: dict[str, list[NamedRow]] = defaultdict(list)
                for row in connection.execute(named_rows(table).where(*where, table.c.key.in_(keys))):
                    existing[row.key].append(_named_row(row))
                new = [row for key in keys for row in _newer(source_rows[key], existing[key])]
                insert_many(connection, table, [self._numbering.row(connection, row) for row in new])
                part.count(title, added=len(new), of=sum(len(source_rows[key]) for key in keys))

            self._in_transaction(copy)

    def _runnable_subjects(self) -> None:
        table = schema.runnable_subject
        for chunk in chunks(self._rows(table)):

            def copy(connection: Connection, part: Copied, wanted: Sequence[NamedRow] = chunk) -> None:
                rows = {_key(row): row for row in (self._numbering.row(connection, each) for each in wanted)}
                ids = {row["runnable_id"] for row in rows.values()}
                found = connection.execute(select(table).where(table.c.runnable_id.in_(ids)))
                existing = {_key(row._asdict()): row.artefact for row in found}
                new = [row for key, row in rows.items() if key not in existing]
                insert_many(connection, table, new)
                part.count("runnables", added=len(new), of=len(wanted))
                part.differs += (
                    f"{row['benchmark']} of {row['revision']} ({row['variant']})"
                    for key, row in rows.items()
                    if existing.get(key, row["artefact"]) != row["artefact"]
                )

            self._in_transaction(copy)

    def _revisions(self) -> None:
        """Copy revisions; existing ones keep their positions."""
        for chunk in chunks(self._rows(schema.revision)):

            def copy(connection: Connection, _: Copied, rows: Sequence[NamedRow] = chunk) -> None:
                connection.execute(insert_unless_exists(connection, schema.revision), rows)

            self._in_transaction(copy)

    def _invocations(self) -> None:
        total = self._source.scalar(select(func.count()).select_from(schema.invocation)) or 0
        done = 0
        for batch in invocations(self._source):

            def copy(connection: Connection, part: Copied, batch: Sequence[StoredInvocation] = batch) -> None:
                insert_invocations(connection, batch, self._numbering, part)

            self._in_transaction(copy)
            done += len(batch)
            self._on_progress(done, total)

    def _searches(self) -> None:
        """Copy searches, and answers of searches that have none yet."""
        table = schema.search
        for search in self._rows(table):

            def copy(connection: Connection, part: Copied, search: NamedRow = search) -> None:
                row = self._numbering.row(connection, search)
                same = (table.c.key == row["key"], table.c.machine_id == row["machine_id"])
                found = connection.execute(select(table).where(*same)).one_or_none()
                part.count("searches", added=found is None, of=1)
                if found is None:
                    connection.execute(insert(table).values(row))
                elif _contradict(found, row):
                    part.differs.append(f"search {row['key']} on machine {search['machine_id']}")
                elif found.answer is None:
                    result = update(table).where(table.c.id == found.id)
                    connection.execute(result.values(answer=row["answer"]))

            self._in_transaction(copy)

    def _steps(self) -> None:
        step, search, machine = schema.step, schema.search, schema.machine
        searches = select(search.c.id, search.c.key, machine.c.fingerprint).join_from(search, machine)
        for own, key, of in self._source.execute(searches.order_by(search.c.id)).all():
            wanted = self._source.execute(select(step).where(step.c.search_id == own)).all()

            def copy(
                connection: Connection,
                part: Copied,
                key: str = key,
                of: str = of,
                wanted: Sequence[Row[Any]] = wanted,
            ) -> None:
                id = connection.scalars(
                    searches.where(search.c.key == key, machine.c.fingerprint == of)
                ).one()
                found = connection.execute(select(step).where(step.c.search_id == id))
                existing = {row.number: row._asdict() for row in found}
                rows = [row._asdict() | {"search_id": id} for row in wanted]
                new = [row for row in rows if row["number"] not in existing]
                insert_many(connection, step, new)
                part.count("steps", added=len(new), of=len(rows))
                part.differs += (
                    f"step {row['number']} of search {key} on machine {of}"
                    for row in rows
                    if existing.get(row["number"], row) != row
                )

            self._in_transaction(copy)

    def _append_only(self, table: Table, title: str, *where: ColumnElement[bool]) -> None:
        """Copy rows that all count."""
        rows = self._rows(table, *where)

        def copy(connection: Connection, part: Copied) -> None:
            existing = [_named_row(row) for row in connection.execute(named_rows(table).where(*where))]
            new = [row for row in rows if row not in existing]
            insert_many(connection, table, [self._numbering.row(connection, row) for row in new])
            part.count(title, added=len(new), of=len(rows))

        self._in_transaction(copy)


def _write(target: Transactions, work: Work) -> None:
    """Write a batch; repeat it if another process stored some of it after the check."""
    for left in reversed(range(MOST_ATTEMPTS)):
        try:
            target.write(work)
        except StoreError as error:
            if not left or not isinstance(error.__cause__, IntegrityError):
                raise
        else:
            return


def _await_other_copies(connection: Connection) -> None:
    """Wait for other copies into a server's database: rows without a key would be copied twice."""
    if connection.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(:family, :key)")
        connection.execute(lock, {"family": LOCK_FAMILY, "key": COPY_LOCK})


def _named_row(row: Row[Any]) -> NamedRow:
    """Return a row by its columns, without its id."""
    return {name: value for name, value in row._asdict().items() if name != "id"}


def _key(row: NamedRow) -> tuple[Any, ...]:
    return tuple(row[name] for name in SUBJECT_COLUMNS)


def _contradict(found: Row[Any], row: NamedRow) -> bool:
    """Return whether two searches with one key differ, other than one being at a later stage."""
    if (found.question, found.started) != (row["question"], row["started"]):
        return True
    return None not in (found.answer, row["answer"]) and found.answer != row["answer"]


def _newer(rows: Sequence[NamedRow], existing: Sequence[NamedRow]) -> Sequence[NamedRow]:
    """Return the rows of a key that are newer than the last one in the target."""
    if not existing:
        return rows
    last = existing[-1]
    if last in rows:
        index = max(number for number, row in enumerate(rows) if row == last)
        return rows[index + 1 :]
    return [row for row in rows if row["finished"] > last["finished"]]


def copy_store(
    source: str, target: str, *, on_progress: Callable[[int, int], None] = lambda *_: None
) -> Copied:
    """Copy the present state of one store into another, which is created if necessary.

    `on_progress` is called with the number of copied invocations and their total. Different content under one key is
    reported in the result, and the target's content stays. Raises `NoAnswer` for an empty source, `StoreLocked`
    while another perftrail process writes to the target's file.
    """
    if _same(source, target):
        raise UsageError(f"{shown(target)}: A and B are the same store; name two")
    with open_snapshot(source) as connection, locked(target):
        database = to_write(target)
        try:
            return StoreCopy(connection, database, on_progress=on_progress).run()
        finally:
            database.close()


def _same(one: str, other: str) -> bool:
    """Return whether two locations are one store, judging from their names."""
    if on_server(one) or on_server(other):
        return one == other
    return Path(one).resolve() == Path(other).resolve()
