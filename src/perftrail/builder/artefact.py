"""Names what came out of a build by its content."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builder.debug_info import without_debug_information

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_PIECES = {"*": "[^/]*", "?": "[^/]"}
_LEFT_OUT = frozenset({".git", "__pycache__"})
"""What ties a tree to its mirror, and what Python makes anew from what lies beside it with a date in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What files hold: a digest over names, modes and contents, and how many they are.

    `mentions_build`: something that counts when they are used leads back to the build's own directory, be it
    by its name (`names_build`) or from where it lies. `parts` tells each file's own content by its name.
    """

    digest: str
    files: int
    mentions_build: bool
    names_build: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)


def content_of(root: Path, globs: Sequence[str] | None, *, keys: Sequence[str]) -> Content:
    """Digest the files below `root` that globs match, all without globs. Links count by their targets.

    Debug information is left out. `keys` are the names of build directories, looked for in what remains.
    """
    wanted = None if globs is None else re.compile("|".join(map(_pattern, globs)))
    digest, parts, named, mentions = hashlib.sha256(), dict[str, str](), False, False
    for name in sorted(_files(root)):
        if wanted is not None and not wanted.fullmatch(name):
            continue
        path = root / name
        kind, content = _read(path)
        content = without_debug_information(content)
        parts[name] = f"{kind}\0{hashlib.sha256(content).hexdigest()}"
        digest.update(f"{name}\0{parts[name]}\n".encode(errors="surrogateescape"))
        named = named or any(key.encode() in content for key in keys)
        mentions = mentions or named or b"$ORIGIN" in content
    return Content(
        digest=digest.hexdigest(),
        files=len(parts),
        mentions_build=mentions,
        names_build=named,
        parts=parts,
    )


def content_of_files(paths: Collection[str], *, below: Path) -> str:
    """Digest files and directories of a study by their names; one that is missing counts as missing."""
    digest = hashlib.sha256()
    for name in sorted(paths):
        path = below / name
        if path.is_dir():
            inside = content_of(path, None, keys=()).digest
        elif path.is_file():
            inside = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            inside = "missing"
        digest.update(f"{name}\0{inside}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _read(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    kind = "program" if path.stat().st_mode & 0o111 else "file"
    return kind, path.read_bytes()


def _files(root: Path) -> Iterator[str]:
    """Every file and link below a directory, relative to it; never through a link."""
    for directory, inside, names in os.walk(root):
        here = Path(directory)
        links = [name for name in inside if (here / name).is_symlink()]
        inside[:] = [name for name in inside if name not in _LEFT_OUT and name not in links]
        for name in [*names, *links]:
            path = here / name
            if name not in _LEFT_OUT and (path.is_symlink() or path.is_file()):
                yield str(path.relative_to(root))


def _pattern(glob: str) -> str:
    """A regular expression for a glob; what it matches as a directory it matches with all inside.

    ``*`` and ``?`` stay within a name and leave hidden ones out, ``**`` spans directories.
    """
    parts = []
    for segment in glob.strip("/").split("/"):
        if segment == "**":
            parts.append(r"(?:[^/]+/)*")
        elif segment not in {"", "."}:
            hidden = "" if segment.startswith((".", "[")) else r"(?!\.)"
            parts.append(hidden + _segment(segment) + "/")
    pattern = "".join(parts)
    return pattern.removesuffix("/") + "(?:/.*)?" if pattern.endswith("/") else pattern + ".*"


def _segment(segment: str) -> str:
    pieces = re.findall(r"\[!?\]?[^\]]*\]|.", segment, re.DOTALL)
    return "".join(_PIECES.get(piece) or _one_of(piece) for piece in pieces)


def _one_of(piece: str) -> str:
    if len(piece) == 1:
        return re.escape(piece)
    inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
