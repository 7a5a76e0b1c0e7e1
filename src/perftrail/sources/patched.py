"""A history with one additional revision: an old one with a patch, for any kind of source."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, NoAnswer, SourceError
from perftrail.file_tree import real_path, remove_tree
from perftrail.model.build import content_key
from perftrail.model.patch import EVERY_PATH, Conflict, FileChange, Obstacle, Passage, Patch, Patched
from perftrail.model.subject import Revision
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.command import local_git

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.patch import LeftOut, PatchPaths
    from perftrail.model.subject import Merge
    from perftrail.ports import Source, Starter
    from perftrail.sources.client import ToolResult
    from perftrail.sources.git.command import Git

_TREE = "tree"
_REFUSED = re.compile(r"error: patch failed: (.*):(\d+)$", re.MULTILINE)
_ABSENT = re.compile(r"error: (.*): No such file or directory$", re.MULTILINE)
_EXISTING = re.compile(r"error: (.*): already exists in working directory$", re.MULTILINE)


def patched(base: Revision, patch: Patch) -> Patched:
    """Return an old revision with a patch as a new revision; equal ids mean equal trees."""
    revision = Revision(
        id=f"{base.short}+{patch.digest[:12]}",
        summary=f"{base.label or base.short} with a patch",
        time=base.time,
        parents=(base.id,),
    )
    return Patched(base=base, patch=patch, revision=revision)


class PatchedSource:
    """A source with a patched revision at the position of its base.

    The patched revision belongs to no history. It is in the ranges of its base, so that it is built in the same way.
    """

    def __init__(self, inner: Source, added: Patched, *, cache: str, starter: Starter) -> None:
        self._inner = inner
        self._added = added
        self._cache = Path(cache)
        self._git = local_git(starter, cache=Path(cache))

    def history(self, range: str | None = None) -> tuple[Revision, ...]:
        """Return the inner source's revisions."""
        return self._inner.history(range)

    def within(self, range: str) -> frozenset[str]:
        """Return the ids of a range, including the patched one if its base is in it."""
        ids = self._inner.within(range)
        return ids | {self._added.revision.id} if self._added.base.id in ids else ids

    def merge(self, revision: Revision) -> Merge | None:
        """Return the branches that a revision merged; the patched one merged none."""
        return None if self._is_added(revision) else self._inner.merge(revision)

    def touched(self, revisions: Sequence[Revision]) -> tuple[tuple[str, ...], ...]:
        """Return the changed files of each revision of the inner source."""
        return self._inner.touched(revisions)

    def content(self, revision: Revision) -> str:
        """Return the content key of a tree. For the patched revision, derive it from the base and the patch."""
        if not self._is_added(revision):
            return self._inner.content(revision)
        return content_key(self._inner.content(self._added.base), self._added.patch.digest)

    def materialise(self, revision: Revision, directory: str, log: str) -> None:
        """Write a revision's tree into a new directory. For the patched revision, patch the tree of its base."""
        if not self._is_added(revision):
            self._inner.materialise(revision, directory, log)
            return
        self._inner.materialise(self._added.base, directory, log)
        with tempfile.NamedTemporaryFile(prefix="perftrail-patch-", suffix=".patch") as file:
            file.write(self._added.patch.text)
            file.flush()
            in_mirror = is_worktree_of_mirror(Path(directory), cache=self._cache)
            git = isolated_git(self._git, Path(directory)) if in_mirror else self._git.without_repository()
            result = git.run(
                "apply", *(["--index"] if in_mirror else []), "--whitespace=nowarn",
                *exclude_options(self._added.patch.left_out), "--", file.name,
                repository=directory, timeout_seconds=LONG_SECONDS, log=log,
            )  # fmt: skip
        if result.failed:
            remove_tree(Path(directory))
            raise CheckoutFailed(f"the patch does not apply to {self._added.base.short}: {result.why}")

    def _is_added(self, revision: Revision) -> bool:
        return revision.id == self._added.revision.id


class PlainPatches:
    """Applies a given patch to a revision of any source, by trying it on the revision's tree."""

    def __init__(self, source: Source, *, cache: str, starter: Starter) -> None:
        self._source = source
        self._git = local_git(starter, cache=Path(cache)).without_repository()

    def apply(
        self, text: bytes, *, onto: Revision, workplace: str, paths: PatchPaths = EVERY_PATH
    ) -> Patch | Conflict:
        """Try a patch. If it does not apply, leave the half-patched tree in ``workplace/tree``, unless that exists.

        Raises `SourceError` for an invalid patch or a tree that cannot be checked out, `NoAnswer` if it changes
        nothing.
        """
        home = Path(workplace)
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="try-", dir=home) as scratch:
            file, tree, stored = Path(scratch) / "given.patch", Path(scratch) / _TREE, home / _TREE
            file.write_bytes(text)
            changes = changes_of(self._git, file)
            self._source.materialise(onto, str(tree), f"{scratch}/log")
            names = [each.path for each in changes]
            left_out = paths.left_out(names, ())
            result = self._apply(file, tree, left_out)
            if result.failed:
                existed = stored.exists()
                obstacles = apply_partially(self._git, file, tree, left_out)
                left_out = paths.left_out(names, [each.path for each in obstacles])
                omitted = {each.path for each in left_out}
                obstacles = tuple(each for each in obstacles if each.path not in omitted)
                if obstacles:
                    if not existed:
                        tree.rename(stored)
                    return Conflict(
                        obstacles=obstacles,
                        directory=str(stored),
                        directory_existed=existed,
                        left_out=left_out,
                    )
        if not any(home.iterdir()):
            home.rmdir()
        omitted = {each.path for each in left_out}
        applied = tuple(each for each in changes if each.path not in omitted)
        if not applied:
            raise NoAnswer("every file of the patch is left out: nothing remains to apply")
        return Patch(text=text, files=applied, left_out=left_out)

    def _apply(self, file: Path, tree: Path, left_out: Sequence[LeftOut]) -> ToolResult:
        return self._git.run(
            "apply", "--whitespace=nowarn", *exclude_options(left_out), "--", str(file), repository=tree
        )


def exclude_options(left_out: Sequence[LeftOut]) -> list[str]:
    r"""Return the options with which ``git apply`` skips files.

    >>> from perftrail.model.patch import LeftOut
    >>> print(*exclude_options([LeftOut(path="a[1].txt", why="excluded")]))
    --exclude=a\[1].txt
    """
    return [f"--exclude={_GLOB.sub(_ESCAPED, each.path)}" for each in left_out]


_GLOB = re.compile(r"[*?\[\\]")
_ESCAPED = r"\\\g<0>"


def changes_of(git: Git, file: Path) -> tuple[FileChange, ...]:
    """Return the files that a patch touches, with their numbers of lines.

    Raises `SourceError` for an invalid patch, `NoAnswer` if it changes nothing.
    """
    result = git.without_repository().run("apply", "--numstat", "-z", "--", str(file), repository=file.parent)
    if result.failed:
        raise SourceError(f"not a patch that git can read: {result.why}")
    found = [field.split("\t", 2) for field in result.fields()]
    if not found:
        raise NoAnswer("the patch changes nothing")
    return tuple(
        FileChange(path=path, added=_count(added), removed=_count(gone)) for added, gone, path in found
    )


def apply_partially(
    git: Git, file: Path, tree: Path, left_out: Sequence[LeftOut] = ()
) -> tuple[Obstacle, ...]:
    """Apply the parts of a patch that fit, write the rest into ``.rej`` files, and return the failures.

    Raises `SourceError` if git refuses the patch for another reason, for example a path outside the tree.
    """
    options = ("--reject", "--whitespace=nowarn", *exclude_options(left_out))
    result = git.run("apply", *options, "--", str(file), repository=tree)
    passages: dict[str, list[Passage]] = {}
    for path, line in _REFUSED.findall(result.errors):
        passages.setdefault(path, []).append(Passage(first=int(line), last=int(line)))
    refused = [
        Obstacle(path=path, clash="rejected", passages=tuple(lines)) for path, lines in passages.items()
    ]
    absent = [Obstacle(path=path, clash="absent") for path in dict.fromkeys(_ABSENT.findall(result.errors))]
    existing = [
        Obstacle(path=path, clash="added") for path in dict.fromkeys(_EXISTING.findall(result.errors))
    ]
    if not (refused or absent or existing):
        raise SourceError(f"the patch cannot be applied: {result.why}")
    return (*refused, *absent, *existing)


def isolated_git(git: Git, directory: Path) -> Git:
    """Return a git that does not consider a directory part of an enclosing repository."""
    return git.with_variables(GIT_CEILING_DIRECTORIES=str(real_path(directory).parent))


_LARGEST_LINK_BYTES = 8192
_LINK = re.compile(rb"gitdir: (/[^\0\n]+)\n?")


def is_worktree_of_mirror(directory: Path, *, cache: Path) -> bool:
    """Return whether perftrail checked a tree out of a mirror below `cache`.

    Otherwise a ``.git`` in it comes from an archive or a check-in, and its settings could start any program.
    """
    link = directory / ".git"
    if link.is_symlink() or not link.is_file():
        return False
    with link.open("rb") as file:
        found = _LINK.fullmatch(file.read(_LARGEST_LINK_BYTES))
    return found is not None and real_path(Path(os.fsdecode(found[1]))).is_relative_to(
        real_path(cache / "git")
    )


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() else None
