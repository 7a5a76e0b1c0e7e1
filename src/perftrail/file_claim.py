"""Scratch files and directories outside of a study's results, claimed by the process that made them.

Others can so tell what belongs to somebody from what a killed process left, and remove that.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def claimed_directory(prefix: str, *, below: Path) -> Iterator[Path]:
    """Give a new directory that only we may enter, removed in the end with all that is in it."""
    with _claimed(lambda: Path(tempfile.mkdtemp(prefix=prefix, dir=below))) as path:
        yield path


@contextmanager
def claimed_file(prefix: str, *, below: Path) -> Iterator[Path]:
    """Give a new, empty file that only we may open, removed in the end."""

    def made() -> Path:
        descriptor, path = tempfile.mkstemp(prefix=prefix, dir=below)
        os.close(descriptor)
        return Path(path)

    with _claimed(made) as path:
        yield path


def remove_left_over(prefix: str, *, below: Path) -> tuple[Path, ...]:
    """Remove what processes of this user claimed that are gone now, however they ended; give what was removed."""
    removed = []
    for path in sorted(below.glob(f"{prefix}*")):
        # another user's, claimed by somebody, removed by another meanwhile, or still written by what is being killed
        with suppress(OSError):
            if _removed_unclaimed(path):
                removed.append(path)
    return tuple(removed)


@contextmanager
def _claimed(make: Callable[[], Path]) -> Iterator[Path]:
    descriptor = -1
    while descriptor < 0:
        path = make()
        descriptor = _claim(path)
    try:
        yield path
    finally:
        try:
            remove_tree(path)
        finally:
            os.close(descriptor)


def _claim(path: Path) -> int:
    """Lock what was just made; -1 when it was taken for left over before it was locked.

    The system lets go of the lock when its holder dies. A number of a process would say less: it is another one
    in another container, and one day another process's.
    """
    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return -1
    with suppress(OSError):  # a file system without such locks, on which nobody else gets one either
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    if _leads_to(path, descriptor):
        return descriptor
    os.close(descriptor)
    return -1


def _removed_unclaimed(path: Path) -> bool:
    """Remove a path unless it is claimed, which `OSError` says, or not ours."""
    descriptor = _open(path)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _leads_to(path, descriptor):
            return False
        remove_tree(path)
        return True
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open a path that anybody may have put there: never through a link, never waiting for a pipe's other end."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
