"""Write outcomes to the tables and read them, many at a time.

Samples of many runnables are read as values only, without an object for each invocation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select

from perftrail.model.build import Failure
from perftrail.model.measurement import UNDRAWN, Draw, FailedInvocation, InvocationKey, Measurement, Samples
from perftrail.store import schema
from perftrail.store.identifiers import TextIds, chunks, insert_many
from perftrail.store.rows import texts_from_json, to_json, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from perftrail.model.build import Stage
    from perftrail.model.measurement import Outcome, Phase

    Conditions = Sequence[ColumnElement[bool]]

PHASES: tuple[Phase, Phase] = ("warmup", "sample")
"""Phases by their number in the table, in the order in which they are read."""


MOST_BLOCKS = 1000
"""Maximum number of cached blocks: each round of invocations is another block, and a long run has tens of thousands."""


class Interned:
    """Cached ids of all texts that outcomes refer to."""

    def __init__(self) -> None:
        self.perftrails = TextIds(schema.perftrail, schema.perftrail.c.version)
        self.machines = TextIds(schema.machine, schema.machine.c.fingerprint)
        self.runnables = TextIds(schema.runnable, schema.runnable.c.key)
        self.metrics = TextIds(schema.metric, schema.metric.c.name)
        self.methods = TextIds(schema.method, schema.method.c.name)
        self.blocks = TextIds(schema.block, schema.block.c.name)
        self.origins = TextIds(schema.origin, schema.origin.c.text)

    def forget(self) -> None:
        """Clear the cache, after a rolled back transaction."""
        for names in (
            self.perftrails,
            self.machines,
            self.runnables,
            self.metrics,
            self.methods,
            self.blocks,
            self.origins,
        ):
            names.forget()


def write(connection: Connection, outcomes: Sequence[Outcome], interned: Interned, *, perftrail: str) -> None:
    """Insert outcomes in storable form. Raises `StoreError` for an unknown machine or runnable."""
    version = interned.perftrails.intern(connection, perftrail)
    interned.blocks.forget_beyond(MOST_BLOCKS)
    interned.runnables.find_all(connection, {outcome.key.runnable for outcome in outcomes})
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measurement)]
    interned.metrics.intern_all(connection, (name for each in measured for name in each.values))
    interned.methods.intern_all(connection, (method for each in measured for method in each.methods.values()))
    interned.blocks.intern_all(connection, (each.draw.block for each in outcomes if each.draw.block))
    for chunk in chunks(outcomes):
        rows = [_invocation(connection, outcome, interned, version) for outcome in chunk]
        ids = connection.scalars(
            insert(schema.invocation).returning(schema.invocation.c.id, sort_by_parameter_order=True), rows
        ).all()
        values: list[dict[str, object]] = []
        failures: list[dict[str, object]] = []
        for id, outcome in zip(ids, chunk, strict=True):
            if isinstance(outcome, Measurement):
                values += _values(connection, id, outcome, interned)
            else:
                failures.append(_failure(id, outcome.failure))
        insert_many(connection, schema.value, values)
        insert_many(connection, schema.failure, failures)


def _invocation(
    connection: Connection, outcome: Outcome, interned: Interned, version: int
) -> dict[str, object]:
    key = outcome.key
    machine = interned.machines.find(connection, key.machine)
    runnable = interned.runnables.find(connection, key.runnable)
    if machine is None:
        raise unknown(key, "machine")
    if runnable is None:
        raise unknown(key, "runnable")
    measured = outcome if isinstance(outcome, Measurement) else None
    draw = outcome.draw
    return {
        "runnable_id": runnable,
        "machine_id": machine,
        "phase": PHASES.index(key.phase),
        "ordinal": key.ordinal,
        "started": outcome.started,
        "seconds": outcome.seconds,
        "flags": to_json(list(measured.flags), "flags") if measured and measured.flags else None,
        "log": measured.log if measured and measured.log else None,
        "perftrail_id": version,
        "block_id": interned.blocks.intern(connection, draw.block) if draw.block else None,
        "turn": draw.turn or None,
        "seed": draw.seed or None,
        "layout": draw.layout or None,
    }


def _values(
    connection: Connection, id: int, outcome: Measurement, interned: Interned
) -> list[dict[str, object]]:
    return [
        {
            "invocation_id": id,
            "metric_id": interned.metrics.intern(connection, metric),
            "value": value,
            "method_id": interned.methods.intern(connection, outcome.methods[metric])
            if metric in outcome.methods
            else None,
        }
        for metric, value in outcome.values.items()
    ]


def _failure(id: int, failure: Failure) -> dict[str, object]:
    return {
        "invocation_id": id,
        "stage": failure.stage,
        "message": failure.message,
        "log": failure.log,
        "seconds": failure.seconds,
    }


def first_stored(connection: Connection, outcomes: Sequence[Outcome], interned: Interned) -> Outcome | None:
    """Return the first outcome whose key exists in the store, or occurs twice."""
    table = schema.invocation
    seen: set[InvocationKey] = set()
    for outcome in outcomes:
        key = outcome.key
        stored = select(table.c.id).where(
            table.c.runnable_id == interned.runnables.find(connection, key.runnable),
            table.c.machine_id == interned.machines.find(connection, key.machine),
            table.c.phase == PHASES.index(key.phase),
            table.c.ordinal == key.ordinal,
        )
        if key in seen or connection.scalar(stored) is not None:
            return outcome
        seen.add(key)
    return None


def all_stored(connection: Connection, outcomes: Sequence[Outcome], interned: Interned) -> bool:
    """Return whether the store has all of these outcomes, in storable form, unchanged."""
    by_machine: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_machine[outcome.key.machine].append(outcome)
    for machine, wanted in by_machine.items():
        stored = read(connection, {each.key.runnable for each in wanted}, machine, interned)
        by_key = {each.key: each for group in stored.values() for each in group}
        if any(by_key.get(each.key) != each for each in wanted):
            return False
    return True


def read(
    connection: Connection, runnables: Collection[str], machine: str, interned: Interned
) -> Mapping[str, tuple[Outcome, ...]]:
    """Return the outcomes of runnables on a machine; an empty tuple for runnables without outcomes."""
    found: dict[str, tuple[Outcome, ...]] = dict.fromkeys(runnables, ())
    machine_id = interned.machines.find(connection, machine)
    if machine_id is None:
        return found
    keys = {id: key for key, id in interned.runnables.find_all(connection, runnables).items()}
    metrics, methods = interned.metrics.by_id(connection), interned.methods.by_id(connection)
    for chunk in chunks(sorted(keys)):
        values = _read_values(connection, chunk, machine_id, metrics, methods)
        by_runnable: dict[str, list[Outcome]] = defaultdict(list)
        for row in connection.execute(_invocations(chunk, machine_id)).all():
            by_runnable[keys[row.runnable_id]].append(_outcome(row, keys[row.runnable_id], machine, values))
        found.update((key, tuple(outcomes)) for key, outcomes in by_runnable.items())
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Values and methods by metric, by the id of their invocation."""

    values: Mapping[int, Mapping[str, float]]
    methods: Mapping[int, Mapping[str, str]]


def _outcome(row: Row[Any], runnable: str, machine: str, values: _Values) -> Outcome:
    key = InvocationKey(runnable=runnable, machine=machine, phase=PHASES[row.phase], ordinal=row.ordinal)
    if not isfinite(row.seconds):
        raise ValueError("the time of an invocation is not finite")
    if row.stage is not None:
        failure = Failure(
            stage=row.stage, message=row.message, log=row.failure_log, seconds=row.failure_seconds
        )
        return FailedInvocation(
            key=key, started=row.started, seconds=row.seconds, failure=failure, draw=_draw(row)
        )
    return Measurement(
        key=key,
        started=row.started,
        seconds=row.seconds,
        values=values.values.get(row.id, {}),
        methods=values.methods.get(row.id, {}),
        flags=texts_from_json(row.flags) if row.flags else (),
        log=row.log or "",
        draw=_draw(row),
    )


def _draw(row: Row[Any]) -> Draw:
    if row.block is None and row.turn is None and row.seed is None and row.layout is None:
        return UNDRAWN
    return Draw(block=row.block or "", turn=row.turn or 0, seed=row.seed or 0, layout=row.layout or 0)


def _invocations(runnables: Sequence[int], machine: int) -> Select[Any]:
    table = schema.invocation
    return (
        _whole_invocation()
        .where(table.c.runnable_id.in_(runnables), table.c.machine_id == machine)
        .order_by(table.c.runnable_id, table.c.phase, table.c.ordinal)
    )


def _whole_invocation() -> Select[Any]:
    table, failure, block = schema.invocation, schema.failure, schema.block
    drawn = (table.c.turn, table.c.seed, table.c.layout)
    found = select(
        table.c.id,
        table.c.runnable_id,
        table.c.phase,
        table.c.ordinal,
        table.c.started,
        table.c.seconds,
        table.c.flags,
        table.c.log,
        failure.c.stage,
        failure.c.message,
        failure.c.log.label("failure_log"),
        failure.c.seconds.label("failure_seconds"),
        block.c.name.label("block"),
        *drawn,
    )
    return found.outerjoin_from(table, failure).outerjoin(block, table.c.block_id == block.c.id)


def _read_values(
    connection: Connection,
    runnables: Sequence[int],
    machine: int,
    metrics: Mapping[int, str],
    methods: Mapping[int, str],
) -> _Values:
    table = schema.invocation
    return _values_where(
        connection,
        (table.c.runnable_id.in_(runnables), table.c.machine_id == machine),
        metrics,
        methods,
    )


def _values_where(
    connection: Connection,
    wanted: Sequence[ColumnElement[bool]],
    metrics: Mapping[int, str],
    methods: Mapping[int, str],
) -> _Values:
    table, value = schema.invocation, schema.value
    chosen = (
        select(value.c.invocation_id, value.c.metric_id, value.c.value, value.c.method_id)
        .join_from(table, value)
        .where(*wanted)
    )
    values: dict[int, dict[str, float]] = defaultdict(dict)
    methods_by_invocation: dict[int, dict[str, str]] = defaultdict(dict)
    for invocation, metric, number, method in connection.execute(chosen).all():
        if not isfinite(number):
            raise ValueError(f"a value of {metrics[metric]} is not finite")
        values[invocation][metrics[metric]] = number
        if method is not None:
            methods_by_invocation[invocation][metrics[metric]] = methods[method]
    return _Values(values=values, methods=methods_by_invocation)


def read_recent(connection: Connection, most: int, interned: Interned) -> Sequence[tuple[int, Outcome]]:
    """Return the last outcomes, newest first, each with the id of its runnable."""
    table, machine, runnable = schema.invocation, schema.machine, schema.runnable
    rows = connection.execute(
        _whole_invocation()
        .add_columns(machine.c.fingerprint, runnable.c.key)
        .join(machine, machine.c.id == table.c.machine_id)
        .join(runnable, runnable.c.id == table.c.runnable_id)
        .order_by(table.c.id.desc())
        .limit(most)
    ).all()
    metrics, methods = interned.metrics.by_id(connection), interned.methods.by_id(connection)
    values = _values_where(connection, (table.c.id.in_([row.id for row in rows]),), metrics, methods)
    return [(row.runnable_id, _outcome(row, row.key, row.fingerprint, values)) for row in rows]


SAMPLE = 1
"""Number of the sample phase in the table."""

READ_ALL_FACTOR = 4
"""If more than one in this number of runnables is requested, all are read: single look-ups cost more."""

BATCH = 10_000
"""Number of rows that are Python objects at a time, before they become values."""


def read_samples(
    connection: Connection,
    runnables: Collection[str],
    machine: str,
    metrics: Collection[str],
    interned: Interned,
) -> Mapping[str, Samples]:
    """Return the samples of runnables on a machine for some metrics; runnables that never ran are missing."""
    machine_id = interned.machines.find(connection, machine)
    if machine_id is None:
        return {}
    table = schema.invocation
    # For a plain column, SQLite would see that it is equal in all rows, and sort rows that the index has in order.
    here = table.c.machine_id + 0 == machine_id
    known = interned.metrics.find_all(connection, metrics)
    runnable_count = connection.scalar(select(func.count()).select_from(schema.runnable)) or 0
    if len(runnables) * READ_ALL_FACTOR > runnable_count:
        requested = set(runnables)
        keys = {id: key for id, key in interned.runnables.by_id(connection).items() if key in requested}
        parts: Sequence[Conditions] = [(here,)]
    else:
        keys = {id: key for key, id in interned.runnables.find_all(connection, runnables).items()}
        parts = [(table.c.runnable_id.in_(chunk), here) for chunk in chunks(sorted(keys))]
    by_runnable: dict[int, dict[str, dict[int, float]]] = {}
    for name, metric in known.items():
        _add_values(by_runnable, connection, parts, name, metric)
    flags, failures = _flags(connection, machine_id), _failures(connection, machine_id)
    blocks = _blocks(connection, parts)
    started = set(by_runnable)
    if not started.issuperset(keys):
        # Runnables without values may have failed invocations.
        for part in parts:
            started.update(connection.scalars(select(table.c.runnable_id).where(*part).distinct()))
    return {
        key: Samples(
            values=by_runnable.get(id, {}),
            flags=flags.get(id, {}),
            failures=tuple(failures.get(id, ())),
            blocks=blocks.get(id, {}),
        )
        for id, key in keys.items()
        if id in started
    }


def _add_values(
    by_runnable: dict[int, dict[str, dict[int, float]]],
    connection: Connection,
    parts: Sequence[Conditions],
    name: str,
    metric: int,
) -> None:
    """Add the values of a metric, by ordinal and in its order, to those of each runnable that has any."""
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
            if not all(isfinite(row[2]) for row in rows):
                raise ValueError(f"a value of {name} is not finite")
            for id, ordinal, number in rows:
                if id != last:
                    last, own = id, by_runnable.setdefault(id, {}).setdefault(name, {})
                own[ordinal] = number


def _blocks(connection: Connection, parts: Sequence[Conditions]) -> Mapping[int, Mapping[int, str]]:
    """Return the blocks of samples by runnable and ordinal; runnables of one run share their mapping."""
    table, block = schema.invocation, schema.block
    blocks: dict[int, Mapping[int, str]] = {}
    names = {row[0]: row[1] for row in connection.execute(select(block.c.id, block.c.name))}
    if not names:
        return blocks
    shared: dict[tuple[tuple[int, int], ...], Mapping[int, str]] = {}
    for part in parts:
        wanted = (
            select(table.c.runnable_id, table.c.ordinal, table.c.block_id)
            .where(*part, table.c.phase + 0 == SAMPLE, table.c.block_id.is_not(None))
            .order_by(table.c.runnable_id, table.c.machine_id, table.c.phase, table.c.ordinal)
        )
        rows = connection.execute(wanted, execution_options={"yield_per": BATCH})
        for id, group in groupby(rows, itemgetter(0)):
            own = tuple((ordinal, number) for _, ordinal, number in group)
            if own not in shared:
                shared[own] = {ordinal: names[number] for ordinal, number in own}
            blocks[id] = shared[own]
    return blocks


def _flags(connection: Connection, machine: int) -> Mapping[int, Mapping[int, tuple[str, ...]]]:
    """Return the flags of all flagged samples in one pass: a query for each runnable would cost more."""
    table = schema.invocation
    wanted = select(table.c.runnable_id, table.c.ordinal, table.c.flags).where(
        table.c.flags.is_not(None), table.c.machine_id == machine, table.c.phase == SAMPLE
    )
    found: dict[int, dict[int, tuple[str, ...]]] = defaultdict(dict)
    for id, ordinal, flags in connection.execute(wanted):
        found[id][ordinal] = texts_from_json(flags)
    return found


def _failures(connection: Connection, machine: int) -> Mapping[int, Sequence[Stage]]:
    """Return the stages of all failed invocations in one pass, because there are few."""
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
