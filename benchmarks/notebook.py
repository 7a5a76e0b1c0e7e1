"""How long a notebook waits for a million samples, and what memory they take.

``python -m benchmarks.notebook`` fills the store of a study with 10,000 revisions and 20 benchmarks, then asks in fresh
processes for its samples as an Arrow table, for what pandas and polars make of that, and, to compare, for the same
samples as Python objects, the way in which a program without columns reads them. Memory is the most that a process
held, less what it held after its imports.
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
    from perftrail.process.machine import read_machine  # noqa: PLC0415 - each way imports its own, before the clock starts
    from perftrail.store.columns import sample_columns  # noqa: PLC0415

    found = sample_columns(f"{directory}/.perftrail/results.db", read_machine().id)
    assert found is not None
    return len(found.value)


def samples(directory: str) -> int:
    """Ask for the table."""
    import perftrail  # noqa: PLC0415

    return int(perftrail.open(directory).samples().num_rows)


def pandas(directory: str) -> int:
    """Give the table to pandas."""
    import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types of its own

    import perftrail  # noqa: PLC0415

    return len(perftrail.open(directory).samples().to_pandas(types_mapper=pd.ArrowDtype))


def polars(directory: str) -> int:
    """Give the table to polars."""
    import polars as pl  # noqa: PLC0415

    import perftrail  # noqa: PLC0415

    return len(pl.DataFrame(perftrail.open(directory).samples()))


def objects(directory: str) -> int:
    """Read every outcome as an object."""
    from perftrail.process.machine import read_machine  # noqa: PLC0415
    from perftrail.store import open_store  # noqa: PLC0415

    with open_store(f"{directory}/.perftrail/results.db", access="read") as store:
        keys = dict.fromkeys(runnable.key for runnable in store.runnables())
        held = store.outcomes(keys, read_machine().id)
    return sum(len(outcomes) for outcomes in held.values())


ACTIONS: Mapping[str, Callable[[str], int]] = dict(
    zip(WAYS, (columns, samples, pandas, polars, objects), strict=True)
)


def once(way: str, directory: str) -> dict[str, float]:
    """Do one thing in this process: what it took and held."""
    for name in ("pandas", "polars", "perftrail.notebook"):  # importing them is no part of it
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


def measured(way: str, directory: str, rounds: int) -> dict[str, float]:
    """Do one thing in fresh processes; the medians."""
    found = []
    for _ in range(rounds):
        words = [sys.executable, "-m", "benchmarks.notebook", "--once", way, "--directory", directory]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def main() -> None:
    """Measure and print a table in Markdown, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notebook", description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default=".", help="where the study is put: the disk to measure")
    parser.add_argument("--once", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.once:
        print(json.dumps(once(asked.once, asked.directory)))
        return
    revisions = max(1, asked.samples // (INVOCATIONS * BENCHMARKS))
    with tempfile.TemporaryDirectory(dir=asked.directory) as directory:
        fill(
            Path(directory),
            Size(revisions=revisions, benchmarks=BENCHMARKS, invocations=INVOCATIONS),
            seed=asked.seed,
        )
        results = {way: measured(way, directory, asked.rounds) for way in WAYS}
    if asked.json:
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
