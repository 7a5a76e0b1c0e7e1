"""Printed output of criterion.rs: ``name  time:   [low estimate high]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, decoded
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.formats.document import FileContext


NOTE = "criterion's estimate: the slope, or the mean"

_TIME = re.compile(r"time: +\[(\d[\d.]*) (\S+) (\d[\d.]*) (\S+) (\d[\d.]*) (\S+)\]\s*$")
_ANY = re.compile(rb"time: +\[\d[\d.]* \S+ \d[\d.]* \S+ \d[\d.]* \S+\]")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this has a line of a benchmark by criterion."""
    return _ANY.search(head) is not None


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every benchmark's estimate; its name is in the same line, or in the previous one if it is long."""
    return tuple(_series(decoded(content).splitlines()))


def _series(lines: list[str]) -> Iterator[Series]:
    above = ""
    for line in lines:
        found = _TIME.search(line)
        name = line[: found.start()].strip() if found else ""
        if found and (name or above) and found[3].count(".") <= 1:
            known = unit(found[4])
            yield Series(
                benchmark=name or above,
                metric="wall",
                unit=known.name,
                values=known.scaled((float(found[3]),)),
                summary=True,
                note=NOTE,
            )
        above = line.strip()
