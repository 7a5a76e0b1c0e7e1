"""Check out whole commits: the study's files, contents of Git LFS, and submodules. Identify their contents.

Addresses of submodules come from the repository, which may be hostile.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import real_path, remove_tree
from perftrail.model.build import content_key
from perftrail.model.wording import quoted
from perftrail.sources.client import LONG_SECONDS
from perftrail.sources.git.command import TreeLimit, find_objects, listings, remote_git
from perftrail.sources.git.mirror import Mirror, add_worktree, forget_removed_worktrees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.source import Source as SourceTable
    from perftrail.ports import Starter
    from perftrail.sources.git.command import Git


_FILE = ".gitmodules"
_SETTING = re.compile(r"submodule\.(?P<name>.*)\.(?P<key>path|url)\n(?P<value>.*)", re.DOTALL)
_GITLINK = "160000 commit "


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    """A submodule of a commit. `address` is the repository's notation; empty if missing."""

    path: str
    commit: str
    name: str
    address: str


def submodules(mirror: Mirror, commit: str) -> list[Submodule]:
    """Return the submodules in a commit's tree; other entries of ``.gitmodules`` are ignored.

    Raises `CheckoutFailed` if that file cannot be read.
    """
    (file,) = find_objects(mirror.git, mirror.ready(), [f"{commit}:{_FILE}"])
    if file is None or file.kind != "blob":
        return []
    result = mirror.git.run("ls-tree", "-r", "-z", "--full-tree", commit, repository=mirror.path)
    if result.failed:
        raise CheckoutFailed(f"git cannot list {commit}: {result.why}")
    links = [entry.partition("\t") for entry in result.fields() if entry.startswith(_GITLINK)]
    if not links:
        return []
    described = _described(mirror, commit)
    return [
        Submodule(
            path=path,
            commit=link.removeprefix(_GITLINK).strip(),
            name=described[path].get("name", "") if path in described else "",
            address=described[path].get("url", "") if path in described else "",
        )
        for link, _, path in links
    ]


def own_copies(mirror: Mirror, submodule: Submodule) -> Iterator[str]:
    """Return the address of the user's own clone of a submodule inside their repository, if there is one.

    It is an address, not a path, so that the user's check-out of it has no influence.
    """
    home = mirror.own_copy
    parts = PurePosixPath(submodule.name).parts
    if home is None or not parts or ".." in parts or submodule.name.startswith("/"):
        return
    copy = home / "modules" / submodule.name
    if (copy / "HEAD").is_file():
        yield copy.as_uri()


def _described(mirror: Mirror, commit: str) -> Mapping[str, Mapping[str, str]]:
    """Return ``name`` and ``url`` of each path in ``.gitmodules``."""
    result = mirror.git.run(
        "config", "-z", "--blob", f"{commit}:{_FILE}", "--get-regexp", r"^submodule\..*\.(path|url)$",
        repository=mirror.path,
    )  # fmt: skip
    if result.failed and result.errors.strip():
        raise CheckoutFailed(f"{_FILE} of {commit} cannot be read: {result.why}")
    found: dict[str, dict[str, str]] = {}
    for setting in map(_SETTING.fullmatch, result.fields()):
        if setting is not None:
            found.setdefault(setting["name"], {"name": setting["name"]})[setting["key"]] = setting["value"]
    return {each["path"]: each for each in found.values() if "path" in each}


_REMOTE = re.compile(r"(?P<root>(?:https?|ssh|git)://[^/\s]+)(?:/(?P<path>.*))?")
_SHORT_SSH = re.compile(r"(?P<root>[^/:\s]+:)(?!:|//)(?P<path>.*)")
_LOCAL = re.compile(r"(?P<root>file://|)/(?P<path>.*)")
_OPTION = re.compile(r"(?:[a-z]+://)?(?:[^/@]*@)?-")


def is_local(address: str) -> bool:
    """Whether an address is a path on this machine."""
    return _LOCAL.fullmatch(address) is not None


def submodule_address(written: str, *, parent: str) -> str:
    """Return the address of a submodule, resolved against its repository's.

    Raises `SourceError` for addresses that make git start a program, that are options, or that let a remote
    repository read local files.

    >>> submodule_address("../lib.git", parent="https://host.invalid/a/app.git")
    'https://host.invalid/a/lib.git'
    >>> submodule_address("../lib", parent="git@host.invalid:a/app")
    'git@host.invalid:a/lib'
    """
    if written.startswith(("./", "../")):
        return _below(parent, written)
    refuse_unsafe_address(written)
    if is_local(written) and not is_local(parent):
        raise SourceError(
            f"its address {quoted(written)} is a path on this machine, but the repository is remote"
        )
    return written


def refuse_unsafe_address(address: str) -> None:
    """Raise `SourceError` unless an address is a local path or safe for git."""
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in address):
        raise SourceError(f"its address {quoted(address)} has control characters")
    if _OPTION.match(address):
        raise SourceError(f"its address {quoted(address)} would be an option, not an address")
    if not any(form.fullmatch(address) for form in (_LOCAL, _REMOTE, _SHORT_SSH)):
        raise SourceError(f"its address {quoted(address)} is not allowed for git; use https:// or ssh://")


def _below(parent: str, written: str) -> str:
    found = _LOCAL.fullmatch(parent) or _REMOTE.fullmatch(parent) or _SHORT_SSH.fullmatch(parent)
    if found is None:
        raise SourceError(
            f"its address {quoted(written)} is relative to {quoted(parent)}, which is not an address"
        )
    parts = [part for part in (found["path"] or "").split("/") if part]
    for part in written.split("/"):
        if part == ".." and not parts:
            raise SourceError(f"its address {quoted(written)} leads out of {quoted(found['root'] or '/')}")
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    from_home = found.re is _SHORT_SSH and not found["path"].startswith("/")
    return f"{found['root']}{'' if from_home else '/'}{'/'.join(parts)}"


_LONGEST_POINTER_BYTES = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-.*\n)*oid sha256:([0-9a-f]{64})\nsize [0-9]+\n"
)
_TRACKED = ":(top,attr:filter=lfs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pointer:
    """A file that only names its content, by SHA-256."""

    path: bytes
    digest: str


class LargeFiles:
    """Replaces Git LFS pointers by contents: from the user's clone, else fetched by ``git lfs`` if it is installed."""

    def __init__(self, *, cache: Path, starter: Starter) -> None:
        self._cache = cache
        self._starter = starter

    def fill(self, mirror: Mirror, commit: str, worktree: Path, *, address: str, log: str) -> None:
        """Replace the pointers in a worktree by their contents.

        Raises `CheckoutFailed` with the remedy for a missing or wrong content.
        """
        pointers = _pointers(mirror, worktree)
        if not pointers:
            return
        homes = [home / "lfs" / "objects" for home in (mirror.own_copy, mirror.path) if home is not None]
        missing = [each for each in pointers if _object(homes, each) is None]
        why = self._fetch(mirror, commit, address=address, log=log) if missing else ""
        for pointer in pointers:
            content = _object(homes, pointer)
            if content is None:
                raise CheckoutFailed(_lfs_remedy(missing, why))
            _replace(worktree, pointer, content)
        unchanged = b"".join(each.path + b"\0" for each in pointers)
        mirror.git.run(
            "update-index", "-z", "--assume-unchanged", "--stdin", repository=worktree, stdin=unchanged
        )

    def _fetch(self, mirror: Mirror, commit: str, *, address: str, log: str) -> str:
        """Let ``git lfs`` fetch a commit's contents into the mirror; return why it failed."""
        if shutil.which("git-lfs") is None:
            return "git-lfs is not installed"
        try:
            refuse_unsafe_address(address)
        except SourceError as error:
            return str(error)
        git = remote_git(self._starter, cache=self._cache).for_transfers()
        result = git.run(
            "-c", f"remote.origin.url={address}", "lfs", "fetch", "origin", commit,
            repository=mirror.path, timeout_seconds=LONG_SECONDS, log=log,
        )  # fmt: skip
        return result.why if result.failed else "git lfs did not fetch them"


def _pointers(mirror: Mirror, worktree: Path) -> list[_Pointer]:
    result = mirror.git.run("ls-files", "-z", "--", _TRACKED, repository=worktree)
    found = []
    for path in result.output.split(b"\0")[:-1]:
        file = os.path.join(os.fsencode(worktree), path)  # noqa: PTH118 - a name may not be valid text
        if os.path.islink(file) or not os.path.isfile(file):  # noqa: PTH113, PTH114 - as above
            continue
        with open(file, "rb") as opened:  # noqa: PTH123 - as above
            pointer = _POINTER.fullmatch(opened.read(_LONGEST_POINTER_BYTES))
        if pointer is not None:
            found.append(_Pointer(path=path, digest=pointer[1].decode()))
    return found


def _object(homes: Sequence[Path], pointer: _Pointer) -> Path | None:
    for home in homes:
        content = home / pointer.digest[:2] / pointer.digest[2:4] / pointer.digest
        if content.is_file():
            return content
    return None


def _replace(worktree: Path, pointer: _Pointer, content: Path) -> None:
    """Replace a pointer by its content, with the pointer's mode."""
    file = Path(os.fsdecode(os.path.join(os.fsencode(worktree), pointer.path)))  # noqa: PTH118 - as above
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as copy, content.open("rb") as opened:
        shutil.copyfileobj(opened, copy)
    with Path(copy.name).open("rb") as copied:
        digest = hashlib.file_digest(copied, "sha256").hexdigest()
    if digest != pointer.digest:
        raise CheckoutFailed(f"{quoted(str(content))} does not have the checksum of its Git LFS pointer")
    shutil.copymode(file, copy.name)
    Path(copy.name).replace(file)


def _lfs_remedy(missing: Sequence[_Pointer], why: str) -> str:
    first = quoted(os.fsdecode(missing[0].path).encode("utf-8", "replace").decode())
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"Git LFS stores the content of {first}{others} elsewhere, and it is not available: {why}; install git-lfs, "
        "or run git lfs fetch --all in your clone; exclude files that no build needs with "
        'source.sparse = ["!…"]'
    )


EXCLUDE_PREFIX = "!"
"""First character of a path that excludes files."""


def pathspecs(sparse: Sequence[str]) -> tuple[str, ...]:
    """Return a study's paths in git's notation: a directory includes all below it, ``**`` any directories.

    >>> pathspecs(["src/**", "!src/big"])
    (':(top,glob)src/**', ':(top,glob,exclude)src/big')
    """
    return tuple(
        f":(top,glob{',exclude' if path.startswith(EXCLUDE_PREFIX) else ''})"
        + posixpath.normpath(path.removeprefix(EXCLUDE_PREFIX))
        for path in sparse
    )


def fill(git: Git, worktree: Path, sparse: Sequence[str], *, log: str) -> None:
    """Write the selected files into an empty worktree, so that git does not report the others as missing.

    Raises `CheckoutFailed`, also if there are no such files.
    """
    _run(git, worktree, "read-tree", "HEAD", log=log)
    wanted = _run(git, worktree, "ls-files", "-z", "--", *pathspecs(sparse))
    if not wanted:
        raise CheckoutFailed(f"source.sparse: the revision has none of {list(sparse)}")
    everything = _run(git, worktree, "ls-files", "-z")
    named = set(wanted.split(b"\0"))
    others = b"".join(path + b"\0" for path in everything.split(b"\0") if path not in named)
    _run(git, worktree, "update-index", "-z", "--skip-worktree", "--stdin", stdin=others)
    _run(git, worktree, "checkout-index", "-u", "-z", "--stdin", stdin=wanted, log=log)


def _run(git: Git, worktree: Path, *words: str, stdin: bytes = b"", log: str | None = None) -> bytes:
    result = git.run(*words, repository=worktree, stdin=stdin, timeout_seconds=LONG_SECONDS, log=log)
    if result.failed:
        raise CheckoutFailed(f"git cannot check out some files: {result.why}")
    return result.output


MOST_SUBMODULES = 1000
"""Maximum number of submodules in one check-out, at all depths."""

DEEPEST_NESTING = 20
"""Maximum depth of nested submodules; a hostile repository could nest them without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A commit in a directory: of the repository itself, or of a submodule at some depth."""

    mirror: Mirror
    address: str
    commit: str
    directory: Path
    depth: int
    limit: TreeLimit


class Checkouts:
    """Writes the trees of a repository's commits, each submodule as a worktree of a separate mirror."""

    def __init__(self, mirror: Mirror, table: SourceTable, *, cache: Path, starter: Starter) -> None:
        self._mirror = mirror
        self._table = table
        self._cache = cache
        self._starter = starter
        self._large = LargeFiles(cache=cache, starter=starter)
        self._mirrors: dict[str, Mirror] = {}
        self._unreachable: dict[str, str] = {}
        self._tidied: set[Path] = set()
        self._added = 0

    def write(self, commit: str, directory: str, log: str) -> None:
        """Write a commit's files into a new directory, all of them or none.

        Raises `CheckoutFailed`.
        """
        whole = _Part(
            mirror=self._mirror,
            address=self._mirror.published,
            commit=commit,
            directory=Path(directory),
            depth=0,
            limit=TreeLimit(),
        )
        self._tidy(self._mirror)
        self._added = 0
        add_worktree(self._mirror, commit, directory, log, empty=bool(self._table.sparse), limit=whole.limit)
        try:
            if self._table.sparse:
                fill(self._mirror.git, whole.directory, self._table.sparse, log=log)
            self._complete(whole, log)
        except CheckoutFailed:
            remove_tree(Path(directory))
            raise

    def _complete(self, part: _Part, log: str) -> None:
        self._large.fill(part.mirror, part.commit, part.directory, address=part.address, log=log)
        if not self._table.submodules:
            return
        for submodule in submodules(part.mirror, part.commit):
            directory = part.directory / submodule.path
            # A submodule that the study excludes has no directory; one without an address stays empty.
            if directory.is_dir() and submodule.address:
                self._add(part, submodule, log)

    def _add(self, part: _Part, submodule: Submodule, log: str) -> None:
        try:
            inner = self._locate(part, submodule)
            if real_path(inner.directory) != real_path(part.directory) / submodule.path:
                raise SourceError("its path leads out of the tree")
            inner.directory.rmdir()
        except (SourceError, OSError) as error:
            raise CheckoutFailed(_submodule_remedy(submodule, str(error), depth=part.depth)) from error
        self._tidy(inner.mirror)
        add_worktree(inner.mirror, inner.commit, str(inner.directory), log, limit=inner.limit)
        self._complete(inner, log)

    def _locate(self, part: _Part, submodule: Submodule) -> _Part:
        """Return a submodule as a part, in the mirror of the user's own clone, else of the submodule's address."""
        if part.depth == DEEPEST_NESTING:
            raise SourceError(f"more than {DEEPEST_NESTING} nested submodules")
        self._added += 1
        if self._added > MOST_SUBMODULES:
            raise SourceError(f"more than {MOST_SUBMODULES} submodules")
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
                limit=part.limit,
            )
        assert failed is not None, address
        raise failed

    def _mirror_of(self, location: str) -> Mirror:
        if location not in self._mirrors:
            self._mirrors[location] = Mirror(location, cache=self._cache, starter=self._starter)
        return self._mirrors[location]

    def _resolve(self, mirror: Mirror, commit: str) -> None:
        """Fetch a commit into a mirror unless it exists there; try an unreachable address only once."""
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


def _submodule_remedy(submodule: Submodule, why: str, *, depth: int) -> str:
    one = "" if depth else f'source.sparse = ["{EXCLUDE_PREFIX}{submodule.path}"] leaves it out, '
    return (
        f"submodule {quoted(submodule.path)}: {' '.join(why.split())}; for a build that does not need it, "
        f"{one}source.submodules = false leaves out all"
    )


_BATCH = 50
"""Number of trees in one query; a large tree has a listing of some megabytes."""


class Contents:
    """Content keys of a history's commits, queried in batches."""

    def __init__(self, mirror: Mirror, table: SourceTable) -> None:
        self._mirror = mirror
        self._table = table
        self._trees: dict[str, str] = {}
        self._listed: dict[tuple[str, tuple[str, ...]], str] = {}

    def remember(self, commit: str, tree: str) -> None:
        """Remember the tree of a commit."""
        self._trees[commit] = tree

    def tree(self, commit: str) -> str:
        """Return the id of a commit's tree. Raises `SourceError` for an unknown commit."""
        if commit not in self._trees:
            (tree,) = find_objects(self._mirror.git, self._mirror.ready(), [f"{commit}^{{tree}}"])
            if tree is None:
                raise SourceError(f"{self._mirror.location}: no revision {quoted(commit)}")
            self._trees[commit] = tree.id
        return self._trees[commit]

    def of(self, commit: str, *, without: tuple[str, ...] = ()) -> str:
        """Return the content key of a commit's files on disk, without those in some paths."""
        tree = self.tree(commit)
        paths = (*self._table.sparse, *(f"{EXCLUDE_PREFIX}{path}" for path in without))
        name = self._of_some_files(tree, paths) if paths else tree
        return name if self._table.submodules else content_key("without submodules", name)

    def _of_some_files(self, tree: str, paths: tuple[str, ...]) -> str:
        if (tree, paths) not in self._listed:
            trees = list(dict.fromkeys(self._trees.values()))
            wanted = trees[trees.index(tree) :][:_BATCH]
            found = listings(self._mirror.git, self._mirror.ready(), wanted, pathspecs(paths))
            self._listed.update(
                {(each, paths): content_key("some files", listing) for each, listing in found.items()}
            )
        return self._listed[tree, paths]
