"""Parquet with the columns of the CSV: one row for each value, as ``perftrail export --format parquet`` writes it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from perftrail.errors import FormatError, UsageError
from perftrail.formats.document import NO_FILE
from perftrail.formats.rows import AFTER, BEFORE, REQUIRED, Rows, axes, column, rows
from perftrail.model.wording import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.formats.document import FileContext
    from perftrail.model.exchange import Exported, Series
    from perftrail.model.study import Study


MOST_ROWS = 50_000_000
_MARK = b"PAR1"


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this is a Parquet file."""
    return head.startswith(_MARK)


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the table like the CSV. Raises `FormatError`, also without pyarrow."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # it has no type hints  # noqa: PLC0415
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above  # noqa: PLC0415
    except ImportError as error:
        raise FormatError(
            'needs pyarrow; install it with "pip install perftrail[notebook]", or convert the samples to CSV'
        ) from error
    gathered = Rows()
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        names = tuple(file.schema_arrow.names)
        _check(names, rows=file.metadata.num_rows)
        first = 1
        for batch in file.iter_batches():
            columns = [[_text(cell) for cell in column.to_pylist()] for column in batch.columns]
            for index, cells in enumerate(zip(*columns, strict=True)):
                gathered.add(names, cells, first + index)
            first += len(batch)
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        raise FormatError(f"is not a readable Parquet file: {error}") from error
    return gathered.series()


def _check(names: tuple[str, ...], *, rows: int) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise FormatError(f"has no column {listed(missing, 'and')}; {listed(REQUIRED, 'and')} are required")
    if len(set(names)) < len(names):
        raise FormatError("two columns have the same name")
    if rows > MOST_ROWS:
        raise FormatError(f"has {rows} rows; the maximum is {MOST_ROWS}")


def _text(cell: object) -> str:
    """Return a cell as in the CSV."""
    return "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:
    """Return the table, with the study's title in its metadata. Raises `UsageError` without pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            'parquet: needs pyarrow; install it with "pip install perftrail[notebook]", or export csv'
        ) from error
    listed = list(rows(samples))
    names = axes(samples)
    points = [each.point.as_dict() for each, _ in listed]
    columns = {
        **{name: [row[name] for _, row in listed] for name in BEFORE},
        **{column(name): _one_type([point.get(name) for point in points]) for name in names},
        **{name: [row[name] for _, row in listed] for name in AFTER},
    }
    table = pa.table(columns).replace_schema_metadata({"title": study.title})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return {"samples.parquet": sink.getvalue()}


def _one_type(values: Sequence[object]) -> list[object]:
    """Return a column's values as one type: texts if any of them is a text."""
    if any(isinstance(value, str) for value in values):
        return [None if value is None else str(value) for value in values]
    return list(values)
