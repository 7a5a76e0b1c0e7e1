"""A bare copy of a git repository that is ours, so that nobody's own repository is ever written to."""

from __future__ import annotations

import difflib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.model.build import content_key
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git_command import Git, local_git, remote_git
from perftrail.sources.git_objects import find_objects
from perftrail.sources.lock import alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.ports import Starter


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Where a mirror is copied from: an address for git, the refs that matter there, the git to reach it.

    `asked` is where names are looked up: the user's own repository when it is a path, empty for a remote.
    """

    address: str
    refs: tuple[str, ...]
    git: Git
    asked: str


class Mirror:
    """A bare clone in the cache, brought up to date: of a path on first use, else when something lacks."""

    def __init__(self, location: str, *, cache: Path, starter: Starter) -> None:
        self.location = location
        self.git = local_git(starter, cache=cache)
        self._cache = cache
        self._starter = starter
        self._home = cache / "git" / content_key(location)[:16]
        self._origin: _Origin | None = None
        self._fetched = False

    @property
    def path(self) -> Path:
        """Where the mirror lies once `ready` was called."""
        return self._home / "mirror.git"

    @property
    def lock(self) -> Path:
        """The file that whoever makes worktrees holds together, and whoever tidies them or fetches alone."""
        return self._home / "worktrees.lock"

    def ready(self) -> Path:
        """Make the mirror, or bring it up to date, and give its path. Raises `SourceError`."""
        origin = self._reach()
        if not self.path.is_dir():
            with alone(self._home / "lock"):
                if not self.path.is_dir():
                    self._clone(origin)
        elif origin.asked and not self._fetched:
            self._fetch(origin, origin.refs)
        return self.path

    def resolve(self, name: str) -> str:
        """Give the full id of the commit that a name means to the user. Raises `SourceError` if none."""
        mirror, origin = self.ready(), self._reach()
        found = self._commit(Path(origin.asked) if origin.asked else mirror, name)
        if found is None and not self._fetched:
            self._fetch(origin, origin.refs)
            found = self._commit(mirror, name)
        if found is None:
            raise SourceError(self._unknown(name))
        self._bring(found)
        return found

    def refs(self, under: str) -> list[str]:
        """Name every ref below a prefix such as ``refs/tags``, versions in their order."""
        pattern = ["--sort=version:refname", "--format=%(refname)", under]
        return self.git.ask("for-each-ref", *pattern, repository=self.ready()).lines()

    def _reach(self) -> _Origin:
        if self._origin is None:
            self._origin = self._local() if self.location.startswith("/") else self._remote()
        return self._origin

    def _local(self) -> _Origin:
        if not Path(self.location).is_dir():
            raise SourceError(f"{self.location}: no such directory; source.location must be a git repository")
        questions = ("--path-format=absolute", "--is-shallow-repository", "--git-common-dir")
        answer = self.git.ask("rev-parse", *questions, repository=self.location)
        if answer.failed:
            raise SourceError(f"{self.location}: no git repository there ({answer.why})")
        shallow, common = answer.lines()[:2]
        if shallow == "true":
            raise SourceError(
                f"{self.location}: a shallow clone lacks the history to search; "
                "complete it with: git fetch --unshallow"
            )
        return _Origin(address=common, refs=("+refs/*:refs/*",), git=self.git, asked=self.location)

    def _remote(self) -> _Origin:
        if self.location.startswith("-") or "::" in self.location.partition("://")[0]:
            raise SourceError(
                f"{self.location}: not an address that git may be given; use https://, ssh:// or a path"
            )
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        git = remote_git(self._starter, cache=self._cache)
        return _Origin(address=self.location, refs=refs, git=git, asked="")

    def _clone(self, origin: _Origin) -> None:
        making = self._home / "making.git"
        shutil.rmtree(making, ignore_errors=True)
        how = "--mirror" if origin.asked else "--bare"
        answer = origin.git.ask(
            "clone", how, "--quiet", "--template=", "--", origin.address, str(making),
            repository=self._home, timeout_seconds=LONG_SECONDS,
        )  # fmt: skip
        if answer.failed:
            shutil.rmtree(making, ignore_errors=True)
            raise SourceError(f"{self.location}: git cannot clone it: {answer.why}")
        making.rename(self.path)
        self._fetched = True

    def _fetch(self, origin: _Origin, what: Sequence[str]) -> None:
        # git reads the HEAD of every worktree when it fetches, and one that is just being made has none yet.
        with alone(self._home / "lock"), alone(self.lock):
            answer = origin.git.ask(
                "fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-auto-gc",
                "--no-write-fetch-head", "--", origin.address, *what,
                repository=self.path, timeout_seconds=LONG_SECONDS,
            )  # fmt: skip
        if answer.failed:
            raise SourceError(f"{self.location}: git cannot fetch from it: {answer.why}")
        self._fetched = True

    def _bring(self, commit: str) -> None:
        """Fetch a commit that no ref leads to, as a user's reflog or a detached HEAD may name it."""
        if self._commit(self.path, commit) is None:
            self._fetch(self._reach(), [commit])

    def _commit(self, repository: Path, name: str) -> str | None:
        (found,) = find_objects(self.git, repository, [f"{name}^{{commit}}"])
        return found.id if found is not None and found.kind == "commit" else None

    def _unknown(self, name: str) -> str:
        if name == "HEAD":
            return f"{self.location}: has no commit yet"
        known = [ref.split("/", 2)[-1] for ref in self.refs("refs/tags") + self.refs("refs/heads")]
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(json_like(each) for each in near)}?" if near else ""
        return f"{self.location}: no revision {json_like(name)}, or more than one begins so{hint}"


def json_like(name: str) -> str:
    """Quote a name for a message, with whatever would upset a terminal escaped."""
    return '"' + name.encode("unicode_escape").decode() + '"'
