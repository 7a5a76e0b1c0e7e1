"""How the samples of very many runnables come out of the tables: values alone, no object for each start."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from perftrail.model.measurement import Samples
from perftrail.store import schema
from perftrail.store.names import chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from perftrail.model.build import Stage
    from perftrail.store.outcomes import Interned

    Conditions = Sequence[ColumnElement[bool]]

SAMPLE = 1
"""The phase of a sample in the table."""

MANY = 4
"""Who asks for more than one in so many of a store's runnables has all of it read: looking each up costs more."""

BATCH = 50_000
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
    here = table.c.machine_id == machine_id
    known = interned.metrics.find_all(connection, metrics)
    kept = connection.scalar(select(func.count()).select_from(schema.runnable)) or 0
    if len(runnables) * MANY > kept:
        asked = set(runnables)
        keys = {id: key for id, key in interned.runnables.by_id(connection).items() if key in asked}
        parts: Sequence[Conditions] = [(here,)]
    else:
        keys = {id: key for key, id in interned.runnables.find_all(connection, runnables).items()}
        parts = [(table.c.runnable_id.in_(chunk), here) for chunk in chunks(sorted(keys))]
    values: dict[int, dict[str, dict[int, float]]] = defaultdict(dict)
    for name, metric in known.items():
        for part in parts:
            for id, by_ordinal in _values(connection, part, metric):
                values[id].setdefault(name, by_ordinal).update(by_ordinal)
    flags, failures = _flags(connection, machine_id), _failures(connection, machine_id)
    started = set(values)
    if not started.issuperset(keys):
        # Of the others, some may have been started and have failed.
        for part in parts:
            started.update(connection.scalars(select(table.c.runnable_id).where(*part).distinct()))
    return {
        key: Samples(values=values.get(id, {}), flags=flags.get(id, {}), failures=tuple(failures.get(id, ())))
        for id, key in keys.items()
        if id in started
    }


def _values(connection: Connection, part: Conditions, metric: int) -> Iterator[tuple[int, dict[int, float]]]:
    """Give the values of a metric by ordinal, runnable after runnable; one may come in two pieces."""
    table, value = schema.invocation, schema.value
    wanted = (
        select(table.c.runnable_id, table.c.ordinal, value.c.value)
        .join_from(table, value)
        .where(*part, table.c.phase == SAMPLE, value.c.metric_id == metric)
        .order_by(table.c.runnable_id, table.c.phase, table.c.ordinal)
    )
    for rows in connection.execute(wanted).partitions(BATCH):
        ids, ordinals, numbers = zip(*rows, strict=True)
        starts = [0, *(place for place, (one, next) in enumerate(pairwise(ids), 1) if one != next), len(ids)]
        for first, last in pairwise(starts):
            yield ids[first], dict(zip(ordinals[first:last], numbers[first:last], strict=True))


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
