"""Parse ranges such as ``v1.0..v2.0``, ``last 200`` or ``tags:v1.*``, and select their revisions.

The selection works for any history with parents, branches and tags. Dates need not be in order. Tagged revisions are
ordered by version, but never before their ancestors. Labels are read from the file that the study names.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Literal, Protocol, assert_never

from perftrail.errors import SourceError
from perftrail.model.source import Ends, Newest, Span, Tagged, read_span
from perftrail.model.wording import escaped, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.model.source import Source as SourceTable
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
        raise SourceError(f'range {quoted(text)}: needs two ends here; write "OLD..NEW"')
    return span


def parse_span(text: str) -> Span:
    """Parse a range in any notation for a history with branches and tags. Raises `SourceError`."""
    try:
        return read_span(text)
    except ValueError as error:
        raise SourceError(f"range {quoted(text)}: {error}") from error


Edge = Literal["start", "end"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?")
_DAY_LETTERS = len("2024-06-30")


def moment(text: str, *, edge: Edge) -> datetime | None:
    """Parse a time, or the start or end (`edge`) of a day; UTC by default. Return `None` for other texts.

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


def count_until(at: datetime, times: Sequence[str]) -> int:
    """Return how many revisions of a line, oldest first, are not later than a time; `times` are ISO 8601.

    Dates may be wrong: the result contradicts the fewest of them.

    >>> count_until(datetime(2024, 1, 2, tzinfo=UTC), ["2024-01-01", "1970-01-01", "2024-01-03", "1970-01-01"])
    2
    """
    best = balance = count = 0
    for number, each in enumerate(times, start=1):
        date = moment(each, edge="start")
        balance += -1 if date is None or date <= at else 1
        if balance < best:
            best, count = balance, number
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedLine:
    """A line of commits that a merge merged: the id where it forked (empty if nowhere) and its ids, oldest first."""

    base: str
    ids: tuple[str, ...]


class Lineage(Protocol):
    """Names, order and ancestry of a history's revisions, all of them by full ids."""

    @property
    def location(self) -> str:
        """Location of the history for messages."""
        ...

    def resolve(self, name: str) -> str:
        """Return the revision that a name means; raises `SourceError` if there is none."""
        ...

    def newest(self) -> str:
        """Return the default end of ranges."""
        ...

    def is_name(self, text: str) -> bool:
        """Return whether a text that looks like a date is a branch or a tag."""
        ...

    def trunk(self, tip: str) -> Sequence[tuple[str, str]]:
        """Return the line of first parents to a revision, oldest first: ids and ISO 8601 times."""
        ...

    def common_ancestors(self, one: str, other: str) -> Sequence[str]:
        """Return the best common ancestors of two revisions; one of the two if it is an ancestor of the other."""
        ...

    def between(self, *, old: str, new: str) -> list[str]:
        """Return the study's selected revisions up to `new`, oldest first, without what `old` contains."""
        ...

    def tagged(self, pattern: str) -> list[str]:
        """Return the revisions with matching tags by version, descendants after their ancestors."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRange:
    """The ids of a range, parents before children; `remark` says how the range was corrected, or is empty."""

    ids: list[str]
    remark: str = ""


@contextmanager
def range_errors(range: str | None, *, of_study: str | None) -> Iterator[None]:
    """State in each `SourceError` whether the range of a command caused it, or that of the study."""
    try:
        yield
    except SourceError as error:
        if range is not None:
            error.range = range
        elif of_study:
            error.key = ("range",)
        raise


def select_revisions(history: Lineage, table: SourceTable, range: str | None) -> SelectedRange:
    """Return the ids of a range, by default the study's.

    The two ends of a range are part of it. If the first is not an ancestor of the other, the range begins at their
    common ancestor. Raises `SourceError` with the remedy if it is empty; for the study's range, with its key.
    """
    with range_errors(range, of_study=table.range):
        return _select(history, table, range)


def _select(history: Lineage, table: SourceTable, range: str | None) -> SelectedRange:
    remark = ""
    text = table.range if range is None else range
    span = parse_span(text) if text else EVERYTHING
    match span:
        case Ends():
            ids, remark = _between_ends(history, span)
        case Newest(count=count):
            ids = history.between(old="", new=history.newest())[-count:]
        case Tagged(pattern=pattern):
            ids = _tagged(history, table, pattern)
        case _:
            assert_never(span)
    for link in table.link:
        # An unknown name is reported now, not in the middle of a search.
        history.resolve(link.branch)
        history.resolve(link.merge)
    if not ids:
        raise SourceError(f"{history.location}: no revision fits walk = {table.walk!r}")
    return SelectedRange(ids=ids, remark=remark)


def resolve_ends(history: Lineage, ends: Ends) -> Ends:
    """Return the ids of a range's ends; an open end stays open; so does a date before the first revision."""
    # A date is a position on the line to the other end, so names are resolved first.
    new_is_date = _is_date(history, ends.new)
    new = "" if new_is_date or not ends.new else history.resolve(ends.new)
    if new_is_date:
        new = _revision_at(history, history.newest(), ends.new, edge="end")
        if not new:
            raise SourceError(f"{history.location}: no revision is as old as {quoted(ends.new)}")
    if _is_date(history, ends.old):
        tip = history.newest() if new_is_date or not new else new
        old = _revision_at(history, tip, ends.old, edge="start")
    else:
        old = history.resolve(ends.old) if ends.old else ""
    return Ends(old=old, new=new)


def _between_ends(history: Lineage, ends: Ends) -> tuple[list[str], str]:
    """Return the ids between two ends, and a remark if the first is not an ancestor of the other."""
    ids = resolve_ends(history, ends)
    new = ids.new or history.newest()
    old = _first_revision(history, ends, old=ids.old, new=new) if ids.old else ""
    remark = ""
    if old != ids.old:
        where = f"{quoted(ends.old)} is not an ancestor of {quoted(ends.new or new[:10])}"
        remark = f"{where}: the range begins at their common ancestor, {old[:10]}"
    walked = history.between(old=old, new=new)
    if old:
        walked = [old, *walked]
    if ends.new and new not in walked[-1:]:
        walked = [*walked, new]
    return walked, remark


def _tagged(history: Lineage, table: SourceTable, pattern: str) -> list[str]:
    if table.touching:
        raise SourceError(
            f"range {quoted(f'tags:{pattern}')}: cannot select by files; leave source.touching out, or "
            'write "OLD..NEW" with walk = "tags"'
        )
    ids = history.tagged(pattern)
    if not ids:
        raise SourceError(f"{history.location}: has no tag like {quoted(pattern)}")
    return ids


def _first_revision(history: Lineage, ends: Ends, *, old: str, new: str) -> str:
    """Return the old end, or the common ancestor of both ends. Raises `SourceError` if there is none."""
    ancestors = history.common_ancestors(old, new)
    if old in ancestors:
        return old
    upto = ends.new or new[:10]
    where = f"{history.location}: range {quoted(f'{ends.old}..{upto}')}"
    if new in ancestors:
        # The remedy is complete: two full ids are longer than a quoted text.
        right = f"{escaped(upto, longest=None)}..{escaped(ends.old, longest=None)}"
        raise SourceError(f'{where} is backwards; write "{right}"')
    if not ancestors:
        raise SourceError(f"{where}: its ends have no history in common; choose both on one branch")
    return ancestors[0]


def _is_date(history: Lineage, text: str) -> bool:
    return moment(text, edge="start") is not None and not history.is_name(text)


def _revision_at(history: Lineage, tip: str, date: str, *, edge: Edge) -> str:
    """Return the last revision of a line at a date; empty if the line begins later."""
    at = moment(date, edge=edge)
    assert at is not None, date
    line = history.trunk(tip)
    count = count_until(at, [time for _, time in line])
    return line[count - 1][0] if count else ""


def version_key(tag: str) -> list[tuple[int, str, str]]:
    """Return a key that sorts tags as versions: numbers by size, of any length.

    >>> sorted(["v1.10", "v1.9"], key=version_key)
    ['v1.9', 'v1.10']
    """
    parts = re.split(r"(\d+)", tag)
    digits = (part.lstrip("0") if part.isdecimal() else None for part in parts)
    return [
        (-1, "", part) if each is None else (len(each), each, part)
        for each, part in zip(digits, parts, strict=True)
    ]


def last_tags(tags: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return each revision's tag, the last one if it has several.

    >>> last_tags([("one", "v1"), ("two", "v2"), ("one", "v3")])
    {'two': 'v2', 'one': 'v3'}
    """
    found: dict[str, str] = {}
    for id_, tag in tags:
        found.pop(id_, None)
        found[id_] = tag
    return found


def by_ancestry(ids: Sequence[str], history: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Keep the order of ids, except that descendants come after their ancestors.

    `history` lists all their ancestors, each with its parents, parents first.

    >>> by_ancestry(["new", "side", "old"], [("old", []), ("new", ["old"]), ("side", ["old"])])
    ['old', 'new', 'side']
    """
    own = {id_: 1 << number for number, id_ in enumerate(ids)}
    contains: dict[str, int] = {}
    for id_, parents in history:
        ancestors = own.get(id_, 0)
        for parent in parents:
            ancestors |= contains.get(parent, 0)
        contains[id_] = ancestors
    order, done, left = [], 0, list(own)
    while left:
        following = next(id_ for id_ in left if not contains[id_] & ~own[id_] & ~done)
        left.remove(following)
        order.append(following)
        done |= own[following]
    return order


class WithoutParents:
    """The methods of a `perftrail.ports.Source` for revisions without parents, merges and ranges.

    `no_range` states why there are no ranges, and what to do.
    """

    def __init__(self, *, no_range: str) -> None:
        self._no_range = no_range

    def refuse_range(self, range: str | None) -> None:
        """Raise `SourceError` for any range."""
        if range:
            raise SourceError(f'range "{range}": {self._no_range}')

    def within(self, range: str) -> frozenset[str]:
        """Raise `SourceError`: there are no ranges."""
        self.refuse_range(range)
        return frozenset()

    def merge(self, revision: Revision) -> None:
        """Return `None`: no merges are known."""

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return no files: no parent is known."""
        return ((),) * len(revisions)

    def content(self, revision: Revision) -> str:
        """Return the revision's id, which identifies its content."""
        return revision.id


LARGEST_LABEL_BYTES = 4 << 20
"""Maximum size of a file with a label. Files with a version number are small; larger files are not read."""


def read_label(pattern: str, text: bytes) -> str:
    r"""Return the text that a pattern's group matches in a file; empty without a match.

    >>> read_label('^V "(.*)"', b'// version\nV "1.2"')
    '1.2'
    """
    found = re.search(pattern, text.decode("utf-8", errors="replace"), re.MULTILINE)
    return (found.group(1) or "").strip() if found else ""
