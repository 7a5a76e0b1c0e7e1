"""Read what a linker wrote: the sections of a 64-bit, little-endian ELF file. The files are untrusted."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAGIC = b"\x7fELF"
SUPPORTED = MAGIC + b"\2\1"
"""Start of a file with 64 bits, the least significant byte first."""

RELOCATABLE = 1
LINKED_TYPES = (2, 3)
"""Types of a program, and of a shared object or a program that can be loaded anywhere."""

_NO_BITS = 8
_SYMBOLS = 2
_ALLOCATED, _EXECUTABLE = 2, 4
_FILE_SYMBOL = 4
_LONGEST_NAME = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section's header and content; `link` is the number of its section of names."""

    name: str
    kind: int
    flags: int
    address: int
    size: int
    link: int
    content: bytes

    @property
    def has_code(self) -> bool:
        """Whether it contains instructions that are loaded."""
        return self.flags & (_ALLOCATED | _EXECUTABLE) == _ALLOCATED | _EXECUTABLE and bool(self.content)


def type_of(content: bytes) -> int:
    """Return the type of an ELF file of any kind, 0 for other files."""
    order = "little" if content[5:6] == b"\1" else "big"
    return int.from_bytes(content[16:18], order) if content.startswith(MAGIC) else 0  # type: ignore[arg-type] # two words


def sections(content: bytes) -> tuple[Section, ...]:
    """Return the sections of a file; none if it is of another kind, or if its headers lead out of it or overlap."""
    if not content.startswith(SUPPORTED):
        return ()
    try:
        (table,) = struct.unpack_from("<Q", content, 40)
        size, count, names = struct.unpack_from("<HHH", content, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", content, table + size * each) for each in range(count)]
        if sum(header[5] for header in headers if header[1] not in (0, _NO_BITS)) > len(content):
            return ()  # they overlap, so that each would be a copy of the file
        return tuple(_section(content, header, headers[names][4]) for header in headers)
    except (struct.error, IndexError, OverflowError, ValueError):
        return ()


def _section(content: bytes, header: tuple[int, ...], names: int) -> Section:
    name, kind, flags, address, offset, size, link, *_ = header
    end = content.index(b"\0", names + name, names + name + _LONGEST_NAME)
    filled = 0 if kind == _NO_BITS else size
    if kind and offset + filled > len(content):
        raise ValueError(offset)
    return Section(
        name=content[names + name : end].decode(errors="surrogateescape"),
        kind=kind,
        flags=flags,
        address=address,
        size=size,
        link=link,
        content=content[offset : offset + filled] if kind else b"",
    )


def loaded_sections(content: bytes) -> Mapping[str, str]:
    """Return the digest of the address and content of each section that is loaded, except notes.

    Equal for a linked file and its copies, also stripped ones.

    >>> loaded_sections(b"#!/bin/sh")
    {}
    """
    return {
        each.name: hashlib.sha256(b"%d %d " % (each.address, each.size) + each.content).hexdigest()[:32]
        for each in sections(content)
        if each.flags & _ALLOCATED and not each.name.startswith(".note")
    }


def has_code(content: bytes) -> bool:
    """Whether a file has instructions: no file of debug information has any."""
    return not content.startswith(SUPPORTED) or any(each.has_code for each in sections(content))


def source_file(content: bytes) -> str:
    """Return the name of the source file from which an object was compiled, empty if it does not state one."""
    found = sections(content)
    for table in found:
        if table.kind != _SYMBOLS or table.link >= len(found):
            continue
        texts = found[table.link].content
        for at in range(0, len(table.content) - 23, 24):
            name, info = struct.unpack_from("<IB", table.content, at)
            if info & 15 == _FILE_SYMBOL:
                end = texts.find(b"\0", name)
                return texts[name : max(end, name)].decode(errors="surrogateescape")
    return ""


def padding_object(like: bytes, padding: tuple[tuple[int, int], ...]) -> bytes:
    """Return an object file like another one, with a section of unused code of each size and alignment.

    The symbol of each is `PADDING` with its number. The linker keeps them as if they were used (SHF_GNU_RETAIN).
    """
    texts, symbols = b"\0.text.perftrail\0.symtab\0.strtab\0", bytes(24)
    heads, names, at = bytes(64), b"", 64
    for number, (size, alignment) in enumerate(padding):
        heads += struct.pack("<IIQQQQIIQQ", 1, 1, _RETAINED_CODE, 0, at, size, 0, 0, alignment, 0)
        symbols += struct.pack("<IBBHQQ", len(texts) + len(names), 0x12, 2, number + 1, 0, size)
        names, at = names + f"{PADDING}{number}\0".encode(), at + size
    texts += names
    last = len(padding) + 1
    heads += struct.pack("<IIQQQQIIQQ", 17, _SYMBOLS, 0, 0, at, len(symbols), last + 1, 1, 8, 24)
    heads += struct.pack("<IIQQQQIIQQ", 25, 3, 0, 0, at + len(symbols), len(texts), 0, 0, 1, 0)
    body = _TRAP * sum(size for size, _ in padding) + symbols + texts
    body += bytes(-len(body) % 8)
    (machine,), (features,) = struct.unpack_from("<H", like, 18), struct.unpack_from("<I", like, 48)
    head = struct.pack(
        "<HHIQQQIHHHHHH",
        RELOCATABLE,
        machine,
        1,
        0,
        0,
        64 + len(body),
        features,
        64,
        0,
        0,
        64,
        last + 2,
        last + 1,
    )
    return like[:16] + head + body + heads


PADDING = "perftrail_padding_"
_TRAP = b"\xcc"
_RETAINED_CODE = 0x200006

MOST_PADDING = 60_000
"""Number of sections of an object file without extended numbers, almost."""
