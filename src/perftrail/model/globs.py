"""Paths as a study names many of them at once: ``*`` within a name, ``**`` across directories."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def matching(patterns: Sequence[str]) -> re.Pattern[str]:
    """Give the pattern of all paths that are meant: ``*`` within a name, ``**`` across, a directory for all in it.

    >>> [bool(matching(["src/**/*.c", "doc"]).fullmatch(path)) for path in ("src/a.c", "src/b/a.c", "doc/x", "a.c")]
    [True, True, True, False]
    """
    return re.compile("|".join(f"(?:{_translated(pattern)})(?:/.*)?" for pattern in patterns), re.DOTALL)


def _translated(pattern: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removesuffix("/"))
    return "".join(known.get(part, re.escape(part)) for part in parts)
