"""Version 8: the files that an observed build uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

for name in ("machine", "perftrail"):
    Table(name, metadata, Column("id", Integer, primary_key=True))

build_reads = Table(
    "build_reads",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("recipe", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("reads", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id")),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
)


def apply(connection: Connection) -> None:
    """Create the table."""
    build_reads.create(connection)
