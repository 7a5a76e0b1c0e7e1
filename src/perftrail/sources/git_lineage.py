"""The commits of a git history: what names mean, what lies between two of them, which have tags."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.git_follow import Stage, follow
from perftrail.sources.git_objects import find_objects
from perftrail.sources.tagging import by_ancestry, highest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.source import Source as Asked
    from perftrail.sources.git_mirror import Mirror

_WALKS = {"first-parent": ("--first-parent",), "merges": ("--first-parent", "--merges")}


class GitLineage:
    """Implements `walking.Lineage` by a mirror, in the walk and with the files that the study asks for."""

    def __init__(self, mirror: Mirror, asked: Asked) -> None:
        self._mirror = mirror
        self._asked = asked

    @property
    def location(self) -> str:
        """Where the user's repository lies."""
        return self._mirror.location

    def resolve(self, name: str) -> str:
        """Give the full id of the commit that a name means to the user. Raises `SourceError` if none."""
        return self._mirror.resolve(name)

    def newest(self) -> str:
        """Give what the user has checked out, or an address's main branch."""
        return self._mirror.resolve("HEAD")

    def is_name(self, text: str) -> bool:
        """Whether there is a branch or a tag of that name."""
        refs = self._mirror.refs("refs/tags") + self._mirror.refs("refs/heads")
        return text in {ref.split("/", 2)[2] for ref in refs}

    def trunk(self, tip: str) -> Sequence[tuple[str, str]]:
        """Give the line of first parents that leads to a commit, oldest first, with the committers' times."""
        lines = self.lines(
            "log", "--first-parent", "--reverse", "--no-show-signature", "--format=%H %cI", tip
        )
        return [(id_, time) for id_, _, time in (line.partition(" ") for line in lines)]

    def forks(self, one: str, other: str) -> Sequence[str]:
        """Give the best common ancestors."""
        return self.lines("merge-base", "--all", one, other)

    def between(self, *, old: str, new: str) -> list[str]:
        """Give the ids of the walk, oldest first, without what `old` contains."""
        ids = self._touching(old, new) if self._asked.touching else self._walk(old, new)
        if self._asked.walk == "tags":
            tagged = self.tags()
            return [id_ for id_ in ids if id_ in tagged]
        if self._asked.touching and not ids and old != new:
            raise SourceError(
                f"{self.location}: no revision of the range touches {list(self._asked.touching)}; "
                "paths are relative to the top of the repository"
            )
        return ids

    def tagged(self, pattern: str) -> list[str]:
        """Give the commits with such a tag by version, but what contains another one after that."""
        ids = list(self.tags(pattern))
        if not ids:
            return []
        stdin = "".join(f"{id_}\n" for id_ in ids)
        rows = self.lines("rev-list", "--topo-order", "--reverse", "--parents", "--stdin", stdin=stdin)
        return by_ancestry(ids, ((id_, parents) for id_, *parents in map(str.split, rows)))

    def tags(self, pattern: str = "*") -> Mapping[str, str]:
        """Give the tag of each commit that has such a one, by version; of several, the highest."""
        refs = [ref for ref in self._mirror.refs("refs/tags") if fnmatchcase(_short(ref), pattern)]
        found = find_objects(self._mirror.git, self._mirror.path, [f"{ref}^{{commit}}" for ref in refs])
        return highest(
            (commit.id, _short(ref))
            for ref, commit in zip(refs, found, strict=True)
            if commit is not None and commit.kind == "commit"
        )

    def lines(self, *words: str, stdin: str = "") -> list[str]:
        """Give what a git command prints line by line. Raises `SourceError`."""
        answer = self._mirror.git.ask(*words, repository=self._mirror.ready(), stdin=stdin.encode())
        if answer.failed and answer.errors.strip():
            raise SourceError(f"{self.location}: git {words[0]} failed: {answer.why}")
        return answer.lines()

    def _walk(self, old: str, new: str, files: Sequence[str] = ()) -> list[str]:
        order = ["--topo-order", "--reverse", *_WALKS.get(self._asked.walk, ())]
        without = [f"^{old}"] if old else []
        paths = ["--full-history", "--", *files] if files else ["--"]
        return self.lines("rev-list", *order, new, *without, *paths)

    def _touching(self, old: str, new: str) -> list[str]:
        """The walk's commits that change the files under the names that these had at the time."""
        line_only = "--first-parent" in _WALKS.get(self._asked.walk, ())
        first = Stage(tip=new, names=tuple(map(posixpath.normpath, self._asked.touching)))
        stages = follow(self._mirror.git, self._mirror.ready(), first, old=old, line_only=line_only)
        found = [self._walk(old, stage.tip, stage.names) for stage in stages]
        if len(found) == 1:
            return found[0]
        touching = {id_ for ids in found for id_ in ids}
        return [id_ for id_ in self._walk(old, new) if id_ in touching]


def _short(ref: str) -> str:
    return ref.removeprefix("refs/tags/")
