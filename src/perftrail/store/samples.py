"""How the samples of very many runnables come out of the tables: values alone, no object for each start."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from perftrail.model.measurement import Samples
from perftrail.store import schema
from perftrail.store.names import chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Select

    from perftrail.model.build import Stage
    from perftrail.store.outcomes import Interned

SAMPLE = 1
"""The phase of a sample in the table."""


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
    keys = {id: key for key, id in interned.runnables.find_all(connection, runnables).items()}
    known = interned.metrics.find_all(connection, metrics)
    flags, failures = _flags(connection, machine_id), _failures(connection, machine_id)
    found: dict[str, Samples] = {}
    for chunk in chunks(sorted(keys)):
        values: dict[int, dict[str, Mapping[int, float]]] = defaultdict(dict)
        for name, metric in known.items():
            for id, by_ordinal in _values(connection, chunk, machine_id, metric):
                values[id][name] = by_ordinal
        for id in _started(connection, chunk, machine_id):
            found[keys[id]] = Samples(
                values=values.get(id, {}), flags=flags.get(id, {}), failures=tuple(failures.get(id, ()))
            )
    return found


def _values(
    connection: Connection, runnables: Sequence[int], machine: int, metric: int
) -> Iterator[tuple[int, Mapping[int, float]]]:
    table, value = schema.invocation, schema.value
    wanted = (
        select(table.c.runnable_id, table.c.ordinal, value.c.value)
        .join_from(table, value)
        .where(*_of(runnables, machine), table.c.phase == SAMPLE, value.c.metric_id == metric)
        .order_by(table.c.runnable_id, table.c.phase, table.c.ordinal)
    )
    rows = connection.execute(wanted).all()
    if not rows:
        return
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


def _started(connection: Connection, runnables: Sequence[int], machine: int) -> Sequence[int]:
    wanted: Select[Any] = select(schema.invocation.c.runnable_id).where(*_of(runnables, machine)).distinct()
    return connection.scalars(wanted).all()


def _of(runnables: Sequence[int], machine: int) -> tuple[Any, ...]:
    table = schema.invocation
    return table.c.runnable_id.in_(runnables), table.c.machine_id == machine
