"""Names and values of others' files, made fit for everything that prints, draws or compares them."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from perftrail.model.field import LONGEST_NAME

if TYPE_CHECKING:
    from perftrail.model.benchmark import Value

MOST_REMEMBERED = 1 << 14
"""The same few names and values stand in very many rows."""


@lru_cache(maxsize=MOST_REMEMBERED)
def named(text: str) -> str:
    r"""Make a name of hostile text: what cannot be printed gives way to a mark, and what is too long is cut, uniquely.

    A backslash becomes a slash: the figures' language would take what follows it for an escape.

    >>> named("C:\\bench"), ascii(named("a" + chr(27) + "[31m"))
    ('C:/bench', "'a\\ufffd[31m\\u2026 f4ff40a8'")
    """
    marked = (letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text.strip())
    safe = "".join(marked).replace("\\", "/") or "-"
    if len(safe) <= LONGEST_NAME and (safe == text or "\N{REPLACEMENT CHARACTER}" not in safe):
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{safe[: LONGEST_NAME - 10]}… {digest}"


@lru_cache(maxsize=MOST_REMEMBERED)
def typed(text: str) -> Value:
    """Read a parameter's value: a number where it is written as one is, else the text.

    >>> [typed(text) for text in ("8", "0.5", "1e3", "08", "inf")]
    [8, 0.5, '1e3', '08', 'inf']
    """
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,17}\.\d{1,17}", text) and repr(float(text)) == text:
        return float(text)
    return named(text) if text else ""
