"""pyperf's JSON (``-o``, ``--output``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.formats.document import FileContext, Node

_METRICS = {"second": "wall", "byte": "peak_memory", "integer": "value"}


def recognises(head: bytes, _name: str) -> bool:
    """Return whether pyperf wrote this."""
    return (
        begins_with(head, rb'\{\s*"(benchmarks|metadata|version)"')
        and b'"runs"' in head
        and b'"version"' in head
    )


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every benchmark's values for one loop, without warm-ups and calibration."""
    document = parse(content)
    shared = _members(document.get("metadata"))
    found = (_series(benchmark, shared) for benchmark in document["benchmarks"].elements())
    return tuple(each for each in found if each is not None)


def _series(benchmark: Node, shared: Mapping[str, Node]) -> Series | None:
    """Return one benchmark; `None` if it was only calibrated."""
    runs = benchmark["runs"].elements()
    own = {**shared, **_members(benchmark.get("metadata"))}
    values = tuple(value for run in runs for value in _values(run))
    if not values:
        return None
    first = {**own, **_members(runs[0].get("metadata"))}
    if "name" not in first:
        raise benchmark.error('has no name in its "metadata"')
    kind = first["unit"].text() if "unit" in first else "second"
    return Series(
        benchmark=first["name"].text(),
        subject=first["commit_id"].text() if "commit_id" in first else None,
        metric=_METRICS.get(kind, "value"),
        unit=None if kind == "integer" else unit(kind).name,
        values=values,
        when=first["date"].time() if "date" in first else None,
        machine=first["hostname"].text() if "hostname" in first else None,
    )


def _values(run: Node) -> tuple[float, ...]:
    values = run.get("values")
    return () if values is None else values.numbers()


def _members(metadata: Node | None) -> dict[str, Node]:
    return {} if metadata is None else dict(metadata.members())
