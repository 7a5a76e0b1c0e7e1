"""Reads a range such as ``v1.0..v2.0`` into its two ends."""

from __future__ import annotations

from dataclasses import dataclass

from perftrail.errors import SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The two ends of a range as they were written; an end left open is empty."""

    old: str
    new: str


EVERYTHING = Ends(old="", new="")
"""The range of a study that names none."""


def parse_range(text: str) -> Ends:
    """Split ``A..B``, ``A..`` or ``..B``; raises `SourceError` for anything else.

    >>> parse_range("v1.0..v2.0")
    Ends(old='v1.0', new='v2.0')
    >>> parse_range("..v1.2").new
    'v1.2'
    """
    old, dots, new = text.partition("..")
    old, new = old.strip(), new.strip()
    if not dots or not (old or new):
        raise SourceError(f'range "{text}": not a range; write OLD..NEW, OLD.. or ..NEW')
    if new.startswith(".") or ".." in new:
        raise SourceError(f'range "{text}": more than two dots; write OLD..NEW, both ends belong to it')
    return Ends(old=old, new=new)
