"""How long a notebook waits for a million samples, and how much memory they take.

``python -m benchmarks.notebook`` fills the store of a study with 10,000 revisions and 20 benchmarks. Fresh processes
then read its samples as an Arrow table, as pandas and polars data frames and, to compare, as Python objects. Memory is
the peak of a process, minus its memory after the imports.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.markdown import table
from benchmarks.report.filling import Size, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INVOCATIONS, BENCHMARKS = 5, 20
WAYS = ("columns", "samples", "samples, pandas", "samples, polars", "objects")


def columns(directory: str) -> int:
    """Read the store's columns."""
    from perftrail.process.machine import read_machine  # noqa: PLC0415 - each way has other imports
    from perftrail.store.columns import sample_columns  # noqa: PLC0415

    found = sample_columns(f"{directory}/.perftrail/results.db", read_machine().id)
    assert found is not None
    return len(found.value)


def samples(directory: str) -> int:
    """Read the samples as an Arrow table."""
    import perftrail  # noqa: PLC0415

    return int(perftrail.open(directory).samples().num_rows)


def pandas(directory: str) -> int:
    """Read the table into pandas."""
    import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    import perftrail  # noqa: PLC0415

    return len(perftrail.open(directory).samples().to_pandas(types_mapper=pd.ArrowDtype))


def polars(directory: str) -> int:
    """Read the table into polars."""
    import polars as pl  # noqa: PLC0415

    import perftrail  # noqa: PLC0415

    return len(pl.DataFrame(perftrail.open(directory).samples()))


def objects(directory: str) -> int:
    """Read every outcome as an object."""
    from perftrail.process.machine import read_machine  # noqa: PLC0415
    from perftrail.store import open_store  # noqa: PLC0415

    with open_store(f"{directory}/.perftrail/results.db", access="read") as store:
        keys = dict.fromkeys(runnable.key for runnable in store.runnables())
        outcomes_by_key = store.outcomes(keys, read_machine().id)
    return sum(len(outcomes) for outcomes in outcomes_by_key.values())


ACTIONS: Mapping[str, Callable[[str], int]] = dict(
    zip(WAYS, (columns, samples, pandas, polars, objects), strict=True)
)


def measure_once(way: str, directory: str) -> dict[str, float]:
    """Read the samples in one way in this process; return the time and the memory."""
    for name in ("pandas", "polars", "perftrail.notebook"):  # the imports are not measure
        importlib.import_module(name)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    count = ACTIONS[way](directory)
    return {
        "samples": count,
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "bytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024,
    }


def measure(way: str, directory: str, rounds: int) -> dict[str, float]:
    """Read the samples in one way in fresh processes; return the medians."""
    found = []
    for _ in range(rounds):
        arguments = [sys.executable, "-m", "benchmarks.notebook", "--once", way, "--directory", directory]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def main() -> None:
    """Measure and print a table in Markdown, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notebook", description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default=".", help="where to create the study: the disk to measure")
    parser.add_argument("--once", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measure_once(options.once, options.directory)))
        return
    revisions = max(1, options.samples // (INVOCATIONS * BENCHMARKS))
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        fill(
            Path(directory),
            Size(revisions=revisions, benchmarks=BENCHMARKS, invocations=INVOCATIONS),
            seed=options.seed,
        )
        results = {way: measure(way, directory, options.rounds) for way in WAYS}
    if options.json:
        print(json.dumps(results, indent=1))
        return
    lines = [
        (
            way,
            f"{each['samples']:,.0f}",
            f"{each['wall']:.1f}",
            f"{each['cpu']:.1f}",
            f"{each['bytes'] / 1e6:.0f}",
        )
        for way, each in results.items()
    ]
    print(table([("way", "samples", "wall, s", "CPU, s", "memory, MB"), *lines]))


if __name__ == "__main__":
    main()
