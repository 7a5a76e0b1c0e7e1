"""The stretch of a history that a study is about, in the words that a range may be written in."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NEWEST = re.compile(r"last\s+(\d{1,9})")
_WITHOUT = re.compile(r"\^(?P<old>\S+)\s+(?P<new>[^^\s].*)|(?P<first>[^^\s].*?)\s+\^(?P<second>\S+)")
_TAGS = "tags:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """From one revision to another, by their names or dates as they were written; an open end is empty."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """So many revisions, the newest of the walk."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The revisions that have a tag of such a name; ``*`` and ``?`` stand for others' letters."""

    pattern: str


Span = Ends | Newest | Tagged


def read_span(text: str) -> Span:
    """Read ``A..B``, ``A..``, ``..B``, ``^A B``, ``last 200`` or ``tags:v1.*``.

    Raises `ValueError`, whose text says what is wrong with the one given.

    >>> read_span("v1.0..v2.0") == read_span("^v1.0 v2.0") == Ends(old="v1.0", new="v2.0")
    True
    >>> read_span("last 200"), read_span("tags:v1.*").pattern
    (Newest(count=200), 'v1.*')
    """
    text = text.strip()
    if text.startswith(_TAGS):
        pattern = text.removeprefix(_TAGS).strip()
        if not pattern:
            raise ValueError('names no tags; write "tags:v1.*"')
        return Tagged(pattern=pattern)
    if (newest := _NEWEST.fullmatch(text)) is not None:
        if not int(newest[1]):
            raise ValueError('asks for no revision; write "last 200"')
        return Newest(count=int(newest[1]))
    return _read_ends(text)


def _read_ends(text: str) -> Ends:
    old, dots, new = (part.strip() for part in text.partition(".."))
    if not dots and (two := _WITHOUT.fullmatch(text)) is not None:
        old, dots, new = two["old"] or two["second"], "..", two["new"] or two["first"]
    if not dots or not (old or new):
        raise ValueError('is not a range; write "OLD..NEW"')
    if new.startswith(".") or ".." in new:
        raise ValueError('has too many dots; write "OLD..NEW", both ends belong to it')
    if old.startswith("^") or new.startswith("^"):
        raise ValueError('has a "^" too many; write "OLD..NEW"')
    return Ends(old=old, new=new)
