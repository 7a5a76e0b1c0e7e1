"""What a format may look at beside a file's content: its first bytes, its name, and the files next to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD_BYTES = 1 << 16
"""So much of a file tells its format."""

_MARK = b"\xef\xbb\xbf"


def _nothing(path: str) -> None:  # noqa: ARG001 - there is nothing, wherever
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where content is from: its path, and `beside`, which gives other files' content by paths relative to it."""

    path: PurePath
    beside: Callable[[str], bytes | None] = _nothing


NOWHERE = Place(path=PurePath())
"""The place of what is no file, as what a benchmark printed."""


def begins_with(head: bytes, pattern: bytes) -> bool:
    """Whether a file begins with a pattern, after a byte order mark and white space."""
    return re.match(rb"\s*+" + pattern, head.removeprefix(_MARK)) is not None
