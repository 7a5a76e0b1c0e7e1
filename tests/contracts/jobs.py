"""Jobs for the contract of engines: they can be sent to other processes."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from perftrail.errors import ClusterError

SECONDS_OF_A_JOB = 0.2
"""Long enough for an excess process to start and to begin a job."""


def doubled(number: int) -> int:
    if number < 0:
        raise ClusterError(f"{number} is below zero")
    return 2 * number


def inverted(number: int) -> float:
    return 1 / number


def append_line(path: Path) -> int:
    """Append a line to a file, and return the number of its lines."""
    with path.open("a") as file:
        print("performed", file=file)
    return len(path.read_text().splitlines())


def count_running_jobs(directory: Path) -> int:
    """Return the number of jobs that run at the same time as this one."""
    own = directory / uuid.uuid4().hex
    own.touch()
    time.sleep(SECONDS_OF_A_JOB)
    running = sum(1 for _ in directory.iterdir())
    own.unlink()
    return running


def wait_for_file(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)
