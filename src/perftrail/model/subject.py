"""What is compared: revisions, and revisions in a variant."""

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
