"""A program that does a given number of steps, calibrated to this machine, and one that keeps a CPU busy."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).parent / "verdicts" / "loop.c"
CALIBRATION_STEPS = 20_000_000


def calibrate(program: str, milliseconds: float) -> int:
    """Return the number of steps that take `milliseconds` on this machine, from the fastest of several runs."""
    fastest = min(_seconds([program, str(CALIBRATION_STEPS)]) for _ in range(7))
    return round(CALIBRATION_STEPS * milliseconds / 1000.0 / fastest)


def _seconds(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - began


@contextmanager
def busy_cpu(program: str, *, wanted: bool) -> Iterator[None]:
    """Keep the last CPU busy if there is another one."""
    cpus = sorted(os.sched_getaffinity(0))
    if not wanted or len(cpus) < 2:
        yield
        return
    hog = subprocess.Popen([program, str(2**62)])
    os.sched_setaffinity(hog.pid, {cpus[-1]})
    try:
        yield
    finally:
        hog.kill()
        hog.wait()
