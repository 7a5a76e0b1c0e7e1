"""Which two revisions are held against each other, and what lines differ between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.model.wording import quoted
from perftrail.process.launcher import Launcher
from perftrail.sources.git.patch import GitPatches
from perftrail.workflows.backporting.patch import find_revision
from perftrail.workflows.explain.explaining import Pair
from perftrail.workflows.opening import results_directory

if TYPE_CHECKING:
    from perftrail.workflows.session import Session


def pair_up(session: Session, *, culprit: str, against: str | None, store: str | None) -> Pair:
    """Find a revision and what it is held against: another one, or its first parent.

    Raises `SourceError` for a name that is no revision, `UsageError` where there is nothing to hold it against.
    """
    study, source = session.study, session.source
    if study.walked.kind == "directory":
        raise UsageError("a directory has one revision: there is nothing to hold it against")
    after = find_revision(study, source, culprit)
    if against is None and not after.parents:
        raise UsageError(f"{quoted(culprit)}: the first of its history; say against which with --against")
    before = find_revision(study, source, against if against is not None else after.parents[0])
    if before.id == after.id:
        raise UsageError(f"{quoted(culprit)}: held against itself")
    changes = None
    if study.walked.kind == "git":
        cache = str(results_directory(study, store) / "sources")
        with Launcher() as starter:  # what is measured may be started where git cannot read its mirror
            changes = GitPatches(study.walked, cache=cache, starter=starter).changes(before, after)
    return Pair(culprit=after, against=before, changes=changes)
