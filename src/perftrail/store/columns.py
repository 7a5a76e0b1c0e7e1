"""Every sample of a machine as columns of numbers: for who takes all of them at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sqlalchemy import select

from perftrail.model.measurement import Measurement
from perftrail.store import schema
from perftrail.store.databases import to_read
from perftrail.store.identifiers import Names
from perftrail.store.outcomes import PHASES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection, Select

    from perftrail.model.measurement import Outcome

    Whole = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

Item = TypeVar("Item")

BATCH = 50_000
"""So many rows are Python's at a time, before they become columns."""

NO_METHOD = 0
"""Stands for a value without a method; the ids of methods begin at 1."""


NO_BLOCK = 0
"""The block of a sample that belongs to none; the numbers of blocks begin at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """Samples by columns: warm-ups and failures left out, in the order in which they were taken.

    One entry for each invocation: `runnable` (an id that `runnables` names), `ordinal`, `started`, `flags` (a
    place in `marks`), `block` (a number that samples of one block share, or `NO_BLOCK`) and `turn`. One entry for each
    value: `invocation` (a place in the former), `metric` and `method` (ids that `metrics` and `methods` name, or
    `NO_METHOD`), and `value`.
    """

    runnable: Whole
    ordinal: Whole
    started: Sequence[str]
    flags: Whole
    block: Whole
    turn: Whole
    invocation: Whole
    metric: Whole
    method: Whole
    value: Floats
    runnables: Mapping[int, str]
    metrics: Mapping[int, str]
    methods: Mapping[int, str]
    marks: Sequence[tuple[str, ...]]


def sample_columns(
    location: str, machine: str, *, metrics: Collection[str] | None = None
) -> SampleColumns | None:
    """Read the samples of a machine, of some metrics or of all; `None` of a store with nothing in it.

    All is of one state of the store, however others go on writing to it. Raises `StoreError` as `open_store` does.
    """
    database = to_read(location)
    if database is None:
        return None
    try:
        with database.told(database.where), database.reading.connect() as connection:
            return _read(connection, machine, metrics)
    finally:
        database.close()


def columns_of(outcomes: Iterable[Outcome], *, metrics: Collection[str] | None = None) -> SampleColumns:
    """Put outcomes that are at hand into columns as `sample_columns` does, in the order they come."""
    taken = [each for each in outcomes if isinstance(each, Measurement) and each.key.phase == "sample"]
    values = [
        (place, name, each.methods.get(name, ""), value)
        for place, each in enumerate(taken)
        for name, value in each.values.items()
        if metrics is None or name in metrics
    ]
    runnables = _numbered(each.key.runnable for each in taken)
    names = _numbered(name for _, name, _, _ in values)
    methods = _numbered(method for _, _, method, _ in values if method)
    marks = _numbered(each.flags for each in taken)
    blocks = _numbered(each.draw.block for each in taken if each.draw.block)
    return SampleColumns(
        runnable=_whole([runnables[each.key.runnable] for each in taken])[0],
        ordinal=_whole([each.key.ordinal for each in taken])[0],
        started=[each.started for each in taken],
        flags=_whole([marks[each.flags] - 1 for each in taken])[0],
        block=_whole([blocks.get(each.draw.block, NO_BLOCK) for each in taken])[0],
        turn=_whole([each.draw.turn for each in taken])[0],
        invocation=_whole([place for place, _, _, _ in values])[0],
        metric=_whole([names[name] for _, name, _, _ in values])[0],
        method=_whole([methods.get(method, NO_METHOD) for _, _, method, _ in values])[0],
        value=np.array([value for _, _, _, value in values], np.float64),
        runnables={id: key for key, id in runnables.items()},
        metrics={id: name for name, id in names.items()},
        methods={id: method for method, id in methods.items()},
        marks=list(marks),
    )


def _read(connection: Connection, machine: str, metrics: Collection[str] | None) -> SampleColumns:
    table, names = schema.invocation, Names(schema.metric, "name")
    known = names.by_id(connection)
    wanted = {id for id, name in known.items() if metrics is None or name in metrics}
    id_of = Names(schema.machine, "fingerprint").find(connection, machine)
    taken = select(
        table.c.id,
        table.c.runnable_id,
        table.c.ordinal,
        table.c.started,
        table.c.flags,
        table.c.block_id,
        table.c.turn,
    ).where(table.c.machine_id == id_of, table.c.phase == PHASES.index("sample"))
    started: list[str] = []
    marks: dict[str | None, int] = {None: 0}
    heads: list[Whole] = []
    for ids, runnables, ordinals, times, flags, blocks, turns in _batches(
        connection, taken.order_by(table.c.id)
    ):
        started += times
        marked = [marks.setdefault(text, len(marks)) for text in flags]
        of = [block or NO_BLOCK for block in blocks]
        heads.append(_whole(ids, runnables, ordinals, marked, of, [turn or 0 for turn in turns]))
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
        runnables=Names(schema.runnable, "key").by_id(connection),
        metrics=known,
        methods=Names(schema.method, "name").by_id(connection),
        marks=[tuple(json.loads(text)) if text else () for text in marks],
    )


def _values(
    connection: Connection, ids: Whole, wanted: Collection[int], *, everything: bool
) -> tuple[Whole, Floats]:
    """Give place of the invocation, metric and method of each value of some invocations, and the values."""
    table = schema.value
    asked = select(table.c.invocation_id, table.c.metric_id, table.c.method_id, table.c.value)
    asked = asked if everything else asked.where(table.c.metric_id.in_(wanted))
    bodies, values = [np.empty((3, 0), np.int64)], [np.empty(0)]
    for of, metric, method, value in _batches(
        connection, asked.order_by(table.c.invocation_id, table.c.metric_id)
    ):
        body = _whole(of, metric, [each or NO_METHOD for each in method])
        place = np.searchsorted(ids, body[0])
        ours = np.flatnonzero(ids[np.minimum(place, len(ids) - 1)] == body[0]) if len(ids) else place[:0]
        body[0] = place
        bodies.append(body[:, ours])
        values.append(np.fromiter(value, np.float64, len(value))[ours])
    return np.concatenate(bodies, axis=1), np.concatenate(values)


def _batches(connection: Connection, asked: Select[Any]) -> Iterator[tuple[Any, ...]]:
    """Give what a statement finds, in batches of columns."""
    found = connection.execute(asked, execution_options={"yield_per": BATCH})
    for rows in found.partitions():
        yield tuple(zip(*rows, strict=True))


def _numbered(items: Iterable[Item]) -> dict[Item, int]:
    """Number what is there from 1, each once."""
    return {item: number for number, item in enumerate(dict.fromkeys(items), start=1)}


def _whole(*columns: Sequence[int]) -> Whole:
    return np.stack([np.fromiter(column, np.int64, len(column)) for column in columns])
