"""CSV with a heading: one row for each value, as ``perftrail export --format csv`` writes it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, decoded
from perftrail.formats.rows import AFTER, BEFORE, COLUMNS, PREFIX, REQUIRED, Rows, axes, column, rows
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.formats.document import FileContext
    from perftrail.model.exchange import Exported, Series
    from perftrail.model.study import Study


def recognises(head: bytes, _name: str) -> bool:
    """Return whether the heading has the required columns."""
    first = head.decode("utf-8-sig", "replace").partition("\n")[0].rstrip("\r")
    return set(REQUIRED) <= {cell.strip('"') for cell in first.split(",")}


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the table. Unknown columns, and those named ``point.…``, are parameters.

    Required columns are ``benchmark``, ``metric`` and ``value``. Known ones are also ``subject`` (or ``revision`` and
    ``variant``), ``unit``, ``better``, ``invocation`` (or ``ordinal``), ``started`` (or ``when``), ``machine``,
    ``flags``, ``label``, and ``time``, the revision's. Empty cells of parameters are ignored.
    """
    reader = csv.reader(decoded(content).splitlines(keepends=True), strict=True)
    gathered = Rows()
    try:
        heading = tuple(next(reader, []))
        _check(heading)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(heading):
                raise FormatError(
                    f"line {reader.line_num}: has {len(cells)} cells; the heading has {len(heading)}"
                )
            gathered.add(heading, cells, reader.line_num)
    except csv.Error as error:
        raise FormatError(f"line {reader.line_num}: {error}") from error
    return gathered.series()


def _check(heading: tuple[str, ...]) -> None:
    missing = [name for name in REQUIRED if name not in heading]
    if missing:
        raise FormatError(
            f"line 1: the heading has no {listed(missing, 'and')}; {listed(REQUIRED, 'and')} are required"
        )
    parameters = [name.removeprefix(PREFIX) for name in heading if name not in COLUMNS]
    twice = [
        name for name in (*heading, *parameters) if heading.count(name) > 1 or parameters.count(name) > 1
    ]
    if twice:
        raise FormatError(f"line 1: two columns are named {quoted(twice[0])}")


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return the table; numbers have all their digits."""
    names = axes(samples)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*BEFORE, *map(column, names), *AFTER])
    for each, row in rows(samples):
        point = each.point.as_dict()
        writer.writerow(
            [
                *(row[name] for name in BEFORE),
                *(point.get(name, "") for name in names),
                *(row[name] for name in AFTER),
            ]
        )
    return {"samples.csv": text.getvalue().encode()}
