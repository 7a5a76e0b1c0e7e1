"""Reads a range such as ``v1.0..v2.0``, ``last 200`` or ``tags:v1.*``, as a study or somebody's command has it."""

from __future__ import annotations

from perftrail.errors import SourceError
from perftrail.model.source import Ends, Span, read_span
from perftrail.model.wording import quoted

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
