"""Blanks what debug information says of the directory a program was built in.

Compilers write the build directory into debug sections and linkers hash them into a build id. Nothing of it
matters when the program runs, but it would make every artefact unlike every other.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ELF = b"\x7fELF"
_ARCHIVE = b"!<arch>\n"
_NO_BITS = 8
"""A section of this type takes no room in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    name: bytes
    start: int
    end: int


def without_build_directory(content: bytes, keys: Sequence[str]) -> bytes:
    """Blank build keys in an object's debug sections, and its build id. What is no object stays as it is.

    Paths elsewhere, such as where a program looks for its libraries, stay: they matter when it runs.
    """
    if not content.startswith((_ELF, _ARCHIVE)):
        return content
    blanked = bytearray(content)
    for start in [0] if content.startswith(_ELF) else _members(content):
        for section in _sections(content, start):
            _blank(blanked, section, keys)
    return bytes(blanked)


def _blank(content: bytearray, section: _Section, keys: Sequence[str]) -> None:
    if section.name == b".note.gnu.build-id":
        content[section.start : section.end] = bytes(section.end - section.start)
    elif section.name.startswith(b".debug_"):
        part = bytes(content[section.start : section.end])
        for key in keys:
            part = part.replace(key.encode(), b"0" * len(key))
        content[section.start : section.end] = part


def _members(archive: bytes) -> Iterator[int]:
    """Where the members of an ar archive start that are objects; a header of 60 bytes precedes each."""
    at = len(_ARCHIVE)
    while at + 60 <= len(archive):
        size = archive[at + 48 : at + 58].strip()
        if archive[at + 58 : at + 60] != b"`\n" or not size.isdigit():
            return
        if archive.startswith(_ELF, at + 60):
            yield at + 60
        at += 60 + int(size) + int(size) % 2


def _sections(content: bytes, start: int) -> list[_Section]:
    """The sections of the object that starts there; none when its headers make no sense."""
    try:
        return list(_read_sections(content, start))
    except (struct.error, IndexError):
        return []


def _read_sections(content: bytes, start: int) -> Iterator[_Section]:
    wide, order = content[start + 4] == 2, "<" if content[start + 5] == 1 else ">"
    table = struct.unpack_from(order + ("Q" if wide else "I"), content, start + (40 if wide else 32))[0]
    size, count, names = struct.unpack_from(order + "HHH", content, start + (58 if wide else 46))
    layout = order + ("IIQQQQ" if wide else "IIIIII")
    headers = [struct.unpack_from(layout, content, start + table + size * i) for i in range(count)]
    if names >= count:
        return
    texts = start + headers[names][4]
    for name, kind, _, _, offset, length in headers:
        if kind == _NO_BITS or start + offset + length > len(content):
            continue
        end = content.find(b"\0", texts + name)
        yield _Section(name=content[texts + name : end], start=start + offset, end=start + offset + length)
