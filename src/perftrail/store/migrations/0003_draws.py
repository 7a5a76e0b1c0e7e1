"""Version 3: random draws of invocations, and their blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

Table(
    "block",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

COLUMNS = ("block_id INTEGER REFERENCES block (id)", "turn SMALLINT", "seed BIGINT", "layout INTEGER")
"""Columns that are NULL in older invocations. Adding them changes no row, however many there are."""


def apply(connection: Connection) -> None:
    """Create the table of blocks and add the columns."""
    metadata.create_all(connection)
    for column in COLUMNS:
        connection.exec_driver_sql(f"ALTER TABLE invocation ADD COLUMN {column}")
