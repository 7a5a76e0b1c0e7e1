"""Checks commits out whole: the study's files, contents that Git LFS keeps elsewhere, and submodules."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.model.wording import quoted
from perftrail.sources.git_addresses import submodule_address
from perftrail.sources.git_lfs import LargeFiles
from perftrail.sources.git_mirror import Mirror
from perftrail.sources.git_sparse import LEFT_OUT, fill
from perftrail.sources.git_submodules import Submodule, own_copies, submodules
from perftrail.sources.git_worktree import add_worktree, forget_removed_worktrees

if TYPE_CHECKING:
    from perftrail.model.source import Source as Asked
    from perftrail.ports import Starter

DEEPEST = 20
"""So far submodules may lie in each other; a hostile repository could have no end of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A commit in a directory: of the repository itself, or of a submodule so many levels below."""

    mirror: Mirror
    address: str
    commit: str
    directory: Path
    depth: int


class Checkouts:
    """Makes trees of a repository's commits, each submodule in it as a worktree of its own mirror."""

    def __init__(self, mirror: Mirror, asked: Asked, *, cache: Path, starter: Starter) -> None:
        self._mirror = mirror
        self._asked = asked
        self._cache = cache
        self._starter = starter
        self._large = LargeFiles(cache=cache, starter=starter)
        self._mirrors: dict[str, Mirror] = {}
        self._unreachable: dict[str, str] = {}
        self._tidied: set[Path] = set()

    def put(self, commit: str, directory: str, log: str) -> None:
        """Put a commit's files into a directory that does not exist yet, all of them or none.

        Raises `CheckoutFailed`.
        """
        whole = _Part(
            mirror=self._mirror,
            address=self._mirror.published,
            commit=commit,
            directory=Path(directory),
            depth=0,
        )
        self._tidy(self._mirror)
        add_worktree(self._mirror, commit, directory, log, empty=bool(self._asked.sparse))
        try:
            if self._asked.sparse:
                fill(self._mirror.git, whole.directory, self._asked.sparse, log=log)
            self._complete(whole, log)
        except CheckoutFailed:
            shutil.rmtree(directory, ignore_errors=True)
            raise

    def _complete(self, part: _Part, log: str) -> None:
        self._large.fill(part.mirror, part.commit, part.directory, address=part.address, log=log)
        if not self._asked.submodules:
            return
        for submodule in submodules(part.mirror, part.commit):
            place = part.directory / submodule.path
            # what the study leaves out has no directory; what nobody says the address of stays empty
            if place.is_dir() and submodule.address:
                self._add(part, submodule, log)

    def _add(self, part: _Part, submodule: Submodule, log: str) -> None:
        try:
            inner = self._found(part, submodule)
            if inner.directory.resolve() != part.directory.resolve() / submodule.path:
                raise SourceError("its path leads out of the tree")
            inner.directory.rmdir()
        except (SourceError, OSError) as error:
            raise CheckoutFailed(_remedied(submodule, str(error), depth=part.depth)) from error
        self._tidy(inner.mirror)
        add_worktree(inner.mirror, inner.commit, str(inner.directory), log)
        self._complete(inner, log)

    def _found(self, part: _Part, submodule: Submodule) -> _Part:
        """Where a submodule's commit is: in the user's own clone of it, else at its address."""
        if part.depth == DEEPEST:
            raise SourceError(f"lies more than {DEEPEST} submodules deep")
        address = submodule_address(submodule.address, parent=part.address)
        failed: SourceError | None = None
        for location in (*own_copies(part.mirror, submodule), address):
            mirror = self._mirror_of(location)
            try:
                self._resolve(mirror, submodule.commit)
            except SourceError as error:
                failed = error
                continue
            return _Part(
                mirror=mirror,
                address=address,
                commit=submodule.commit,
                directory=part.directory / submodule.path,
                depth=part.depth + 1,
            )
        assert failed is not None, address
        raise failed

    def _mirror_of(self, location: str) -> Mirror:
        if location not in self._mirrors:
            self._mirrors[location] = Mirror(location, cache=self._cache, starter=self._starter)
        return self._mirrors[location]

    def _resolve(self, mirror: Mirror, commit: str) -> None:
        """Make sure that a mirror has a commit; an address that could not be reached is not asked again."""
        if mirror.location in self._unreachable:
            raise SourceError(self._unreachable[mirror.location])
        try:
            mirror.resolve(commit)
        except SourceError as error:
            if not mirror.path.is_dir():
                self._unreachable[mirror.location] = str(error)
            raise

    def _tidy(self, mirror: Mirror) -> None:
        if mirror.path not in self._tidied:
            forget_removed_worktrees(mirror)
            self._tidied.add(mirror.path)


def _remedied(submodule: Submodule, why: str, *, depth: int) -> str:
    alone = "" if depth else f'source.sparse = ["{LEFT_OUT}{submodule.path}"] leaves it out, '
    return (
        f"submodule {quoted(submodule.path)}: {why}\nfor a build that does not need it, "
        f"{alone}source.submodules = false leaves out all"
    )
