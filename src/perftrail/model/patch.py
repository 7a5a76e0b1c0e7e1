"""Back-ported changes: patches, and the conflicts that prevent them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
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
class Patch:
    """A change in the format of ``git apply``. `text` and the paths are hostile text."""

    text: bytes
    files: tuple[FileChange, ...]

    @property
    def digest(self) -> str:
        """Digest of the patch, 64 hexadecimal digits."""
        return hashlib.sha256(self.text).hexdigest()


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

    `prerequisites` are the revisions to back-port before it, oldest first. `directory_existed`: the directory existed
    already, and perftrail did not change it.
    """

    obstacles: tuple[Obstacle, ...]
    directory: str
    prerequisites: tuple[Revision, ...] = ()
    directory_existed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A patched old revision, with its base and patch."""

    base: Revision
    patch: Patch
    revision: Revision
