"""Subjects of a comparison: revisions, revisions in a variant, and merges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One point of a source's history.

    `id` is full and unambiguous. `summary` is the first line of its message: hostile text, always escaped
    before it is shown. `label` is its human name, for example its release. `time` is ISO 8601 or empty.
    """

    id: str
    summary: str = ""
    label: str = ""
    time: str = ""
    parents: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The id as people quote it: ten digits of a hash, or a whole version."""
        is_hash = len(self.id) >= 40 and not self.id.strip("0123456789abcdef")
        return self.id[:10] if is_hash else self.id

    @property
    def date(self) -> str:
        """The time in UTC, to the second, as ``{date}`` has it; empty if it is unknown.

        >>> Revision(id="a", time="2024-03-01T01:30:00+02:00").date, Revision(id="b").date
        ('2024-02-29T23:30:00Z', '')
        """
        try:
            time = datetime.fromisoformat(self.time)
            return (
                (time if time.tzinfo else time.replace(tzinfo=UTC))
                .astimezone(UTC)
                .strftime("%Y-%m-%dT%H:%M:%SZ")
            )
        except (ValueError, OverflowError):
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A revision in a variant."""

    revision: Revision
    variant: str

    def __str__(self) -> str:
        return self.revision.short if self.variant == "plain" else f"{self.revision.short} ({self.variant})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One merged branch: its base on the trunk, and its revisions, oldest first.

    The last of `revisions` is its tip. `base` is `None` without common history.
    """

    base: Revision | None
    revisions: tuple[Revision, ...]

    @property
    def tip(self) -> Revision:
        """The merged revision."""
        return self.revisions[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A revision that merged branches into a trunk; `trunk` is its first parent.

    A squashed branch, linked to its merge by the study, has the same form. There is at least one branch.
    """

    revision: Revision
    trunk: Revision
    branches: tuple[Branch, ...]
