"""Names what a commit puts on disk: its tree, or of a study that wants only some files, those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.git_objects import find_objects, listings
from perftrail.sources.git_sparse import LEFT_OUT, pathspecs

if TYPE_CHECKING:
    from perftrail.model.source import Source as Asked
    from perftrail.sources.git_mirror import Mirror

_AT_ONCE = 50
"""So many trees are listed in one go; a large one has a listing of some megabytes."""


class Contents:
    """The contents of a history's commits, in the order that they were made known, several at once."""

    def __init__(self, mirror: Mirror, asked: Asked) -> None:
        self._mirror = mirror
        self._asked = asked
        self._trees: dict[str, str] = {}
        self._listed: dict[tuple[str, tuple[str, ...]], str] = {}

    def know(self, commit: str, tree: str) -> None:
        """Remember which tree a commit has."""
        self._trees[commit] = tree

    def tree(self, commit: str) -> str:
        """Give the id of a commit's tree. Raises `SourceError` when there is no such commit."""
        if commit not in self._trees:
            (tree,) = find_objects(self._mirror.git, self._mirror.ready(), [f"{commit}^{{tree}}"])
            if tree is None:
                raise SourceError(f"{self._mirror.location}: no revision {quoted(commit)}")
            self._trees[commit] = tree.id
        return self._trees[commit]

    def of(self, commit: str, *, without: tuple[str, ...] = ()) -> str:
        """Name what is put on disk of a commit, but for what lies in some paths."""
        tree = self.tree(commit)
        paths = (*self._asked.sparse, *(f"{LEFT_OUT}{path}" for path in without))
        name = self._of_some_files(tree, paths) if paths else tree
        return name if self._asked.submodules else content_key("without submodules", name)

    def _of_some_files(self, tree: str, paths: tuple[str, ...]) -> str:
        if (tree, paths) not in self._listed:
            trees = list(dict.fromkeys(self._trees.values()))
            wanted = trees[trees.index(tree) :][:_AT_ONCE]
            found = listings(self._mirror.git, self._mirror.ready(), wanted, pathspecs(paths))
            self._listed.update(
                {(each, paths): content_key("some files", listing) for each, listing in found.items()}
            )
        return self._listed[tree, paths]
