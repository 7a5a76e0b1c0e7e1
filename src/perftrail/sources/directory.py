"""Sources without version control: a plain directory, which is one revision, and listed names without content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import remove_tree
from perftrail.model.subject import Revision
from perftrail.sources.ranges import WithoutParents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.source import Source as SourceTable


class ListedSource(WithoutParents):
    """A `perftrail.ports.Source` of given revisions, oldest first, which cannot be checked out.

    `no_range` states why no ranges are known, and what to do.
    """

    def __init__(self, revisions: Sequence[Revision], *, no_range: str) -> None:
        super().__init__(no_range=no_range)
        self._revisions = tuple(revisions)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the revisions. Raises `SourceError` for a range."""
        self.refuse_range(range)
        return self._revisions

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Raise `CheckoutFailed`: the revisions have no content."""
        raise CheckoutFailed(
            f"{revision.short}: only its samples are available; {directory} stays empty, see {log}"
        )


_EXCLUDED = frozenset({".git", ".hg", ".svn", ".fslckout", "_FOSSIL_", ".perftrail"})
"""Files of version control and of perftrail, on which no build depends."""


class DirectorySource(WithoutParents):
    """The files below a directory; the revision's id depends on their content, so each edit creates a new revision.

    Only files in `folders`, relative to the directory, belong to it; without any, all do.
    """

    def __init__(self, table: SourceTable, *, folders: Sequence[str] = ()) -> None:
        super().__init__(
            no_range=f"the directory {table.location} has only one revision; leave the range out, "
            "or use a git repository as source"
        )
        self._table = table
        self._folders = tuple(folders)
        self._root = Path(table.location)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the only revision."""
        self.refuse_range(self._table.range if range is None else range)
        if not self._root.is_dir():
            raise SourceError(f"{self._root}: no such directory; source.location must name one")
        return (Revision(id=self._digest(self._root), summary="the files as they are", label=self._label()),)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Copy the files, links as links. Raises `CheckoutFailed` if they have changed since the revision was named."""
        target = Path(directory)
        if target.exists():
            raise CheckoutFailed(f"{directory}: exists already; a revision needs a new directory")
        with Path(log).open("a", encoding="utf-8") as file:
            print(f"$ copy {self._root} to {directory}", file=file)
        try:
            for folder in self._folders or (".",):
                _copy(self._root / folder, target / folder)
        except OSError as error:
            remove_tree(target)
            raise CheckoutFailed(f"{self._root}: cannot be copied: {error}") from error
        if self._digest(target) != revision.id:
            remove_tree(target)
            raise CheckoutFailed(f"{self._root}: its files changed since they were listed; start again")

    def _digest(self, root: Path) -> str:
        if not self._folders:
            return _digest(root)
        parts = [f"{folder}\0{_digest(root / folder)}\n" for folder in self._folders]
        return hashlib.sha256("".join(parts).encode(errors="surrogateescape")).hexdigest()

    def _label(self) -> str:
        label = self._table.label
        if label is None or not (self._root / label.file).is_file():
            return ""
        text = (self._root / label.file).read_text("utf-8", errors="replace")
        found = re.search(label.pattern, text, re.MULTILINE)
        return (found.group(1) or "").strip() if found else ""


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    for name in _names(root):
        path = root / name
        if path.is_symlink():
            kind, content = "link", os.fsencode(path.readlink())
        elif path.is_dir():
            kind, content = "directory", b""
        else:
            kind, content = _kind(path), path.read_bytes()
        digest.update(
            f"{name}\0{kind}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogateescape")
        )
    return digest.hexdigest()


def _copy(root: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in _names(root):
        path, copy = root / name, target / name
        if path.is_symlink():
            copy.symlink_to(path.readlink())
        elif path.is_dir():
            copy.mkdir()
        else:
            shutil.copy2(path, copy)


def _names(root: Path) -> list[str]:
    """Return every directory, file and link below a directory, parents first; sockets are left out."""
    return sorted(_walk(root, ""), key=lambda name: name.split("/"))


def _walk(root: Path, prefix: str) -> Iterator[str]:
    with os.scandir(root / prefix) as entries:
        for entry in entries:
            if entry.name in _EXCLUDED:
                continue
            name = f"{prefix}{entry.name}"
            if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield name
            elif entry.is_dir(follow_symlinks=False):
                yield name
                yield from _walk(root, f"{name}/")


def _kind(path: Path) -> str:
    return "program" if path.stat().st_mode & stat.S_IXUSR else "file"
