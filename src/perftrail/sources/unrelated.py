"""What sources share whose revisions have no parents, no merges and no ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision


class Unrelated:
    """The part of a `perftrail.ports.Source` that has nothing to tell of how its revisions hang together.

    `no_range` says why there are no ranges, and what to do.
    """

    def __init__(self, *, no_range: str) -> None:
        self._no_range = no_range

    def refuse_range(self, range: str | None) -> None:
        """Raise `SourceError` for any range."""
        if range:
            raise SourceError(f'range "{range}": {self._no_range}')

    def within(self, range: str) -> frozenset[str]:
        """Refuse: the whole is the only stretch of it."""
        self.refuse_range(range)
        return frozenset()

    def merge(self, revision: Revision) -> None:
        """Give nothing: a revision joined nothing that is known."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give nothing for each: there is nothing to differ from."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Name the content by the revision's id: two are never known to be alike."""
        return revision.id
