"""Turns one revision's tree into another's in place, so that what a build left there is used again."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from typing import TYPE_CHECKING

from perftrail.file_tree import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TIE = ".git"
"""The file that ties a tree to its mirror, and a submodule's in it to its own: each checkout has other ones."""

_TIED = "tie"


def listing(tree: Path) -> dict[str, str]:
    """Name what each file and link of a fresh tree holds: by its path, kind and content in one digest.

    Ties are all alike: what they hold is no difference between revisions.
    """
    return {
        name: _TIED if _is_tie(tree / name) else _digest(tree / name) for name in sorted(_names(tree, ""))
    }


def move(tree: Path, fresh: Path, *, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Make of a tree that was `before` what `fresh` is `now`; gives the paths that differ.

    A file that both revisions have in common is left as it is, with its date and whatever a build made of
    it. All others get one date, later than everything that was built before: builds compare dates. Ties are
    those of `fresh`, with its own dates.
    """
    gone = [name for name in before if name not in now]
    for name in gone:
        _remove(tree, name)
    ties = [name for name, content in now.items() if content == _TIED]
    changed = [name for name, content in now.items() if before.get(name) != content and content != _TIED]
    stamp = time.time_ns()
    for name in changed:
        target = _room(tree, name)
        shutil.copy2(fresh / name, target, follow_symlinks=False)
        os.utime(target, ns=(stamp, stamp), follow_symlinks=False)
    for name in ties:
        shutil.copy2(fresh / name, _room(tree, name))
    return [*gone, *changed]


def take(tree: Path, fresh: Path) -> None:
    """Put a fresh tree in the place of whatever is there; its ties stay behind, where mirrors look for them."""
    ties = [name for name in _names(fresh, "") if _is_tie(fresh / name)]
    remove_tree(tree)
    fresh.rename(tree)
    fresh.mkdir()
    for name in ties:
        shutil.copy2(tree / name, _room(fresh, name))


def _remove(tree: Path, name: str) -> None:
    """Remove a file with the directories that this leaves empty; nothing that a link leads to."""
    *parents, _ = name.split("/")
    if not all(_is_directory(tree.joinpath(*parents[:depth])) for depth in range(1, len(parents) + 1)):
        return
    remove_tree(tree / name)
    for depth in range(len(parents), 0, -1):
        directory = tree.joinpath(*parents[:depth])
        if any(directory.iterdir()):
            return
        directory.rmdir()


def _room(tree: Path, name: str) -> Path:
    """Give a place where nothing is; what a build put in the way, a link above all, goes."""
    *parents, _ = name.split("/")
    directory = tree
    for parent in parents:
        directory /= parent
        if not _is_directory(directory):
            remove_tree(directory)
            directory.mkdir()
    remove_tree(tree / name)
    return tree / name


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_tie(path: Path) -> bool:
    return path.name == TIE and path.is_file() and not path.is_symlink()


def _digest(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link {hashlib.sha256(os.fsencode(path.readlink())).hexdigest()}"
    kind = "program" if mode & stat.S_IXUSR else "file"
    return f"{kind} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _names(root: Path, prefix: str) -> Iterator[str]:
    with os.scandir(root / prefix) as entries:
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield name
            elif entry.is_dir(follow_symlinks=False):
                yield from _names(root, f"{name}/")
