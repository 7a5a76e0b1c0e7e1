"""Add notes to commits of the user's repository: the only thing that perftrail writes there, and only on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.git.command import remote_git

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.ports import Starter

REF = "perftrail"
"""Name of the notes, below ``refs/notes``: ``git log --notes=perftrail`` shows them."""

_FALLBACK = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "perftrail"), ("EMAIL", "perftrail@localhost"))
}
"""Author of a note if the user has set none."""


def add_note(repository: str, commit: str, text: str, *, starter: Starter, cache: Path) -> bool:
    """Append a text to the note of a commit; return `False` if the note has this text already.

    `commit` is a full id. The user's own settings name the note's author. Raises `SourceError` if git refuses.
    """
    git = remote_git(starter, cache=cache)
    shown = git.run("notes", f"--ref={REF}", "show", commit, repository=repository)
    present = "" if shown.failed else "\n".join(shown.lines())
    if text.strip() in present:
        return False
    if git.run("var", "GIT_COMMITTER_IDENT", repository=repository).failed:
        git = git.with_variables(**_FALLBACK)
    done = git.run(
        "notes", f"--ref={REF}", "append", "--file=-", commit, repository=repository, stdin=text.encode()
    )
    if done.failed:
        raise SourceError(f"{repository}: git cannot add a note to {commit[:10]}: {done.why}")
    return True
