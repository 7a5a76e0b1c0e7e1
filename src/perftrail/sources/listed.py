"""Revisions that somebody else lists: their names and their order are known, what is in them is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed
from perftrail.sources.ranges import Unrelated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision


class ListedSource(Unrelated):
    """A `perftrail.ports.Source` of revisions that are given, oldest first; none of them can be had."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        super().__init__(no_range="revisions that are only listed have no ranges; leave it out")
        self._revisions = tuple(revisions)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the revisions. Raises `SourceError` for a part of them."""
        self.refuse_range(range)
        return self._revisions

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Refuse, as nothing is there. Raises `CheckoutFailed`."""
        raise CheckoutFailed(
            f"{revision.short}: only its samples are known; {directory} stays empty, see {log}"
        )
