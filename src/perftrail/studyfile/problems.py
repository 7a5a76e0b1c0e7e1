"""Gathers what is wrong with a study file, each thing once and with its line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.errors import Mistake
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.studyfile.positions import KeyPath


class Complaints:
    """The mistakes found so far.

    A value that could not be read is complained about once: whatever follows from it is not told again.
    """

    def __init__(self, file: str, lines: Mapping[KeyPath, int]) -> None:
        self._file = file
        self._lines = lines
        self._unreadable: set[KeyPath] = set()
        self._suspect: set[KeyPath] = set()
        self._mistakes: dict[Mistake, None] = {}

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Every mistake, in the order they were found."""
        return tuple(self._mistakes)

    def add(self, path: KeyPath, message: str, *, about: KeyPath | None = None) -> None:
        """Complain about the value at a path, unless it follows from another complaint.

        `about` is what the complaint rests on: when something is wrong there already, it says nothing.
        """
        if self._within(self._unreadable, path) or (about is not None and not self.trusts(about)):
            return
        self._suspect.add(path)
        line = line_of(path, self._lines)
        self._mistakes[Mistake(file=self._file, line=line, key=key_path(path), message=message)] = None

    def add_unreadable(self, path: KeyPath, message: str) -> None:
        """Complain about a value that cannot be read, and of nothing at or below it from now on."""
        self.add(path, message)
        self.distrust(path)

    def distrust(self, path: KeyPath) -> None:
        """Say that what stands at a path is not what was meant."""
        self._unreadable.add(path)
        self._suspect.add(path)

    def trusts(self, path: KeyPath) -> bool:
        """Whether nothing was found wrong with what stands at a path, or around it."""
        return not self._within(self._suspect, path)

    def stands(self, path: KeyPath) -> bool:
        """Whether the file has this key."""
        return path in self._lines

    def clean(self, *paths: KeyPath) -> bool:
        """Whether nothing was found wrong with what stands at any of these paths, around or below it."""
        return all(self.trusts(path) for path in paths) and not any(
            suspect[: len(path)] == path for suspect in self._suspect for path in paths
        )

    def _within(self, paths: set[KeyPath], path: KeyPath) -> bool:
        return any(path[:length] in paths for length in range(len(path) + 1))


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """Give the line of a key, or of the nearest one around it that the file has."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)


class Moved(Complaints):
    """Complaints about a table as if it were another one that is alike: `table` is told as `to`."""

    def __init__(self, inner: Complaints, *, table: str, to: KeyPath) -> None:
        self._inner = inner
        self._table = table
        self._to = to

    def add(self, path: KeyPath, message: str, *, about: KeyPath | None = None) -> None:
        """Complain about the value at a path."""
        self._inner.add(self._moved(path), message, about=None if about is None else self._moved(about))

    def trusts(self, path: KeyPath) -> bool:
        """Whether nothing was found wrong with what stands at a path, or around it."""
        return self._inner.trusts(self._moved(path))

    def stands(self, path: KeyPath) -> bool:
        """Whether the file has this key."""
        return self._inner.stands(self._moved(path))

    def clean(self, *paths: KeyPath) -> bool:
        """Whether nothing was found wrong with what stands at any of these paths, around or below it."""
        return self._inner.clean(*map(self._moved, paths))

    def _moved(self, path: KeyPath) -> KeyPath:
        return (*self._to, *path[1:]) if path[:1] == (self._table,) else path


def key_path(path: KeyPath) -> str:
    """Write a path as TOML writes dotted keys, with the index of a table in a list in brackets.

    >>> key_path(("build", "when", 0, "env", "A B"))
    'build.when[0].env."A B"'
    """
    parts = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]{1,80}", part) is not None
            parts.append(f"{'.' if parts else ''}{part if bare else quoted(part)}")
    return "".join(parts)
