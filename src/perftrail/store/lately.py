"""How far a store is, and what came last: asked every second by who watches, so neither reads more than a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from perftrail.model.search_record import Mark
from perftrail.store import schema
from perftrail.store.outcomes import read_recent
from perftrail.store.rows import runnable_from_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from perftrail.model.measurement import Outcome, Runnable
    from perftrail.store.outcomes import Interned


def read_mark(connection: Connection) -> Mark:
    """Say how far the store is. Whatever is added has the largest id, so the last one tells of it."""
    last = {
        table.name: select(func.coalesce(func.max(table.c.id), 0)).scalar_subquery()
        for table in (schema.invocation, schema.build, schema.search, schema.regression_note)
    }
    row = connection.execute(
        select(
            last["invocation"],
            last["build"],
            last["search"],
            select(func.count(schema.search.c.answer)).scalar_subquery(),
            select(func.count()).select_from(schema.step).scalar_subquery(),
            last["regression_note"],
        )
    ).one()
    return Mark(
        invocations=row[0], builds=row[1], searches=row[2], answers=row[3], steps=row[4], notes=row[5]
    )


def recent(connection: Connection, most: int, interned: Interned) -> Sequence[tuple[Runnable, Outcome]]:
    """Give the outcomes that were kept last, newest first, each with the first that its runnable stands for."""
    found = read_recent(connection, most, interned)
    table = schema.stands_for
    rows = connection.execute(
        select(schema.runnable.c.key, table)
        .join_from(table, schema.runnable)
        .where(table.c.runnable_id.in_({number for number, _ in found}))
        .order_by(table.c.id.desc())
    )
    stands = {row.runnable_id: runnable_from_row(row) for row in rows}
    return [(stands[number], outcome) for number, outcome in found if number in stands]
