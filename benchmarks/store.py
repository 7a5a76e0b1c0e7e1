"""How fast the store takes and gives samples, and what room one needs.

``python -m benchmarks.store --samples 200000`` fills a store on a local disk: first outcome by outcome, each
on disk before the next, as `run` does it, then the rest in batches, as `import` would. A sample is one value
of one metric; an outcome is one invocation with all its values.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.build import content_key
from perftrail.model.measurement import InvocationKey, Machine, Measurement, Runnable
from perftrail.model.metrics import MEASURED
from perftrail.model.parameters import Point
from perftrail.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


MACHINE = Machine(id="0123456789abcdef", facts={})
INVOCATIONS = 30
"""How often each runnable is run: the default at most."""

BATCH = 1000
"""How many outcomes go into one transaction when they come in bulk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the store took and gave; rates are a second's, times in milliseconds."""

    samples: int
    outcomes: int
    runnables: int
    durable_outcomes: int
    durable_outcomes_rate: float
    durable_median_ms: float
    durable_p99_ms: float
    batch_outcomes_rate: float
    batch_samples_rate: float
    file_bytes: int
    bytes_each_outcome: float
    bytes_each_sample: float
    open_ms: float
    read_one_runnable_median_ms: float
    read_hundred_runnables_median_ms: float
    read_all_ms: float
    read_all_samples_rate: float


def make_runnables(count: int) -> list[Runnable]:
    """Give as many runnables as a long study has, each at a point of its own."""
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


def make_outcomes(runnables: Sequence[Runnable], rng: random.Random) -> Iterator[Measurement]:
    """Give outcomes as `run` makes them: all metrics that are always measured, interleaved over runnables."""
    for ordinal in range(INVOCATIONS):
        for runnable in runnables:
            yield Measurement(
                key=InvocationKey(runnable=runnable.key, machine=MACHINE.id, phase="sample", ordinal=ordinal),
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
    """Give how long an action takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def measure(path: str, *, samples: int, durable: int, seed: int) -> Figures:
    """Fill a store that is not there yet and read it again."""
    rng = random.Random(seed)
    wanted = max(1, samples // len(MEASURED))
    runnables = make_runnables(-(-wanted // INVOCATIONS))
    outcomes = islice(make_outcomes(runnables, rng), wanted)
    with open_store(path, access="write") as store:
        store.add_machine(MACHINE)
        for runnable in runnables:
            store.add_runnable(runnable)
        single = [milliseconds(partial(store.add, one)) for one in islice(outcomes, durable)]
        batch_seconds = 0.0
        while batch := list(islice(outcomes, BATCH)):
            batch_seconds += milliseconds(partial(store.add_all, batch)) / 1e3
    size = Path(path).stat().st_size
    in_batches = wanted - len(single)
    return Figures(
        samples=wanted * len(MEASURED),
        outcomes=wanted,
        runnables=len(runnables),
        durable_outcomes=len(single),
        durable_outcomes_rate=len(single) / (sum(single) / 1e3),
        durable_median_ms=statistics.median(single),
        durable_p99_ms=sorted(single)[int(len(single) * 0.99)],
        batch_outcomes_rate=in_batches / batch_seconds if in_batches else 0.0,
        batch_samples_rate=in_batches * len(MEASURED) / batch_seconds if in_batches else 0.0,
        file_bytes=size,
        bytes_each_outcome=size / wanted,
        bytes_each_sample=size / (wanted * len(MEASURED)),
        open_ms=statistics.median(
            milliseconds(lambda: open_store(path, access="read").close()) for _ in range(5)
        ),
        **read(path, runnables, rng, wanted * len(MEASURED)),
    )


def read(path: str, runnables: Sequence[Runnable], rng: random.Random, samples: int) -> dict[str, float]:
    """Time what reports and searches read: one runnable, a hundred, and everything."""
    keys = [runnable.key for runnable in runnables]
    with open_store(path, access="read") as store:

        def reading(count: int) -> float:
            chosen = rng.sample(keys, min(count, len(keys)))
            return milliseconds(lambda: store.outcomes(chosen, MACHINE.id))

        reading(1)
        one = statistics.median(reading(1) for _ in range(50))
        hundred = statistics.median(reading(100) for _ in range(5))
        whole = reading(len(keys))
    return {
        "read_one_runnable_median_ms": one,
        "read_hundred_runnables_median_ms": hundred,
        "read_all_ms": whole,
        "read_all_samples_rate": samples / (whole / 1e3),
    }


def main() -> None:
    """Measure and print a table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("--samples", type=int, default=200_000, help="values to keep, all metrics together")
    parser.add_argument("--durable", type=int, default=1000, help="outcomes to commit one by one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default=".", help="where the store is put: the disk to measure")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.directory) as directory:
        figures = asdict(
            measure(
                str(Path(directory) / "results.db"),
                samples=asked.samples,
                durable=max(1, asked.durable),
                seed=asked.seed,
            )
        )
    if asked.json:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name.replace('_', ' '):36} {figure:>14,.{0 if isinstance(figure, int) else 2}f}")


if __name__ == "__main__":
    main()
