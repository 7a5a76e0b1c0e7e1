"""``python -m benchmarks.web``: the times of the dashboard's pages with a store of millions of samples.

The store is that of a study with real keys but no builds, in a file or, with ``--store``, in an empty database of a
server. `perftrail serve` runs in a separate process. Each kind of page is requested many times in a random order, each
time for another subject, first one by one and then in parallel. With ``--renew``, another process adds to the store
meanwhile, and the server reads it again repeatedly. Times are from the first byte sent to the last byte received; the
goal is a 95th percentile of 200 ms for each. ``python -m benchmarks.store page`` creates a page from the output of
``--json``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx

from benchmarks.machine import database, load, measured_on
from benchmarks.report.filling import Size, fill
from benchmarks.store.writers import ADDRESS
from benchmarks.web.page_times import PageRequests, ready
from benchmarks.web.serving import serving
from perftrail import studyfile
from perftrail.model.measurement import InvocationKey, Measurement
from perftrail.opening import results_database
from perftrail.process.machine import read_machine
from perftrail.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GOAL_MS = 200.0
ADDING_SECONDS = 0.5
READINGS = 2
"""Number of times that the store is read again during the requests."""


def main() -> int:
    """Fill, serve, request, print. The exit code is 0 if the goal is met."""
    if sys.argv[1:2] == ["writer"]:
        _write(os.environ[ADDRESS])
        return 0
    options = _options()
    size = Size(
        revisions=options.revisions,
        benchmarks=options.benchmarks,
        invocations=options.invocations,
        more=options.more,
    )
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        directory = Path(options.study or scratch)
        if not (directory / "perftrail.toml").exists():
            print(f"filling a store with {size.samples * (1 + size.more):,} samples", file=sys.stderr)
            directory.mkdir(exist_ok=True)
            fill(directory, size, seed=1, store=options.store)
        results = _measure(directory, options)
    results = {"samples": size.samples * (1 + size.more), **results}
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        _print(results)
    kinds = [each for times in results["pages"].values() for each in times.values()]
    return int(any(each["p95_ms"] >= GOAL_MS for each in kinds))


def _measure(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Serve a full study, and request its pages."""
    location = results_database(studyfile.load(str(directory / "perftrail.toml")), options.store)
    where = ["--store", options.store] if options.store else []
    with (
        serving(directory, *where, program="benchmarks.web.without_pauses") as served,
        httpx.Client(base_url=served.address, timeout=60.0) as client,
    ):
        first = ready(client)
        print(f"read in {first:.0f} s", file=sys.stderr)
        requests = PageRequests(client)
        found = {"one at a time": requests.times(options.times)}
        found[f"{options.at_once} at once"] = requests.times(options.times, parallel=options.at_once)
        if options.renew:
            with _writing(location):
                found["while the store is written and read again"] = requests.times_while_reading(READINGS)
        peak = _peak_memory_bytes(served.process)
    return {
        "database": database(location),
        "taken": measured_on(),
        "load": load(),
        "first_read_seconds": first,
        "peak_memory_bytes": peak,
        "pages": {how: {kind: asdict(each) for kind, each in times.items()} for how, times in found.items()},
    }


def _peak_memory_bytes(process: int) -> int:
    """Return the peak memory of a process so far."""
    status = Path(f"/proc/{process}/status").read_text()
    [peak] = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak) * 1024


@contextmanager
def _writing(location: str) -> Iterator[None]:
    """Run another process that adds invocations to the store repeatedly."""
    command = [sys.executable, "-m", "benchmarks.web", "writer"]
    with subprocess.Popen(command, env=os.environ | {ADDRESS: location}) as writer:
        try:
            yield
        finally:
            writer.terminate()


def _write(location: str) -> None:
    """Add invocations until terminated."""
    with open_store(location, access="write") as store:
        runnables = [each.key for each in store.runnables()]
        ordinal = int(time.time())
        while True:
            key = InvocationKey(
                runnable=runnables[ordinal % len(runnables)],
                machine=read_machine().id,
                phase="sample",
                ordinal=ordinal,
            )
            store.add(Measurement(key=key, started="2025-11-21", seconds=1.0, values={"seconds": 1.0}))
            ordinal += 1
            time.sleep(ADDING_SECONDS)


def _print(results: Mapping[str, Any]) -> None:
    """Print the median and the 95th percentile of each kind of page."""
    memory = results["peak_memory_bytes"] / 2**30
    first = results["first_read_seconds"]
    print(f"{results['taken']}; load {results['load']}; {results['database']}")
    print(f"first read in {first:.1f} s, {memory:.1f} GiB at most")
    for how, times in results["pages"].items():
        print(f"\n{how:40} {'median':>9} {'p95':>9} {'worst':>9}")
        for kind, each in times.items():
            over = "" if each["p95_ms"] < GOAL_MS else "  over"
            print(
                f"{kind:40} "
                + " ".join(f"{each[f'{name}_ms']:6.1f} ms" for name in ("median", "p95", "worst"))
                + over
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__)
    parser.add_argument("--revisions", type=int, default=10_000)
    parser.add_argument("--benchmarks", type=int, default=20)
    parser.add_argument("--invocations", type=int, default=5, help="of each benchmark of each revision")
    parser.add_argument("--more", type=int, default=9, help="metrics in addition to the displayed one")
    parser.add_argument("--times", type=int, default=40, help="requests for each kind of page")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--renew", action="store_true", help="also request while the store is written")
    parser.add_argument("--study", help="a directory to fill, or a filled one; it stays")
    parser.add_argument("--store", metavar="URL", help="an empty database of a server, or that of the study")
    parser.add_argument("--scratch", help="directory for the store without --study")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
