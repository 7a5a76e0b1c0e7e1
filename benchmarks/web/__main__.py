"""``python -m benchmarks.web``: the times of the dashboard's pages over a store of millions of samples.

The store is that of a study with real keys and nothing built. `perftrail serve` is started as a process of its own;
each kind of page is asked for many times in a random order, each time about something else, first alone and then by
several at once. With ``--renew``, another process adds to the store all the while, so that it is read anew behind the
pages. Times are from the first byte sent to the last one received; the goal is a 95th percentile of 200 ms for each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2 as httpx

from benchmarks.machine import taken
from benchmarks.report.filling import Size, fill
from perftrail import studyfile
from perftrail.machine import read_machine
from perftrail.model.measurement import InvocationKey, Measurement
from perftrail.store import open_store
from perftrail.workflows.opening import DATABASE, results_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GOAL_MS = 200.0
PATIENCE_SECONDS = 1800.0


def main() -> int:
    """Fill, serve, ask, print; the exit code says whether the goal was met."""
    asked = _asked()
    size = Size(
        revisions=asked.revisions, benchmarks=asked.benchmarks, invocations=asked.invocations, more=asked.more
    )
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch:
        directory = Path(asked.study or scratch)
        if not (directory / "perftrail.toml").exists():
            print(f"filling a store with {size.samples * (1 + size.more):,} samples", file=sys.stderr)
            directory.mkdir(exist_ok=True)
            fill(directory, size, seed=1)
        with _served(directory) as address, httpx.Client(base_url=address, timeout=60.0) as client:
            first = _ready(client)
            asking = _Asking(client)
            alone = asking.times(asked.times)
            print(f"{taken()}; load {os.getloadavg()[0]:.1f}; first read in {first:.1f} s")
            met = _tell("one at a time", alone)
            met &= _tell(f"{asked.at_once} at once", asking.times(asked.times, at_once=asked.at_once))
            if asked.renew:
                with _writing(directory):
                    met &= _tell("while the store is written and read anew", asking.times_while_reading())
    return 0 if met else 1


@contextmanager
def _served(directory: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "perftrail", "serve", "--port", "0", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[0].rstrip("/")
        finally:
            server.terminate()


def _ready(client: httpx.Client) -> float:
    """Wait until the store was read; give the seconds that took."""
    began = time.monotonic()
    while client.get("/", follow_redirects=True).headers.get("refresh"):
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise TimeoutError("the store could not be read")
        time.sleep(0.2)
    return time.monotonic() - began


class _Asking:
    """Addresses of each kind of page, each about something else every time."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        [study] = client.get("/api/studies").json()
        self._study = f"/s/{study['name']}"
        self._api = api = f"/api/studies/{study['name']}"
        self._figures = [each["name"] for each in client.get(f"{api}/figures").json()]
        self._length = client.get(f"{api}/history/{self._figures[0]}?points=1").json()["length"]
        first = client.get(f"{api}/revisions/%230").json()
        self._key = first["figures"][0]["runnables"][0]
        self._rng = random.Random(1)

    def _addresses(self) -> Mapping[str, str]:
        rng, study = self._rng, self._study
        figure = rng.choice(self._figures)
        ends = sorted(rng.randrange(self._length) for _ in range(2))
        part = f"first={ends[0]}&last={ends[1]}"
        one, other = (rng.randrange(self._length) for _ in range(2))
        return {
            "overview": study,
            "history, all of it": f"{study}/history?figure={figure}",
            "history, a part": f"{study}/history?figure={figure}&{part}",
            "its drawing": f"{study}/history/{figure}.json?{part}",
            "its drawing, all of it": f"{study}/history/{figure}.json",
            "a revision": f"{study}/revisions/%23{one}",
            "every sample": f"{study}/samples/{self._key}",
            "subject against subject": f"{study}/compare?a=%23{one}&b=%23{other}",
            "regressions": f"{study}/regressions",
            "searches": f"{study}/searches",
            "API: live": f"/api/studies/{study.rpartition('/')[2]}/live",
        }

    def times(self, times: int, *, at_once: int = 1) -> Mapping[str, list[float]]:
        """Ask for each kind of page so often; give the milliseconds of each."""
        asked = [each for _ in range(times) for each in self._addresses().items()]
        self._rng.shuffle(asked)
        found: dict[str, list[float]] = {}
        with ThreadPoolExecutor(at_once) as askers:
            for kind, spent in askers.map(self._time, asked):
                found.setdefault(kind, []).append(spent)
        return found

    def times_while_reading(self) -> Mapping[str, list[float]]:
        """Wait until the store is read anew, and ask for as long as it is; give the milliseconds of each."""
        over = time.monotonic() + PATIENCE_SECONDS
        while not self._reading():
            if time.monotonic() > over:
                raise TimeoutError("the store was not read anew")
            time.sleep(0.3)
        found: dict[str, list[float]] = {}
        while self._reading():
            for kind, spent in map(self._time, self._addresses().items()):
                found.setdefault(kind, []).append(spent)
        return found

    def _reading(self) -> bool:
        return bool(self._client.get(self._api).json()["reading"])

    def _time(self, asked: tuple[str, str]) -> tuple[str, float]:
        kind, address = asked
        while True:
            began = time.perf_counter()
            answer = self._client.get(address)
            spent = (time.perf_counter() - began) * 1e3
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                answer.raise_for_status()
                return kind, spent
            time.sleep(1.0)


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Add a start to the store every half second."""
    study = studyfile.load(str(directory / "perftrail.toml"))
    over = threading.Event()

    def write() -> None:
        with open_store(str(results_directory(study, None) / DATABASE), access="write") as store:
            runnable, ordinal = store.runnables()[0].key, int(time.time())
            while not over.wait(0.5):
                ordinal += 1
                key = InvocationKey(
                    runnable=runnable, machine=read_machine().id, phase="sample", ordinal=ordinal
                )
                store.add(Measurement(key=key, started="2025-11-21", seconds=1.0, values={"seconds": 1.0}))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def _tell(how: str, times: Mapping[str, list[float]]) -> bool:
    """Print the median and the 95th percentile of each kind of page; tell whether all are within the goal."""
    print(f"\n{how:40} {'median':>9} {'p95':>9}")
    met = True
    for kind, spent in times.items():
        late = sorted(spent)[max(0, -(-len(spent) * 95 // 100) - 1)]
        met &= late < GOAL_MS
        print(
            f"{kind:40} {statistics.median(spent):6.1f} ms {late:6.1f} ms{'' if late < GOAL_MS else '  over'}"
        )
    print(
        json.dumps({kind: round(statistics.median(spent), 2) for kind, spent in times.items()}),
        file=sys.stderr,
    )
    return met


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__)
    parser.add_argument("--revisions", type=int, default=10_000)
    parser.add_argument("--benchmarks", type=int, default=20)
    parser.add_argument("--invocations", type=int, default=5, help="of each benchmark of each revision")
    parser.add_argument("--more", type=int, default=9, help="metrics beside the one that is shown")
    parser.add_argument("--times", type=int, default=40, help="of each kind of page")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--renew", action="store_true", help="also while the store is written")
    parser.add_argument("--study", help="a directory to fill, or that is full already; kept")
    parser.add_argument("--scratch", help="where to fill a store otherwise")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
