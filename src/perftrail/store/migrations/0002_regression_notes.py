"""Version 2: notes about regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

Table(
    "regression_note",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("regression", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("written", Text, nullable=False),
)


def apply(connection: Connection) -> None:
    """Create the table."""
    metadata.create_all(connection)
