"""The directories that a sandbox has for itself: its /tmp, its home, its /dev/shm."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perftrail.file_claim import claimed_directory, remove_left_over
from perftrail.file_tree import empty_directory

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the directory is made by mkdtemp
_DIRECTORY = "perftrail-room-"


class Room:
    """Directories on this machine that one sandbox alone has; a context manager that removes them.

    They are real directories, so that they can be emptied between two starts from out here, and what is in
    them counts as written to disk. Only its `/dev/shm` is in memory, as programs expect. `exchange` has the
    same name inside.
    """

    def __init__(self, below: Path) -> None:
        below.mkdir(parents=True, exist_ok=True)
        self._claims = ExitStack()
        self.path = self._claims.enter_context(claimed_directory(_DIRECTORY, below=below)).resolve()
        self.tmp, self.home, self.exchange = (self.path / name for name in ("tmp", "home", "exchange"))
        for directory in (self.tmp, self.home, self.exchange):
            directory.mkdir(mode=0o700)
        in_memory = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else self.path
        self.shared_memory = self._claims.enter_context(claimed_directory(_DIRECTORY, below=in_memory))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def directories(self) -> tuple[Path, ...]:
        """What a program in there may fill."""
        return (self.tmp, self.home, self.exchange, self.shared_memory)

    def empty(self, *, but: Collection[Path] = ()) -> bool:
        """Take away what the last program left; the mount points in `but` stay.

        False, with all taken away, when a mount point was moved away by that program: what is mounted must be
        mounted anew.
        """
        intact = all(path.exists() and path.resolve() == path for path in but)
        for directory in self.directories:
            empty_directory(directory, but=but if intact else ())
        return intact

    def remove(self) -> None:
        """Take all of it away."""
        self._claims.close()


def remove_left_over_rooms(*below: Path) -> None:
    """Remove what rooms of killed perftrails left in memory and below these directories."""
    for directory in (_IN_MEMORY, *below):
        remove_left_over(_DIRECTORY, below=directory)
