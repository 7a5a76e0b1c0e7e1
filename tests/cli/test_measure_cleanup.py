"""`perftrail measure` removes the files of a killed one outside of studies, and no files of a running one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.test_measure import measure
from tests.process.sandbox.sandboxes import needs_sandbox
from tests.starting import Started

SHARED = (Path("/var/tmp"), Path("/dev/shm"))


@contextmanager
def sleeping() -> Iterator[tuple[Started, set[Path]]]:
    """A perftrail process that measures in a sandbox, and its claims in shared directories."""
    with (
        Path(os.devnull).open("wb") as nothing,
        Started(["measure", "--sandbox", "sleep 100"], nothing.fileno(), nothing.fileno()) as perftrail,
    ):
        try:
            while len(found := claims(perftrail.pid)) < len(SHARED):
                assert perftrail.poll() is None
                time.sleep(0.02)
            yield perftrail, found
        finally:
            perftrail.send_signal(signal.SIGKILL)


def claims(pid: int) -> set[Path]:
    """The files that a process holds open directly below the shared directories: its claims."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            path = each.readlink()
        except FileNotFoundError:  # closed meanwhile
            continue
        if path.parent in SHARED and path.name.startswith("perftrail-"):
            found.add(path)
    return found


@needs_sandbox
def test_files_of_a_killed_process_are_removed_and_those_of_a_running_one_are_not() -> None:
    with sleeping() as (killed, left), sleeping() as (_, alive):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        deadline = time.monotonic() + 20
        while any(
            path.exists() for path in left
        ):  # what it started dies within two seconds, and may write till then
            assert time.monotonic() < deadline
            assert measure("-r", "2", "-w", "0", "true").returncode == 0
        assert all(path.is_dir() for path in alive)
