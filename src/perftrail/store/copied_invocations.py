"""Invocations, with all their values, as they are copied into another store: a batch is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from perftrail.store import schema
from perftrail.store.accepted import named
from perftrail.store.content import FAILURE, OWN, invocations_at
from perftrail.store.inserting import insert_many
from perftrail.store.outcomes import PHASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from perftrail.store.content import KeptInvocation
    from perftrail.store.numbering import Copied, Numbering


def put_invocations(
    connection: Connection, batch: Sequence[KeptInvocation], numbering: Numbering, done: Copied
) -> None:
    """Insert those of some invocations that are not there; note which are there with another content."""
    rows = [_row(connection, each, numbering) for each in batch]
    places = [(row["runnable_id"], row["machine_id"], row["phase"], row["ordinal"]) for row in rows]
    there = {each.key: each for each in invocations_at(connection, places)}
    done.differs += (
        named(each.key) for each in batch if each.key in there and there[each.key].content != each.content
    )
    new = [(row, each) for row, each in zip(rows, batch, strict=True) if each.key not in there]
    if new:
        table = schema.invocation
        adding = insert(table).returning(table.c.id, sort_by_parameter_order=True)
        ids = connection.scalars(adding, [row for row, _ in new]).all()
        _put_values(connection, zip(ids, (each for _, each in new), strict=True), numbering)
    done.count("invocations", added=len(new), of=len(batch))


def _row(connection: Connection, each: KeptInvocation, numbering: Numbering) -> dict[str, Any]:
    own = dict(zip((*OWN, "block_id", "perftrail_id"), each.own, strict=True))
    names = {"runnable_id": each.key.runnable, "machine_id": each.key.machine}
    numbers = {"phase": PHASES.index(each.key.phase), "ordinal": each.key.ordinal}
    return numbering.row(connection, own | names) | numbers


def _put_values(
    connection: Connection, new: Iterable[tuple[int, KeptInvocation]], numbering: Numbering
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
            failures.append({"invocation_id": id, **dict(zip(FAILURE, each.failure, strict=True))})
    insert_many(connection, schema.value, values)
    insert_many(connection, schema.failure, failures)
