"""What people say of regressions, in the tables: appended, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from perftrail.model.search_record import RegressionNote
from perftrail.store import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection


def write_note(connection: Connection, note: RegressionNote) -> None:
    """Insert an accepted note."""
    connection.execute(
        insert(schema.regression_note).values(
            regression=note.regression,
            status=note.status,
            text=note.text,
            author=note.author,
            written=note.written,
        )
    )


def read_notes(connection: Connection) -> Sequence[RegressionNote]:
    """Give every note, oldest first."""
    table = schema.regression_note
    return [
        RegressionNote(
            regression=row.regression,
            status=row.status,
            text=row.text,
            author=row.author,
            written=row.written,
        )
        for row in connection.execute(select(table).order_by(table.c.id))
    ]
