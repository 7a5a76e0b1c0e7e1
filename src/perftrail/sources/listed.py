"""Source whose revisions have names and an order, but no content: those of imported samples, or of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed
from perftrail.sources.ranges import Unrelated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision


class ListedSource(Unrelated):
    """A `perftrail.ports.Source` of given revisions, oldest first, which cannot be checked out.

    `no_range` says why no range of them is known, and what to do.
    """

    def __init__(self, revisions: Sequence[Revision], *, no_range: str) -> None:
        super().__init__(no_range=no_range)
        self._revisions = tuple(revisions)

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the revisions. Raises `SourceError` for a range."""
        self.refuse_range(range)
        return self._revisions

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Raise `CheckoutFailed`: the revisions have no content."""
        raise CheckoutFailed(
            f"{revision.short}: only its samples are available; {directory} stays empty, see {log}"
        )
