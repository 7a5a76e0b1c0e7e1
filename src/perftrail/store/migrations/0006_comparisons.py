"""Version 6: results of comparisons, which `compare` stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

for name in ("machine", "perftrail"):
    Table(name, metadata, Column("id", Integer, primary_key=True))

comparison = Table(
    "comparison",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("finished", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id"), nullable=False),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
)


def apply(connection: Connection) -> None:
    """Create the table."""
    comparison.create(connection)
