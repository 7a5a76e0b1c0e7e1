"""Revisions that somebody else lists: their names and their order are known, what is in them is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision


class ListedSource:
    """A `perftrail.ports.Source` of revisions that are given, oldest first; none of them can be had."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        self._revisions = tuple(revisions)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the revisions. Raises `SourceError` for a part of them."""
        self._refuse_range(range)
        return self._revisions

    def within(self, range: str) -> frozenset[str]:
        """Refuse: only the whole of the list is a stretch of it."""
        self._refuse_range(range)
        return frozenset()

    def merge(self, revision: Revision) -> None:
        """Give nothing: what a revision joined is not known."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give nothing for each: what a revision changes is not known."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Name the content by the revision: two are never known to be alike."""
        return revision.id

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Refuse, as nothing is there. Raises `CheckoutFailed`."""
        raise CheckoutFailed(
            f"{revision.short}: only its samples are known; {directory} stays empty, see {log}"
        )

    def _refuse_range(self, range: str | None) -> None:
        if range:
            raise SourceError(f'range "{range}": revisions that are only listed have no ranges; leave it out')
