"""Parquet: the rows of the CSV with types, through pyarrow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from perftrail.errors import UsageError
from perftrail.report.exports.rows import AFTER, BEFORE, axes, column, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.study import Study


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:
    """Write the table; the study's title stands in its metadata. Raises `UsageError` where pyarrow is not installed."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own  # noqa: PLC0415
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            'parquet: needs pyarrow; install it with "pip install perftrail[notebook]", or export csv'
        ) from error
    listed = list(rows(samples))
    names = axes(samples)
    points = [each.point.as_dict() for each, _ in listed]
    columns = {
        **{name: [row[name] for _, row in listed] for name in BEFORE},
        **{column(name): _alike([point.get(name) for point in points]) for name in names},
        **{name: [row[name] for _, row in listed] for name in AFTER},
    }
    table = pa.table(columns).replace_schema_metadata({"title": study.title})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return {"samples.parquet": sink.getvalue()}


def _alike(values: Sequence[object]) -> list[object]:
    """Give a column's values as one type: texts, where any of them is one."""
    if any(isinstance(value, str) for value in values):
        return [None if value is None else str(value) for value in values]
    return list(values)
