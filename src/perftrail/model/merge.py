"""A revision that joins lines of history, and what each of them brought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perftrail.model.subject import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line that was joined: where it left the others, and its own revisions, oldest first.

    The last of `revisions` is its tip. `base` is `None` where it has no history in common with the trunk.
    """

    base: Revision | None
    revisions: tuple[Revision, ...]

    @property
    def tip(self) -> Revision:
        """The revision that was joined."""
        return self.revisions[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A revision that joined branches into a trunk; `trunk` is the revision that it was made on.

    A squashed branch, which only the study links to its merge, looks the same. There is one branch or more.
    """

    revision: Revision
    trunk: Revision
    branches: tuple[Branch, ...]
