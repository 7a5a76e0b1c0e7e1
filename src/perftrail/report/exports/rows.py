"""Samples as rows, one for each value: what CSV, JSON lines and Parquet have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.model.exchange import Exported

BEFORE = ("revision", "variant", "benchmark")
AFTER = ("metric", "value", "unit", "invocation", "started", "machine", "flags", "label", "time", "better")
"""The columns before and after those of the parameters; ones may be added at the end."""

Cell = str | int | float


def axes(samples: Sequence[Exported]) -> tuple[str, ...]:
    """Name every parameter of any sample, in the order in which they come."""
    return tuple(dict.fromkeys(name for each in samples for name in each.point.names))


def column(parameter: str) -> str:
    """Name a parameter's column: as itself, unless there is a column of that name anyway.

    >>> column("threads"), column("value")
    ('threads', 'point.value')
    """
    return f"point.{parameter}" if parameter in (*BEFORE, *AFTER) else parameter


def rows(samples: Sequence[Exported]) -> Iterator[tuple[Exported, dict[str, Cell]]]:
    """Give a row for each value, without the parameters, and the sample that it is of."""
    for each in samples:
        revision = each.subject.revision
        head = {"revision": revision.id, "variant": each.subject.variant, "benchmark": each.benchmark}
        tail = {"label": revision.label, "time": revision.time, "better": each.better}
        for value in each.values:
            yield (
                each,
                {
                    **head,
                    "metric": each.metric,
                    "value": value.value,
                    "unit": each.unit,
                    "invocation": value.invocation,
                    "started": value.started,
                    "machine": each.machine,
                    "flags": " ".join(value.flags),
                    **tail,
                },
            )
