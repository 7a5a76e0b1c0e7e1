"""Version 5: how runnables are built and started, and the measured revisions in the order of their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

Table(
    "origin",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("text", Text, nullable=False, unique=True),
)

Table(
    "revision",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("position", Integer, nullable=False),
    Column("summary", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("parents", Text, nullable=False),
)


def apply(connection: Connection) -> None:
    """Create both tables; older runnables have no origin, and older builds no recipe."""
    metadata.create_all(connection)
    connection.exec_driver_sql("ALTER TABLE build ADD COLUMN recipe TEXT")
    connection.exec_driver_sql("ALTER TABLE stands_for ADD COLUMN origin_id INTEGER REFERENCES origin (id)")
