"""The user's working tree, or what is staged in it, as a commit of the mirror.

The commit has every file that git sees: tracked ones, and untracked ones that are not ignored. Its id depends only on
their content and on the checked-out commit, so that equal trees share their samples. The user's repository is only
read: the index is a copy, and new objects go to the mirror. Nothing that the repository names is started, so no filter
cleans a file (see `sources.git.command`); checked out again, it has the same content.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.source import WORKING_TREE
from perftrail.model.wording import counted, listed
from perftrail.sources.client import LONG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from perftrail.sources.client import ToolResult
    from perftrail.sources.git.command import Git
    from perftrail.sources.git.mirror import Mirror

MOST_NAMED = 3
"""Number of changed files in the summary of such a commit."""

_AUTHOR = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "perftrail"), ("EMAIL", "perftrail@localhost"))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCommit:
    """A commit of the mirror with the files of the working tree, and its name.

    The name of an unchanged tree is empty: it is the checked-out commit.
    """

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckOut:
    """The user's check-out: its directory, its index, and the directory with the objects of its repository."""

    top: Path
    index: Path
    objects: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _TreeGit:
    """A git with the files of the user's check-out, the settings and objects of the mirror, and a copy of the index."""

    git: Git
    top: Path
    location: str

    def run(self, *words: str, stdin: bytes = b"", **variables: str) -> ToolResult:
        """Run one command there. Raises `SourceError`."""
        git = self.git.with_variables(**variables) if variables else self.git
        return _checked(
            git.run(*words, repository=self.top, stdin=stdin, timeout_seconds=LONG_SECONDS), self.location
        )


def _checked(result: ToolResult, location: str) -> ToolResult:
    if result.failed:
        raise SourceError(f"{location}: git cannot read the working tree: {result.why}")
    return result


def commit_working_tree(mirror: Mirror, name: str) -> TreeCommit:
    """Return the commit of the working tree (`name` is `WORKING_TREE`), or of what is staged (`STAGED`).

    Raises `SourceError` for a repository without a working tree.
    """
    check_out = _find_check_out(mirror, name)
    head = mirror.resolve("HEAD")
    with _own_index(mirror, check_out) as git:
        if name == WORKING_TREE:
            _add_files(git, mirror.exclude_files())
        elif git.run("ls-files", "--unmerged").output:
            raise SourceError(
                f"{mirror.location}: the index has unresolved conflicts; resolve and stage them first"
            )
        (tree,) = git.run("write-tree").lines()
        options = ("-r", "--name-only", "--no-renames", "--no-ext-diff", "-z")
        changed = git.run("diff-tree", *options, head, tree).fields()
        if not changed:
            return TreeCommit(id=head)
        what = "working tree" if name == WORKING_TREE else "staged"
        return TreeCommit(
            id=_commit(mirror, git, head, tree, changed),
            name=f"{what} ({counted(len(changed), 'file')} changed)",
        )


def _find_check_out(mirror: Mirror, name: str) -> _CheckOut:
    what = "the working tree" if name == WORKING_TREE else "what is staged"
    if mirror.check_out is None:
        raise SourceError(
            f"{mirror.location}: {what} is a revision only of a repository on this machine; name a directory in "
            "source.location"
        )
    words = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index")
    found = mirror.git.run(*words, "--git-path", "objects", repository=mirror.check_out)
    if found.failed:
        raise SourceError(f"{mirror.location}: has no working tree ({found.why})")
    top, index, objects = map(Path, found.lines()[:3])
    return _CheckOut(top=top, index=index, objects=objects)


@contextmanager
def _own_index(mirror: Mirror, check_out: _CheckOut) -> Iterator[_TreeGit]:
    """Yield a git with a copy of the index.

    The copy keeps what git knows of unchanged files, so that only changed ones are read.
    """
    with tempfile.TemporaryDirectory(prefix="index-", dir=mirror.ready().parent) as scratch:
        index = Path(scratch, "index")
        if check_out.index.is_file():
            for file in (check_out.index, *check_out.index.parent.glob("sharedindex.*")):
                shutil.copy2(file, Path(scratch, file.name))
        git = mirror.git.with_variables(
            GIT_DIR=str(mirror.path),
            GIT_WORK_TREE=str(check_out.top),
            GIT_INDEX_FILE=str(index),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=str(check_out.objects),
        )
        yield _TreeGit(git=git, top=check_out.top, location=mirror.location)


def _add_files(git: _TreeGit, exclude_files: Iterable[Path]) -> None:
    """Update the copy of the index with every changed, new and removed file that git does not ignore."""
    excludes = [f"--exclude-from={file}" for file in exclude_files]
    kinds = ("--modified", "--deleted", "--others", "--exclude-per-directory=.gitignore")
    names = dict.fromkeys(git.run("ls-files", "-z", *kinds, *excludes).output.split(b"\0"))
    wanted = b"".join(name + b"\0" for name in names if name and _has_content(git.top, name))
    git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=wanted)


def _has_content(top: Path, name: bytes) -> bool:
    """Whether git can store a path: a file, a link, a removed path or a submodule, but no other repository or pipe."""
    if name.endswith(b"/"):
        return False
    try:
        mode = (top / os.fsdecode(name)).lstat().st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)


def _commit(mirror: Mirror, git: _TreeGit, head: str, tree: str, changed: Sequence[str]) -> str:
    """Write the commit, and copy what only the user's repository has of it into the mirror."""
    (time,) = git.run("show", "--no-patch", "--format=%cI", head).lines()
    others = len(changed) - MOST_NAMED
    summary = listed([*changed[:MOST_NAMED], *([f"{others} more"] if others > 0 else [])], "and")
    message = f"{summary}\n".encode(errors="replace")
    dates = {"GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
    (id_,) = git.run("commit-tree", tree, "-p", head, stdin=message, **_AUTHOR, **dates).lines()
    # Git writes no object that the user's repository has, such as the content of staged files.
    revisions = f"{id_}\n^{head}\n".encode()
    pack = git.run("pack-objects", "--revs", "--stdout", "--quiet", stdin=revisions).output
    unpacked = mirror.git.run(
        "unpack-objects", "-q", repository=mirror.path, stdin=pack, timeout_seconds=LONG_SECONDS
    )
    _checked(unpacked, mirror.location)
    return id_
