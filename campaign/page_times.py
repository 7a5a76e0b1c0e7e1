"""Time the pages of a dashboard from a separate process, as another client sees them.

``python -m campaign.page_times ADDRESS [TOKEN]`` prints a line for each second, until its standard input ends: the
machine's idle processors in that second, and the milliseconds of each page.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2 as httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

REST_SECONDS = 0.03
"""Pause between two pages: a reader, not a load."""

PAGES = ("/s/alpha", "/s/alpha/history", "/s/alpha/regressions", "/s/beta", "/s/alpha/compare?a=%231&b=%2340")

OWN_ADDRESS = "198.51.100."
"""The client's addresses, as a proxy would name them: nobody else has them, so nobody else uses up their limit."""


@dataclass(slots=True)
class PageTimes:
    """Milliseconds of each page of another client, and of those that it had while a processor was idle."""

    milliseconds: list[float] = field(default_factory=list)
    with_free_processor: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@contextmanager
def page_times(address: str, token: str = "") -> Iterator[PageTimes]:
    """Time pages until the block ends; the times are complete afterwards."""
    times = PageTimes()
    command = [sys.executable, "-m", "campaign.page_times", address, *([token] if token else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            yield times
        finally:
            client.stdin.close()
            lines = client.stdout.readlines()
        for line in lines:
            second = json.loads(line)
            times.milliseconds += second["milliseconds"]
            times.failed += second["failed"]
            if second["idle"] >= 1.0:
                times.with_free_processor += second["milliseconds"]


def _idle_seconds() -> float:
    """Return the idle time of all processors since the machine started."""
    ticks = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    return int(ticks[4]) / os.sysconf("SC_CLK_TCK")


def _await_end(ended: threading.Event) -> None:
    """Set the event at the end of standard input."""
    sys.stdin.read()
    ended.set()


def main() -> None:
    """Get pages until standard input ends."""
    address, *token = sys.argv[1:]
    ended = threading.Event()
    threading.Thread(target=_await_end, args=(ended,), daemon=True).start()
    headers = {"Authorization": f"Bearer {token[0]}"} if token else {}
    rng = random.Random(1)
    with httpx.Client(base_url=address, headers=headers, timeout=60.0) as client:
        while not ended.is_set():
            began, idle = time.monotonic(), _idle_seconds()
            found: list[float] = []
            failed: list[str] = []
            while time.monotonic() - began < 1.0 and not ended.wait(REST_SECONDS):
                path = rng.choice(PAGES)
                client.headers["X-Forwarded-For"] = f"{OWN_ADDRESS}{rng.randrange(256)}"
                sent = time.perf_counter()
                try:
                    status = client.get(path).status_code
                except httpx.HTTPError as error:
                    failed.append(f"{path}: {error!r}")
                    continue
                found.append((time.perf_counter() - sent) * 1e3)
                if status != httpx.codes.OK:
                    failed.append(f"{path}: {status}")
            idle = (_idle_seconds() - idle) / (time.monotonic() - began)
            print(json.dumps({"idle": idle, "milliseconds": found, "failed": failed}), flush=True)


if __name__ == "__main__":
    main()
