"""Durations, sizes and fractions as a study file and an option write them: parse them, and write them exactly.

`perftrail.model.wording` writes them for people, rounded.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DURATION = r"^\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:ms|s|sec|m|min|h|d)\s*)+$"
"""Pattern of a duration; also in the JSON Schema."""

SIZE = r"^\s*[0-9]+(?:\.[0-9]+)?\s*(?:B|[kKMGT]B|[KMGT]iB)\s*$"
"""Pattern of a size; also in the JSON Schema."""

FRACTION = r"^\s*[0-9]+(?:\.[0-9]+)?\s*%\s*$"
"""Pattern of a fraction in percent; also in the JSON Schema."""

NUMBERS = r"^\s*[0-9]{1,5}(?:-[0-9]{1,5})?(?:\s*,\s*[0-9]{1,5}(?:-[0-9]{1,5})?)*\s*$"
"""Pattern of a list of numbers and ranges; also in the JSON Schema."""

_MILLISECONDS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES_OF: Mapping[str, int] = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in ((1, "k"), (1, "K"), (2, "M"), (3, "G"), (4, "T"))},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_LONGEST_NOTATION = 60
"""Longer text is not tried as a duration or a size: patterns take long."""


def parse_duration(text: str) -> float:
    """Parse a duration in seconds. Raises `ValueError` with the valid notation.

    >>> parse_duration("1h30min"), parse_duration("500ms")
    (5400.0, 0.5)
    """
    if len(text) > _LONGEST_NOTATION or re.fullmatch(DURATION, text) is None:
        raise ValueError('is not a duration; write seconds, or "500ms", "60s", "10min", "1h30min"')
    return sum(float(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000


def parse_numbers(text: str) -> tuple[int, ...]:
    """Parse a list of numbers and ranges, each number once. Raises `ValueError` with the valid notation.

    >>> parse_numbers("0,2-4,3")
    (0, 2, 3, 4)
    """
    if re.fullmatch(NUMBERS, text) is None:
        raise ValueError('is not a list of numbers; write numbers and ranges, for example "0,2-3"')
    numbers: dict[int, None] = {}
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"has a range that ends before it begins: {part.strip()}")
        numbers.update(dict.fromkeys(range(int(first), int(last or first) + 1)))
    return tuple(numbers)


def format_duration(seconds: float) -> str:
    """Format a duration exactly to the millisecond, the inverse of `parse_duration`.

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


def parse_fraction(text: str) -> float:
    """Parse a percentage as a fraction. Raises `ValueError` with the valid notation.

    >>> parse_fraction("2%"), parse_fraction("0.5 %")
    (0.02, 0.005)
    """
    if len(text) > _LONGEST_NOTATION or re.fullmatch(FRACTION, text) is None:
        raise ValueError('is not a fraction; write for example 0.02 or "2%"')
    return float(text.strip().removesuffix("%")) / 100


def parse_size(text: str) -> int:
    """Parse a size in bytes. Raises `ValueError` with the valid notation.

    >>> parse_size("2GiB"), parse_size("1.5 kB")
    (2147483648, 1500)
    """
    if len(text) > _LONGEST_NOTATION or re.fullmatch(SIZE, text) is None:
        raise ValueError('is not a size; write bytes, or "512MiB", "2GiB", "1GB"')
    found = _PART.search(text)
    assert found is not None
    return round(float(found[1]) * _BYTES_OF[found[2]])


def format_size(size_bytes: int) -> str:
    """Format a size exactly, in the largest unit that divides it: the inverse of `parse_size`.

    >>> format_size(2147483648), format_size(1500), format_size(1001)
    ('2GiB', '1500B', '1001B')
    """
    if size_bytes < 0:
        raise ValueError(f"{size_bytes} is not a size")
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % _BYTES_OF[unit] == 0:
            return f"{size_bytes // _BYTES_OF[unit]}{unit}"
    return f"{size_bytes}B"
