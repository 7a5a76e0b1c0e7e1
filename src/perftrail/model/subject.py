"""What is compared: revisions, and revisions in a variant.

A revision that joins lines of history, and what each of them brought.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One point of a source's history.

    `id` is full and unambiguous. `summary` is the first line of its message: hostile text, to be escaped
    wherever it is shown. `label` is its human name, the release it belongs to. `time` is ISO 8601 or empty.
    """

    id: str
    summary: str = ""
    label: str = ""
    time: str = ""
    parents: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The id as people quote it: ten digits of a hash, a version whole."""
        is_hash = len(self.id) >= 40 and not self.id.strip("0123456789abcdef")
        return self.id[:10] if is_hash else self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A revision in a variant."""

    revision: Revision
    variant: str

    def __str__(self) -> str:
        return self.revision.short if self.variant == "plain" else f"{self.revision.short} ({self.variant})"


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
