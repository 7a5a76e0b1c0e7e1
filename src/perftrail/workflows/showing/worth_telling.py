"""Of many revisions, those that are worth a section of their own: both ends, and what a search named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftrail.model.search_record import Json, SearchRecord
    from perftrail.model.subject import Revision

FEW = 3
"""So many revisions are all told of."""


def answers_of(record: SearchRecord) -> tuple[Mapping[str, Json], ...]:
    """What a search answered, one for each metric; nothing before it has ended."""
    if record.answer is None:
        return ()
    several = record.answer.get("metrics")
    if isinstance(several, list):
        return tuple(each for each in several if isinstance(each, dict))
    return (record.answer,)


def culprit_ids(records: Iterable[SearchRecord]) -> frozenset[str]:
    """Name the culprits of some searches: of a range, its last revision."""
    found: set[str] = set()
    for record in records:
        for answer in answers_of(record):
            changes = answer.get("changes")
            for change in changes if isinstance(changes, list) else []:
                ids = change.get("revisions") if isinstance(change, dict) else None
                if isinstance(ids, list) and ids:
                    found.add(str(ids[-1]))
    return frozenset(found)


def worth_telling(measured: Sequence[Revision], records: Iterable[SearchRecord]) -> tuple[Revision, ...]:
    """Choose of measured revisions, oldest first: all of a few, else the first, the last and the culprits."""
    if len(measured) <= FEW:
        return tuple(measured)
    named = culprit_ids(records)
    ends = {measured[0].id, measured[-1].id}
    return tuple(revision for revision in measured if revision.id in ends | named)
