"""A bare private copy of a git repository, so that the user's repository is never written to; its worktrees."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import exclusive_lock, publish, shared_lock, try_exclusive_lock, user_home
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS, shared_directory
from perftrail.sources.git.command import UPLOAD_PACK, Git, TreeLimit, find_objects, local_git, remote_git

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.ports import Starter


_WORKTREES = "worktrees"
_UNFINISHED = "initializing"
"""Content of a worktree's lock while git creates it; it stays after a kill."""


def add_worktree(
    mirror: Mirror,
    commit: str,
    directory: str,
    log: str,
    *,
    empty: bool = False,
    limit: TreeLimit | None = None,
) -> None:
    """Check a commit out into a new directory, connected to the mirror so that ``git describe`` works there.

    With `empty`, only that connection is created. The tree counts towards `limit`. Raises `CheckoutFailed`.
    ``--force`` is given twice, because git still knows, and locks, a directory that was removed after a kill.
    """
    if Path(directory).exists():
        raise CheckoutFailed(f"{directory}: exists already; a revision needs a new directory")
    (limit or TreeLimit()).count(mirror.git, mirror.path, commit, sizes=not empty)
    Path(directory).parent.mkdir(parents=True, exist_ok=True)
    with shared_lock(mirror.lock):
        # Git reads the records of all worktrees to add one, and fails at an incomplete record.
        with exclusive_lock(mirror.add_lock):
            result = mirror.git.run(
                "worktree", "add", "--force", "--force", "--detach", "--no-checkout", "--", directory, commit,
                repository=mirror.path, timeout_seconds=LONG_SECONDS, log=log,
            )  # fmt: skip
        if not (result.failed or empty):
            result = mirror.git.run(
                "reset", "--hard", "--no-recurse-submodules", "--quiet",
                repository=directory, timeout_seconds=LONG_SECONDS, log=log,
            )  # fmt: skip
    if result.failed:
        shutil.rmtree(directory, ignore_errors=True)
        raise CheckoutFailed(f"git cannot check it out: {result.why}")


def forget_removed_worktrees(mirror: Mirror) -> None:
    """Remove the mirror's records of deleted worktrees, unless another process creates worktrees now."""
    if not (mirror.path / _WORKTREES).is_dir():
        return
    with try_exclusive_lock(mirror.lock) as free:
        if free:
            forget_unfinished_worktrees(mirror.path)
            mirror.git.run("worktree", "prune", repository=mirror.path)


def forget_unfinished_worktrees(mirror: Path) -> None:
    """Remove the mirror's records of worktrees whose creation was killed; no other process may create any now."""
    for lock in (mirror / _WORKTREES).glob("*/locked"):
        if lock.read_text(errors="replace").strip() == _UNFINISHED:
            shutil.rmtree(lock.parent, ignore_errors=True)


_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_ID = re.compile(r"[0-9a-f]{4,39}")
_REFLOG = re.compile(r"@\{")

SHALLOW_IN_CI = {
    "GITHUB_ACTIONS": "check it out with fetch-depth: 0, or complete it with: git fetch --unshallow",
    "GITLAB_CI": 'set the job\'s variable GIT_DEPTH to "0", or complete it with: git fetch --unshallow',
}
"""CI systems with shallow clones by default: the variable that identifies them, and how to get a full clone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Origin of a mirror: its address, the relevant refs, and the git to reach it.

    `lookup` is where names are looked up: the user's own repository for a path, empty for a remote one. `published` is
    its public address, the base of relative addresses in the repository.
    """

    address: str
    refs: tuple[str, ...]
    git: Git
    lookup: str
    published: str


def _home(cache: Path, location: str) -> Path:
    return cache / "git" / content_key(location)[:16]


def is_cloned(location: str, *, cache: Path) -> bool:
    """Return whether the cache has a clone of a repository."""
    return (_home(cache, location) / _CLONE).is_dir()


_CLONE = "mirror.git"


class Mirror:
    """A bare clone in the cache of a study.

    perftrail updates the clone of a local repository at first use, and the clone of a remote one if a revision is
    missing. It clones a remote repository through the user's shared clone; see `_supplier`.
    """

    def __init__(self, location: str, *, cache: Path, starter: Starter) -> None:
        self.location = location
        self.git = local_git(starter, cache=cache)
        self._cache = cache
        self._starter = starter
        self._home = _home(cache, location)
        self._origin: _Origin | None = None
        self._fetched = False

    @property
    def path(self) -> Path:
        """Path of the mirror after `ready`."""
        return self._home / _CLONE

    @property
    def lock(self) -> Path:
        """Lock file: shared by processes that create worktrees, exclusive for tidying and fetching."""
        return self._home / "worktrees.lock"

    @property
    def add_lock(self) -> Path:
        """Lock file: exclusive for a process that connects a new worktree."""
        return self._home / "add.lock"

    def ready(self) -> Path:
        """Create or update the mirror, and return its path. Raises `SourceError`."""
        origin = self._reach()
        if not self.path.is_dir():
            with exclusive_lock(self._home / "lock"):
                if not self.path.is_dir():
                    self._clone(origin)
        elif origin.lookup and not self._fetched:
            self._fetch(origin, origin.refs)
        return self.path

    def refresh(self) -> None:
        """Update the mirror, once for each process. Raises `SourceError`."""
        origin = self._reach()
        self.ready()
        if not self._fetched:
            self._fetch(origin, origin.refs)

    def resolve(self, name: str) -> str:
        """Return the full id of the commit that a name means to the user. Raises `SourceError` if there is none."""
        mirror, origin = self.ready(), self._reach()
        if not origin.lookup and _REFLOG.search(name):
            raise SourceError(
                f"{self.location}: {quoted(name)} needs a reflog, which only your own clone has; "
                "write a date such as 2024-01-31, a tag or an id"
            )
        found = self._commit(Path(origin.lookup) if origin.lookup else mirror, name)
        if found is None:
            # Only the mirror has the commit of a working tree.
            if not self._fetched:
                self._fetch(origin, origin.refs)
            found = self._commit(mirror, name)
        if found is None and _FULL_ID.fullmatch(name) and not origin.lookup:
            found = self._fetch_unreferenced(origin, name)
        if found is None:
            raise SourceError(self._unknown(name))
        self._fetch_missing(found)
        return found

    def refs(self, under: str) -> list[str]:
        """Return every ref below a prefix such as ``refs/tags``, in the order of versions."""
        pattern = ["--sort=version:refname", "--format=%(refname)%00", under]
        names = self.git.run("for-each-ref", *pattern, repository=self.ready()).fields()
        return [name.removeprefix("\n") for name in names]

    @property
    def published(self) -> str:
        """The repository's public address, or its path without one."""
        return self._reach().published

    @property
    def own_copy(self) -> Path | None:
        """The git directory of the user's own repository; `None` if it is remote."""
        origin = self._reach()
        if origin.lookup:
            return Path(origin.address)
        if not self.location.startswith("file://"):
            return None
        path = Path(self.location.removeprefix("file://"))
        return path / ".git" if (path / ".git").is_dir() else path

    @property
    def check_out(self) -> Path | None:
        """The directory of the user's check-out; `None` for an address."""
        lookup = self._reach().lookup
        return Path(lookup) if lookup else None

    def exclude_files(self) -> list[Path]:
        """Return the files outside of a check-out with patterns of ignored files: the repository's and the user's."""
        own = self.own_copy
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or user_home() / ".config")
        users = remote_git(self._starter, cache=self._cache)
        words = ("config", "--type=path", "--get", "core.excludesFile")
        found = users.without_repository().run(*words, repository=self._home)
        named = Path(found.lines()[0]) if found.lines() else settings / "git" / "ignore"
        return [
            file for file in (own / "info" / "exclude" if own else None, named) if file and file.is_file()
        ]

    def _reach(self) -> _Origin:
        if self._origin is None:
            self._origin = self._local() if self.location.startswith("/") else self._remote()
        return self._origin

    def _local(self) -> _Origin:
        if not Path(self.location).is_dir():
            raise SourceError(f"{self.location}: no such directory; source.location must be a git repository")
        queries = ("--path-format=absolute", "--is-shallow-repository", "--git-common-dir")
        result = self.git.run("rev-parse", *queries, repository=self.location)
        if result.failed:
            raise SourceError(f"{self.location}: is not a git repository ({result.why})")
        shallow, common = result.lines()[:2]
        published = self._published(common)
        if shallow == "true":
            raise SourceError(
                f"{self.location}: a shallow clone lacks the history to search; {_how_to_unshallow()}"
            )
        if self._setting(r"^(extensions\.partialclone|remote\..*\.promisor)$"):
            raise SourceError(
                f"{self.location}: a partial clone lacks files of its history; "
                f"name its origin instead: location = {json.dumps(published)}"
            )
        return _Origin(
            address=common,
            refs=("+refs/*:refs/*",),
            git=self.git,
            lookup=self.location,
            published=published,
        )

    def _published(self, common: str) -> str:
        """Return the origin of a local clone, else its own path."""
        top = self.git.run("rev-parse", "--path-format=absolute", "--show-toplevel", repository=self.location)
        path = common if top.failed else top.lines()[0]
        remote = self._setting(r"^remote\.origin\.url$")
        if remote.startswith(("./", "../")):
            return os.path.normpath(Path(path) / remote)
        return remote or path

    def _setting(self, pattern: str) -> str:
        """Return an effective setting of the user's repository, includes followed; empty without one."""
        result = self.git.run("config", "-z", "--get-regexp", pattern, repository=self.location)
        return result.fields()[-1].partition("\n")[2] if result.fields() else ""

    def _remote(self) -> _Origin:
        if self.location.startswith("-") or "::" in self.location.partition("://")[0]:
            raise SourceError(
                f"{self.location}: is not an allowed address for git; use https://, ssh:// or a path"
            )
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        git = remote_git(self._starter, cache=self._cache)
        return _Origin(address=self.location, refs=refs, git=git, lookup="", published=self.location)

    def _clone(self, origin: _Origin) -> None:
        with self._supplier(origin, origin.refs) as supplier:
            self._clone_into(self._home, supplier)
        if supplier is not origin:
            self.git.run("config", "remote.origin.url", origin.address, repository=self.path)
        self._fetched = True

    @contextmanager
    def _supplier(self, origin: _Origin, refs: Sequence[str]) -> Iterator[_Origin]:
        """Yield the origin to fetch from. For an address, this is the user's shared clone, with `refs` up to date.

        All studies of an address share this clone. So git transfers an address once, and a mirror on the same file
        system has hard links to its objects.
        """
        shared = None if origin.lookup else shared_directory(f"git/{self._home.name}")
        if shared is None:
            yield origin
            return
        with exclusive_lock(shared / "lock"):
            clone = shared / self.path.name
            if clone.is_dir():
                self._fetch_into(clone, origin, refs)
            else:
                self._clone_into(shared, origin)
            yield replace(origin, address=str(clone), git=self.git)

    def _clone_into(self, home: Path, origin: _Origin) -> None:
        temporary = home / "making.git"
        shutil.rmtree(temporary, ignore_errors=True)
        kind = "--mirror" if origin.lookup else "--bare"
        result = origin.git.for_transfers().run(
            "clone", kind, "--quiet", "--template=", *_supplied_by(origin.address),
            "--", origin.address, str(temporary),
            repository=home, timeout_seconds=LONG_SECONDS,
        )  # fmt: skip
        if result.failed:
            shutil.rmtree(temporary, ignore_errors=True)
            raise SourceError(f"{self.location}: git cannot clone it: {result.why}")
        if (temporary / "shallow").exists():
            shutil.rmtree(temporary)
            raise SourceError(
                f"{self.location}: is shallow and lacks the history to search; name a complete repository, "
                "or complete this one with: git fetch --unshallow"
            )
        publish(temporary, home / self.path.name)

    def _fetch(self, origin: _Origin, refs: Sequence[str]) -> None:
        # Git reads the HEAD of every worktree when it fetches; an incomplete worktree has none yet.
        with exclusive_lock(self._home / "lock"), exclusive_lock(self.lock):
            forget_unfinished_worktrees(self.path)
            with self._supplier(origin, refs) as supplier:
                self._fetch_into(self.path, supplier, refs)
        self._fetched = True

    def _fetch_into(self, repository: Path, origin: _Origin, refs: Sequence[str]) -> None:
        result = origin.git.for_transfers().run(
            "fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-auto-gc",
            "--no-write-fetch-head", *_supplied_by(origin.address), "--", origin.address, *refs,
            repository=repository, timeout_seconds=LONG_SECONDS,
        )  # fmt: skip
        if result.failed:
            raise SourceError(f"{self.location}: git cannot fetch from it: {result.why}")

    def _fetch_missing(self, commit: str) -> None:
        """Fetch a commit that no ref leads to, for example one of a reflog or a detached HEAD."""
        if self._commit(self.path, commit) is None:
            self._fetch(self._reach(), [commit])

    def _fetch_unreferenced(self, origin: _Origin, id_: str) -> str | None:
        """Fetch a commit that no branch or tag of an address leads to, if the server allows that."""
        try:
            self._fetch(origin, [id_])
        except SourceError:
            return None
        return self._commit(self.path, id_)

    def _commit(self, repository: Path, name: str) -> str | None:
        (found,) = find_objects(self.git, repository, [f"{name}^{{commit}}"])
        return found.id if found is not None and found.kind == "commit" else None

    def _unknown(self, name: str) -> str:
        if name == "HEAD":
            return f"{self.location}: has no commit yet"
        known = [ref.split("/", 2)[-1] for ref in self.refs("refs/tags") + self.refs("refs/heads")]
        near = difflib.get_close_matches(name, ["HEAD", *known], n=3)
        hint = f"; did you mean {' or '.join(quoted(each) for each in near)}?" if near else ""
        ambiguous = ", or several begin with it" if _SHORT_ID.fullmatch(name) else ""
        remedy = hint or "; git branch --all and git tag list the names"
        return f"{self.location}: no revision {quoted(name)}{ambiguous}{remedy}"


def _supplied_by(address: str) -> tuple[str, ...]:
    """Return the options with the program that reads a repository of this machine; none for a remote one."""
    return ("--upload-pack", UPLOAD_PACK) if address.startswith(("/", "file://")) else ()


def _how_to_unshallow() -> str:
    """Return how to complete a shallow clone; in CI, how that system does it."""
    jobs = (how for name, how in SHALLOW_IN_CI.items() if os.environ.get(name) == "true")
    return next(jobs, "complete it with: git fetch --unshallow")
