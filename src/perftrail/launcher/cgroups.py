"""Cleans up after a launcher whose two processes were killed at the same instant.

Either of them, left alone, does this itself. Only when both are gone do its cgroups remain, and in them
whatever the target had started: its own process the kernel kills (PR_SET_PDEATHSIG), its children not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS_TO_DIE = 2.0


def remove_cgroups(paths: Sequence[str]) -> None:
    """Kill every process in these cgroups and remove them; those that are gone already are no error."""
    deadline = time.monotonic() + SECONDS_TO_DIE
    left = [Path(path) for path in paths if Path(path).is_dir()]
    while left and time.monotonic() < deadline:
        for path in left:
            _kill_members(path)
            with contextlib.suppress(OSError):  # still busy: the next round tries again
                path.rmdir()
        left = [path for path in left if path.is_dir()]


def _kill_members(path: Path) -> None:
    with contextlib.suppress(OSError):  # a cgroup may go while it is read, a process before it is killed
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
