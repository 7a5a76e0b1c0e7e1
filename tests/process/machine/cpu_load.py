"""A process that uses a whole CPU for a limited time."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOOP = "ulimit -t 3; while :; do :; done"
"""The kernel ends it after three seconds of CPU time, even if the test is killed."""


@dataclass(frozen=True)
class Hog:
    pid: int

    def cpu_seconds(self) -> float:
        """Return its exact CPU seconds so far."""
        return time.clock_gettime((~self.pid << 3) | 2)


@contextmanager
def hog() -> Iterator[Hog]:
    """Run one for the context, which begins once it has used CPU time."""
    process = subprocess.Popen(["/bin/sh", "-c", LOOP], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found = Hog(process.pid)
        deadline = time.monotonic() + 20.0
        while found.cpu_seconds() < 0.02:
            assert time.monotonic() < deadline, "the hog never ran"
            time.sleep(0.001)
        yield found
    finally:
        process.kill()
        process.wait()
