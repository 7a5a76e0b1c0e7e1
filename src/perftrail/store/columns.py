"""Read every sample of a machine as columns of numbers, for callers that need all of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sqlalchemy import select

from perftrail.model.measurement import Measurement
from perftrail.store import schema
from perftrail.store.damage import translate_damage
from perftrail.store.databases import to_read
from perftrail.store.identifiers import TextIds
from perftrail.store.outcomes import PHASES
from perftrail.store.rows import texts_from_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection, Select

    from perftrail.model.measurement import Outcome

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

Item = TypeVar("Item")

BATCH = 50_000
"""Number of rows that are Python objects at a time, before they become columns."""

NO_METHOD = 0
"""Id for a value without a method; ids of methods begin at 1."""


NO_BLOCK = 0
"""Block of a sample without a block; numbers of blocks begin at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """Samples by columns, in the order of measurement, without warm-ups and failures.

    One entry for each invocation: `runnable` (an id in `runnables`), `ordinal`, `started`, `flags` (an index into
    `flag_sets`), `block` (equal numbers for samples of one block, or `NO_BLOCK`) and `turn`. One entry for each value:
    `invocation` (an index into the entries of invocations), `metric` and `method` (ids in `metrics` and
    `methods`, or `NO_METHOD`), and `value`.
    """

    runnable: Integers
    ordinal: Integers
    started: Sequence[str]
    flags: Integers
    block: Integers
    turn: Integers
    invocation: Integers
    metric: Integers
    method: Integers
    value: Floats
    runnables: Mapping[int, str]
    metrics: Mapping[int, str]
    methods: Mapping[int, str]
    flag_sets: Sequence[tuple[str, ...]]


def sample_columns(
    location: str, machine: str, *, metrics: Collection[str] | None = None
) -> SampleColumns | None:
    """Read the samples of a machine, for some metrics or all; `None` for an empty store.

    Everything belongs to one state of the store, even if others write to it. Raises `StoreError` as `open_store`
    does.
    """
    database = to_read(location)
    if database is None:
        return None
    try:
        with (
            translate_damage(database.where),
            database.translate_errors(database.where),
            database.reading.connect() as connection,
        ):
            return _read(connection, machine, metrics)
    finally:
        database.close()


def columns_of(outcomes: Iterable[Outcome], *, metrics: Collection[str] | None = None) -> SampleColumns:
    """Return outcomes as columns like `sample_columns`, in their order."""
    samples = [each for each in outcomes if isinstance(each, Measurement) and each.key.phase == "sample"]
    values = [
        (index, name, each.methods.get(name, ""), value)
        for index, each in enumerate(samples)
        for name, value in each.values.items()
        if metrics is None or name in metrics
    ]
    runnables = _numbered(each.key.runnable for each in samples)
    names = _numbered(name for _, name, _, _ in values)
    methods = _numbered(method for _, _, method, _ in values if method)
    flag_numbers = _numbered(each.flags for each in samples)
    blocks = _numbered(each.draw.block for each in samples if each.draw.block)
    return SampleColumns(
        runnable=_integers([runnables[each.key.runnable] for each in samples])[0],
        ordinal=_integers([each.key.ordinal for each in samples])[0],
        started=[each.started for each in samples],
        flags=_integers([flag_numbers[each.flags] - 1 for each in samples])[0],
        block=_integers([blocks.get(each.draw.block, NO_BLOCK) for each in samples])[0],
        turn=_integers([each.draw.turn for each in samples])[0],
        invocation=_integers([index for index, _, _, _ in values])[0],
        metric=_integers([names[name] for _, name, _, _ in values])[0],
        method=_integers([methods.get(method, NO_METHOD) for _, _, method, _ in values])[0],
        value=np.array([value for _, _, _, value in values], np.float64),
        runnables={id: key for key, id in runnables.items()},
        metrics={id: name for name, id in names.items()},
        methods={id: method for method, id in methods.items()},
        flag_sets=list(flag_numbers),
    )


def _read(connection: Connection, machine: str, metrics: Collection[str] | None) -> SampleColumns:
    table, names = schema.invocation, TextIds(schema.metric, schema.metric.c.name)
    known = names.by_id(connection)
    wanted = {id for id, name in known.items() if metrics is None or name in metrics}
    id_of = TextIds(schema.machine, schema.machine.c.fingerprint).find(connection, machine)
    statement = select(
        table.c.id,
        table.c.runnable_id,
        table.c.ordinal,
        table.c.started,
        table.c.flags,
        table.c.block_id,
        table.c.turn,
    ).where(table.c.machine_id == id_of, table.c.phase == PHASES.index("sample"))
    started: list[str] = []
    flag_numbers: dict[str | None, int] = {None: 0}
    heads: list[Integers] = []
    for ids, runnables, ordinals, times, flags, blocks, turns in _batches(
        connection, statement.order_by(table.c.id)
    ):
        started += times
        marked = [flag_numbers.setdefault(text, len(flag_numbers)) for text in flags]
        of = [block or NO_BLOCK for block in blocks]
        heads.append(_integers(ids, runnables, ordinals, marked, of, [turn or 0 for turn in turns]))
    head = np.concatenate([np.empty((6, 0), np.int64), *heads], axis=1)
    body, values = _values(connection, head[0], wanted, everything=len(wanted) == len(known))
    return SampleColumns(
        runnable=head[1],
        ordinal=head[2],
        started=started,
        flags=head[3],
        block=head[4],
        turn=head[5],
        invocation=body[0],
        metric=body[1],
        method=body[2],
        value=values,
        runnables=TextIds(schema.runnable, schema.runnable.c.key).by_id(connection),
        metrics=known,
        methods=TextIds(schema.method, schema.method.c.name).by_id(connection),
        flag_sets=[texts_from_json(text) if text else () for text in flag_numbers],
    )


def _values(
    connection: Connection, ids: Integers, wanted: Collection[int], *, everything: bool
) -> tuple[Integers, Floats]:
    """Return for each value the index of its invocation, its metric and method, and the value."""
    table = schema.value
    statement = select(table.c.invocation_id, table.c.metric_id, table.c.method_id, table.c.value)
    statement = statement if everything else statement.where(table.c.metric_id.in_(wanted))
    bodies, values = [np.empty((3, 0), np.int64)], [np.empty(0)]
    for of, metric, method, value in _batches(
        connection, statement.order_by(table.c.invocation_id, table.c.metric_id)
    ):
        body = _integers(of, metric, [each or NO_METHOD for each in method])
        index = np.searchsorted(ids, body[0])
        wanted_rows = (
            np.flatnonzero(ids[np.minimum(index, len(ids) - 1)] == body[0]) if len(ids) else index[:0]
        )
        body[0] = index
        bodies.append(body[:, wanted_rows])
        values.append(np.fromiter(value, np.float64, len(value))[wanted_rows])
    return np.concatenate(bodies, axis=1), np.concatenate(values)


def _batches(connection: Connection, statement: Select[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement in batches of columns."""
    found = connection.execute(statement, execution_options={"yield_per": BATCH})
    for rows in found.partitions():
        yield tuple(zip(*rows, strict=True))


def _numbered(items: Iterable[Item]) -> dict[Item, int]:
    """Number distinct items from 1."""
    return {item: number for number, item in enumerate(dict.fromkeys(items), start=1)}


def _integers(*columns: Sequence[int]) -> Integers:
    return np.stack([np.fromiter(column, np.int64, len(column)) for column in columns])
