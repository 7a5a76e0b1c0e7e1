"""The tables of a store.

Only types that SQLite and PostgreSQL share are used. Everything that occurs in millions of rows is a small integer:
machines, runnables, metrics, methods and versions are stored once and referred to by their ids. JSON is text, because
PostgreSQL's JSON types refuse characters that a benchmark's output may contain.

A change of a table changes `format_version.FORMAT`, too.
"""

from __future__ import annotations

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

metadata = MetaData()

Wide = BigInteger().with_variant(Integer(), "sqlite")
"""An id that may need more than 32 bits. As INTEGER, it is SQLite's own row number and needs no space."""

perftrail = Table(
    "perftrail",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", Text, nullable=False, unique=True),
)
"""Every version of perftrail that has written to the store."""

machine = Table(
    "machine",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("facts", Text, nullable=False),
)
"""Machines that ran invocations; `facts` is a JSON object."""

build = Table(
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
    Column("recipe", Text),
    Index("build_by_key", "key", "id"),
)
"""Outcomes of builds, as JSON in `outcome`; of several rows with one key, the last counts."""

runnable = Table(
    "runnable",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
)
"""Runnables, by their content keys."""

origin = Table(
    "origin",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("text", Text, nullable=False, unique=True),
)
"""How runnables are built and started, each as a JSON object with recipe, lines and tools."""

revision = Table(
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
"""Measured revisions with their position in the history, for readers without the source.

`parents` is a JSON array.
"""

runnable_subject = Table(
    "stands_for",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("runnable_id", ForeignKey("runnable.id"), nullable=False),
    Column("revision", Text, nullable=False),
    Column("variant", Text, nullable=False),
    Column("benchmark", Text, nullable=False),
    Column("point", Text, nullable=False),
    Column("artefact", Text, nullable=False),
    Column("origin_id", ForeignKey("origin.id")),
    UniqueConstraint("runnable_id", "revision", "variant", "benchmark", "point"),
    Index("stands_for_by_benchmark", "benchmark", "id"),
)
"""The revisions, variants, benchmarks and points of a runnable; several if their content is equal.

`point` is a JSON array of pairs, in the order of the study's parameters.
"""

block = Table(
    "block",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)
"""Names of blocks; the invocations of a block ran directly one after another."""

invocation = Table(
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
    Column("block_id", ForeignKey("block.id")),
    Column("turn", SmallInteger),
    Column("seed", BigInteger),
    Column("layout", Integer),
    UniqueConstraint("runnable_id", "machine_id", "phase", "ordinal"),
)
"""Invocations. `phase` is 0 for a warm-up, 1 for a sample; `flags` is a JSON array, NULL without flags.

`block_id`, `turn`, `seed` and `layout` are the invocation's draw; NULL means 0 and no block. The unique constraint is
also the index through which all samples are read: warm-ups first, then by ordinal.
"""

failure = Table(
    "failure",
    metadata,
    Column("invocation_id", ForeignKey("invocation.id"), primary_key=True, autoincrement=False),
    Column("stage", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("log", Text, nullable=False),
    Column("seconds", Double, nullable=False),
)
"""Reasons of failed invocations; an invocation without a row here is a measurement."""

metric = Table(
    "metric",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)
"""Names of metrics."""

method = Table(
    "method",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)
"""Names of measurement methods."""

value = Table(
    "value",
    metadata,
    Column("invocation_id", ForeignKey("invocation.id"), primary_key=True, autoincrement=False),
    Column("metric_id", ForeignKey("metric.id"), primary_key=True, autoincrement=False),
    Column("value", Double, nullable=False),
    Column("method_id", ForeignKey("method.id")),
    sqlite_with_rowid=False,
)
"""Values of metrics in invocations: by far the largest table, in the order of its key."""

search = Table(
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
"""Searches: question and answer, both as JSON objects; unanswered ones have no answer."""

step = Table(
    "step",
    metadata,
    Column("search_id", ForeignKey("search.id"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", Text, nullable=False),
    Column("news", Text, nullable=False),
    Column("belief", Text, nullable=False),
    Column("words", Text, nullable=False),
)
"""The steps of a search; `action`, `news` and `belief` are JSON objects."""

document = Table(
    "document",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("json", Text, nullable=False),
    Column("machine_id", ForeignKey("machine.id")),
    Column("perftrail_id", ForeignKey("perftrail.id"), nullable=False),
    Index("document_by_key", "kind", "key", "id"),
)
"""Comparisons, listings, observed builds, explanations and notes, each as a JSON object. Only ever appended.

`documents.KINDS` states which fields of a record are its key, and whether the last of several with one key counts.
"""
