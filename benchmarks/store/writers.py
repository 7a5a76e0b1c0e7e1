"""Many writers into one server's database at once, each a process and a machine of its own; then each is counted.

What a writer puts in comes from its number alone, so that whoever counts knows what must be there.
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
"""The variable by which a writer is told the address: others can read a process's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What many writers did: `missing` and `different` are outcomes that are not there as they were put in."""

    writers: int
    samples: int
    outcomes: int
    missing: int
    different: int
    unasked: int
    seconds: float
    samples_rate: float


def write_at_once(location: str, *, samples: int, writers: int) -> Counted:
    """Let so many processes write so many samples together, outcome by outcome, and compare what is there."""
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
    missing = different = unasked = 0
    with open_store(location, access="read") as store:
        for number in range(writers):
            wanted = {outcome.key: outcome for outcome in outcomes_by(number, each)}
            keys = list(dict.fromkeys(key.runnable for key in wanted))
            held = store.outcomes(keys, machine(number).id)
            found = {outcome.key: outcome for group in held.values() for outcome in group}
            missing += len(wanted.keys() - found.keys())
            unasked += len(found.keys() - wanted.keys())
            different += sum(found[key] != wanted[key] for key in wanted.keys() & found.keys())
    total = writers * each
    return Counted(
        writers=writers,
        samples=total * len(MEASURED),
        outcomes=total,
        missing=missing,
        different=different,
        unasked=unasked,
        seconds=seconds,
        samples_rate=total * len(MEASURED) / seconds,
    )


def write(number: int, outcomes: int) -> None:
    """Be one of the writers: put outcomes in one by one, as a run does."""
    with open_shared(
        os.environ[ADDRESS], machine=machine(number).id, wait=False, on_wait=lambda _: None
    ) as store:
        store.add_machine(machine(number))
        for runnable in make_runnables(-(-outcomes // INVOCATIONS)):
            store.add_runnable(runnable)
        for outcome in outcomes_by(number, outcomes):
            store.add(outcome)


def machine(number: int) -> Machine:
    """Return the machine that a writer is."""
    return Machine(id=f"{number:016x}", facts={"name": f"writer {number}"})


def outcomes_by(number: int, outcomes: int) -> Iterator[Measurement]:
    """Return what a writer puts in."""
    runnables = make_runnables(-(-outcomes // INVOCATIONS))
    return islice(make_outcomes(runnables, random.Random(number), machine(number)), outcomes)
