"""Chooses the revisions of a range, in any history that has parents, branches and tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, assert_never

from perftrail.errors import SourceError
from perftrail.model.source import Ends, Newest, Tagged
from perftrail.model.wording import quoted
from perftrail.sources.moments import moment, so_many_by
from perftrail.sources.ranges import EVERYTHING, parse_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.sources.moments import Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a merge joined: the id where the line left the others, empty if nowhere, and its own, oldest first."""

    base: str
    ids: tuple[str, ...]


class Lineage(Protocol):
    """What each kind of history answers about its revisions, all of them by full ids."""

    @property
    def location(self) -> str:
        """Where the history lies, as it may be shown."""
        ...

    def resolve(self, name: str) -> str:
        """Give the revision that a name means; raises `SourceError` when there is none."""
        ...

    def newest(self) -> str:
        """Give the revision that a range without an end leads to."""
        ...

    def is_name(self, text: str) -> bool:
        """Whether a text that looks like a date is a branch or a tag."""
        ...

    def trunk(self, tip: str) -> Sequence[tuple[str, str]]:
        """Give the line of first parents that leads to a revision, oldest first: ids and ISO 8601 times."""
        ...

    def forks(self, one: str, other: str) -> Sequence[str]:
        """Give the last revisions that both contain, one of the two themselves if the other contains it."""
        ...

    def between(self, *, old: str, new: str) -> list[str]:
        """Give the study's walk up to `new`, oldest first, without what `old` contains if that is given."""
        ...

    def tagged(self, pattern: str) -> list[str]:
        """Give the revisions with such a tag by version, but what contains another one after that."""
        ...


def chosen(history: Lineage, asked: Asked, range: str | None) -> list[str]:
    """Give the ids of a range, the study's own without one, parents before children.

    The two ends of a range belong to it. Raises `SourceError` with the remedy when there is nothing.
    """
    text = asked.range if range is None else range
    span = parse_span(text) if text else EVERYTHING
    match span:
        case Ends():
            ids = _between_ends(history, span)
        case Newest(count=count):
            ids = history.between(old="", new=history.newest())[-count:]
        case Tagged(pattern=pattern):
            ids = _tagged(history, asked, pattern)
        case _:
            assert_never(span)
    for link in asked.link:
        # a name that leads nowhere is better told now than when the search has come to it
        history.resolve(link.branch)
        history.resolve(link.merge)
    if not ids:
        raise SourceError(f"{history.location}: no revision fits walk = {asked.walk!r}")
    return ids


def resolve_ends(history: Lineage, ends: Ends) -> Ends:
    """Give the ids that the ends of a range mean; an end stays open that is, or is before everything."""
    # a date is a place on the line to the other end, so the names come first
    new_is_date = _is_date(history, ends.new)
    new = "" if new_is_date or not ends.new else history.resolve(ends.new)
    if new_is_date:
        new = _at(history, history.newest(), ends.new, edge="end")
        if not new:
            raise SourceError(f"{history.location}: no revision is as old as {quoted(ends.new)}")
    if _is_date(history, ends.old):
        tip = history.newest() if new_is_date or not new else new
        old = _at(history, tip, ends.old, edge="start")
    else:
        old = history.resolve(ends.old) if ends.old else ""
    return Ends(old=old, new=new)


def _between_ends(history: Lineage, ends: Ends) -> list[str]:
    ids = resolve_ends(history, ends)
    new = ids.new or history.newest()
    if ids.old:
        _check_order(history, ends, old=ids.old, new=new)
    walked = history.between(old=ids.old, new=new)
    if ids.old:
        walked = [ids.old, *walked]
    if ends.new and new not in walked[-1:]:
        walked = [*walked, new]
    return walked


def _tagged(history: Lineage, asked: Asked, pattern: str) -> list[str]:
    if asked.touching:
        raise SourceError(
            f"range {quoted(f'tags:{pattern}')}: says nothing of files; leave source.touching out, or "
            'write "OLD..NEW" with walk = "tags"'
        )
    ids = history.tagged(pattern)
    if not ids:
        raise SourceError(f"{history.location}: has no tag like {quoted(pattern)}")
    return ids


def _check_order(history: Lineage, ends: Ends, *, old: str, new: str) -> None:
    forks = history.forks(old, new)
    if old in forks:
        return
    upto = ends.new or new[:10]
    where = f"{history.location}: range {quoted(f'{ends.old}..{upto}')}"
    if new in forks:
        raise SourceError(f"{where}: is backwards; write {quoted(f'{upto}..{ends.old}')}")
    if not forks:
        raise SourceError(f"{where}: its ends have no history in common; choose both on one branch")
    raise SourceError(
        f"{where}: no walk leads from {quoted(ends.old)}, which is no ancestor of the other end; "
        f'start where they parted: range = "{forks[0]}..{ends.new}"'
    )


def _is_date(history: Lineage, text: str) -> bool:
    return moment(text, edge="start") is not None and not history.is_name(text)


def _at(history: Lineage, tip: str, date: str, *, edge: Edge) -> str:
    """What the line to a revision had come to at a date, nothing if that is before its beginning."""
    at = moment(date, edge=edge)
    assert at is not None, date
    line = history.trunk(tip)
    count = so_many_by(at, [time for _, time in line])
    return line[count - 1][0] if count else ""
