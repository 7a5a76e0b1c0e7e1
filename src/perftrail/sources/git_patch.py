"""Carries a change onto an old revision of a git repository, in worktrees of our mirror and nowhere else."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer, SourceError
from perftrail.model.patch import Conflict, FileChange, Patch
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git_conflict import Clashes
from perftrail.sources.git_mirror import Mirror, json_like
from perftrail.sources.git_worktree import add_worktree, forget_removed_worktrees
from perftrail.sources.patched import apply_some, changes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftrail.model.source import Source as Asked
    from perftrail.model.subject import Revision
    from perftrail.ports import Starter
    from perftrail.sources.client import Answer

_TREE = "tree"
"""Where the half-applied tree lies in the directory given for it."""

AS_IT_IS = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""What keeps a user's or a repository's settings out of a diff."""


class GitPatches:
    """Makes patches that fit an old revision, from a revision's change or from somebody's patch.

    What does not apply is left half-applied in the directory that the caller names; a tree that lies there
    already may hold somebody's work, and is left as it is.
    """

    def __init__(self, asked: Asked, *, cache: str, starter: Starter) -> None:
        self._mirror = Mirror(asked.location, cache=Path(cache), starter=starter)
        self._git = self._mirror.git
        self._location = asked.location

    def carry(self, fix: Revision, *, onto: Revision, workplace: str) -> Patch | Conflict:
        """Make a patch for `onto` of what `fix` changed against its first parent; of a merge, of all it brought.

        Raises `NoAnswer` when the old revision has the change already, `SourceError` when git cannot try.
        """
        mainline = ["--mainline", "1"] if len(fix.parents) > 1 else []

        def attempt(scratch: Path) -> Patch | Conflict:
            answer = self._git.ask(
                "-c", "merge.conflictStyle=merge", "-c", "rerere.enabled=false",
                "cherry-pick", "--no-commit", *mainline, fix.id,
                repository=scratch / _TREE, timeout_seconds=LONG_SECONDS,
            )  # fmt: skip
            return self._outcome(answer, scratch, onto=onto, fix=fix)

        return self._try_out(attempt, onto=onto, home=Path(workplace))

    def apply(self, text: bytes, *, onto: Revision, workplace: str) -> Patch | Conflict:
        """Fit somebody's patch to `onto`.

        Raises `SourceError` when it is no patch, `NoAnswer` when it changes nothing there.
        """

        def attempt(scratch: Path) -> Patch | Conflict:
            file = scratch / "given.patch"
            file.write_bytes(text)
            changes_of(self._git, file)
            answer = self._git.ask(
                "apply", "--3way", "--index", "--whitespace=nowarn", "--", str(file),
                repository=scratch / _TREE, timeout_seconds=LONG_SECONDS,
            )  # fmt: skip
            if answer.failed and not self._clashes(scratch).any:
                return Conflict(obstacles=apply_some(self._git, file, scratch / _TREE), directory="")
            return self._outcome(answer, scratch, onto=onto, fix=None)

        return self._try_out(attempt, onto=onto, home=Path(workplace))

    def changes(self, before: Revision, after: Revision) -> tuple[FileChange, ...]:
        """Say which files differ between two revisions and by how many lines."""
        answer = self._git.ask(
            "diff", "--binary", "--full-index", *AS_IT_IS, before.id, after.id, "--",
            repository=self._mirror.ready(),
        )  # fmt: skip
        if answer.failed:
            raise SourceError(f"{self._location}: git cannot compare its revisions: {answer.why}")
        return self._changes(answer.output)

    def _outcome(
        self, answer: Answer, scratch: Path, *, onto: Revision, fix: Revision | None
    ) -> Patch | Conflict:
        clashes = self._clashes(scratch)
        if clashes.any:
            return clashes.explained(onto=onto, fix=fix)
        if answer.failed:
            raise SourceError(f"{self._location}: git cannot apply the change: {answer.why}")
        made = self._git.ask(
            "diff", "--cached", "--binary", "--full-index", *AS_IT_IS, "HEAD", "--",
            repository=scratch / _TREE,
        )  # fmt: skip
        if made.failed:
            raise SourceError(f"{self._location}: git cannot write the patch: {made.why}")
        if not made.output.strip():
            raise NoAnswer(
                f"{json_like(onto.label or onto.short)} has this change already: nothing is left to carry"
            )
        return Patch(text=made.output, files=self._changes(made.output))

    def _clashes(self, scratch: Path) -> Clashes:
        return Clashes(self._git, self._mirror.path, scratch / _TREE)

    def _changes(self, text: bytes) -> tuple[FileChange, ...]:
        if not text.strip():
            return ()
        with tempfile.NamedTemporaryFile(prefix="perftrail-patch-") as file:
            file.write(text)
            file.flush()
            return changes_of(self._git, Path(file.name))

    def _try_out(
        self, attempt: Callable[[Path], Patch | Conflict], *, onto: Revision, home: Path
    ) -> Patch | Conflict:
        """Check the old revision out, try the change on it, and keep the tree where it does not apply."""
        commit = self._mirror.resolve(onto.id)
        forget_removed_worktrees(self._mirror)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="try-", dir=home) as scratch:
            tree, kept = Path(scratch) / _TREE, home / _TREE
            add_worktree(self._mirror, commit, str(tree), f"{scratch}/log")
            outcome = attempt(Path(scratch))
            if isinstance(outcome, Conflict):
                there = kept.exists()
                if not there:
                    self._git.ask(
                        "worktree", "move", "--", str(tree), str(kept), repository=self._mirror.path
                    )
                outcome = replace(outcome, directory=str(kept), kept=there)
        if not any(home.iterdir()):
            home.rmdir()
        return outcome
