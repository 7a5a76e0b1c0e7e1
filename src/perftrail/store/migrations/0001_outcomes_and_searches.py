"""Version 1: machines, builds, runnables, invocations with their values, searches with their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

metadata = MetaData()

Wide = BigInteger().with_variant(Integer(), "sqlite")

Table(
    "perftrail",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", Text, nullable=False, unique=True),
)

Table(
    "machine",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("facts", Text, nullable=False),
)

Table(
    "build",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("variant", Text, nullable=False),
    Column("benchmark", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("succeeded", Boolean, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id")),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
    Index("build_by_key", "key", "id"),
)

Table(
    "runnable",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
)

Table(
    "stands_for",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("runnable_id", ForeignKey("runnable.id"), nullable=False),
    Column("revision", Text, nullable=False),
    Column("variant", Text, nullable=False),
    Column("benchmark", Text, nullable=False),
    Column("point", Text, nullable=False),
    Column("artefact", Text, nullable=False),
    UniqueConstraint("runnable_id", "revision", "variant", "benchmark", "point"),
    Index("stands_for_by_benchmark", "benchmark", "id"),
)

Table(
    "invocation",
    metadata,
    Column("id", Wide, primary_key=True),
    Column("runnable_id", ForeignKey("runnable.id"), nullable=False),
    Column("machine_id", ForeignKey("machine.id"), nullable=False),
    Column("phase", SmallInteger, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("started", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("flags", Text),
    Column("log", Text),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
    UniqueConstraint("runnable_id", "machine_id", "phase", "ordinal"),
)

Table(
    "failure",
    metadata,
    Column("invocation_id", ForeignKey("invocation.id"), primary_key=True, autoincrement=False),
    Column("stage", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("log", Text, nullable=False),
    Column("seconds", Double, nullable=False),
)

Table(
    "metric",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

Table(
    "method",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

Table(
    "value",
    metadata,
    Column("invocation_id", ForeignKey("invocation.id"), primary_key=True, autoincrement=False),
    Column("metric_id", ForeignKey("metric.id"), primary_key=True, autoincrement=False),
    Column("value", Double, nullable=False),
    Column("method_id", ForeignKey("method.id")),
    sqlite_with_rowid=False,
)

Table(
    "search",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id"), nullable=False),
    Column("question", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("answer", Text),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
    UniqueConstraint("key", "machine_id"),
)

Table(
    "step",
    metadata,
    Column("search_id", ForeignKey("search.id"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", Text, nullable=False),
    Column("news", Text, nullable=False),
    Column("belief", Text, nullable=False),
    Column("words", Text, nullable=False),
)


def apply(connection: Connection) -> None:
    """Create every table."""
    metadata.create_all(connection, checkfirst=False)
