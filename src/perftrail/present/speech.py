"""Sentences and words that several outputs share."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from perftrail.model.wording import counted, duration, escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.measure.session import View
    from perftrail.model.patch import FileChange


LONGEST = 72


def first_line(text: str, *, longest: int = LONGEST) -> str:
    """Return the first line of a hostile text, escaped."""
    lines = text.strip().splitlines()
    return escaped(lines[0], longest=longest) if lines else ""


def sentence(text: str) -> str:
    """Return a note with a capital letter, and with a full stop unless it ends with a command.

    >>> sentence("all is well")
    'All is well.'
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', 'perftrail run')) else '.'}"


def change_words(files: Sequence[FileChange]) -> str:
    """Return the size of a change in words.

    >>> from perftrail.model.patch import FileChange
    >>> change_words([FileChange(path="a.c", added=3, removed=1), FileChange(path="b.png", added=None, removed=None)])
    '2 files, 3 lines added, 1 removed'
    """
    added, removed = sum(each.added or 0 for each in files), sum(each.removed or 0 for each in files)
    return f"{counted(len(files), 'file')}, {counted(added, 'line')} added, {removed:,} removed"


def after(words: Sequence[str]) -> str:
    """Return words quoted for a shell, each after a space."""
    return "".join(f" {shlex.quote(word)}" for word in words)


def say_how_old(view: View) -> None:
    """Print how old the cached answer of a source is; nothing if the source was just asked."""
    if asked := view.asked():
        seconds = (datetime.now(tz=UTC) - datetime.fromisoformat(asked)).total_seconds()
        click.echo(
            f"what the source has is as it said {duration(max(0.0, seconds))} ago, at {asked}; "
            "perftrail run and find ask it again",
            err=True,
        )
