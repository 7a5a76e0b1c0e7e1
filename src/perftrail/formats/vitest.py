"""vitest's JSON of benchmarks (``vitest bench --outputJson``), in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from perftrail.formats.document import FileContext, Node

_TIME = unit("ms")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether vitest wrote this."""
    return begins_with(head, rb'\{\s*"files"\s*:\s*\[\s*(\]|\{\s*"filepath"\s*:)')


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the samples of every benchmark, or its median (of old versions: mean) if they were not saved.

    The name is the one that `vitest list` prints: ``file > group > benchmark``. vitest saves the samples with
    ``benchmark.includeSamples``. Benchmarks without a result are left out.
    """
    return tuple(
        series
        for file in parse(content)["files"].elements()
        for group in file["groups"].elements()
        for entry in group["benchmarks"].elements()
        if (series := _series(group["fullName"].text(), entry)) is not None
    )


def _series(group: str, entry: Node) -> Series | None:
    name = entry["name"].text()
    samples = entry.get("samples")
    values = () if samples is None else samples.numbers()
    note = next((each for each in ("median", "mean") if entry.get(each) is not None), None)
    if not values and note is None:
        return None
    return Series(
        benchmark=f"{group} > {name}",
        metric="wall",
        unit=_TIME.name,
        values=_TIME.scaled(values or (entry[note or "median"].number(),)),
        summary=not values,
        note=None if values else note,
    )
