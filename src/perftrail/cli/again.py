"""What the next command has to repeat of the last one, so that it looks at the same thing."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from perftrail.store.location import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.walking import Walking
    from perftrail.cli.writing import Writing


def again(named: str | None, walking: Walking, writing: Writing) -> tuple[str, ...]:
    """Give the words that name a study as the last command took it: its sources, its sandbox, its results."""
    words = [] if named is None else [named]
    if walking.along is not None:
        words += ["--along", walking.along]
    for held in walking.at:
        words += ["--at", held]
    if writing.sandbox is not None:
        words.append("--sandbox" if writing.sandbox else "--no-sandbox")
    if writing.store is not None:
        words += ["--store", shown(writing.store)]
    return tuple(words)


def after(words: Sequence[str]) -> str:
    """Write words as they follow a command in a shell."""
    return "".join(f" {shlex.quote(word)}" for word in words)
