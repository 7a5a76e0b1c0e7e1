"""What a change changes, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.quantity import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.patch import FileChange


def change_words(files: Sequence[FileChange]) -> str:
    """Say how much a change changes.

    >>> from perftrail.model.patch import FileChange
    >>> change_words([FileChange(path="a.c", added=3, removed=1), FileChange(path="b.png", added=None, removed=None)])
    '2 files, 3 lines added, 1 removed'
    """
    added, removed = sum(each.added or 0 for each in files), sum(each.removed or 0 for each in files)
    return f"{counted(len(files), 'file')}, {counted(added, 'line')} added, {removed:,} removed"
