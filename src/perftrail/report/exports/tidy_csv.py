"""CSV: one row for each value, one column for each parameter."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from perftrail.report.exports.rows import AFTER, BEFORE, axes, column, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.study import Study


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Write the table; numbers with all their digits."""
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
