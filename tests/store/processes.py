"""Other perftrail processes, for the tests of locks and of killed writers.

Each is ``python -m tests.store.processes ROLE PATH`` and talks over its standard streams, so that no test
sleeps.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from perftrail.store import lock_for_writing, open_store
from tests.store.examples import MACHINE, RUNNABLE, acquaint, key, measurement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Process = subprocess.Popen[str]


@contextmanager
def start(role: str, path: Path) -> Iterator[Process]:
    """Start another perftrail process in a role; it is killed when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.processes", role, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: Process) -> str:
    """Wait for the next line that another perftrail process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: Process, word: str) -> None:
    """Write a line to another perftrail process."""
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def say(word: object) -> None:
    """Write a line to the test, atomically."""
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


def holds(path: str) -> None:
    """Hold the lock until a line comes."""
    with lock_for_writing(path, wait=False):
        say("held")
        sys.stdin.readline()
    say("free")


def forks(path: str) -> None:
    """Hold the lock, and have a child that lives until this one's standard input ends."""
    with lock_for_writing(path, wait=False):
        if os.fork() == 0:
            say(f"child {os.getpid()}")
            sys.stdin.readline()
            os._exit(0)
        sys.stdin.readline()


def waits(path: str) -> None:
    """Wait for the lock."""
    with lock_for_writing(path, wait=True, on_wait=lambda holder: say(f"waiting for {holder.pid}")):
        say("held")


def writes(path: str) -> None:
    """Add outcomes one after the other, saying each ordinal when `add` has returned, until killed."""
    import perftrail.store.sql  # noqa: F401  # so that it takes none of the time from here to "ready"

    say("started")
    with lock_for_writing(path, wait=False), open_store(path, access="write") as store:
        acquaint(store)
        done = len(store.outcomes([RUNNABLE.key], MACHINE.id)[RUNNABLE.key])
        say("ready")
        for ordinal in range(done, done + 100_000):
            store.add(measurement(key(ordinal), wall=ordinal / 7))
            say(ordinal)


ROLES = {"holds": holds, "forks": forks, "waits": waits, "writes": writes}

if __name__ == "__main__":
    ROLES[sys.argv[1]](sys.argv[2])
