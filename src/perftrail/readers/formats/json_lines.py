"""JSON lines: one object for each value, as ``perftrail export --format jsonl`` writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.readers.formats.document import parse
from perftrail.readers.formats.surroundings import NOWHERE, begins_with
from perftrail.readers.formats.table_rows import COLUMNS, PREFIX, REQUIRED, Rows

if TYPE_CHECKING:
    from perftrail.model.exchange import Series
    from perftrail.readers.formats.surroundings import Place


def knows(head: bytes, _name: str) -> bool:
    """Whether the first line has what is needed."""
    first = head.lstrip().partition(b"\n")[0]
    return begins_with(first, rb"\{") and all(f'"{name}"'.encode() in first for name in REQUIRED)


def read(content: bytes, _place: Place = NOWHERE) -> tuple[Series, ...]:
    """Read the lines; their names are the columns of the CSV, and the parameters are in ``point``."""
    gathered = Rows()
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = parse(line, line=number)
            row = {name: each.scalar() for name, each in found.members() if name in COLUMNS}
            if (point := found.get("point")) is not None:
                row |= {f"{PREFIX}{name}": each.scalar() for name, each in point.members()}
        except FormatError as error:
            told = str(error)
            raise error if told.startswith("line ") else FormatError(f"line {number}: {told}") from error
        gathered.add(tuple(row), tuple(row.values()), number)
    return gathered.series()
