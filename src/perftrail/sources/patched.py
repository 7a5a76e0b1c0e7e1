"""A history that knows one revision more: an old one with a patch on it, of any kind of source."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, NoAnswer, SourceError
from perftrail.model.build import content_key
from perftrail.model.patch import Conflict, FileChange, Obstacle, Passage, Patch, Patched
from perftrail.model.subject import Revision
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.command import local_git

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.subject import Merge
    from perftrail.ports import Source, Starter
    from perftrail.sources.git.command import Git

_TREE = "tree"
_REFUSED = re.compile(r"error: patch failed: (.*):(\d+)$", re.MULTILINE)
_ABSENT = re.compile(r"error: (.*): No such file or directory$", re.MULTILINE)
_THERE = re.compile(r"error: (.*): already exists in working directory$", re.MULTILINE)


def patched(base: Revision, patch: Patch) -> Patched:
    """Name an old revision with a patch on it by both: equal names, equal trees."""
    own = Revision(
        id=f"{base.short}+{patch.digest[:12]}",
        summary=f"{base.label or base.short} with a patch",
        time=base.time,
        parents=(base.id,),
    )
    return Patched(base=base, patch=patch, revision=own)


class PatchedSource:
    """Implements `ports.Source` by another one and by one patched revision, which lies where its base does.

    The patched revision belongs to no history: it is in the ranges of its base, so that it is built alike.
    """

    def __init__(self, inner: Source, own: Patched, *, cache: str, starter: Starter) -> None:
        self._inner = inner
        self._own = own
        self._git = local_git(starter, cache=Path(cache))

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Give the other source's revisions."""
        return self._inner.history(range)

    def within(self, range: str) -> frozenset[str]:
        """Give the ids of a range; the patched one's too where its base is in it."""
        ids = self._inner.within(range)
        return ids | {self._own.revision.id} if self._own.base.id in ids else ids

    def merge(self, revision: Revision) -> Merge | None:
        """Give what a revision joined; the patched one joins nothing."""
        return None if self._is_own(revision) else self._inner.merge(revision)

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Give for each revision of the other source the paths in which it differs from the one before it."""
        return self._inner.touched(revisions)

    def content(self, revision: Revision) -> str:
        """Name a tree; the patched one by its base's and by the patch."""
        if not self._is_own(revision):
            return self._inner.content(revision)
        return content_key(self._inner.content(self._own.base), self._own.patch.digest)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Put a revision's tree into a new directory; the patched one's by patching its base's."""
        if not self._is_own(revision):
            self._inner.materialise(revision, directory, log)
            return
        self._inner.materialise(self._own.base, directory, log)
        with tempfile.NamedTemporaryFile(prefix="perftrail-patch-", suffix=".patch") as file:
            file.write(self._own.patch.text)
            file.flush()
            index = ["--index"] if (Path(directory) / ".git").exists() else []
            answer = alone_in(self._git, Path(directory)).ask(
                "apply", *index, "--whitespace=nowarn", "--", file.name,
                repository=directory, timeout_seconds=LONG_SECONDS, log=log,
            )  # fmt: skip
        if answer.failed:
            shutil.rmtree(directory, ignore_errors=True)
            raise CheckoutFailed(f"the patch does not apply to {self._own.base.short}: {answer.why}")

    def _is_own(self, revision: Revision) -> bool:
        return revision.id == self._own.revision.id


class PlainPatches:
    """Fits somebody's patch to a revision of any source, by trying it on the revision's tree."""

    def __init__(self, source: Source, *, cache: str, starter: Starter) -> None:
        self._source = source
        self._git = local_git(starter, cache=Path(cache))

    def apply(self, text: bytes, *, onto: Revision, workplace: str) -> Patch | Conflict:
        """Try a patch; what does not apply is left half-applied in ``workplace/tree``, once.

        Raises `SourceError` when it is no patch or the tree cannot be had, `NoAnswer` when it changes nothing.
        """
        home = Path(workplace)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="try-", dir=home) as scratch:
            file, tree, kept = Path(scratch) / "given.patch", Path(scratch) / _TREE, home / _TREE
            file.write_bytes(text)
            changes = changes_of(self._git, file)
            self._source.materialise(onto, str(tree), f"{scratch}/log")
            git = alone_in(self._git, tree)
            answer = git.ask("apply", "--whitespace=nowarn", "--", str(file), repository=tree)
            if answer.failed:
                there = kept.exists()
                obstacles = apply_some(git, file, tree)
                if not there:
                    tree.rename(kept)
                return Conflict(obstacles=obstacles, directory=str(kept), kept=there)
        if not any(home.iterdir()):
            home.rmdir()
        return Patch(text=text, files=changes)


def changes_of(git: Git, file: Path) -> tuple[FileChange, ...]:
    """Say which files a patch touches and by how many lines.

    Raises `SourceError` when the file holds no patch, `NoAnswer` when the patch changes nothing.
    """
    answer = alone_in(git, file.parent).ask(
        "apply", "--numstat", "-z", "--", str(file), repository=file.parent
    )
    if answer.failed:
        raise SourceError(f"not a patch that git can read: {answer.why}")
    found = [field.split("\t", 2) for field in answer.fields()]
    if not found:
        raise NoAnswer("the patch changes nothing")
    return tuple(
        FileChange(path=path, added=_count(added), removed=_count(gone)) for added, gone, path in found
    )


def apply_some(git: Git, file: Path, tree: Path) -> tuple[Obstacle, ...]:
    """Apply what of a patch applies, leave the rest in ``.rej`` files beside, and say what did not.

    Raises `SourceError` when git refuses the patch for another reason, a path that leaves the tree for one.
    """
    answer = alone_in(git, tree).ask(
        "apply", "--reject", "--whitespace=nowarn", "--", str(file), repository=tree
    )
    passages: dict[str, list[Passage]] = {}
    for path, line in _REFUSED.findall(answer.errors):
        passages.setdefault(path, []).append(Passage(first=int(line), last=int(line)))
    refused = [
        Obstacle(path=path, clash="rejected", passages=tuple(lines)) for path, lines in passages.items()
    ]
    absent = [Obstacle(path=path, clash="absent") for path in dict.fromkeys(_ABSENT.findall(answer.errors))]
    there = [Obstacle(path=path, clash="added") for path in dict.fromkeys(_THERE.findall(answer.errors))]
    if not (refused or absent or there):
        raise SourceError(f"the patch cannot be applied: {answer.why}")
    return (*refused, *absent, *there)


def alone_in(git: Git, directory: Path) -> Git:
    """Give a git for work in a directory that takes it for no part of a repository around it."""
    ceiling = {"GIT_CEILING_DIRECTORIES": str(directory.resolve().parent)}
    return replace(git, client=replace(git.client, environment={**git.client.environment, **ceiling}))


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() else None
