"""Name the outputs of a build by their content, and mark finished builds.

Debug information is ignored: compilers write the build directory and line numbers into it, and linkers hash them into
a build id. With them, no artefact would equal another, and a changed comment would count as another build. The marker
of a finished build is written atomically, so that a killed build never counts as finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.file_tree import entries_below, publish, real_path
from perftrail.model.build import Built

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


_ELF = b"\x7fELF"
_ARCHIVE = b"!<arch>\n"
_HEADER_BYTES = 60
"""Bytes of the header of each archive member: name, date, size and others."""

_NO_BITS = 8
"""Type of a section without content in the file."""

_ALLOCATED = 2
"""Flag of a section that is loaded when the program runs."""

_LOADER = frozenset({b".interp", b".dynstr"})
"""Sections that the dynamic linker reads: its own path, names and directories of libraries."""

LONGEST_SECTION_NAME = 4096
"""A file with a longer name of a section counts as a plain file."""

LARGEST_PARSED_BYTES = 128 << 20
"""Larger files are hashed piece by piece, with their debug information."""

_PIECE_BYTES = 1 << 20

_DEBUG = re.compile(rb"\.(rela?\.)?(z?debug_|gnu_debug|gdb_index|stab)")
_BUILD_ID = b".note.gnu.build-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A section: the relevant part of its header, and the range of its content."""

    name: bytes
    facts: tuple[int, ...]
    loaded: bool
    start: int
    end: int

    @property
    def is_excluded(self) -> bool:
        return self.name == _BUILD_ID or (not self.loaded and _DEBUG.match(self.name) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The sections of an object file, and the ranges that only locate other parts of the file."""

    sections: tuple[_Section, ...]
    table: tuple[int, int]
    pointer: tuple[int, int]


_UNREADABLE = (struct.error, IndexError, OverflowError)
"""Errors for headers that lead out of the file, also further than Python can count."""


def without_debug_information(content: bytes) -> bytes:
    """Return the relevant content of a program, object or archive; other files unchanged.

    The result is for hashing and searching, not for running. Bytes between and after the sections are included,
    because programs store data there.
    """
    if content.startswith(_ELF):
        return _object(content)
    return _archive(content) if content.startswith(_ARCHIVE) else content


def loader_texts(content: bytes) -> bytes:
    """Return the parts of a program that the dynamic linker reads: names and directories of libraries, and symbols.

    For a file whose sections cannot be read, return everything.
    """
    try:
        sections = _layout(content).sections
    except _UNREADABLE:
        return content
    return b"\n".join(content[each.start : each.end] for each in sections if each.name in _LOADER)


def _archive(content: bytes) -> bytes:
    """Return the members with their names, without sizes and without the symbol index, which follows from the rest."""
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
    except _UNREADABLE:
        return content
    included = [section for section in layout.sections if not section.is_excluded]
    parts = [b"%s%r" % (section.name, section.facts) for section in included]
    at = 0
    for start, end, wanted in _ranges(layout):
        parts.append(content[at:start].strip(b"\0"))  # padding between sections, of arbitrary length
        if wanted:
            parts.append(content[max(at, start) : end])
        at = max(at, end)
    return b"\n".join([*parts, content[at:]])


def _ranges(layout: _Layout) -> list[tuple[int, int, bool]]:
    """Return the start and end of everything that the headers describe, in file order, and whether it is relevant."""
    sections = [(section.start, section.end, not section.is_excluded) for section in layout.sections]
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
    left = len(content)
    for name, kind, flags, address, offset, length, _, _, alignment, entry in headers[1:]:
        end = content.find(b"\0", texts + name, texts + name + LONGEST_SECTION_NAME)
        text = content[texts + name : end]
        left -= len(text)
        if end < 0 or left < 0:  # many sections can share one long name
            raise IndexError(name)
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
_EXCLUDED = frozenset({".git", "__pycache__"})
"""Links of a tree to its mirror, and dated files that Python creates again from their sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of files: a digest of names, modes and contents, and the number of files.

    `mentions_build`: a relevant part refers to the build's own directory, by its name (`names_build`) or relative
    to its location. `parts` maps each file's name to its own digest.
    """

    digest: str
    files: int
    mentions_build: bool
    names_build: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)


def content_of(root: Path, globs: Sequence[str] | None, *, keys: Sequence[str]) -> Content:
    """Return the digest of the files below `root` that globs match, or of all files. Links count by their targets.

    Debug information is ignored. `keys` are names of build directories to search for in the rest.
    """
    wanted = None if globs is None else re.compile("|".join(map(_pattern, globs)))
    digest, parts, named, mentions = hashlib.sha256(), dict[str, str](), False, False
    for name in sorted(_files(root)):
        if wanted is not None and not wanted.fullmatch(name):
            continue
        kind, own, found = _summary(root / name, [*(key.encode() for key in keys), _ORIGIN])
        parts[name] = f"{kind}\0{own}"
        digest.update(f"{name}\0{parts[name]}\n".encode(errors="surrogateescape"))
        named = named or bool(found - {_ORIGIN})
        mentions = mentions or bool(found)
    return Content(
        digest=digest.hexdigest(),
        files=len(parts),
        mentions_build=mentions,
        names_build=named,
        parts=parts,
    )


def covers(globs: Sequence[str], path: str) -> bool:
    """Return whether globs match a path, or files below it.

    >>> covers(["lib/*.a", "bin"], "bin/work"), covers(["lib/*.a"], "lib"), covers(["lib/*.a"], "work")
    (True, True, False)
    """
    depth = path.strip("/").count("/") + 1
    above = ["/".join(glob.strip("/").split("/")[:depth]) for glob in globs]
    return any(re.fullmatch(_pattern(glob), path.strip("/")) for glob in (*globs, *above))


def output_files(root: Path, globs: Sequence[str], *, most: int) -> tuple[str, ...]:
    """Return the files below `root` that globs match, sorted, the first `most` at most; none if `root` is not here."""
    if not root.is_dir():
        return ()
    wanted = re.compile("|".join(map(_pattern, globs)))
    return tuple(sorted(name for name in _files(root) if wanted.fullmatch(name))[:most])


def has_linked_files(root: Path, globs: Sequence[str] | None) -> bool:
    """Return whether a file below `root` that globs match, or any file, is an ELF program or shared object."""
    wanted = None if globs is None else re.compile("|".join(map(_pattern, globs)))
    return any(is_linked(root / name) for name in _files(root) if wanted is None or wanted.fullmatch(name))


def is_linked(path: Path) -> bool:
    """Return whether a file is an ELF program or shared object."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(18)
    return header.startswith(_ELF) and int.from_bytes(header[16:18], "little") in _LINKED_TYPES


_LINKED_TYPES = (2, 3)
"""ELF types of a program and of a shared object, or a program that can be loaded anywhere."""


def content_of_files(paths: Collection[str], *, below: Path) -> str:
    """Return the digest of files and directories of a study, by name; a missing one counts as missing.

    Names are relative to `below`, so that a study that is moved or copied keeps its digests.
    """
    digest = hashlib.sha256()
    absolute = {below / name for name in paths}
    names = {str(path.relative_to(below) if path.is_relative_to(below) else path): path for path in absolute}
    for name, path in sorted(names.items()):
        digest.update(f"{name}\0{content_of_input(path)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def outermost(paths: Sequence[str]) -> list[str]:
    """Return the paths whose content no directory among the others includes."""
    directories = [path for path in map(Path, paths) if path.is_dir()]
    return [path for path in paths if not any(_includes(each, Path(path)) for each in directories)]


def _includes(directory: Path, path: Path) -> bool:
    """Whether the content of a directory includes that of a path below it, which no link leads to."""
    if directory not in path.parents:
        return False
    name = path.relative_to(directory)
    return real_path(path) == real_path(directory) / name and _EXCLUDED.isdisjoint(name.parts)


MISSING = "missing"
"""Stands for the content of a file that does not exist."""

_SETTLED_NS = 2_000_000_000
"""A file that changed more recently may change again without another date: its digest is not kept."""


def content_of_input(path: Path) -> str:
    """Return the digest of a file, or of all files of a directory; read again only if a size, date or inode changed."""
    states = [("", path.stat())] if path.exists() else []
    if path.is_dir():
        states += [(entry.path, entry.status) for entry in entries_below(path, skipped=_EXCLUDED)]
    facts = tuple((name, of.st_size, of.st_mtime_ns, of.st_ctime_ns, of.st_ino) for name, of in states)
    settled = all(of.st_ctime_ns < time.time_ns() - _SETTLED_NS for _, of in states)
    return (_content_in_state if settled else _content_in_state.__wrapped__)(path, facts)


@lru_cache(maxsize=4096)
def _content_in_state(path: Path, _: tuple[tuple[object, ...], ...]) -> str:
    if path.is_dir():
        return content_of(path, None, keys=()).digest
    if not path.is_file():
        return MISSING
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except PermissionError:  # a program that may be started, but not read, such as sudo
        state = path.stat()
        return f"unreadable, {state.st_size} bytes of {state.st_mtime_ns}"


LARGEST_COMPARED_BYTES = 64 << 20
"""Of a larger file that a program opens by itself, the size and the date count instead of its content."""


def content_of_opened(path: Path) -> str:
    """Return the digest of a file that a program opens by itself; size and date of a large file; `MISSING` for none."""
    if not path.is_file():
        return MISSING
    state = path.stat()
    if state.st_size > LARGEST_COMPARED_BYTES:
        return f"{state.st_size} bytes of {state.st_mtime_ns}"
    return content_of_input(path)


_ORIGIN = b"$ORIGIN"
"""The directory of a program, in what the dynamic linker reads."""


def _summary(path: Path, wanted: Sequence[bytes]) -> tuple[str, str, frozenset[bytes]]:
    """Return the kind of a file or link, the digest of its relevant content, and which texts it contains."""
    if path.is_symlink():
        return "link", *_digest([os.fsencode(path.readlink())], wanted)
    status = path.stat()
    kind = "program" if status.st_mode & 0o111 else "file"
    if status.st_size <= LARGEST_PARSED_BYTES:
        return kind, *_digest([without_debug_information(path.read_bytes())], wanted)
    with path.open("rb") as file:
        return kind, *_digest(iter(lambda: file.read(_PIECE_BYTES), b""), wanted)


def _digest(pieces: Iterable[bytes], wanted: Sequence[bytes]) -> tuple[str, frozenset[bytes]]:
    digest, found, before = hashlib.sha256(), set[bytes](), b""
    overlap = max(map(len, wanted), default=1) - 1
    for piece in pieces:
        digest.update(piece)
        near = before + piece
        found.update(text for text in wanted if text in near)
        before = near[-overlap:] if overlap else b""
    return digest.hexdigest(), frozenset(found)


def _files(root: Path) -> Iterator[str]:
    """Yield every file and link below a directory, relative to it; do not follow links."""
    for entry in entries_below(root, skipped=_EXCLUDED):
        kind = entry.status.st_mode
        if entry.name not in _EXCLUDED and (stat.S_ISLNK(kind) or stat.S_ISREG(kind)):
            yield entry.path


def _pattern(glob: str) -> str:
    """Return a regular expression for a glob; a matching directory matches with its content.

    ``*`` and ``?`` do not match ``/`` or hidden files; ``**`` matches directories.
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
    """The marker of a finished build: artefact, time and log.

    `bytes` is its disk space, 0 if unknown. `session` is when and where it was built, or last built again with equal
    outputs, as `present_session` returns it; empty if unknown.
    """

    artefact: str
    seconds: float
    log: str
    bytes: float = 0.0
    session: str = ""


def present_session() -> str:
    """Return the day (UTC) and the boot session of this machine: in another one, the environment may have changed."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{datetime.now(UTC):%Y-%m-%d} {boot}"


def read_finished(marker: Path) -> Finished | None:
    """Return the content of a marker; `None` if it does not exist or is unreadable."""
    try:
        facts = json.loads(marker.read_bytes())
        return Finished(
            artefact=str(facts["artefact"]),
            seconds=float(facts["seconds"]),
            log=str(facts["log"]),
            bytes=float(facts.get("bytes", 0.0)),
            session=str(facts.get("session", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_finished(marker: Path, finished: Finished) -> None:
    """Mark a build as finished, durably and atomically: its outputs are on the disk before the marker is."""
    write_durably(marker, asdict(finished))


def write_durably(path: Path, facts: Mapping[str, object]) -> None:
    """Write data as JSON, atomically and durably."""
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(facts, file)
    publish(temporary, path)


def built_of(key: str, finished: Finished, directory: str, *, reused: bool, layout: int = 0) -> Built:
    """Return a finished build as `Built`."""
    return Built(
        key=key,
        artefact=finished.artefact,
        directory=directory,
        seconds=finished.seconds,
        log=finished.log,
        reused=reused,
        layout=layout,
    )
