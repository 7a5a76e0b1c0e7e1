"""Starts a dashboard in a separate process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The address of a dashboard, and its process."""

    address: str
    process: int


@contextmanager
def serving(directory: Path, *options: str, program: str = "perftrail") -> Iterator[Served]:
    """Serve a study, or all below a directory, at a free port; `program` is the module of the command."""
    command = [sys.executable, "-m", program, "serve", "--port", "0", *options, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Served(address=server.stdout.readline().split()[0].rstrip("/"), process=server.pid)
        finally:
            server.terminate()
