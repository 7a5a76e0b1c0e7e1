"""Takes the debug information out of programs and objects, as it matters to nobody who runs them.

Compilers write the build directory and line numbers into it, and linkers hash them into a build id: with
them no artefact would equal another, and a commit that changed a comment would count as another build.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
