"""Version 7: the benchmarks that a project's own suite lists in a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

for name in ("machine", "perftrail"):
    Table(name, metadata, Column("id", Integer, primary_key=True))

listing = Table(
    "listing",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("suite", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("variant", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id")),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
)


def apply(connection: Connection) -> None:
    """Create the table."""
    listing.create(connection)
