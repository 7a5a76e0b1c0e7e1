"""JSON lines: one object for each value; the point is an object of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perftrail.report.exports.rows import AFTER, BEFORE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.study import Study


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Write a line for each value."""
    lines = (
        json.dumps(
            {
                **{name: row[name] for name in BEFORE},
                "point": each.point.as_dict(),
                **{name: row[name] for name in AFTER},
            },
            ensure_ascii=False,
        )
        for each, row in rows(samples)
    )
    return {"samples.jsonl": "".join(f"{line}\n" for line in lines).encode()}
