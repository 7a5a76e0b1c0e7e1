"""Durations and sizes as people write them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DURATION = r"^\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:ms|s|sec|m|min|h|d)\s*)+$"
"""Text that is a duration; also in the JSON Schema."""

SIZE = r"^\s*[0-9]+(?:\.[0-9]+)?\s*(?:B|[kKMGT]B|[KMGT]iB)\s*$"
"""Text that is a size; also in the JSON Schema."""

_MILLISECONDS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES: Mapping[str, int] = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in ((1, "k"), (1, "K"), (2, "M"), (3, "G"), (4, "T"))},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_LONGEST = 60


def parse_duration(text: str) -> float:
    """Read a duration in seconds. Raises `ValueError` that says how to write one.

    >>> parse_duration("1h30min"), parse_duration("500ms")
    (5400.0, 0.5)
    """
    if len(text) > _LONGEST or re.fullmatch(DURATION, text) is None:
        raise ValueError('is not a duration; write seconds, or "500ms", "60s", "10min", "1h30min"')
    return sum(float(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000


def format_duration(seconds: float) -> str:
    """Write a duration so that `parse_duration` gives it back, to the millisecond.

    >>> format_duration(5400), format_duration(0.5), format_duration(90.25)
    ('1h30min', '500ms', '1min30s250ms')
    """
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{seconds} is not a duration")
    left = round(seconds * 1000)
    parts = []
    for unit in ("h", "min", "s", "ms"):
        count, left = divmod(left, _MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_size(text: str) -> int:
    """Read a size in bytes. Raises `ValueError` that says how to write one.

    >>> parse_size("2GiB"), parse_size("1.5 kB")
    (2147483648, 1500)
    """
    if len(text) > _LONGEST or re.fullmatch(SIZE, text) is None:
        raise ValueError('is not a size; write bytes, or "512MiB", "2GiB", "1GB"')
    found = _PART.search(text)
    assert found is not None
    return round(float(found[1]) * _BYTES[found[2]])


def format_size(size_bytes: int) -> str:
    """Write a size so that `parse_size` gives it back exactly: in the largest unit that divides it.

    >>> format_size(2147483648), format_size(1500), format_size(1001)
    ('2GiB', '1500B', '1001B')
    """
    if size_bytes < 0:
        raise ValueError(f"{size_bytes} is not a size")
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % _BYTES[unit] == 0:
            return f"{size_bytes // _BYTES[unit]}{unit}"
    return f"{size_bytes}B"
