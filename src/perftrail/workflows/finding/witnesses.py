"""Which builds an answer rests on: those just before and just after each change that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.subject import Subject
from perftrail.workflows.found import FindTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from perftrail.model.subject import Revision
    from perftrail.search.answer import Change
    from perftrail.workflows.found import FindAnswer, InsideMerge


def witnesses(result: FindAnswer | FindTable, attempted: Collection[str]) -> tuple[Subject, ...]:
    """Give the subjects that stand on both sides of the changes, inside merges too, each once.

    `attempted` are the ids of revisions that the search asked for.
    """
    found: dict[Subject, None] = {}
    for answer in result.answers if isinstance(result, FindTable) else (result,):
        usable = set(attempted) - {each.revision.id for each in answer.unusable}
        for revision in _revisions(answer, usable):
            found[Subject(revision=revision, variant=answer.target.variant)] = None
    return tuple(found)


def _revisions(answer: FindAnswer, usable: Collection[str]) -> Iterator[Revision]:
    for number, change in enumerate(answer.answer.changes):
        yield from _beside(answer.revisions, change, usable)
        inside: InsideMerge | None = answer.inside.get(number)
        while inside is not None:
            if inside.change is not None:
                yield from _beside(inside.revisions, inside.change, usable)
            inside = inside.inside


def _beside(revisions: Sequence[Revision], change: Change, usable: Collection[str]) -> Iterator[Revision]:
    first, last = change.positions[0], change.positions[-1]
    before = (each for each in reversed(revisions[:first]) if each.id in usable)
    after = (each for each in revisions[last:] if each.id in usable)
    for side in (before, after):
        nearest = next(side, None)
        if nearest is not None:
            yield nearest
