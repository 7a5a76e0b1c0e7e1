"""Compare and copy stores.

The content of a store does not depend on row ids. Existing rows stay; different content under one key is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, assert_never

from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from perftrail.errors import StoreError, UsageError
from perftrail.file_tree import real_path
from perftrail.model.measurement import InvocationKey
from perftrail.store import schema
from perftrail.store.databases import open_snapshot, to_write
from perftrail.store.documents import KINDS as DOCUMENT_KINDS
from perftrail.store.identifiers import TextIds, chunks, insert_many
from perftrail.store.location import on_server, shown
from perftrail.store.lock import LOCK_FAMILY
from perftrail.store.outcomes import PHASES
from perftrail.store.retried_transactions import MOST_ATTEMPTS, Transactions
from perftrail.store.rows import describe_invocation
from perftrail.store.upkeep import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Row, Select, Table

    from perftrail.store.retried_transactions import Database

    NamedRow = Mapping[str, Any]
    Key = tuple[Any, ...]
    Work = Callable[[Connection], None]


BATCH = 1000
"""Number of invocations that are Python objects at a time, with all their values."""

MODULUS = 1 << 256
"""Digests of rows are added modulo this number, so that their order does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKind:
    """A kind of rows: what identifies a row, and how a copy adds rows to those that exist.

    `key` are the columns that identify a row. By `rule`, a copy adds a row without an existing one of its key
    (`missing`), rows that are newer than the last existing one of their key, because the last counts (`newer`), or
    rows that do not exist exactly like this (`all`). Missing rows are reported as different, in the words of
    `described`, if an existing one has other `fixed` columns; an empty `later` column of it gets its value.
    """

    title: str
    table: Table
    key: tuple[str, ...]
    rule: Literal["missing", "newer", "all"] = "missing"
    fixed: tuple[str, ...] = ()
    later: str = ""
    described: str = ""
    counted: bool = True
    where: tuple[ColumnElement[bool], ...] = ()

    def key_of(self, row: NamedRow) -> Key:
        """Return the key of a row."""
        return tuple(row[name] for name in self.key)


def _text_kind(table: Table, column: str) -> RowKind:
    """Return the kind of rows that map a text to its id."""
    return RowKind(title="", table=table, key=(column,), counted=False)


TEXT_KINDS = (
    _text_kind(schema.perftrail, "version"),
    _text_kind(schema.runnable, "key"),
    _text_kind(schema.metric, "name"),
    _text_kind(schema.method, "name"),
    _text_kind(schema.block, "name"),
    _text_kind(schema.origin, "text"),
)
"""Texts that rows of other kinds refer to by their ids."""

INVOCATIONS = RowKind(
    title="invocations",
    table=schema.invocation,
    key=("runnable_id", "machine_id", "phase", "ordinal"),
    fixed=(
        *("started", "seconds", "flags", "log", "perftrail_id", "block_id", "turn", "seed", "layout"),
        *("values", "failure"),
    ),
)
"""Invocations with two more columns: their values as (metric, value, method), and the columns of their failure."""

ROW_KINDS = (
    RowKind(title="machines", table=schema.machine, key=("fingerprint",), counted=False),
    RowKind(title="builds", table=schema.build, key=("key",), rule="newer"),
    RowKind(
        title="runnables",
        table=schema.runnable_subject,
        key=("runnable_id", "revision", "variant", "benchmark", "point"),
        fixed=("artefact",),
        described="{benchmark} of {revision} ({variant})",
    ),
    RowKind(title="revisions", table=schema.revision, key=("name",), counted=False),
    INVOCATIONS,
    RowKind(
        title="searches",
        table=schema.search,
        key=("key", "machine_id"),
        fixed=("question", "started"),
        later="answer",
        described="search {key} on machine {machine_id}",
    ),
    RowKind(
        title="steps",
        table=schema.step,
        key=("search_id", "number"),
        fixed=("action", "news", "belief", "words"),
        described="step {number} of search {search_id}",
    ),
    *(
        RowKind(
            title=kind.title,
            table=schema.document,
            key=("key",),
            rule="newer" if kind.replaces else "all",
            where=(schema.document.c.kind == kind.name,),
        )
        for kind in DOCUMENT_KINDS.values()
    ),
)
"""Every kind of row, those first to which others refer."""

FAILURE_COLUMNS = ("stage", "message", "log", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Number of rows of a kind, and the sum of their digests: equal for equal rows in any order."""

    rows: int
    sum: str


def digests(connection: Connection) -> Mapping[str, Digest]:
    """Return the digests of a store by kind of row; ids and order of rows do not matter."""
    return {kind.title: _digest(_contents(connection, kind)) for kind in ROW_KINDS}


def _contents(connection: Connection, kind: RowKind) -> Iterator[object]:
    """Yield rows as plain data; with their position among those of their key if the last of these counts."""
    positions: dict[Key, int] = defaultdict(int)
    for batch in batches(connection, kind):
        for row in batch:
            positions[kind.key_of(row)] += kind.rule == "newer"
            yield positions[kind.key_of(row)], row


def batches(connection: Connection, kind: RowKind) -> Iterator[Sequence[NamedRow]]:
    """Yield the rows of a kind in the order of storing: the invocations in parts, because there may be many."""
    if kind is not INVOCATIONS:
        yield _rows(connection, kind)
        return
    table, last = schema.invocation, 0
    while rows := connection.execute(named_rows(table).where(table.c.id > last).limit(BATCH)).all():
        yield _with_values(connection, rows)
        last = rows[-1].id


def _rows(connection: Connection, kind: RowKind, *where: ColumnElement[bool]) -> Sequence[NamedRow]:
    rows = connection.execute(named_rows(kind.table).where(*kind.where, *where)).all()
    return _with_values(connection, rows) if kind is INVOCATIONS else [_without_id(row) for row in rows]


def _with_values(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[NamedRow]:
    """Return invocations with their values and failures."""
    ids = [row.id for row in rows]
    value, failure = schema.value, schema.failure
    named = (
        select(value.c.invocation_id, schema.metric.c.name, value.c.value, schema.method.c.name)
        .join_from(value, schema.metric)
        .outerjoin(schema.method, value.c.method_id == schema.method.c.id)
        .where(value.c.invocation_id.in_(ids))
    )
    values: dict[int, list[tuple[str, float, str | None]]] = defaultdict(list)
    for id, metric, number, method in connection.execute(named):
        if not isfinite(number):
            raise ValueError(f"a value of {metric} is not finite")
        values[id].append((metric, number, method))
    failed = connection.execute(select(failure).where(failure.c.invocation_id.in_(ids)))
    failures = {row.invocation_id: tuple(getattr(row, name) for name in FAILURE_COLUMNS) for row in failed}
    for row in rows:
        PHASES[row.phase]  # raises IndexError for damage
    return [
        {
            **_without_id(row),
            "values": tuple(sorted(values.get(row.id, ()), key=itemgetter(0))),
            "failure": failures.get(row.id),
        }
        for row in rows
    ]


def _without_id(row: Row[Any]) -> NamedRow:
    return {name: value for name, value in row._asdict().items() if name != "id"}


SEARCH_NAME = (
    schema.search.c.key
    + " on machine "
    + (
        select(schema.machine.c.fingerprint)
        .where(schema.machine.c.id == schema.search.c.machine_id)
        .scalar_subquery()
    )
)
"""The text that identifies a search."""

TEXT_COLUMNS: Mapping[str, tuple[Table, ColumnElement[str]]] = {
    "runnable_id": (schema.runnable, schema.runnable.c.key),
    "machine_id": (schema.machine, schema.machine.c.fingerprint),
    "perftrail_id": (schema.perftrail, schema.perftrail.c.version),
    "block_id": (schema.block, schema.block.c.name),
    "origin_id": (schema.origin, schema.origin.c.text),
    "search_id": (schema.search, SEARCH_NAME),
    "metric_id": (schema.metric, schema.metric.c.name),
    "method_id": (schema.method, schema.method.c.name),
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
    return wanted.order_by(*table.primary_key)


def _digest(rows: Iterable[object]) -> Digest:
    count, total = 0, 0
    for row in rows:
        count += 1
        text = json.dumps(row, ensure_ascii=True, separators=(",", ":"))
        total += int.from_bytes(hashlib.blake2b(text.encode(), digest_size=32).digest())
    return Digest(rows=count, sum=f"{total % MODULUS:064x}")


MOST_DIFFERENCES = 5
"""Maximum number of differences in an error."""


class Numbering:
    """The ids of texts in the target store."""

    def __init__(self) -> None:
        self._ids = {column: TextIds(table, text) for column, (table, text) in TEXT_COLUMNS.items()}

    def row(self, connection: Connection, named: NamedRow) -> dict[str, Any]:
        """Return a row of `named_rows` with ids instead of texts."""
        return {
            name: self._ids[name].find(connection, value)
            if name in TEXT_COLUMNS and value is not None
            else value
            for name, value in named.items()
        }

    def forget(self) -> None:
        """Forget all ids, after a failed transaction."""
        for ids in self._ids.values():
            ids.forget()


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
        for kind in (*TEXT_KINDS, *ROW_KINDS):
            if kind is INVOCATIONS:
                self._invocations()
            else:
                for rows in batches(self._source, kind):
                    for part in chunks([*_by_key(kind, rows).values()]):
                        self._add(kind, part)
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

    def _invocations(self) -> None:
        total = self._source.scalar(select(func.count()).select_from(schema.invocation)) or 0
        done = 0
        for batch in batches(self._source, INVOCATIONS):
            self._add(INVOCATIONS, [[row] for row in batch])
            done += len(batch)
            self._on_progress(done, total)

    def _add(self, kind: RowKind, groups: Sequence[Sequence[NamedRow]]) -> None:
        """Add rows, in groups of one key each."""

        def add(connection: Connection, part: Copied) -> None:
            existing = self._existing(connection, kind, [kind.key_of(rows[0]) for rows in groups])
            new: list[NamedRow] = []
            for rows in groups:
                found = existing.get(kind.key_of(rows[0]), [])
                new += _to_add(kind, rows, found)
                if kind.rule == "missing" and found:
                    self._compare(connection, kind, rows[0], found[0], part)
            self._insert(connection, kind, new)
            if kind.counted:
                part.count(kind.title, added=len(new), of=sum(map(len, groups)))

        self._in_transaction(add)

    def _existing(
        self, connection: Connection, kind: RowKind, keys: Sequence[Key]
    ) -> Mapping[Key, Sequence[NamedRow]]:
        """Return the rows of the target with these keys, and a few others."""
        rows: list[NamedRow] = []
        for chunk in chunks(keys):
            numbered = [
                self._numbering.row(connection, dict(zip(kind.key, key, strict=True))) for key in chunk
            ]
            # Conditions on single columns use an index, but also match a few other rows.
            near = (kind.table.c[name].in_({row[name] for row in numbered}) for name in kind.key)
            rows += _rows(connection, kind, *near)
        return _by_key(kind, rows)

    def _compare(
        self, connection: Connection, kind: RowKind, row: NamedRow, found: NamedRow, part: Copied
    ) -> None:
        """Report an existing row that differs, or add the value of its `later` column."""
        later = (row[kind.later], found[kind.later]) if kind.later else (None, None)
        if any(row[name] != found[name] for name in kind.fixed) or (
            None not in later and later[0] != later[1]
        ):
            part.differs.append(_described(kind, row))
        elif later[1] is None and later[0] is not None:
            key = self._numbering.row(connection, {name: row[name] for name in kind.key})
            same = (kind.table.c[name] == value for name, value in key.items())
            connection.execute(update(kind.table).where(*same).values({kind.later: later[0]}))

    def _insert(self, connection: Connection, kind: RowKind, new: Sequence[NamedRow]) -> None:
        rows = [self._numbering.row(connection, row) for row in new]
        if kind is not INVOCATIONS or not rows:
            insert_many(connection, kind.table, rows)
            return
        values = [row.pop("values") for row in rows]
        failures = [row.pop("failure") for row in rows]
        adding = insert(kind.table).returning(kind.table.c.id, sort_by_parameter_order=True)
        ids = connection.scalars(adding, rows).all()
        columns = ("invocation_id", "metric_id", "value", "method_id")
        named = ((id, *value) for id, own in zip(ids, values, strict=True) for value in own)
        rows = [self._numbering.row(connection, dict(zip(columns, each, strict=True))) for each in named]
        insert_many(connection, schema.value, rows)
        failed = [(id, *own) for id, own in zip(ids, failures, strict=True) if own is not None]
        names = ("invocation_id", *FAILURE_COLUMNS)
        insert_many(connection, schema.failure, [dict(zip(names, each, strict=True)) for each in failed])


def _by_key(kind: RowKind, rows: Iterable[NamedRow]) -> dict[Key, list[NamedRow]]:
    found: dict[Key, list[NamedRow]] = defaultdict(list)
    for row in rows:
        found[kind.key_of(row)].append(row)
    return found


def _to_add(kind: RowKind, rows: Sequence[NamedRow], existing: Sequence[NamedRow]) -> Sequence[NamedRow]:
    """Return the rows of a key that a copy adds to the existing ones of that key."""
    match kind.rule:
        case "missing":
            return [] if existing else rows
        case "newer":
            return _newer(rows, existing)
        case "all":
            return [row for row in rows if row not in existing]
        case _:
            assert_never(kind.rule)


def _described(kind: RowKind, row: NamedRow) -> str:
    if kind is INVOCATIONS:
        runnable, machine, phase, ordinal = kind.key_of(row)
        key = InvocationKey(runnable=runnable, machine=machine, phase=PHASES[phase], ordinal=ordinal)
        return describe_invocation(key)
    return kind.described.format(**row)


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
    return real_path(one) == real_path(other)
