"""Choose the range of a first study: since the last release, or the newest fifty revisions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.verbs.init.draft import History

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from perftrail.model.subject import Revision
    from perftrail.sources.git.command import Git

NEWEST = 50
FEWEST = 5
MOST = 400
"""Maximum number of revisions since a release for a first range."""

WHOLE = "without a range, the whole history; to use less, for example:"
_OF_NEWEST = f"the newest {NEWEST} revisions; a release without the regression is a better start"

_PLAIN_NAME = re.compile(r"\w[\w./+-]*")
"""Names of tags that are valid in a range as they are; other tags are replaced by the commit's id."""


def git_range(git: Git, directory: Path, location: str) -> History:
    """Choose a range of a git history along first parents; a history without one gets the remedy."""
    troubles = []
    if _said(git, directory, "rev-parse", "--is-shallow-repository") == "true":
        troubles.append(
            "a shallow clone lacks the history to search; complete it with: git fetch --unshallow"
        )
    count = _count(git, directory, "HEAD")
    if not count:
        troubles.append("the repository has no commit yet: commit the program first")
        return History(kind="git", location=location, troubles=tuple(troubles))
    old, why = _git_start(git, directory)
    if not old:
        return History(
            kind="git", location=location, range_why=WHOLE, revisions=count, troubles=tuple(troubles)
        )
    return History(
        kind="git",
        location=location,
        range=f"{old}..HEAD",
        range_why=why,
        revisions=_count(git, directory, f"{old}..HEAD") + 1,
        troubles=tuple(troubles),
    )


def _git_start(git: Git, directory: Path) -> tuple[str, str]:
    """Return the old end and its reason; empty if the whole history is short enough."""
    for newest, since in (("HEAD", "the last tag"), ("HEAD^", "the tag before the last")):
        tag = _said(git, directory, "describe", "--tags", "--abbrev=0", "--first-parent", newest)
        spans = _count(git, directory, f"refs/tags/{tag}..HEAD") if tag else 0
        if FEWEST <= spans <= MOST:
            name = tag
            if not _PLAIN_NAME.fullmatch(tag):
                name = _said(
                    git, directory, "rev-parse", "--verify", "--end-of-options", f"refs/tags/{tag}^{{commit}}"
                )
            return name, f"since {since}, the known-old end"
    ids = _said(git, directory, "rev-list", "--first-parent", f"--max-count={NEWEST}", "HEAD").split()
    if len(ids) < NEWEST:
        return "", ""
    return ids[-1], _OF_NEWEST


def fossil_range(revisions: Sequence[Revision], location: str) -> History:
    """Choose a range of a Fossil history, from all revisions, oldest first, up to its newest check-in."""
    releases = [
        number
        for number, revision in enumerate(revisions)
        if revision.label and FEWEST <= len(revisions) - 1 - number <= MOST
    ]
    if not releases and len(revisions) <= NEWEST:
        return History(kind="fossil", location=location, range_why=WHOLE, revisions=len(revisions))
    start = releases[-1] if releases else len(revisions) - NEWEST
    return History(
        kind="fossil",
        location=location,
        range=f"{revisions[start].id}..{revisions[-1].id}",
        range_why="since the last tag, the known-old end" if releases else _OF_NEWEST,
        revisions=len(revisions) - start,
    )


def _said(git: Git, directory: Path, *words: str) -> str:
    answer = git.ask(*words, repository=directory)
    return "" if answer.failed else "\n".join(answer.lines()).strip()


def _count(git: Git, directory: Path, what: str) -> int:
    counted = _said(git, directory, "rev-list", "--count", "--first-parent", "--end-of-options", what)
    return int(counted) if counted.isdigit() else 0
