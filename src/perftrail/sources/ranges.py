"""Reads a range such as ``v1.0..v2.0``, ``last 200`` or ``tags:v1.*``, as a study or somebody's command has it.

Finds the place of a date in a history, whose own dates need not be in order.

Chooses the revisions of a range, in any history that has parents, branches and tags.

Puts tagged revisions in order: by version, as far as ancestry leaves a choice.

What sources share whose revisions have no parents, no merges and no ranges.

Reads a revision's label out of the file that the study names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Literal, Protocol, assert_never

from perftrail.errors import SourceError
from perftrail.model.source import Ends, Newest, Span, Tagged, read_span
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.model.subject import Revision


EVERYTHING = Ends(old="", new="")
"""The range of a study that names none."""


def parse_range(text: str) -> Ends:
    """Split ``A..B``, ``A..`` or ``..B``; raises `SourceError` for anything else.

    >>> parse_range("v1.0..v2.0")
    Ends(old='v1.0', new='v2.0')
    >>> parse_range("..v1.2").new
    'v1.2'
    """
    span = parse_span(text)
    if not isinstance(span, Ends):
        raise SourceError(f'range {quoted(text)}: has no two ends, which are needed here; write "OLD..NEW"')
    return span


def parse_span(text: str) -> Span:
    """Read a range in any of its words, of a history with branches and tags. Raises `SourceError`."""
    try:
        return read_span(text)
    except ValueError as error:
        raise SourceError(f"range {quoted(text)}: {error}") from error


Edge = Literal["start", "end"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?")
_DAY_LETTERS = len("2024-06-30")


def moment(text: str, *, edge: Edge) -> datetime | None:
    """Read a day, of which `edge` is meant, or a day and a time; UTC unless it says otherwise.

    >>> str(moment("2024-06-30", edge="end")), moment("v2024-06-30", edge="end")
    ('2024-06-30 23:59:59.999999+00:00', None)
    """
    if _DATE.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) == _DAY_LETTERS and edge == "end":
        found = datetime.combine(found, time.max)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def so_many_by(at: datetime, times: Sequence[str]) -> int:
    """Say how many of a line's revisions, oldest first, there were at a moment, by their ISO 8601 times.

    Some clocks were wrong: the line is cut where the fewest are on the side that their date contradicts.

    >>> so_many_by(datetime(2024, 1, 2, tzinfo=UTC), ["2024-01-01", "1970-01-01", "2024-01-03", "1970-01-01"])
    2
    """
    best = so_far = place = 0
    for number, each in enumerate(times, start=1):
        date = moment(each, edge="start")
        so_far += -1 if date is None or date <= at else 1
        if so_far < best:
            best, place = so_far, number
    return place


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


def version_key(tag: str) -> list[tuple[int, str]]:
    """Give a key that sorts tags as versions: what is a number by its size.

    >>> sorted(["v1.10", "v1.9"], key=version_key)
    ['v1.9', 'v1.10']
    """
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", tag)]


def highest(tags: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Give each revision's tag, of several the one given last, in the order of these.

    >>> highest([("one", "v1"), ("two", "v2"), ("one", "v3")])
    {'two': 'v2', 'one': 'v3'}
    """
    found: dict[str, str] = {}
    for id_, tag in tags:
        found.pop(id_, None)
        found[id_] = tag
    return found


def by_ancestry(ids: Sequence[str], history: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Keep the order of ids, except that what contains another one comes after it.

    `history` is all that they contain, each revision with its parents and after them.

    >>> by_ancestry(["new", "side", "old"], [("old", []), ("new", ["old"]), ("side", ["old"])])
    ['old', 'new', 'side']
    """
    own = {id_: 1 << number for number, id_ in enumerate(ids)}
    contains: dict[str, int] = {}
    for id_, parents in history:
        held = own.get(id_, 0)
        for parent in parents:
            held |= contains.get(parent, 0)
        contains[id_] = held
    order, done, left = [], 0, list(own)
    while left:
        following = next(id_ for id_ in left if not contains[id_] & ~own[id_] & ~done)
        left.remove(following)
        order.append(following)
        done |= own[following]
    return order


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


LARGEST_LABEL_BYTES = 4 << 20
"""A file that holds a version's number is small; more is not read for a label."""


def read_label(pattern: str, text: bytes) -> str:
    r"""Give what a pattern's group finds in a file, nothing where it finds nothing.

    >>> read_label('^V "(.*)"', b'// version\nV "1.2"')
    '1.2'
    """
    found = re.search(pattern, text.decode("utf-8", errors="replace"), re.MULTILINE)
    return (found.group(1) or "").strip() if found else ""
