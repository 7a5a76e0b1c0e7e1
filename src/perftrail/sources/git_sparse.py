"""Checks out some files of a commit only, those that the study names."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed
from perftrail.sources.client import LONG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from perftrail.sources.git_command import Git

LEFT_OUT = "!"
"""What a path begins with that names files to be left out."""


def pathspecs(sparse: Sequence[str]) -> tuple[str, ...]:
    """Write a study's paths for git: a directory is all below it, ``**`` any directories, ``*`` none.

    >>> pathspecs(["src/**", "!src/big"])
    (':(top,glob)src/**', ':(top,glob,exclude)src/big')
    """
    return tuple(
        f":(top,glob{',exclude' if path.startswith(LEFT_OUT) else ''})"
        + posixpath.normpath(path.removeprefix(LEFT_OUT))
        for path in sparse
    )


def fill(git: Git, worktree: Path, sparse: Sequence[str], *, log: str) -> None:
    """Put the named files into a worktree that has none yet; git then misses none of the others there.

    Raises `CheckoutFailed`, also when there are no such files.
    """
    _ask(git, worktree, "read-tree", "HEAD", log=log)
    wanted = _ask(git, worktree, "ls-files", "-z", "--", *pathspecs(sparse))
    if not wanted:
        raise CheckoutFailed(f"source.sparse: the revision has none of {list(sparse)}")
    everything = _ask(git, worktree, "ls-files", "-z")
    named = set(wanted.split(b"\0"))
    others = b"".join(path + b"\0" for path in everything.split(b"\0") if path not in named)
    _ask(git, worktree, "update-index", "-z", "--skip-worktree", "--stdin", stdin=others)
    _ask(git, worktree, "checkout-index", "-u", "-z", "--stdin", stdin=wanted, log=log)


def _ask(git: Git, worktree: Path, *words: str, stdin: bytes = b"", log: str | None = None) -> bytes:
    answer = git.ask(*words, repository=worktree, stdin=stdin, timeout_seconds=LONG_SECONDS, log=log)
    if answer.failed:
        raise CheckoutFailed(f"git cannot check out some files: {answer.why}")
    return answer.output
