"""Requests each kind of page of a dashboard repeatedly, each time for another subject, and measures the times."""

from __future__ import annotations

import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2 as httpx

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTimes:
    """The times of one kind of page, in milliseconds, and the number of requests."""

    count: int
    median_ms: float
    p95_ms: float
    worst_ms: float


def summarise_times(times: Sequence[float]) -> PageTimes:
    """Return the summary of times.

    >>> summarise_times([3.0, 1.0, 2.0])
    PageTimes(count=3, median_ms=2.0, p95_ms=3.0, worst_ms=3.0)
    """
    ordered = sorted(times)
    return PageTimes(
        count=len(ordered),
        median_ms=statistics.median(ordered),
        p95_ms=ordered[-(-len(ordered) * 95 // 100) - 1],
        worst_ms=ordered[-1],
    )


def ready(client: httpx.Client) -> float:
    """Wait until the store was read; return the seconds."""
    began = time.monotonic()
    while client.get("/", follow_redirects=True).raise_for_status().headers.get("refresh"):
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise TimeoutError("the store could not be read")
        time.sleep(0.2)
    return time.monotonic() - began


class PageRequests:
    """Requests for each kind of page, each time for another subject."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        [study] = client.get("/api/studies").json()
        self._study = f"/s/{study['name']}"
        self._api = api = f"/api/studies/{study['name']}"
        self._metrics = [each["name"] for each in client.get(f"{api}/metrics").json()]
        self._length = client.get(f"{api}/history/{self._metrics[0]}?points=1").json()["length"]
        first = client.get(f"{api}/revisions/%230").json()
        self._key = first["metrics"][0]["runnables"][0]
        self._rng = random.Random(1)

    def _addresses(self) -> Mapping[str, str]:
        rng, study = self._rng, self._study
        metric = rng.choice(self._metrics)
        ends = sorted(rng.randrange(self._length) for _ in range(2))
        part = f"first={ends[0]}&last={ends[1]}"
        one, other = (rng.randrange(self._length) for _ in range(2))
        return {
            "overview": study,
            "history, complete": f"{study}/history?metric={metric}",
            "history, a part": f"{study}/history?metric={metric}&{part}",
            "chart, a part": f"{study}/history/{metric}.json?{part}",
            "chart, complete": f"{study}/history/{metric}.json",
            "a revision": f"{study}/revisions/%23{one}",
            "every sample": f"{study}/samples/{self._key}",
            "comparison of two subjects": f"{study}/compare?a=%23{one}&b=%23{other}",
            "regressions": f"{study}/regressions",
            "searches": f"{study}/searches",
            "API: live": f"{self._api}/live",
        }

    def times(self, times: int, *, parallel: int = 1) -> Mapping[str, PageTimes]:
        """Request each kind of page `times` times; return their times."""
        addresses = [each for _ in range(times) for each in self._addresses().items()]
        self._rng.shuffle(addresses)
        found: dict[str, list[float]] = {}
        with ThreadPoolExecutor(parallel) as pool:
            for kind, milliseconds in pool.map(self._time, addresses):
                found.setdefault(kind, []).append(milliseconds)
        return {kind: summarise_times(found[kind]) for kind in self._addresses()}

    def times_while_reading(self, reads: int) -> Mapping[str, PageTimes]:
        """Request pages until the server has read the store `reads` more times; return their times."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        found: dict[str, list[float]] = {}
        before = first = self._snapshot_time()
        while reads:
            for kind, milliseconds in map(self._time, self._addresses().items()):
                found.setdefault(kind, []).append(milliseconds)
            if (now := self._snapshot_time()) != before:
                before = now
                reads -= 1
            if time.monotonic() > deadline:
                raise TimeoutError(f"the store was not read again since {first}")
        return {kind: summarise_times(each) for kind, each in found.items()}

    def _snapshot_time(self) -> str:
        """Return the time of the snapshot that the pages show now."""
        _, answer = self._get(self._api)
        taken: str = answer.json()["taken"]
        return taken

    def _time(self, kind_and_address: tuple[str, str]) -> tuple[str, float]:
        kind, address = kind_and_address
        milliseconds, _ = self._get(address)
        return kind, milliseconds

    def _get(self, address: str) -> tuple[float, httpx.Response]:
        """Request a page, again after too many requests; return the milliseconds and the answer."""
        while True:
            began = time.perf_counter()
            answer = self._client.get(address)
            milliseconds = (time.perf_counter() - began) * 1e3
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                answer.raise_for_status()
                return milliseconds, answer
            time.sleep(1.0)
