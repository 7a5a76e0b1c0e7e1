"""Directories that take long to fill, filled once for all processes of a test run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perftrail.file_tree import exclusive_lock

WORKER = "worker"
"""How the directory of each process of a test run begins, below that of the run."""


def shared_directory(factory: pytest.TempPathFactory, name: str, *, fill: Callable[[Path], object]) -> Path:
    """Return a directory of the test run; the first process that needs it fills it, and tests only read it."""
    base = factory.getbasetemp()
    shared = (base.parent if base.name.startswith(WORKER) else base) / name
    shared.mkdir(exist_ok=True)
    directory = shared / "directory"
    with exclusive_lock(shared / "lock"):
        if not (shared / "done").exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            fill(directory)
            (shared / "done").touch()
    return directory
