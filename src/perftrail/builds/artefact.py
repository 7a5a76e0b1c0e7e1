"""Names what came out of a build by its content.

Takes the debug information out of programs and objects, as it matters to nobody who runs them.

Compilers write the build directory and line numbers into it, and linkers hash them into a build id: with
them no artefact would equal another, and a commit that changed a comment would count as another build.

Tells a finished build from one that was killed half-way: a marker that appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.model.build import Built

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


_ELF = b"\x7fELF"
_ARCHIVE = b"!<arch>\n"
_HEADER_BYTES = 60
"""Each member of an archive is preceded by its name, date, size and the like."""

_NO_BITS = 8
"""A section of this type takes no room in the file."""

_ALLOCATED = 2
"""A section with this flag is loaded when the program runs."""

_LOADER = frozenset({b".interp", b".dynstr"})
"""What the dynamic linker reads: its own path, and the names and directories of libraries."""

_DEBUG = re.compile(rb"\.(rela?\.)?(z?debug_|gnu_debug|gdb_index|stab)")
_BUILD_ID = b".note.gnu.build-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A section: what of its header matters when it is used, and where its content lies."""

    name: bytes
    facts: tuple[int, ...]
    loaded: bool
    start: int
    end: int

    @property
    def left_out(self) -> bool:
        return self.name == _BUILD_ID or (not self.loaded and _DEBUG.match(self.name) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """An object's sections, and the ranges that only say where in the file things are."""

    sections: tuple[_Section, ...]
    table: tuple[int, int]
    pointer: tuple[int, int]


def without_debug_information(content: bytes) -> bytes:
    """Give what of a program, object or archive matters when it is used; anything else as it is.

    The result is fit for hashing and searching, not for running. What lies between and behind the sections
    is kept, since programs carry data there.
    """
    if content.startswith(_ELF):
        return _object(content)
    return _archive(content) if content.startswith(_ARCHIVE) else content


def loader_texts(content: bytes) -> bytes:
    """Return what the dynamic linker reads of a program: libraries' names and directories, and symbols' names.

    Of a file whose sections cannot be read, that is all of it.
    """
    try:
        sections = _layout(content).sections
    except (struct.error, IndexError):
        return content
    return b"\n".join(content[each.start : each.end] for each in sections if each.name in _LOADER)


def _archive(content: bytes) -> bytes:
    """The members with their names; without sizes, and without the index of symbols, made from the rest."""
    parts = [_ARCHIVE]
    at = len(_ARCHIVE)
    while at < len(content):
        header = content[at : at + _HEADER_BYTES]
        size = header[48:58].strip()
        if header[58:] != b"`\n" or not size.isdigit():
            return content
        member = content[at + _HEADER_BYTES : at + _HEADER_BYTES + int(size)]
        if header[:16].strip() not in {b"/", b"/SYM64/"}:
            parts += [header[:48], _object(member) if member.startswith(_ELF) else member]
        at += _HEADER_BYTES + int(size) + int(size) % 2
    return b"".join(parts)


def _object(content: bytes) -> bytes:
    try:
        layout = _layout(content)
    except (struct.error, IndexError):
        return content
    kept = [section for section in layout.sections if not section.left_out]
    parts = [b"%s%r" % (section.name, section.facts) for section in kept]
    at = 0
    for start, end, wanted in _ranges(layout):
        parts.append(content[at:start].strip(b"\0"))  # between sections: padding, its length by chance
        if wanted:
            parts.append(content[max(at, start) : end])
        at = max(at, end)
    return b"\n".join([*parts, content[at:]])


def _ranges(layout: _Layout) -> list[tuple[int, int, bool]]:
    """Start and end of all that the headers account for, in the file's order, and whether it is kept."""
    sections = [(section.start, section.end, not section.left_out) for section in layout.sections]
    return sorted([*sections, (*layout.table, False), (*layout.pointer, False)])


def _layout(content: bytes) -> _Layout:
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    pointer, width = (40, 8) if wide else (32, 4)
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), content, pointer)
    size, count, names = struct.unpack_from(order + "HHH", content, 58 if wide else 46)
    return _Layout(
        sections=tuple(
            _sections(content, order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"), table, size, count, names)
        ),
        table=(table, table + size * count),
        pointer=(pointer, pointer + width),
    )


def _sections(
    content: bytes, layout: str, table: int, size: int, count: int, names: int
) -> Iterator[_Section]:
    headers = [struct.unpack_from(layout, content, table + size * number) for number in range(count)]
    texts = headers[names][4]
    for name, kind, flags, address, offset, length, _, _, alignment, entry in headers[1:]:
        text = content[texts + name : content.find(b"\0", texts + name)]
        filled = 0 if kind == _NO_BITS else length
        if offset + filled > len(content):
            raise IndexError(offset)
        yield _Section(
            name=text,
            facts=(kind, flags, address, length, alignment, entry),
            loaded=bool(flags & _ALLOCATED),
            start=offset,
            end=offset + filled,
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What is remembered of a finished build: what came out, how long it took, where its log is.

    `bytes` is the room that it takes, 0 when that was not asked.
    """

    artefact: str
    seconds: float
    log: str
    bytes: float = 0.0


def read_finished(marker: Path) -> Finished | None:
    """Give what a marker says, `None` when there is none or it says nothing that we understand."""
    try:
        facts = json.loads(marker.read_bytes())
        return Finished(
            artefact=str(facts["artefact"]),
            seconds=float(facts["seconds"]),
            log=str(facts["log"]),
            bytes=float(facts.get("bytes", 0.0)),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_finished(marker: Path, finished: Finished) -> None:
    """Mark a build as finished: durable, and seen by others whole or not at all."""
    write_durably(marker, asdict(finished))


def write_durably(path: Path, facts: Mapping[str, object]) -> None:
    """Write facts as JSON so that they are seen whole or not at all, and outlive a power cut."""
    ours = path.with_suffix(".new")
    with ours.open("w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    ours.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make what was renamed or removed in a directory outlive a power cut."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def built_of(key: str, finished: Finished, directory: str, *, reused: bool, layout: int = 0) -> Built:
    """Give what a finished build is for whoever uses it."""
    return Built(
        key=key,
        artefact=finished.artefact,
        directory=directory,
        seconds=finished.seconds,
        log=finished.log,
        reused=reused,
        layout=layout,
    )
