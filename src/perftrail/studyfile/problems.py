"""Mistakes of a study file: collected once each, with the line of their key (`key_lines`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.errors import Mistake
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.studyfile.key_lines import KeyPath


class MissingFile(str):
    """A message about a file that does not exist: only building and measuring need it."""

    __slots__ = ()


class Problems:
    """The mistakes found so far.

    An unreadable value is one mistake; mistakes that follow from it are not reported. With `to_read`, a
    missing file is not a mistake.
    """

    def __init__(self, file: str, lines: Mapping[KeyPath, int], *, to_read: bool = False) -> None:
        self._to_read = to_read
        self._file = file
        self._lines = lines
        self._unreadable: set[KeyPath] = set()
        self._suspect: set[KeyPath] = set()
        self._mistakes: dict[Mistake, None] = {}

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Every mistake, in the order of discovery."""
        return tuple(self._mistakes)

    def add(
        self, path: KeyPath, message: str, *, about: KeyPath | None = None, item: int | None = None
    ) -> None:
        """Add a mistake at a path, unless it follows from another one.

        `about` is the path on which the mistake depends: if that value is wrong, the mistake is not reported. `item`
        is the index of the wrong item of a list, whose line is reported.
        """
        if self._to_read and isinstance(message, MissingFile):
            return
        if self._within(self._unreadable, path) or (about is not None and not self.is_correct(about)):
            return
        self._suspect.add(path)
        line = line_of(path if item is None else (*path, item), self._lines)
        self._mistakes[Mistake(file=self._file, line=line, key=key_path(path), message=message)] = None

    def add_unreadable(self, path: KeyPath, message: str, *, item: int | None = None) -> None:
        """Add a mistake about an unreadable value, and ignore later ones at or below it."""
        self.add(path, message, item=item)
        self.mark_suspect(path)

    def mark_suspect(self, path: KeyPath) -> None:
        """Record that the value at a path is probably not the intended one."""
        self._unreadable.add(path)
        self._suspect.add(path)

    def relocate(self, written: KeyPath, meant: KeyPath) -> None:
        """Use the lines of a misspelt key for the key that it probably means."""
        below = {
            (*meant, *path[len(written) :]): line
            for path, line in self._lines.items()
            if path[: len(written)] == written
        }
        self._lines = {**self._lines, **below}

    def is_correct(self, path: KeyPath) -> bool:
        """Return whether there is no mistake at a path or above it."""
        return not self._within(self._suspect, path)

    def has_key(self, path: KeyPath) -> bool:
        """Return whether the file contains this key."""
        return path in self._lines

    def clean(self, *paths: KeyPath) -> bool:
        """Return whether there is no mistake at any of these paths, or above or below them."""
        return all(self.is_correct(path) for path in paths) and not any(
            suspect[: len(path)] == path for suspect in self._suspect for path in paths
        )

    def readable(self, path: KeyPath, *, depth: int | None = None) -> bool:
        """Return whether every value at or above a path, or below it, was read, even if it has a mistake.

        With `depth`, only values at most this number of keys below the path count.
        """
        most = None if depth is None else len(path) + depth
        return not self._within(self._unreadable, path) and not any(
            unread[: len(path)] == path and (most is None or len(unread) <= most)
            for unread in self._unreadable
        )

    def _within(self, paths: set[KeyPath], path: KeyPath) -> bool:
        return any(path[:length] in paths for length in range(len(path) + 1))


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """Return the line of a key, or of its nearest parent in the file."""
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)


class RelocatedProblems(Problems):
    """Problems of a table of the same form at another path: `table` is reported as `to`."""

    def __init__(self, inner: Problems, *, table: str, to: KeyPath) -> None:
        self._inner = inner
        self._table = table
        self._to = to

    def add(
        self, path: KeyPath, message: str, *, about: KeyPath | None = None, item: int | None = None
    ) -> None:
        """Add a mistake at a path, like `Problems.add`."""
        about = None if about is None else self._moved(about)
        self._inner.add(self._moved(path), message, about=about, item=item)

    def is_correct(self, path: KeyPath) -> bool:
        """Return whether there is no mistake at a path or above it."""
        return self._inner.is_correct(self._moved(path))

    def has_key(self, path: KeyPath) -> bool:
        """Return whether the file contains this key."""
        return self._inner.has_key(self._moved(path))

    def clean(self, *paths: KeyPath) -> bool:
        """Return whether there is no mistake at any of these paths, or above or below them."""
        return self._inner.clean(*map(self._moved, paths))

    def readable(self, path: KeyPath, *, depth: int | None = None) -> bool:
        """Return whether every value at or above a path, or below it, was read, even if it has a mistake."""
        return self._inner.readable(self._moved(path), depth=depth)

    def _moved(self, path: KeyPath) -> KeyPath:
        return (*self._to, *path[1:]) if path[:1] == (self._table,) else path


def key_path(path: KeyPath) -> str:
    """Format a path like a TOML dotted key, with list indices in brackets.

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
