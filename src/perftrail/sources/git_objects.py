"""Asks a git repository for objects by name, many in one go and never through an option."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.errors import SourceError
from perftrail.sources.client import refuse_control_characters
from perftrail.sources.labels import LARGEST_LABEL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from perftrail.sources.git_command import Git


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object: its full id, its kind and how large it is."""

    id: str
    kind: str
    size_bytes: int


def find_objects(git: Git, repository: Path, names: Sequence[str]) -> list[Found | None]:
    """Look names up (``v1.0^{commit}``, ``ID:FILE``); `None` for one that is not there, or not unique.

    Names come in on standard input, one a line, so that none of them can be taken for an option.
    """
    for name in names:
        refuse_control_characters(name, what="git name")
    answer = git.ask(
        "cat-file", "--batch-check", repository=repository, stdin="".join(f"{n}\n" for n in names).encode()
    )
    if answer.failed:
        raise SourceError(f"{repository}: git cannot read it: {answer.why}")
    return [_found(line) for line in answer.output.split(b"\n")[: len(names)]]


def _found(line: bytes) -> Found | None:
    words = line.split(b" ")
    if len(words) != 3 or not words[2].isdigit():
        return None
    return Found(id=words[0].decode(), kind=words[1].decode(), size_bytes=int(words[2]))


def read_blobs(git: Git, repository: Path, blobs: Sequence[Found]) -> Mapping[str, bytes]:
    """Read files' contents by id, each once; what is larger than `LARGEST_LABEL_BYTES` is left out."""
    wanted = sorted(
        {blob.id for blob in blobs if blob.kind == "blob" and blob.size_bytes <= LARGEST_LABEL_BYTES}
    )
    if not wanted:
        return {}
    answer = git.ask(
        "cat-file", "--batch", repository=repository, stdin="".join(f"{id_}\n" for id_ in wanted).encode()
    )
    if answer.failed:
        raise SourceError(f"{repository}: git cannot read it: {answer.why}")
    return _contents(answer.output)


def _contents(output: bytes) -> Mapping[str, bytes]:
    contents, at = {}, 0
    while at < len(output):
        end = output.index(b"\n", at)
        found = _found(output[at:end])
        at = end + 1
        if found is None:
            continue
        contents[found.id] = output[at : at + found.size_bytes]
        at += found.size_bytes + 1
    return contents


def differing_paths(
    git: Git, repository: Path, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[str, ...], ...]:
    """Name the files in which the two trees of each pair differ; a pair that lacks one has none.

    A path that git has to quote stays quoted.
    """
    asked = [f"{old} {new}" for old, new in pairs if old and new]
    answer = git.ask(
        "diff-tree", "--stdin", "-r", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv",
        repository=repository, stdin="".join(f"{each}\n" for each in dict.fromkeys(asked)).encode(),
    )  # fmt: skip
    if answer.failed:
        raise SourceError(f"{repository}: git cannot compare its revisions: {answer.why}")
    found: dict[str, list[str]] = {}
    paths: list[str] = []
    for line in answer.output.decode("utf-8", errors="replace").split("\n"):
        if line.startswith(":"):
            paths.append(line.partition("\t")[2])
        elif line:
            paths = found.setdefault(line, [])
    return tuple(tuple(found.get(f"{old} {new}", ())) for old, new in pairs)


def listings(git: Git, repository: Path, trees: Sequence[str], paths: Sequence[str]) -> Mapping[str, str]:
    """Give for each tree a digest of the names, modes and contents of those of its files that the paths name."""
    (empty,) = git.ask("hash-object", "-t", "tree", "--stdin", repository=repository).lines()
    answer = git.ask(
        "diff-tree", "--stdin", "-r", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--", *paths,
        repository=repository, stdin="".join(f"{empty} {tree}\n" for tree in trees).encode(),
    )  # fmt: skip
    if answer.failed:
        raise SourceError(f"{repository}: git cannot list its revisions' files: {answer.why}")
    found = {tree: hashlib.sha256() for tree in trees}
    listing = hashlib.sha256()
    for line in answer.output.split(b"\n"):
        if line.startswith(b":"):
            listing.update(line + b"\n")
        elif line:
            listing = found[line.split(b" ")[-1].decode()]
    return {tree: digest.hexdigest() for tree, digest in found.items()}
