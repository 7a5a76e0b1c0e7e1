"""How the samples of very many runnables come out of the tables: values alone, no object for each start."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from perftrail.model.measurement import Samples
from perftrail.store import schema
from perftrail.store.names import chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from perftrail.model.build import Stage
    from perftrail.store.outcomes import Interned

    Conditions = Sequence[ColumnElement[bool]]

SAMPLE = 1
"""The phase of a sample in the table."""

MANY = 4
"""Who asks for more than one in so many of a store's runnables has all of it read: looking each up costs more."""

BATCH = 10_000
"""So many rows are Python's at a time, before they become values."""


def read_samples(
    connection: Connection,
    runnables: Collection[str],
    machine: str,
    metrics: Collection[str],
    interned: Interned,
) -> Mapping[str, Samples]:
    """Give the samples of runnables on a machine in some metrics; nothing of what was never started."""
    machine_id = interned.machines.find(connection, machine)
    if machine_id is None:
        return {}
    table = schema.invocation
    # Of a plain column, SQLite would see that it is the same in all rows, and sort what the index has in order.
    here = table.c.machine_id + 0 == machine_id
    known = interned.metrics.find_all(connection, metrics)
    kept = connection.scalar(select(func.count()).select_from(schema.runnable)) or 0
    if len(runnables) * MANY > kept:
        asked = set(runnables)
        keys = {id: key for id, key in interned.runnables.by_id(connection).items() if key in asked}
        parts: Sequence[Conditions] = [(here,)]
    else:
        keys = {id: key for key, id in interned.runnables.find_all(connection, runnables).items()}
        parts = [(table.c.runnable_id.in_(chunk), here) for chunk in chunks(sorted(keys))]
    held: dict[int, dict[str, dict[int, float]]] = {}
    for name, metric in known.items():
        _add_values(held, connection, parts, name, metric)
    flags, failures = _flags(connection, machine_id), _failures(connection, machine_id)
    blocks, turns = _blocks(connection, parts)
    started = set(held)
    if not started.issuperset(keys):
        # Of the others, some may have been started and have failed.
        for part in parts:
            started.update(connection.scalars(select(table.c.runnable_id).where(*part).distinct()))
    return {
        key: Samples(
            values=held.get(id, {}),
            flags=flags.get(id, {}),
            failures=tuple(failures.get(id, ())),
            blocks=blocks.get(id, {}),
            turns=turns.get(id, {}),
        )
        for id, key in keys.items()
        if id in started
    }


def _add_values(
    held: dict[int, dict[str, dict[int, float]]],
    connection: Connection,
    parts: Sequence[Conditions],
    name: str,
    metric: int,
) -> None:
    """Add the values of a metric by ordinal, in its order, to those of each runnable that has any."""
    table, value = schema.invocation, schema.value
    last: int | None = None
    own: dict[int, float] = {}
    for part in parts:
        wanted = (
            select(table.c.runnable_id, table.c.ordinal, value.c.value)
            .join_from(table, value)
            .where(*part, table.c.phase + 0 == SAMPLE, value.c.metric_id == metric)
            .order_by(table.c.runnable_id, table.c.machine_id, table.c.phase, table.c.ordinal)
        )
        for rows in connection.execute(wanted, execution_options={"yield_per": BATCH}).partitions():
            for id, ordinal, number in rows:
                if id != last:
                    last, own = id, held.setdefault(id, {}).setdefault(name, {})
                own[ordinal] = number


def _blocks(
    connection: Connection, parts: Sequence[Conditions]
) -> tuple[Mapping[int, Mapping[int, str]], Mapping[int, Mapping[int, int]]]:
    """Return the blocks of samples and their places in these, each by runnable and ordinal."""
    table, block = schema.invocation, schema.block
    blocks: dict[int, dict[int, str]] = defaultdict(dict)
    turns: dict[int, dict[int, int]] = defaultdict(dict)
    names = {row[0]: row[1] for row in connection.execute(select(block.c.id, block.c.name))}
    if not names:
        return blocks, turns
    for part in parts:
        wanted = select(table.c.runnable_id, table.c.ordinal, table.c.block_id, table.c.turn).where(
            *part, table.c.phase + 0 == SAMPLE, table.c.block_id.is_not(None)
        )
        for rows in connection.execute(wanted, execution_options={"yield_per": BATCH}).partitions():
            for id, ordinal, number, turn in rows:
                blocks[id][ordinal] = names[number]
                turns[id][ordinal] = turn or 0
    return blocks, turns


def _flags(connection: Connection, machine: int) -> Mapping[int, Mapping[int, tuple[str, ...]]]:
    """The flags of every sample that has any, in one pass: a search for each runnable would cost more."""
    table = schema.invocation
    wanted = select(table.c.runnable_id, table.c.ordinal, table.c.flags).where(
        table.c.flags.is_not(None), table.c.machine_id == machine, table.c.phase == SAMPLE
    )
    found: dict[int, dict[int, tuple[str, ...]]] = defaultdict(dict)
    for id, ordinal, flags in connection.execute(wanted):
        found[id][ordinal] = tuple(json.loads(flags))
    return found


def _failures(connection: Connection, machine: int) -> Mapping[int, Sequence[Stage]]:
    """The stages of every start that failed, in one pass over the failures, which are few."""
    table, failure = schema.invocation, schema.failure
    stages = {row[0]: row[1] for row in connection.execute(select(failure.c.invocation_id, failure.c.stage))}
    found: dict[int, list[Stage]] = defaultdict(list)
    for chunk in chunks(sorted(stages)):
        wanted = (
            select(table.c.id, table.c.runnable_id)
            .where(table.c.id.in_(chunk), table.c.machine_id == machine)
            .order_by(table.c.id)
        )
        for id, runnable in connection.execute(wanted):
            found[runnable].append(stages[id])
    return found
