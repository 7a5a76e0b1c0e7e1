"""Unpack untrusted tar and zip archives: nothing is written outside, nothing is a device."""

from __future__ import annotations

import io
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from lzma import LZMAError
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from perftrail.errors import CheckoutFailed
from perftrail.file_tree import NewTree, set_same_date
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

LARGEST_TREE_BYTES = 8 << 30
"""Larger than the files of any release; larger archives are refused."""

MOST_ENTRIES = 1_000_000
"""More entries than any release has; larger archives are refused."""

LARGEST_DIRECTORY_BYTES = 64 << 20
"""Limit of a zip archive's list of entries, which Python reads at once."""

LONGEST_HEADER_BYTES = 1 << 20
"""Limit of a tar archive's header with a long name, which Python reads at once."""

LONGEST_TARGET_BYTES = 4096
"""Longest target of a link that Linux accepts."""


class _Kind(StrEnum):
    DIRECTORY = "directory"
    FILE = "file"
    LINK = "symbolic link"
    HARD_LINK = "hard link"


_ORDER = (_Kind.DIRECTORY, _Kind.FILE, _Kind.HARD_LINK, _Kind.LINK)
"""Order of writing. Symbolic links come last: without them, no path leads outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An entry of an archive: its path in parts, and the target of a link as written."""

    parts: tuple[str, ...]
    kind: _Kind
    program: bool
    target: str
    size_bytes: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, directory: Path) -> int:
    """Unpack an archive into a new directory and return the number of files.

    A single enclosing directory is left out. Raises `CheckoutFailed` for an invalid archive, an absolute name,
    ``..``, a device, or a link that leads outside.
    """
    try:
        with ExitStack() as stack:
            entries = _without_wrapper(_counted(_entries(archive, stack)))
            _refuse_entries_behind_links(entries)
            directory.mkdir(parents=True)
            _write(entries, NewTree(directory))
            _refuse_links_outside(entries, directory)
            set_same_date(directory)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, *_BROKEN) as error:
        raise CheckoutFailed(f"{archive.name}: cannot be unpacked: {error}") from error
    return sum(entry.kind is not _Kind.DIRECTORY for entry in entries)


_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError)
"""Exceptions of the standard library for invalid archives; some are not `OSError`."""


def _entries(archive: Path, stack: ExitStack) -> Iterator[_Entry]:
    try:
        opened = tarfile.open(archive, errorlevel=2, tarinfo=_Member)  # noqa: SIM115 - the stack closes it
    except tarfile.TarError:
        file = stack.enter_context(_ArchiveFile(archive))
        if not zipfile.is_zipfile(file):
            raise CheckoutFailed(f"{archive.name}: is neither a tar archive nor a zip archive") from None
        yield from _of_zip(stack.enter_context(zipfile.ZipFile(file)))
    else:
        yield from _of_tar(stack.enter_context(opened))


def _counted(entries: Iterable[_Entry]) -> list[_Entry]:
    """Return the entries. Raises `CheckoutFailed` as soon as there are too many, or their contents are too large."""
    found: list[_Entry] = []
    left = LARGEST_TREE_BYTES
    for entry in entries:
        left -= entry.size_bytes
        if len(found) == MOST_ENTRIES:
            raise CheckoutFailed(f"the archive contains more than {MOST_ENTRIES} entries; {_REMEDY}")
        if left < 0:
            raise CheckoutFailed(f"the archive unpacks to more than {LARGEST_TREE_BYTES} bytes; {_REMEDY}")
        found.append(entry)
    return found


_REMEDY = "perftrail does not unpack it. Leave this release out of the range"


class _ArchiveFile(io.FileIO):
    """A zip archive that refuses to read a list of entries larger than `LARGEST_DIRECTORY_BYTES`."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read like a file. Raises `CheckoutFailed` for too much at once."""
        if size is not None and size > LARGEST_DIRECTORY_BYTES:
            raise CheckoutFailed(
                f"the archive's list of entries has more than {LARGEST_DIRECTORY_BYTES} bytes; {_REMEDY}"
            )
        return super().read(size) or b""


_LONG_HEADERS = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)


class _Member(tarfile.TarInfo):
    """A member of a tar archive that refuses headers longer than `LONGEST_HEADER_BYTES`."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header block. Raises `CheckoutFailed` for a header that is too long."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _LONG_HEADERS and found.size > LONGEST_HEADER_BYTES:
            raise CheckoutFailed(
                f"a header of the archive has more than {LONGEST_HEADER_BYTES} bytes; {_REMEDY}"
            )
        return found


def _of_zip(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = (
            _Kind.DIRECTORY
            if info.filename.endswith("/")
            else _Kind.LINK
            if stat.S_ISLNK(mode)
            else _Kind.FILE
        )
        if kind is _Kind.FILE and stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
            raise CheckoutFailed(f"the archive's {quoted(info.filename)} is not a file, directory or link")
        yield _Entry(
            parts=_parts(info.filename),
            kind=kind,
            program=bool(mode & stat.S_IXUSR),
            target=_link_target(archive, info) if kind is _Kind.LINK else "",
            size_bytes=info.file_size,
            open=partial(archive.open, info),
        )


def _link_target(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with archive.open(info) as content:
        target = content.read(LONGEST_TARGET_BYTES)
    if len(target) == LONGEST_TARGET_BYTES:
        raise CheckoutFailed(
            f"the archive's link {quoted(info.filename)} has a target of {LONGEST_TARGET_BYTES} bytes or more; "
            f"{_REMEDY}"
        )
    return os.fsdecode(target)


def _of_tar(archive: tarfile.TarFile) -> Iterator[_Entry]:
    for member in archive:
        yield _Entry(
            parts=_parts(member.name),
            kind=_kind(member),
            program=bool(member.mode & stat.S_IXUSR),
            target=member.linkname,
            size_bytes=member.size if member.isfile() else 0,
            open=partial(_content, archive, member),
        )


def _kind(member: tarfile.TarInfo) -> _Kind:
    if member.isdir():
        return _Kind.DIRECTORY
    if member.issym():
        return _Kind.LINK
    if member.islnk():
        return _Kind.HARD_LINK
    if member.isfile():
        return _Kind.FILE
    raise CheckoutFailed(f"the archive's {quoted(member.name)} is not a file, directory or link")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member)
    if content is None:
        raise CheckoutFailed(f"the archive's {quoted(member.name)} has no content")
    return content


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a path. Raises `CheckoutFailed` if it could lead out of the directory."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise CheckoutFailed(f"the archive's {quoted(name)} leads outside its directory")
    return parts


def _without_wrapper(entries: list[_Entry]) -> list[_Entry]:
    """Leave out a single enclosing directory, which release archives usually have, and empty names."""
    named = [entry for entry in entries if entry.parts]
    tops = {entry.parts[0] for entry in named}
    bare = [entry for entry in named if len(entry.parts) == 1]
    if len(tops) != 1 or any(entry.kind is not _Kind.DIRECTORY for entry in bare):
        return named
    return [
        _Entry(
            parts=entry.parts[1:],
            kind=entry.kind,
            program=entry.program,
            # The target of a hard link is relative to the archive's top, that of a symbolic link to the link.
            target="/".join(_parts(entry.target)[1:]) if entry.kind is _Kind.HARD_LINK else entry.target,
            size_bytes=entry.size_bytes,
            open=entry.open,
        )
        for entry in named
        if len(entry.parts) > 1
    ]


def _refuse_entries_behind_links(entries: Sequence[_Entry]) -> None:
    """Raise `CheckoutFailed` for an entry with a link among its parents, before anything is written."""
    links = {entry.parts for entry in entries if entry.kind is _Kind.LINK}
    for entry in entries:
        if any(entry.parts[:depth] in links for depth in range(1, len(entry.parts))):
            raise CheckoutFailed(f"the archive's {quoted('/'.join(entry.parts))} is behind a link")


def _write(entries: Iterable[_Entry], tree: NewTree) -> None:
    """Write directories, files and links. No content is larger than stated: the readers end at the stated size."""
    for entry in sorted(entries, key=lambda each: _ORDER.index(each.kind)):
        if entry.kind is _Kind.DIRECTORY:
            tree.directory(entry.parts)
        elif entry.kind is _Kind.LINK:
            tree.link(entry.parts, entry.target)
        elif entry.kind is _Kind.HARD_LINK:
            tree.hard_link(entry.parts, _parts(entry.target))
        else:
            tree.remove(entry.parts)
            with entry.open() as content, tree.file(entry.parts, program=entry.program) as file:
                shutil.copyfileobj(content, file)


def _refuse_links_outside(entries: Iterable[_Entry], directory: Path) -> None:
    """Raise `CheckoutFailed` for symbolic links that lead out of the directory, directly or through others."""
    root = directory.resolve()
    for entry in entries:
        if entry.kind is not _Kind.LINK:
            continue
        lexical = posixpath.normpath(posixpath.join(*entry.parts[:-1], entry.target))
        resolved = directory.joinpath(*entry.parts).resolve()
        if entry.target.startswith("/") or lexical.split("/")[0] == ".." or not resolved.is_relative_to(root):
            text = "/".join(entry.parts)
            raise CheckoutFailed(
                f"the archive's link {quoted(text)} leads outside, to {quoted(entry.target)}"
            )
        with suppress(FileNotFoundError, NotADirectoryError):  # a target that is missing
            resolved.stat()  # raises `OSError` for a link that leads into itself
