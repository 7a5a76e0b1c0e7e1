"""Back-ported changes: patches, and the conflicts that prevent them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from perftrail.model.source import matching

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.model.subject import Revision

Clash = Literal["changed", "absent", "deleted", "added", "rejected"]
"""Why a file's change does not apply to an old revision.

``changed``: the old revision has other lines there. ``absent``: it does not have the file. ``deleted``: the
change deletes a file with other content. ``added``: both add a file of that name. ``rejected``: a patch does
not find its lines.
"""


class FileChangeJson(TypedDict):
    """Lines that a change adds to and removes from one file; null for a binary file."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """Size of a change in one file: lines added and removed, `None` for binary files."""

    path: str
    added: int | None
    removed: int | None

    @property
    def lines(self) -> int:
        """Lines added plus lines removed."""
        return (self.added or 0) + (self.removed or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedFile:
    """A file that a revision changes, and the names on the first lines of the functions that it changes there.

    The names are untrusted text: they also contain types and keywords of these lines.
    """

    path: str
    names: frozenset[str]


Omission = Literal["not selected", "excluded", "unaffected", "unread"]
"""Why a file of a change was left out.

``not selected``: ``--paths`` does not name it. ``excluded``: ``--exclude`` names it. ``unaffected``: it conflicts, and
``build.unaffected_by`` names it. ``unread``: it conflicts, and the observed build did not read it.
"""


class LeftOutJson(TypedDict):
    """One file of a change that was left out."""

    path: str
    why: Omission


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """One file of a change that was left out, and the reason. The path is hostile text."""

    path: str
    why: Omission

    def as_json(self) -> LeftOutJson:
        """Return the file as `--json` prints it."""
        return {"path": self.path, "why": self.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPaths:
    """The files of a change to apply.

    `only` and `excluded` are globs as in ``build.unaffected_by``; without `only`, every file is selected. Files that
    match `unaffected_by` or are in `unread` are left out only if they conflict.
    """

    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    unaffected_by: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()

    def left_out(self, changed: Iterable[str], conflicting: Iterable[str]) -> tuple[LeftOut, ...]:
        """Return the changed files to leave out, in the order of their paths.

        >>> paths = PatchPaths(excluded=("docs",), unaffected_by=("ChangeLog", "NEWS"))
        >>> [each.path for each in paths.left_out(["a.c", "docs/a", "ChangeLog", "NEWS"], ["a.c", "NEWS"])]
        ['NEWS', 'docs/a']
        """
        conflicts = frozenset(conflicting)
        found = ((path, self._why(path, path in conflicts)) for path in sorted({*changed, *conflicts}))
        return tuple(LeftOut(path=path, why=why) for path, why in found if why is not None)

    def _why(self, path: str, conflicts: bool) -> Omission | None:
        if self.only and not _is_matched(self.only, path):
            return "not selected"
        if _is_matched(self.excluded, path):
            return "excluded"
        if conflicts and _is_matched(self.unaffected_by, path):
            return "unaffected"
        return "unread" if conflicts and path in self.unread else None


def _is_matched(globs: Sequence[str], path: str) -> bool:
    return bool(globs) and matching(globs).fullmatch(path) is not None


EVERY_PATH = PatchPaths()
"""All files of a change; none is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change in the format of ``git apply``. `text` and the paths are hostile text.

    `left_out` are the files of the change that are not applied; a text that the user supplied may still contain them.
    """

    text: bytes
    files: tuple[FileChange, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of the applied part of the patch, 64 hexadecimal digits."""
        omitted = "".join(f"\0{each.path}" for each in self.left_out)
        return hashlib.sha256(self.text + omitted.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines of a change that differ in the old revision.

    `first` and `last` are line numbers before the change. `marker` is the line of git's conflict marker in the
    partially changed file, 0 if unknown. `since` are the revisions between the old one and the change that
    touched these lines, oldest first. `only_on_old_branch` are the revisions that only the old branch has.
    """

    first: int
    last: int
    marker: int = 0
    since: tuple[Revision, ...] = ()
    only_on_old_branch: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One file in which a change and an old revision conflict; `since` are the revisions that changed it."""

    path: str
    clash: Clash
    passages: tuple[Passage, ...] = ()
    since: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why a change does not apply. `directory` contains the tree with the part that applies.

    `prerequisites` are the revisions to back-port before it, oldest first; for a revert, the revisions to revert before
    it, newest first. `directory_existed`: the directory existed already, and perftrail did not change it. `left_out`
    are the files that did not count.
    """

    obstacles: tuple[Obstacle, ...]
    directory: str
    prerequisites: tuple[Revision, ...] = ()
    directory_existed: bool = False
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A patched old revision, with its base and patch."""

    base: Revision
    patch: Patch
    revision: Revision
