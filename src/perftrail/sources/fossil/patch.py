"""Back-port changes in a Fossil repository, which has no portable patches and no cherry-pick.

The files of three check-ins (old, with the change, and its parent) become three commits of a temporary git
repository, and git merges them.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import NoAnswer, SourceError
from perftrail.model.patch import Conflict, Patch
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.command import local_git
from perftrail.sources.git.patch import AS_IT_IS, Clashes
from perftrail.sources.patched import PlainPatches, alone_in, changes_of

if TYPE_CHECKING:
    from perftrail.model.subject import Revision
    from perftrail.ports import Starter
    from perftrail.sources.fossil import FossilSource
    from perftrail.sources.git.command import Git

_TREE = "tree"
"""Name of the half-applied tree in its directory, as for git histories."""

_NOBODY = ("-c", "user.name=perftrail", "-c", "user.email=perftrail", "-c", "commit.gpgSign=false")

_AS_BYTES = "* -text -ident !filter !diff !merge !working-tree-encoding\n"
"""Overrides all ``.gitattributes`` of the project: Fossil does not know them, its files are bytes."""


class FossilPatches(PlainPatches):
    """Makes patches for an old check-in from a check-in's change, or from a given patch.

    A patch that does not apply is left half-applied in the caller's directory, as a git work tree. An existing tree
    there does not change.
    """

    def __init__(self, source: FossilSource, *, cache: str, starter: Starter) -> None:
        super().__init__(source, cache=cache, starter=starter)
        self._fossil = source
        self._own_git = local_git(starter, cache=Path(cache))

    def carry(self, fix: Revision, *, onto: Revision, workplace: str) -> Patch | Conflict:
        """Return a patch for `onto` with the change of `fix` relative to its first parent.

        Raises `NoAnswer` if the old check-in already has the change, `SourceError` if git cannot try.
        """
        if not fix.parents:
            raise SourceError(f"{quoted(fix.id)}: is the first check-in; there is nothing that it changed")
        (parent,) = self._fossil.history(f"{fix.parents[0]}..{fix.parents[0]}")
        home = Path(workplace)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="try-", dir=home) as scratch:
            attempt = _Attempt(self._own_git, self._fossil, Path(scratch))
            outcome = attempt.carry(parent, fix, onto)
            if isinstance(outcome, Conflict):
                kept = home / _TREE
                there = kept.exists()
                if not there:
                    attempt.tree.rename(kept)
                outcome = replace(outcome, directory=str(kept), kept=there)
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
        self._git = alone_in(git, self.tree)
        self._ask("init", "--quiet", "--template=")
        (self.tree / ".git" / "info").mkdir(exist_ok=True)
        (self.tree / ".git" / "info" / "attributes").write_text(_AS_BYTES)

    def carry(self, parent: Revision, fix: Revision, onto: Revision) -> Patch | Conflict:
        before = self._commit(parent)
        after = self._commit(fix, on=before)
        self._ask("checkout", "--quiet", "--force", "--detach", self._commit(onto), "--")
        answer = self._git.ask(
            *_NOBODY, "-c", "merge.conflictStyle=merge", "-c", "rerere.enabled=false",
            "cherry-pick", "--no-commit", after, repository=self.tree, timeout_seconds=LONG_SECONDS,
        )  # fmt: skip
        clashes = Clashes(self._git, self.tree, self.tree)
        if clashes.any:
            return clashes.explained(onto=onto, fix=None)
        if answer.failed:
            raise SourceError(f"{quoted(fix.id)}: the change cannot be applied: {answer.why}")
        text = self._ask("diff", "--cached", "--binary", "--full-index", *AS_IT_IS, "HEAD", "--")
        if not text.strip():
            name = quoted(onto.label or onto.short)
            raise NoAnswer(f"{name} has this change already: nothing is left to carry")
        file = self._scratch / "made.patch"
        file.write_bytes(text)
        return Patch(text=text, files=changes_of(self._git, file))

    def _commit(self, revision: Revision, *, on: str = "") -> str:
        """Commit exactly a check-in's files; return the commit's id."""
        directory = self._scratch / "files"
        self._source.put_files(revision, str(directory), str(self._scratch / "log"))
        if any(path.name == ".git" for path in directory.rglob(".git")):
            raise SourceError(f"{quoted(revision.id)}: holds a file .git; give the change with --patch FILE")
        there = ("--git-dir", str(self.tree / ".git"), "--work-tree", str(directory))
        self._ask(*there, "read-tree", "--empty")
        self._ask(*there, "add", "--all", "--force", "--", ".", where=directory)
        shutil.rmtree(directory)
        tree = self._ask("write-tree").decode().strip()
        parents = ("-p", on) if on else ()
        return self._ask(*_NOBODY, "commit-tree", *parents, "-m", "files", tree).decode().strip()

    def _ask(self, *words: str, where: Path | None = None) -> bytes:
        answer = self._git.ask(*words, repository=where or self.tree, timeout_seconds=LONG_SECONDS)
        if answer.failed:
            raise SourceError(f"git cannot compare the check-ins: {answer.why}")
        return answer.output
