"""A change that is carried from one revision to another: as a patch, or as the conflict that stands in its way."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from perftrail.model.subject import Revision

Clash = Literal["changed", "absent", "deleted", "added", "rejected"]
"""Why a file's change does not fit an old revision.

``changed``: the old revision has other lines where the change is. ``absent``: it has no such file.
``deleted``: the change removes the file, which reads otherwise there. ``added``: both have a file of that name.
``rejected``: a patch finds nowhere the lines that it changes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """How much of one file a change touches: lines added and removed, `None` where it is no text."""

    path: str
    added: int | None
    removed: int | None

    @property
    def lines(self) -> int:
        """Lines added and removed together."""
        return (self.added or 0) + (self.removed or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change as ``git apply`` takes it. `text` and the paths are as others wrote them: hostile."""

    text: bytes
    files: tuple[FileChange, ...]

    @property
    def digest(self) -> str:
        """Name the patch by its content, 64 hexadecimal digits."""
        return hashlib.sha256(self.text).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines that a change wants to change and that the old revision has otherwise.

    `first` and `last` count in the file before the change, `marker` is the line of the half-applied file where
    git marks the conflict, 0 where that is not known. `since` are the revisions between the old one and the
    change that touched these lines, `apart` those that only the old one's own branch has; oldest first.
    """

    first: int
    last: int
    marker: int = 0
    since: tuple[Revision, ...] = ()
    apart: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One file in which a change and an old revision clash. `since`: what made the file so, oldest first."""

    path: str
    clash: Clash
    passages: tuple[Passage, ...] = ()
    since: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why a change does not apply. `directory` holds the tree with as much of it as applies.

    `first` are the revisions that would have to be carried before it, oldest first. `kept`: the directory was
    there already, and nobody's work in it was touched.
    """

    obstacles: tuple[Obstacle, ...]
    directory: str
    first: tuple[Revision, ...] = ()
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A revision of our own: an old one with a patch on it, named by both."""

    base: Revision
    patch: Patch
    revision: Revision
