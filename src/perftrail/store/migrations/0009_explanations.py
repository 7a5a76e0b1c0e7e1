"""Version 9: why a revision is faster or slower than another one, which `explain` stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

for name in ("machine", "perftrail"):
    Table(name, metadata, Column("id", Integer, primary_key=True))

explanation = Table(
    "explanation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("against", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id")),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
)


def apply(connection: Connection) -> None:
    """Create the table."""
    explanation.create(connection)
