"""A search over those revisions of a history that may be built, and what it says of the whole history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.search.answer import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Revision
    from perftrail.search.answer import Answer, Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The places in a history of those of its revisions that are not left out, ascending."""

    places: tuple[int, ...]

    def weights(self, prior: Sequence[float] | None) -> tuple[float, ...] | None:
        """Give a prior over the whole history as one over the places: what is left out counts for the next.

        Without a prior, each revision of the history counts the same.

        >>> Gaps(places=(0, 3, 4)).weights(None)
        (1.0, 3.0, 1.0)
        """
        if not self._any:
            return None if prior is None else tuple(prior)
        each = prior or [1.0] * (self.places[-1] + 1)
        ends = (-1, *self.places)
        return tuple(sum(each[low + 1 : high + 1]) for low, high in pairwise(ends))

    def answer(self, found: Answer) -> Answer:
        """Give an answer about the places as one about the history: what is left out before a culprit may be it."""
        if not self._any:
            return found
        changes = tuple(map(self._change, found.changes))
        isolated = found.verdict is not Verdict.FOUND or all(len(each.positions) == 1 for each in changes)
        if isolated:
            return replace(found, changes=changes)
        reason = f"{found.reason}; the study skips what lies between"
        return replace(found, changes=changes, verdict=Verdict.RANGE, reason=reason)

    @property
    def _any(self) -> bool:
        return self.places != tuple(range(len(self.places)))

    def _change(self, change: Change) -> Change:
        before = (-1, *self.places)
        return replace(
            change,
            positions=tuple(
                place
                for position in change.positions
                for place in range(before[position] + 1, self.places[position] + 1)
            ),
        )


def gaps(revisions: Sequence[Revision], wanted: Sequence[Revision]) -> Gaps:
    """Give where those that are wanted lie in a history."""
    ids = {revision.id for revision in wanted}
    return Gaps(places=tuple(place for place, each in enumerate(revisions) if each.id in ids))
