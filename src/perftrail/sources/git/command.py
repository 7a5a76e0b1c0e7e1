"""Run git without anything that a repository or the user's settings could make it execute.

Objects are queried by name, many at once, never as options.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import CheckoutFailed, SourceError
from perftrail.file_tree import user_home
from perftrail.git_variables import NO_TRANSFER, git_variables
from perftrail.model.wording import quantity
from perftrail.sources.client import (
    LARGEST_OUTPUT_BYTES,
    QUICK_SECONDS,
    Client,
    client_environment,
    refuse_control_characters,
)
from perftrail.sources.ranges import LARGEST_LABEL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.ports import Starter
    from perftrail.sources.client import ToolResult


UPLOAD_PACK = f"{' '.join(f'{name}={value}' for name, value in NO_TRANSFER.items())} git-upload-pack"
"""Program that reads a local repository for a clone or fetch; git removes other variables from its environment."""

_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_COMMAND")
"""Git's own variables that remote addresses may need; all others are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Runs git in a repository, never through a shell, a pager, a hook or a prompt."""

    client: Client
    program: str

    def run(
        self,
        *words: str,
        repository: str | Path,
        stdin: bytes = b"",
        timeout_seconds: float = QUICK_SECONDS,
        log: str | Path | None = None,
        output_bytes: int | None = None,
    ) -> ToolResult:
        """Run one git command in a directory of a repository. It cannot transfer anything; see `for_transfers`."""
        return self.client.run(
            [self.program, "--no-pager", *words],
            directory=repository,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            log=log,
            output_bytes=output_bytes,
        )

    def for_transfers(self) -> Git:
        """Return a git that may clone and fetch. Use it only in directories of perftrail's own mirrors."""
        environment = {
            name: value for name, value in self.client.environment.items() if name not in NO_TRANSFER
        }
        return replace(self, client=replace(self.client, environment=environment))

    def with_variables(self, **variables: str) -> Git:
        """Return a git with additional variables."""
        return replace(
            self, client=replace(self.client, environment={**self.client.environment, **variables})
        )

    def without_repository(self) -> Git:
        """Return a git that considers no directory part of a repository, not even one with a ``.git``."""
        return self.with_variables(GIT_DIR="/dev/null")


def local_git(starter: Starter, *, cache: Path) -> Git:
    """Return a git with only perftrail's settings, which reads repositories of any owner.

    Git reads trusted directories only from a user's settings file, and a clone of a path starts a process that sees
    only this file. So perftrail writes such a file.
    """
    return _git(starter, _settings_file(cache, "gitconfig", "[safe]\n\tdirectory = *\n"))


def remote_git(starter: Starter, *, cache: Path) -> Git:
    """Return a git with the user's settings, for the credentials and proxies of remote addresses."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or user_home() / ".config")
    users = [settings / "git/config", user_home() / ".gitconfig"]
    includes = "".join(f'[include]\n\tpath = "{_escaped(str(path))}"\n' for path in users)
    return _git(starter, _settings_file(cache, "gitconfig-remote", includes + "[safe]\n\tdirectory = *\n"))


def _git(starter: Starter, settings: Path) -> Git:
    program = shutil.which("git")
    if program is None:
        raise SourceError("git is not installed: install it, or choose another kind of source")
    environment = {
        **client_environment(without=("GIT_",), keep=_KEPT),
        **git_variables(settings_file=str(settings)),
    }
    return Git(client=Client(starter=starter, environment=environment), program=program)


def _settings_file(cache: Path, name: str, text: str) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / name
    if not path.is_file() or path.read_text() != text:
        with tempfile.NamedTemporaryFile("w", dir=cache, delete=False) as file:
            file.write(text)
        Path(file.name).replace(path)
    return path


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """An object: full id, kind and size."""

    id: str
    kind: str
    size_bytes: int


def find_objects(git: Git, repository: Path, names: Sequence[str]) -> list[GitObject | None]:
    """Look up names (``v1.0^{commit}``, ``ID:FILE``); `None` for a missing or ambiguous one.

    Names go to standard input, one a line, so that none can become an option.
    """
    for name in names:
        refuse_control_characters(name, what="git name")
    result = git.run(
        "cat-file", "--batch-check", repository=repository, stdin="".join(f"{n}\n" for n in names).encode()
    )
    if result.failed:
        raise SourceError(f"{repository}: git cannot read it: {result.why}")
    return [_parse_object(line) for line in result.output.split(b"\n")[: len(names)]]


def _parse_object(line: bytes) -> GitObject | None:
    words = line.split(b" ")
    if len(words) != 3 or not words[2].isdigit():
        return None
    return GitObject(id=words[0].decode(), kind=words[1].decode(), size_bytes=int(words[2]))


def read_blobs(git: Git, repository: Path, blobs: Sequence[GitObject]) -> Mapping[str, bytes]:
    """Read files' contents by id, each once, except those larger than `LARGEST_LABEL_BYTES`."""
    small = {
        blob.id: blob.size_bytes
        for blob in blobs
        if blob.kind == "blob" and blob.size_bytes <= LARGEST_LABEL_BYTES
    }
    wanted = sorted(small)
    if not wanted:
        return {}
    if sum(small.values()) > LARGEST_OUTPUT_BYTES // 2:
        raise SourceError(
            f"{repository}: the {len(small)} versions of the wanted files have more than "
            f"{quantity(LARGEST_OUTPUT_BYTES / 2, 'B')}; name a smaller file, for example in source.label"
        )
    result = git.run(
        "cat-file", "--batch", repository=repository, stdin="".join(f"{id_}\n" for id_ in wanted).encode()
    )
    if result.failed:
        raise SourceError(f"{repository}: git cannot read it: {result.why}")
    return _contents(result.output)


def _contents(output: bytes) -> Mapping[str, bytes]:
    contents, at = {}, 0
    while at < len(output):
        end = output.index(b"\n", at)
        found = _parse_object(output[at:end])
        at = end + 1
        if found is None:
            continue
        contents[found.id] = output[at : at + found.size_bytes]
        at += found.size_bytes + 1
    return contents


_PAIR_BATCH = 5000
"""Number of pairs in one query, because its output is limited."""


def differing_paths(
    git: Git, repository: Path, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[str, ...], ...]:
    """Return the files in which the two trees of each pair differ; none for incomplete pairs.

    Paths that git quotes stay quoted.
    """
    if len(pairs) > _PAIR_BATCH:
        parts = (pairs[start : start + _PAIR_BATCH] for start in range(0, len(pairs), _PAIR_BATCH))
        return tuple(paths for part in parts for paths in differing_paths(git, repository, part))
    lines = [f"{old} {new}" for old, new in pairs if old and new]
    result = git.run(
        "diff-tree", "--stdin", "-r", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv",
        repository=repository, stdin="".join(f"{each}\n" for each in dict.fromkeys(lines)).encode(),
    )  # fmt: skip
    if result.failed:
        raise SourceError(f"{repository}: git cannot compare its revisions: {result.why}")
    found: dict[str, list[str]] = {}
    paths: list[str] = []
    for line in result.output.decode("utf-8", errors="replace").split("\n"):
        if line.startswith(":"):
            paths.append(line.partition("\t")[2])
        elif line:
            paths = found.setdefault(line, [])
    return tuple(tuple(found.get(f"{old} {new}", ())) for old, new in pairs)


MOST_TREE_ENTRIES = 1_000_000
"""More files and directories than any known project has; trees with more are refused before they are written."""

_ENTRY_BYTES = 66
"""Longest id in a listing, SHA-256 in hexadecimal, with its separator."""

LARGEST_TREE_BYTES = 64 << 30
"""Larger than the files of any known project."""


@dataclass(slots=True)
class TreeLimit:
    """Number of files and bytes that one check-out may still write, including its submodules."""

    entries: int = MOST_TREE_ENTRIES
    bytes: int = LARGEST_TREE_BYTES

    def count(self, git: Git, repository: Path, commit: str, *, sizes: bool = True) -> None:
        """Count a commit's files before git writes any. Raises `CheckoutFailed` for a tree beyond the limit.

        A small repository can have an enormous tree, because entries may share an object. Without `sizes`, only the
        entries count, because not all files will be written.
        """
        options = ("-r", "-t", "-z", "--full-tree", "--format=%(objectname)")
        output_bytes = MOST_TREE_ENTRIES * _ENTRY_BYTES
        result = git.run("ls-tree", *options, commit, repository=repository, output_bytes=output_bytes)
        if result.failed and not result.over_limit:
            raise CheckoutFailed(f"git cannot list {commit}: {result.why}")
        names = Counter(result.fields())
        self.entries -= MOST_TREE_ENTRIES + 1 if result.over_limit else names.total()
        if sizes and self.entries >= 0 and names:
            # Each object is looked up once, because a lookup may open a file.
            found = find_objects(git, repository, list(names))
            blobs = [each for each in found if each is not None and each.kind == "blob"]
            self.bytes -= sum(names[each.id] * each.size_bytes for each in blobs)
        remedy = (
            "perftrail does not write it. Exclude the files with source.sparse or source.submodules = false, or the "
            "revision with source.range"
        )
        if self.entries < 0:
            raise CheckoutFailed(
                f"its tree has more than {MOST_TREE_ENTRIES} files and directories; {remedy}"
            )
        if self.bytes < 0:
            raise CheckoutFailed(
                f"its files have more than {quantity(float(LARGEST_TREE_BYTES), 'B')}; {remedy}"
            )


def listings(git: Git, repository: Path, trees: Sequence[str], paths: Sequence[str]) -> Mapping[str, str]:
    """Return a digest of names, modes and contents of the selected files of each tree."""
    (empty,) = git.run("hash-object", "-t", "tree", "--stdin", repository=repository).lines()
    result = git.run(
        "diff-tree", "--stdin", "-r", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--", *paths,
        repository=repository, stdin="".join(f"{empty} {tree}\n" for tree in trees).encode(),
    )  # fmt: skip
    if result.over_limit and len(trees) > 1:
        return {
            tree: digest
            for each in trees
            for tree, digest in listings(git, repository, [each], paths).items()
        }
    if result.failed:
        raise SourceError(f"{repository}: git cannot list its revisions' files: {result.why}")
    found = {tree: hashlib.sha256() for tree in trees}
    listing = hashlib.sha256()
    for line in result.output.split(b"\n"):
        if line.startswith(b":"):
            listing.update(line + b"\n")
        elif line:
            listing = found[line.split(b" ")[-1].decode()]
    return {tree: digest.hexdigest() for tree, digest in found.items()}
