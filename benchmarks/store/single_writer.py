"""One writer into one store, and the reads of reports and searches."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.store.filling import MACHINE, fill, milliseconds
from perftrail.model.metrics import MEASURED
from perftrail.store import open_store
from perftrail.store.databases import to_write
from perftrail.store.upkeep import statistics as count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.measurement import Runnable

PART = 1000
"""Runnables in each part when all are read: ten million samples at once would need gigabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The speed and size of a store; rates are per second, times in milliseconds."""

    samples: int
    outcomes: int
    runnables: int
    durable_outcomes: int
    durable_outcomes_rate: float
    durable_median_ms: float
    durable_p99_ms: float
    batch_outcomes_rate: float
    batch_samples_rate: float
    size_bytes: int
    bytes_each_outcome: float
    bytes_each_sample: float
    open_ms: float
    read_one_runnable_median_ms: float
    read_hundred_runnables_median_ms: float
    read_one_metric_of_all_ms: float
    read_all_ms: float
    read_all_samples_rate: float


def measure(location: str, *, samples: int, durable: int, seed: int) -> Results:
    """Fill a new or empty store, and read it again."""
    filled = fill(to_write(location), samples, seed=seed, durable=durable)
    size = count(location).bytes
    in_batches = filled.outcomes - len(filled.single_ms)
    rate = in_batches / filled.batch_seconds if in_batches else 0.0
    values = filled.outcomes * len(MEASURED)
    return Results(
        samples=values,
        outcomes=filled.outcomes,
        runnables=len(filled.runnables),
        durable_outcomes=len(filled.single_ms),
        durable_outcomes_rate=len(filled.single_ms) / (sum(filled.single_ms) / 1e3),
        durable_median_ms=statistics.median(filled.single_ms),
        durable_p99_ms=sorted(filled.single_ms)[int(len(filled.single_ms) * 0.99)],
        batch_outcomes_rate=rate,
        batch_samples_rate=rate * len(MEASURED),
        size_bytes=size,
        bytes_each_outcome=size / filled.outcomes,
        bytes_each_sample=size / values,
        open_ms=statistics.median(
            milliseconds(lambda: open_store(location, access="read").close()) for _ in range(5)
        ),
        **read(location, filled.runnables, random.Random(seed), values),
    )


def read(location: str, runnables: Sequence[Runnable], rng: random.Random, samples: int) -> dict[str, float]:
    """Measure the reads of reports and searches: one runnable, a hundred, one metric of all, and everything."""
    keys = [runnable.key for runnable in runnables]
    with open_store(location, access="read") as store:

        def reading(number: int) -> float:
            chosen = rng.sample(keys, min(number, len(keys)))
            return milliseconds(lambda: store.outcomes(chosen, MACHINE.id))

        reading(1)
        one = statistics.median(reading(1) for _ in range(50))
        hundred = statistics.median(reading(100) for _ in range(5))
        metric = milliseconds(lambda: store.samples(keys, MACHINE.id, ["wall"]))
        parts = [keys[first : first + PART] for first in range(0, len(keys), PART)]
        whole = sum(milliseconds(partial(store.outcomes, part, MACHINE.id)) for part in parts)
    return {
        "read_one_runnable_median_ms": one,
        "read_hundred_runnables_median_ms": hundred,
        "read_one_metric_of_all_ms": metric,
        "read_all_ms": whole,
        "read_all_samples_rate": samples / (whole / 1e3),
    }
