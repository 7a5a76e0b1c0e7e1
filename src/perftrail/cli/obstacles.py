"""Why a change does not fit an old revision, file by file, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.cli.found_words import revision_name
from perftrail.cli.speech import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.patch import Obstacle, Passage
    from perftrail.model.subject import Revision

MOST_PASSAGES = 4
MOST_REVISIONS = 4
LONGEST_PATH = 100


def told_obstacle(obstacle: Obstacle, *, old: str) -> Iterator[str]:
    """Say of one file what clashes and who made it so, line by line."""
    path = plain(obstacle.path, longest=LONGEST_PATH)
    match obstacle.clash:
        case "absent":
            yield f"{path}: {old} has no such file"
        case "deleted":
            yield f"{path}: the change removes it, and it reads otherwise in {old}"
        case "added":
            yield f"{path}: the change brings it, and {old} has another one of that name"
        case "rejected":
            yield f"{path}: the patch finds nowhere the lines that it changes"
        case "changed":
            yield f"{path}: {old} has other lines where the change is"
    for passage in obstacle.passages[:MOST_PASSAGES]:
        yield f"    {_place(passage)}"
        yield from _who("changed since by", passage.since)
        yield from _who(f"changed on the branch of {old} by", passage.apart)
    if len(obstacle.passages) > MOST_PASSAGES:
        yield f"    and {len(obstacle.passages) - MOST_PASSAGES} more places; --json names all"
    if obstacle.since:
        yield from _who("brought or changed since by", obstacle.since)


def _place(passage: Passage) -> str:
    if not passage.first:
        return f"marked at line {passage.marker}"
    lines = (
        f"line {passage.first}"
        if passage.first == passage.last
        else f"lines {passage.first} to {passage.last}"
    )
    return f"{lines}, marked at line {passage.marker}" if passage.marker else lines


def _who(words: str, revisions: Sequence[Revision]) -> Iterator[str]:
    if not revisions:
        return
    yield f"      {words}"
    for revision in revisions[:MOST_REVISIONS]:
        yield f"        {revision_name(revision)}"
    if len(revisions) > MOST_REVISIONS:
        yield f"        and {len(revisions) - MOST_REVISIONS} more"
