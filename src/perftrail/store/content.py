"""The content of a store independent of its row ids: to compare two stores, and to compute digests."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from perftrail.model.measurement import InvocationKey
from perftrail.store import schema
from perftrail.store.identifiers import chunks
from perftrail.store.outcomes import PHASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Row, Select, Table

    Cell = str | int | float | bool | None

BATCH = 1000
"""Number of invocations that are Python objects at a time, with all their values."""

MODULUS = 1 << 256
"""Digests of rows are added modulo this number, so that their order does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInvocation:
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


OWN = ("started", "seconds", "flags", "log", "turn", "seed", "layout")
"""Own columns of an invocation; the name of its block and the version of perftrail follow."""

FAILURE = ("stage", "message", "log", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Number of rows of a kind, and the sum of their digests: equal for equal rows in any order."""

    rows: int
    sum: str


def digests(connection: Connection) -> Mapping[str, Digest]:
    """Return the digests of a store by kind of row; ids and order of rows do not matter."""
    return {kind: _digest(rows) for kind, rows in _contents(connection).items()}


def invocations(connection: Connection) -> Iterator[Sequence[KeptInvocation]]:
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
        yield [_kept(row, values, failures) for row in rows]
        last = span[1]


def invocations_at(
    connection: Connection, places: Sequence[tuple[int, int, int, int]]
) -> Iterator[KeptInvocation]:
    """Yield those invocations that exist, each named by the ids of runnable and machine, phase and ordinal."""
    table = schema.invocation
    asked = _invocations().add_columns(table.c.runnable_id, table.c.machine_id)
    key = (table.c.runnable_id, table.c.machine_id, table.c.phase, table.c.ordinal)
    for chunk in chunks(places):
        # Each column by itself, which an index answers, gives a few more than were asked for.
        near = (column.in_(set(values)) for column, values in zip(key, zip(*chunk, strict=True), strict=True))
        wanted = set(chunk)
        rows = [
            row
            for row in connection.execute(asked.where(*near))
            if (row.runnable_id, row.machine_id, row.phase, row.ordinal) in wanted
        ]
        ids = [row.id for row in rows]
        values = _values(connection, _value_rows().where(schema.value.c.invocation_id.in_(ids)))
        failures = _failures(
            connection, select(schema.failure).where(schema.failure.c.invocation_id.in_(ids))
        )
        yield from (_kept(row, values, failures) for row in rows)


TEXTS = {
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
        TEXTS[column.name][1].label(column.name) if column.name in TEXTS else column for column in table.c
    ]
    wanted = select(*columns).select_from(table)
    for name, (other, _) in TEXTS.items():
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
        "builds": _numbered_by_key(connection),
        "runnables": _without_id(connection, schema.stands_for),
        "revisions": _without_id(connection, schema.revision),
        "invocations": (each.content for batch in invocations(connection) for each in batch),
        "searches": _without_id(connection, schema.search),
        "steps": (tuple(row) for row in connection.execute(steps)),
        "comparisons": _without_id(connection, schema.comparison),
        "notes": _without_id(connection, schema.regression_note),
    }


def _without_id(connection: Connection, table: Table) -> Iterator[tuple[Cell, ...]]:
    for row in connection.execute(named_rows(table)):
        yield tuple(row)[1:]


def _numbered_by_key(connection: Connection) -> Iterator[tuple[Cell, ...]]:
    """Yield builds with their position among those of their key: the last of these counts."""
    seen: dict[str, int] = defaultdict(int)
    for row in connection.execute(named_rows(schema.build)):
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
            *(table.c[name] for name in OWN),
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
        found[id].append((metric, value, method))
    return found


def _failures(connection: Connection, wanted: Select[Any]) -> Mapping[int, tuple[Cell, ...]]:
    return {
        row.invocation_id: tuple(getattr(row, name) for name in FAILURE) for row in connection.execute(wanted)
    }


def _kept(
    row: Row[Any],
    values: Mapping[int, list[tuple[str, float, str | None]]],
    failures: Mapping[int, tuple[Cell, ...]],
) -> KeptInvocation:
    return KeptInvocation(
        id=row.id,
        key=InvocationKey(
            runnable=row.key, machine=row.fingerprint, phase=PHASES[row.phase], ordinal=row.ordinal
        ),
        own=(*(getattr(row, name) for name in OWN), row.block, row.version),
        values=tuple(sorted(values.get(row.id, ()), key=lambda value: value[0])),
        failure=failures.get(row.id),
    )
