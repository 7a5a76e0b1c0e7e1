"""Profiles for pprof: its compressed protocol buffer, https://github.com/google/pprof/blob/main/proto/profile.proto.

Each sample has three values: before, after, and their difference. ``pprof -sample_index=difference`` selects one.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perftrail.stats.call_tree import CallTree

TYPES = ("before", "after", "difference")


def write_pprof(tree: CallTree, *, unit: str, scale: float = 1.0) -> bytes:
    """Return a file with the costs of both sides times `scale` as integers in a unit, for example ``nanoseconds``."""
    strings: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    message = bytearray()
    for name in TYPES:
        message += _message(1, _number(1, text(name)) + _number(2, text(unit)))
    for node, (before, after) in enumerate(tree.own()):
        values = round(before * scale), round(after * scale)
        if any(values):
            locations = [each + 1 for each in reversed(tree.path(node))] or [1]
            message += _message(2, _packed(1, locations) + _packed(2, (*values, values[1] - values[0])))
    for number, function in enumerate(tree.names, 1):
        line = _message(4, _number(1, number) + _number(2, function.line))
        message += _message(4, _number(1, number) + line)
        message += _message(
            5,
            _number(1, number)
            + _number(2, text(function.name))
            + _number(3, text(function.name))
            + _number(4, text(function.file))
            + _number(5, function.line),
        )
    for value in strings:
        message += _message(6, value.encode(errors="replace"))
    message += _number(14, strings["after"])
    return gzip.compress(bytes(message), mtime=0)


def _varint(value: int) -> bytes:
    """Return a number in base 128, the lowest digits first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))
