"""Checks revisions out of a mirror, many at a time, each as a worktree of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed
from perftrail.file_lock import alone, alone_if_free, together
from perftrail.sources.client import LONG_SECONDS

if TYPE_CHECKING:
    from perftrail.sources.git_mirror import Mirror

_KNOWN = "worktrees"
_UNFINISHED = "initializing"
"""What git writes into a worktree's lock while it makes it; one that was killed leaves it there."""


def add_worktree(mirror: Mirror, commit: str, directory: str, log: str, *, empty: bool = False) -> None:
    """Check a commit out into a new directory, tied to the mirror so that ``git describe`` works there.

    Of an `empty` one only that tie is made. Raises `CheckoutFailed`.
    Forced twice: a directory that was removed after a kill is still known, and locked, as a worktree.
    """
    if Path(directory).exists():
        raise CheckoutFailed(f"{directory}: is there already; a revision goes into a new directory")
    Path(directory).parent.mkdir(parents=True, exist_ok=True)
    with together(mirror.lock):
        # To tie one, git reads what there is of all others, and fails at one that is just being tied.
        with alone(mirror.tying):
            answer = mirror.git.ask(
                "worktree", "add", "--force", "--force", "--detach", "--no-checkout", "--", directory, commit,
                repository=mirror.path, timeout_seconds=LONG_SECONDS, log=log,
            )  # fmt: skip
        if not (answer.failed or empty):
            answer = mirror.git.ask(
                "reset", "--hard", "--no-recurse-submodules", "--quiet",
                repository=directory, timeout_seconds=LONG_SECONDS, log=log,
            )  # fmt: skip
    if answer.failed:
        shutil.rmtree(directory, ignore_errors=True)
        raise CheckoutFailed(f"git cannot check it out: {answer.why}")


def forget_removed_worktrees(mirror: Mirror) -> None:
    """Tidy away what the mirror knows of directories that are gone, unless somebody makes worktrees now."""
    if not (mirror.path / _KNOWN).is_dir():
        return
    with alone_if_free(mirror.lock) as free:
        if free:
            forget_unfinished_worktrees(mirror.path)
            mirror.git.ask("worktree", "prune", repository=mirror.path)


def forget_unfinished_worktrees(mirror: Path) -> None:
    """Tidy away what a mirror knows of worktrees whose making was killed; nobody may make any meanwhile."""
    for lock in (mirror / _KNOWN).glob("*/locked"):
        if lock.read_text(errors="replace").strip() == _UNFINISHED:
            shutil.rmtree(lock.parent, ignore_errors=True)
