"""Back-port changes in a Fossil repository, which has no portable patches and no cherry-pick.

The files of three check-ins (old, with the change, and its parent) become three commits of a temporary git
repository, and git merges them.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer, SourceError
from perftrail.file_tree import remove_tree
from perftrail.model.patch import EVERY_PATH, Conflict, Patch
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.command import local_git
from perftrail.sources.git.patch import PLAIN_DIFF, MergeConflicts, nothing_left, restore_left_out
from perftrail.sources.patched import PlainPatches, changes_of, isolated_git

if TYPE_CHECKING:
    from perftrail.model.patch import PatchPaths
    from perftrail.model.subject import Revision
    from perftrail.ports import Starter
    from perftrail.sources.fossil import FossilSource
    from perftrail.sources.git.command import Git
    from perftrail.sources.git.patch import Direction

_TREE = "tree"
"""Name of the half-applied tree in its directory, as for git histories."""

_AUTHOR = ("-c", "user.name=perftrail", "-c", "user.email=perftrail", "-c", "commit.gpgSign=false")

_AS_BYTES = "* -text -ident !filter !diff !merge !working-tree-encoding\n"
"""Overrides all ``.gitattributes`` of the project: Fossil ignores them and stores files as bytes."""


class FossilPatches(PlainPatches):
    """Makes patches for an old check-in from a check-in's change, or from a given patch.

    A patch that does not apply is left half-applied in the caller's directory, as a git work tree. An existing tree
    there does not change.
    """

    def __init__(self, source: FossilSource, *, cache: str, starter: Starter) -> None:
        super().__init__(source, cache=cache, starter=starter)
        self._fossil = source
        self._own_git = local_git(starter, cache=Path(cache))

    def cherry_pick(
        self, fix: Revision, *, onto: Revision, workplace: str, paths: PatchPaths = EVERY_PATH
    ) -> Patch | Conflict:
        """Return a patch for `onto` with the change of `fix` relative to its first parent.

        Raises `NoAnswer` if the old check-in already has the change, `SourceError` if git cannot try.
        """
        return self._merge("apply", fix, onto=onto, workplace=workplace, paths=paths)

    def revert(
        self, culprit: Revision, *, onto: Revision, workplace: str, paths: PatchPaths = EVERY_PATH
    ) -> Patch | Conflict:
        """Return a patch for `onto` that undoes the change of `culprit` relative to its first parent.

        Raises `NoAnswer` if `onto` does not have the change, `SourceError` if git cannot try.
        """
        return self._merge("revert", culprit, onto=onto, workplace=workplace, paths=paths)

    def _merge(
        self, direction: Direction, changed: Revision, *, onto: Revision, workplace: str, paths: PatchPaths
    ) -> Patch | Conflict:
        if not changed.parents:
            raise SourceError(f"{quoted(changed.id)}: is the first check-in, and changes nothing")
        (parent,) = self._fossil.history(f"{changed.parents[0]}..{changed.parents[0]}")
        home = Path(workplace)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="try-", dir=home) as scratch:
            attempt = _Attempt(self._own_git, self._fossil, Path(scratch))
            outcome = attempt.merge(direction, parent, changed, onto, paths)
            if isinstance(outcome, Conflict):
                stored = home / _TREE
                existed = stored.exists()
                if not existed:
                    attempt.tree.rename(stored)
                outcome = replace(outcome, directory=str(stored), directory_existed=existed)
        if not any(home.iterdir()):
            home.rmdir()
        return outcome


class _Attempt:
    """A git repository with three commits, in a temporary directory."""

    def __init__(self, git: Git, source: FossilSource, scratch: Path) -> None:
        self.tree = scratch / _TREE
        self._scratch = scratch
        self._source = source
        self.tree.mkdir()
        self._git = isolated_git(git, self.tree)
        self._run("init", "--quiet", "--template=")
        (self.tree / ".git" / "info").mkdir(exist_ok=True)
        (self.tree / ".git" / "info" / "attributes").write_text(_AS_BYTES)

    def merge(
        self, direction: Direction, parent: Revision, changed: Revision, onto: Revision, paths: PatchPaths
    ) -> Patch | Conflict:
        before = self._commit(parent)
        after = self._commit(changed, on=before)
        self._run("checkout", "--quiet", "--force", "--detach", self._commit(onto), "--")
        result = self._git.run(
            *_AUTHOR, "-c", "merge.conflictStyle=merge", "-c", "rerere.enabled=false",
            "cherry-pick" if direction == "apply" else "revert", "--no-commit", after,
            repository=self.tree, timeout_seconds=LONG_SECONDS,
        )  # fmt: skip
        conflicted = MergeConflicts(self._git, self.tree, self.tree).any
        left_out = restore_left_out(self._git, self.tree, paths)
        conflicts = MergeConflicts(self._git, self.tree, self.tree)
        if conflicts.any:
            return replace(conflicts.explained(onto=onto, changed=None), left_out=left_out)
        if result.failed and not conflicted:
            raise SourceError(f"{quoted(changed.id)}: git cannot {direction} the change: {result.why}")
        text = self._run("diff", "--cached", "--binary", "--full-index", *PLAIN_DIFF, "HEAD", "--")
        if not text.strip():
            raise NoAnswer(nothing_left(onto, left_out, direction=direction))
        file = self._scratch / "made.patch"
        file.write_bytes(text)
        return Patch(text=text, files=changes_of(self._git, file), left_out=left_out)

    def _commit(self, revision: Revision, *, on: str = "") -> str:
        """Commit exactly a check-in's files; return the commit's id."""
        directory = self._scratch / "files"
        self._source.write_own_files(revision, str(directory), str(self._scratch / "log"))
        if any(path.name == ".git" for path in directory.rglob(".git")):
            raise SourceError(
                f"{quoted(revision.id)}: contains a file .git; pass the change with --patch FILE"
            )
        options = ("--git-dir", str(self.tree / ".git"), "--work-tree", str(directory))
        self._run(*options, "read-tree", "--empty")
        self._run(*options, "add", "--all", "--force", "--", ".", where=directory)
        remove_tree(directory)
        tree = self._run("write-tree").decode().strip()
        parents = ("-p", on) if on else ()
        return self._run(*_AUTHOR, "commit-tree", *parents, "-m", "files", tree).decode().strip()

    def _run(self, *words: str, where: Path | None = None) -> bytes:
        result = self._git.run(*words, repository=where or self.tree, timeout_seconds=LONG_SECONDS)
        if result.failed:
            raise SourceError(f"git cannot compare the check-ins: {result.why}")
        return result.output
