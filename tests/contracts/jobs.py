"""Jobs for the contract of engines: they can be sent to other processes."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from perftrail.errors import ClusterError

SECONDS_OF_A_JOB = 0.2
"""Long enough for a process too many to start and take a job, too."""


def doubled(number: int) -> int:
    if number < 0:
        raise ClusterError(f"{number} is below zero")
    return 2 * number


def divided(number: int) -> float:
    return 1 / number


def note(path: Path) -> int:
    """Append a line to a file, and return how many there are."""
    with path.open("a") as file:
        print("performed", file=file)
    return len(path.read_text().splitlines())


def overlapping(directory: Path) -> int:
    """Return how many jobs run while this one does."""
    own = directory / uuid.uuid4().hex
    own.touch()
    time.sleep(SECONDS_OF_A_JOB)
    running = sum(1 for _ in directory.iterdir())
    own.unlink()
    return running


def waiting(sign: Path) -> None:
    while not sign.exists():
        time.sleep(0.01)
