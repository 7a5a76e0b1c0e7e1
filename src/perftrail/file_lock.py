"""Lets one process at a time make a build, or change what the cache of sources holds."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock file; waits until whoever holds it lets go or dies."""
    with _opened(path) as number:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield


@contextmanager
def together(path: Path) -> Iterator[None]:
    """Hold a lock file along with others who do so, but not with one who is `alone`."""
    with _opened(path) as number:
        fcntl.flock(number, fcntl.LOCK_SH)
        yield


@contextmanager
def alone_if_free(path: Path) -> Iterator[bool]:
    """Hold a lock file if nobody else does, without waiting; says whether it is held."""
    with _opened(path) as number:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        yield file.fileno()
