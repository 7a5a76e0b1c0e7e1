"""Reads the files in which Valgrind's cachegrind leaves the instructions of each function."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = "???"
"""What cachegrind calls a function whose name is not to be had."""


def read_functions(texts: Iterable[str]) -> dict[str, int]:
    r"""Add up the instructions of each function, its symbol's version left out, over the files of all processes.

    >>> read_functions(["events: Ir\nfl=a.c\nfn=main\n3 10\n4 5\nfn=add\n9 2\nsummary: 17\n"])
    {'main': 15, 'add': 2}
    """
    counts: Counter[str] = Counter()
    for text in texts:
        function = UNKNOWN
        for line in text.splitlines():
            if line.startswith("fn="):
                function = line.removeprefix("fn=").partition("@@")[0]
            elif line[:1].isdigit():
                _, _, count = line.partition(" ")
                counts[function] += int(count.split()[0]) if count.split()[:1] else 0
    return dict(counts)
