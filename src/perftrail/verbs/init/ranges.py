"""Chooses the stretch of history that a first study is about: since the last release, or the newest fifty."""

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
"""How many revisions a stretch since a release may have to be a good first one."""

WHOLE = "without a range it is the whole history; for less of it, for instance:"
_OF_NEWEST = f"the newest {NEWEST} revisions; a release that was still good is a better old side"

_PLAIN_NAME = re.compile(r"\w[\w./+-]*")
"""Names of tags that may stand in a range as they are; of others the commit's id does."""


def git_range(git: Git, directory: Path, location: str) -> History:
    """Choose a stretch of a git history along first parents; says the remedy where there is none."""
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
    """The old end and why it is that one; nothing when the whole history is short enough."""
    for newest, since in (("HEAD", "the last tag"), ("HEAD^", "the tag before the last")):
        tag = _said(git, directory, "describe", "--tags", "--abbrev=0", "--first-parent", newest)
        spans = _count(git, directory, f"refs/tags/{tag}..HEAD") if tag else 0
        if FEWEST <= spans <= MOST:
            name = tag
            if not _PLAIN_NAME.fullmatch(tag):
                name = _said(
                    git, directory, "rev-parse", "--verify", "--end-of-options", f"refs/tags/{tag}^{{commit}}"
                )
            return name, f"since {since}, which is the known-old side"
    ids = _said(git, directory, "rev-list", "--first-parent", f"--max-count={NEWEST}", "HEAD").split()
    if len(ids) < NEWEST:
        return "", ""
    return ids[-1], _OF_NEWEST


def fossil_range(revisions: Sequence[Revision], location: str) -> History:
    """Choose a stretch of a Fossil history, given whole and oldest first, up to its newest check-in."""
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
        range_why="since the last tag, which is the known-old side" if releases else _OF_NEWEST,
        revisions=len(revisions) - start,
    )


def _said(git: Git, directory: Path, *words: str) -> str:
    answer = git.ask(*words, repository=directory)
    return "" if answer.failed else "\n".join(answer.lines()).strip()


def _count(git: Git, directory: Path, what: str) -> int:
    counted = _said(git, directory, "rev-list", "--count", "--first-parent", "--end-of-options", what)
    return int(counted) if counted.isdigit() else 0
