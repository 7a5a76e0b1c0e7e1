"""Fills a store with outcomes like those of a long study."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sqlalchemy import select

from perftrail.model.benchmark import Point
from perftrail.model.build import content_key
from perftrail.model.measurement import InvocationKey, Machine, Measurement, Runnable
from perftrail.model.metrics import MEASURED
from perftrail.store import schema
from perftrail.store.identifiers import insert_many
from perftrail.store.rows import origin_to_json, point_to_json
from perftrail.store.sql import SqlStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftrail.store.retried_transactions import Database


MACHINE = Machine(id="0123456789abcdef", facts={})
INVOCATIONS = 30
"""Outcomes of each runnable: the default maximum."""

BATCH = 1000
"""Outcomes in each transaction when they come in batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a store was filled with, and the times: of each single outcome, and of all batches."""

    runnables: list[Runnable]
    outcomes: int
    single_ms: list[float]
    batch_seconds: float


def outcomes_of(samples: int) -> int:
    """Return the number of outcomes that have `samples` values of all metrics."""
    return max(1, samples // len(MEASURED))


def make_runnables(count: int) -> list[Runnable]:
    """Return runnables of different revisions."""
    return [
        Runnable(
            key=content_key(number),
            revision=f"{number:040x}",
            variant="plain",
            benchmark="mt",
            point=Point((("threads", 1 + number % 8),)),
            artefact=content_key("artefact", number),
        )
        for number in range(count)
    ]


def make_outcomes(
    runnables: Sequence[Runnable], rng: random.Random, machine: Machine = MACHINE
) -> Iterator[Measurement]:
    """Return outcomes like those of `run`: all metrics that are always measured, interleaved over runnables."""
    for ordinal in range(INVOCATIONS):
        for runnable in runnables:
            yield Measurement(
                key=InvocationKey(runnable=runnable.key, machine=machine.id, phase="sample", ordinal=ordinal),
                started=f"2025-11-21T02:{ordinal % 60:02}:00.123456+00:00",
                seconds=rng.lognormvariate(0.0, 0.03),
                values={
                    name: rng.lognormvariate(0.0, 0.03)
                    if metric.unit == "s"
                    else float(round(rng.lognormvariate(8.0, 0.1)) * (4096 if metric.unit == "B" else 1))
                    for name, metric in MEASURED.items()
                },
                methods={"peak_memory": "rusage", "peak_memory_tree": "sampled"},
                log=f"logs/{runnable.key[:2]}/{runnable.key[2:16]}-{ordinal}.log",
            )


def milliseconds(action: Callable[[], object]) -> float:
    """Return the milliseconds that an action takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def store_runnables(database: Database, runnables: Sequence[Runnable]) -> None:
    """Store many runnables at once. A run stores them one by one, which would take minutes here."""
    with database.writing.begin() as connection:
        insert_many(connection, schema.runnable, [{"key": each.key} for each in runnables])
        origins = dict.fromkeys(origin_to_json(each.origin) for each in runnables if each.origin)
        insert_many(connection, schema.origin, [{"text": text} for text in origins])
        origin_of = {row.text: row.id for row in connection.execute(select(schema.origin))}
        numbers = {row.key: row.id for row in connection.execute(select(schema.runnable))}
        rows = [
            {
                "runnable_id": numbers[each.key],
                "revision": each.revision,
                "variant": each.variant,
                "benchmark": each.benchmark,
                "point": point_to_json(each.point),
                "artefact": each.artefact,
                "origin_id": origin_of[origin_to_json(each.origin)] if each.origin else None,
            }
            for each in runnables
        ]
        insert_many(connection, schema.runnable_subject, rows)


def fill(database: Database, samples: int, *, seed: int, durable: int = 0) -> Filled:
    """Fill a store: `durable` outcomes one by one, each on disk before the next, the rest in batches."""
    rng = random.Random(seed)
    wanted = outcomes_of(samples)
    runnables = make_runnables(-(-wanted // INVOCATIONS))
    outcomes = islice(make_outcomes(runnables, rng), wanted)
    with SqlStore(database) as store:
        store.add_machine(MACHINE)
        store_runnables(database, runnables)
        single = []
        for outcome in islice(outcomes, durable):
            single.append(milliseconds(lambda: store.add(outcome)))  # noqa: B023 - called at once
        seconds = 0.0
        while batch := list(islice(outcomes, BATCH)):
            seconds += milliseconds(lambda: store.add_all(batch)) / 1e3
    return Filled(runnables=runnables, outcomes=wanted, single_ms=single, batch_seconds=seconds)
