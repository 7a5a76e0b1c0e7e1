"""Load an object into every program of a command, with a file in which the programs count."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from perftrail.errors import LauncherError
from perftrail.file_tree import claimed_file, remove_left_over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.model.process import Command

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - mkstemp creates the file


@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedObject:
    """A shared object next to the launcher, and the variable that names its file. `counts` is what it counts."""

    name: str
    variable: str
    counts: str

    def path(self, launcher: Path) -> Path:
        """Return the object of a launcher; raises `LauncherError` if it was not built."""
        path = launcher.with_name(f"{self.name}.so")
        if not path.is_file():
            raise LauncherError(
                f"{path} — missing, and needed to count {self.counts} of programs that use glibc; wheels for musl have "
                "none: install a wheel for manylinux, or install gcc and build perftrail from its sources"
            )
        return path

    @contextmanager
    def loaded(
        self, launcher: Path, command: Command, *, size: int, directory: str | None = None
    ) -> Iterator[tuple[Command, IO[bytes]]]:
        """Yield a command that loads the object, and its open file of `size` zero bytes, which needs no memory.

        The file is created in `directory`, by default in memory. The program may replace the file of this name, so
        only the open file contains the counts.
        """
        preloaded = str(self.path(launcher))
        below = Path(directory) if directory else _shared()
        with claimed_file(self._prefix, below=below) as path, path.open("r+b") as file:
            file.truncate(size)
            others = command.environment.get("LD_PRELOAD")
            environment = {
                **command.environment,
                "LD_PRELOAD": f"{preloaded}:{others}" if others else preloaded,
                self.variable: str(path),
            }
            yield replace(command, environment=environment), file

    def remove_left_over_files(self) -> None:
        """Remove files that killed perftrail processes left in memory."""
        remove_left_over(self._prefix, below=_shared())

    @property
    def _prefix(self) -> str:
        return f"{self.name}-"


LOCKS = PreloadedObject(name="perftrail-locks", variable="PERFTRAIL_LOCKS", counts="locks")
ALLOCATIONS = PreloadedObject(
    name="perftrail-allocations", variable="PERFTRAIL_ALLOCATIONS", counts="allocations"
)


def remove_left_over_count_files() -> None:
    """Remove files of every preloaded object that killed perftrail processes left in memory."""
    for each in (LOCKS, ALLOCATIONS):
        each.remove_left_over_files()


def _shared() -> Path:
    return _IN_MEMORY if _IN_MEMORY.is_dir() else Path(tempfile.gettempdir())
