"""Removes what strangers' programs made: never through their links, and also what they made unreadable."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def remove_tree(path: Path) -> None:
    """Remove whatever is at a path; of a link the link. Nothing may be changing it meanwhile."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    _open_up(path)
    shutil.rmtree(path)


def empty_directory(directory: Path, *, but: Collection[Path] = ()) -> None:
    """Remove all that is in a directory, which itself stays: something may be mounted on it.

    The paths in `but` stay as well, and whatever leads to them.
    """
    with os.scandir(directory) as entries:
        inside = [Path(entry.path) for entry in entries]
    for path in inside:
        if path in but:
            continue
        if not path.is_symlink() and any(path in kept.parents for kept in but):
            empty_directory(path, but=but)
        else:
            remove_tree(path)


def _open_up(directory: Path) -> None:
    """Give us back the right to list and change a directory and those in it; links are left alone."""
    directory.chmod(0o700)
    with os.scandir(directory) as entries:
        inside = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    for each in inside:
        _open_up(each)
