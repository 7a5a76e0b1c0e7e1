"""JSON lines: one object for each value, as ``perftrail export --format jsonl`` writes it; the point is an object."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.rows import AFTER, BEFORE, COLUMNS, PREFIX, REQUIRED, Rows, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.formats.document import FileContext
    from perftrail.model.exchange import Exported, Series
    from perftrail.model.study import Study


def recognises(head: bytes, _name: str) -> bool:
    """Return whether the first line has the required names."""
    first = head.lstrip().partition(b"\n")[0]
    return begins_with(first, rb"\{") and all(f'"{name}"'.encode() in first for name in REQUIRED)


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
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
            text = str(error)
            raise error if text.startswith("line ") else FormatError(f"line {number}: {text}") from error
        gathered.add(tuple(row), tuple(row.values()), number)
    return gathered.series()


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return a line for each value."""
    text = BytesIO()
    for each, row in rows(samples):
        line = json.dumps(
            {
                **{name: row[name] for name in BEFORE},
                "point": each.point.as_dict(),
                **{name: row[name] for name in AFTER},
            },
            ensure_ascii=False,
        )
        text.write(f"{line}\n".encode())
    return {"samples.jsonl": text.getvalue()}
