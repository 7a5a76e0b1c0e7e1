"""The commits of a git history: names, ranges, tags, renamed files, and the lines that a commit merged."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.source import STAGED, WORKING_TREE
from perftrail.sources.git.command import find_objects
from perftrail.sources.git.working_tree import commit_working_tree
from perftrail.sources.ranges import MergedLine, by_ancestry, last_tags

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from perftrail.model.source import Source as SourceTable
    from perftrail.model.source import SquashedBranch
    from perftrail.model.subject import Revision
    from perftrail.sources.git.command import Git
    from perftrail.sources.git.mirror import Mirror
    from perftrail.sources.git.working_tree import TreeCommit


MOST_RENAMES = 200
"""Maximum number of renames to follow."""

_COMMIT = re.compile(r"(?P<id>[0-9a-f]{40,64}) (?P<parent>[0-9a-f]{40,64})(?: .*)?")
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedFiles:
    """The names of files in a commit and in its ancestors."""

    tip: str
    names: tuple[str, ...]


def follow_renames(
    git: Git, repository: Path, first: RenamedFiles, *, old: str, first_parent_only: bool
) -> tuple[RenamedFiles, ...]:
    """Return the names of files, and their names before each rename, back to `old`.

    Names with ``*``, ``?`` or ``[`` are not followed. With `first_parent_only`, only renames relative to the first
    parent count. Raises `SourceError`.
    """
    renames, left = [first], [first]
    while left and len(renames) < MOST_RENAMES:
        renamed = left.pop()
        plain = tuple(name for name in renamed.names if not (_WILD & set(name) or name.startswith(":")))
        if not plain:
            continue
        added = _commits_adding(
            git, repository, renamed.tip, plain, old=old, first_parent_only=first_parent_only
        )
        for parent, names in _renamed(git, repository, added, plain).items():
            earlier = RenamedFiles(tip=parent, names=names)
            if earlier not in renames:
                renames.append(earlier)
                left.append(earlier)
    return tuple(renames)


def _commits_adding(
    git: Git, repository: Path, tip: str, names: Sequence[str], *, old: str, first_parent_only: bool
) -> list[tuple[str, str]]:
    """Return the commits that add a file of one of the names, each with its first parent."""
    result = git.run(
        "log", "--full-history", *(["--first-parent"] if first_parent_only else []), "--diff-merges=first-parent",
        "--raw", "--no-renames", "--diff-filter=A", "--no-show-signature", "--format=%H %P", tip,
        *([f"^{old}"] if old else []), "--", *names,
        repository=repository,
    )  # fmt: skip
    if result.failed:
        raise SourceError(f"{repository}: git cannot read its history: {result.why}")
    rows = map(_COMMIT.fullmatch, result.output.decode("utf-8", errors="replace").split("\n"))
    return [(row["id"], row["parent"]) for row in rows if row is not None]


def _renamed(
    git: Git, repository: Path, commits: Sequence[tuple[str, str]], names: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return the names of files before a commit renamed them, by the commit's first parent."""
    result = git.run(
        "diff-tree", "--stdin", "-r", "-z", "--find-renames", "--diff-filter=R", "--name-status",
        "--no-ext-diff", "--no-textconv",
        repository=repository, stdin="".join(f"{id_} {parent}\n" for id_, parent in commits).encode(),
    )  # fmt: skip
    if result.failed:
        raise SourceError(f"{repository}: git cannot compare its revisions: {result.why}")
    parents = dict(commits)
    found: dict[str, dict[str, None]] = {}
    commit, fields = "", iter(result.fields())
    for field in fields:
        if field in parents:
            commit = field
            continue
        before, after = next(fields), next(fields)
        for name in _names_before(before, after, names):
            found.setdefault(parents[commit], {})[name] = None
    return {parent: tuple(olds) for parent, olds in found.items()}


def _names_before(before: str, after: str, names: Sequence[str]) -> Iterator[str]:
    """Return the earlier names of a path, if it or its directory was renamed.

    >>> list(_names_before("lib/x/a.c", "src/x/a.c", ["src", "doc"]))
    ['lib']
    """
    for name in names:
        below = f"{name.rstrip('/')}/"
        if after == name:
            yield before
        elif after.startswith(below) and not before.startswith(below):
            inner = after.removeprefix(below)
            yield before.removesuffix(f"/{inner}")


_WALKS = {"first-parent": ("--first-parent",), "merges": ("--first-parent", "--merges")}


class GitLineage:
    """A `ranges.Lineage` of a mirror, filtered by the study's settings."""

    def __init__(self, mirror: Mirror, table: SourceTable) -> None:
        self._mirror = mirror
        self._table = table
        self._uncommitted: dict[str, TreeCommit] = {}

    @property
    def location(self) -> str:
        """Location of the user's repository."""
        return self._mirror.location

    def resolve(self, name: str) -> str:
        """Return the full id of the commit that a name means to the user. Raises `SourceError` if there is none.

        The working tree is read once: it stays the same commit as long as this object is used.
        """
        if name not in (WORKING_TREE, STAGED):
            return self._mirror.resolve(name)
        if name not in self._uncommitted:
            self._uncommitted[name] = commit_working_tree(self._mirror, name)
        return self._uncommitted[name].id

    @property
    def uncommitted(self) -> Mapping[str, str]:
        """Names of the commits of the working tree and of what is staged, by id."""
        return {each.id: each.name for each in self._uncommitted.values() if each.name}

    def newest(self) -> str:
        """Return the user's checked-out commit, or an address's main branch."""
        return self._mirror.resolve("HEAD")

    def is_name(self, text: str) -> bool:
        """Return whether a branch or tag has this name."""
        refs = self._mirror.refs("refs/tags") + self._mirror.refs("refs/heads")
        return text in {ref.split("/", 2)[2] for ref in refs}

    def trunk(self, tip: str) -> Sequence[tuple[str, str]]:
        """Return the line of first parents to a commit, oldest first, with the committers' times."""
        lines = self.lines(
            "log", "--first-parent", "--reverse", "--no-show-signature", "--format=%H %cI", tip
        )
        return [(id_, time) for id_, _, time in (line.partition(" ") for line in lines)]

    def common_ancestors(self, one: str, other: str) -> Sequence[str]:
        """Return the best common ancestors."""
        return self.lines("merge-base", "--all", one, other)

    def between(self, *, old: str, new: str) -> list[str]:
        """Return the ids of the selected commits, oldest first, without those that `old` contains."""
        ids = self._touching(old, new) if self._table.touching else self._walk(old, new)
        if self._table.walk == "tags":
            tagged = self.tags()
            return [id_ for id_ in ids if id_ in tagged]
        if self._table.touching and not ids and old != new:
            raise SourceError(
                f"{self.location}: no revision of the range touches {list(self._table.touching)}; "
                "paths are relative to the top of the repository"
            )
        return ids

    def tagged(self, pattern: str) -> list[str]:
        """Return the commits with matching tags by version, descendants after their ancestors."""
        ids = list(self.tags(pattern))
        if not ids:
            return []
        stdin = "".join(f"{id_}\n" for id_ in ids)
        rows = self.lines("rev-list", "--topo-order", "--reverse", "--parents", "--stdin", stdin=stdin)
        return by_ancestry(ids, ((id_, parents) for id_, *parents in map(str.split, rows)))

    def tags(self, pattern: str = "*") -> Mapping[str, str]:
        """Return the matching tag of each commit, the highest version of several."""
        refs = [ref for ref in self._mirror.refs("refs/tags") if fnmatchcase(_short(ref), pattern)]
        found = find_objects(self._mirror.git, self._mirror.path, [f"{ref}^{{commit}}" for ref in refs])
        return last_tags(
            (commit.id, _short(ref))
            for ref, commit in zip(refs, found, strict=True)
            if commit is not None and commit.kind == "commit"
        )

    def lines(self, *words: str, stdin: str = "") -> list[str]:
        """Return the output of a git command line by line. Raises `SourceError`."""
        result = self._mirror.git.run(*words, repository=self._mirror.ready(), stdin=stdin.encode())
        if result.failed and result.errors.strip():
            raise SourceError(f"{self.location}: git {words[0]} failed: {result.why}")
        return result.lines()

    def _walk(self, old: str, new: str, files: Sequence[str] = ()) -> list[str]:
        order = ["--topo-order", "--reverse", *_WALKS.get(self._table.walk, ())]
        without = [f"^{old}"] if old else []
        paths = ["--full-history", "--", *files] if files else ["--"]
        return self.lines("rev-list", *order, new, *without, *paths)

    def _touching(self, old: str, new: str) -> list[str]:
        """Return the selected commits that change the files, whatever the files' names were then."""
        first_parent_only = "--first-parent" in _WALKS.get(self._table.walk, ())
        first = RenamedFiles(tip=new, names=tuple(map(posixpath.normpath, self._table.touching)))
        renames = follow_renames(
            self._mirror.git, self._mirror.ready(), first, old=old, first_parent_only=first_parent_only
        )
        found = [self._walk(old, renamed.tip, renamed.names) for renamed in renames]
        if len(found) == 1:
            return found[0]
        touching = {id_ for ids in found for id_ in ids}
        return [id_ for id_ in self._walk(old, new) if id_ in touching]


def _short(ref: str) -> str:
    return ref.removeprefix("refs/tags/")


def merged_lines(mirror: Mirror, commit: Revision, links: Sequence[SquashedBranch]) -> tuple[MergedLine, ...]:
    """Return every line that a commit merged, without the commits that its first parent contains.

    A line follows first parents only, so it ends even if branches merged each other. Query a merge on the line for
    the lines that this merge merged.
    """
    if not commit.parents:
        return ()
    squashed = [link.branch for link in links if mirror.resolve(link.merge) == commit.id]
    tips = [*commit.parents[1:], *(mirror.resolve(branch) for branch in squashed)]
    lines = (_line(mirror, tip, trunk=commit.parents[0]) for tip in dict.fromkeys(tips))
    return tuple(line for line in lines if line.ids)


def _line(mirror: Mirror, tip: str, *, trunk: str) -> MergedLine:
    result = mirror.git.run(
        "rev-list", "--first-parent", "--parents", tip, f"^{trunk}", "--", repository=mirror.ready()
    )
    rows = [row.split() for row in result.lines()]
    oldest_parents = rows[-1][1:2] if rows else []
    return MergedLine(base="".join(oldest_parents), ids=tuple(row[0] for row in reversed(rows)))
