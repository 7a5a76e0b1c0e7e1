"""Parallel writers into the database of one server, each a separate process and machine, and the counts of their rows.

The outcomes of a writer depend only on its number, so the counts can be checked.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from benchmarks.store.filling import INVOCATIONS, make_outcomes, make_runnables, outcomes_of
from perftrail.model.measurement import Machine
from perftrail.model.metrics import MEASURED
from perftrail.store import open_shared, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.measurement import Measurement

WRITERS = 8

ADDRESS = "PERFTRAIL_BENCHMARK_STORE"
"""The environment variable with the address for a writer: other users can read the arguments of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterCounts:
    """The counts of the writers. `missing` and `different` are numbers of outcomes that are not stored as written."""

    writers: int
    samples: int
    outcomes: int
    missing: int
    different: int
    unexpected: int
    seconds: float
    samples_rate: float


def write_in_parallel(location: str, *, samples: int, writers: int) -> WriterCounts:
    """Write `samples` with parallel processes, outcome by outcome, and compare the stored outcomes."""
    each = outcomes_of(samples // writers) + 1
    environment = os.environ | {ADDRESS: location, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    began = time.perf_counter()
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.store", "writer", str(number), str(each)], env=environment
        )
        for number in range(writers)
    ]
    codes = [process.wait() for process in processes]
    seconds = time.perf_counter() - began
    if any(codes):
        raise SystemExit(f"a writer failed: {codes}")
    missing = different = unexpected = 0
    with open_store(location, access="read") as store:
        for number in range(writers):
            wanted = {outcome.key: outcome for outcome in outcomes_by(number, each)}
            keys = list(dict.fromkeys(key.runnable for key in wanted))
            stored = store.outcomes(keys, machine(number).id)
            found = {outcome.key: outcome for group in stored.values() for outcome in group}
            missing += len(wanted.keys() - found.keys())
            unexpected += len(found.keys() - wanted.keys())
            different += sum(found[key] != wanted[key] for key in wanted.keys() & found.keys())
    total = writers * each
    return WriterCounts(
        writers=writers,
        samples=total * len(MEASURED),
        outcomes=total,
        missing=missing,
        different=different,
        unexpected=unexpected,
        seconds=seconds,
        samples_rate=total * len(MEASURED) / seconds,
    )


def write(number: int, outcomes: int) -> None:
    """Act as one of the writers: store outcomes one by one, like a run."""
    with open_shared(
        os.environ[ADDRESS], machine=machine(number).id, wait=False, on_wait=lambda _: None
    ) as store:
        store.add_machine(machine(number))
        for runnable in make_runnables(-(-outcomes // INVOCATIONS)):
            store.add_runnable(runnable)
        for outcome in outcomes_by(number, outcomes):
            store.add(outcome)


def machine(number: int) -> Machine:
    """Return the machine of a writer."""
    return Machine(id=f"{number:016x}", facts={"name": f"writer {number}"})


def outcomes_by(number: int, outcomes: int) -> Iterator[Measurement]:
    """Return the outcomes of a writer."""
    runnables = make_runnables(-(-outcomes // INVOCATIONS))
    return islice(make_outcomes(runnables, random.Random(number), machine(number)), outcomes)
