"""Reads the table that ``strace -c`` writes."""

from __future__ import annotations

import re

_ROW = re.compile(
    r"^\s*[0-9.]+\s+[0-9.]+\s+[0-9]+\s+(?P<calls>[0-9]+)\s+(?:[0-9]+\s+)?(?P<name>[a-zA-Z_]\w*)\s*$"
)


def read_calls(text: str) -> dict[str, int]:
    """Give how often each system call was made, by name; the line of totals is left out.

    >>> read_calls(" 50.00    0.000100          10        10         2 openat")
    {'openat': 10}
    """
    found = (_ROW.match(line) for line in text.splitlines())
    return {row["name"]: int(row["calls"]) for row in found if row is not None and row["name"] != "total"}
