"""mitata's JSON (``format: 'json'``), in nanoseconds and bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perftrail.formats.document import NO_FILE, begins_with, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.formats.document import FileContext, Node

_TIME = unit("ns")


def recognises(head: bytes, _name: str) -> bool:
    """Return whether mitata wrote this."""
    return begins_with(head, rb'\{\s*"layout"\s*:\s*\[') and b'"benchmarks"' in head


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the samples of every run, or its median if they were not printed, and the mean allocated bytes.

    The name is the benchmark's, with its group if that has a name: ``group > sum $n``. Arguments are parameters. Runs
    that ended in an error are left out.
    """
    document = parse(content)
    groups = [None if (name := each.get("name")) is None else name.text() for each in _layout(document)]
    return tuple(
        series
        for entry in document["benchmarks"].elements()
        for run in entry["runs"].elements()
        for series in _run(_name(entry, groups), run)
    )


def _layout(document: Node) -> tuple[Node, ...]:
    layout = document.get("layout")
    return () if layout is None else layout.elements()


def _name(entry: Node, groups: Sequence[str | None]) -> str:
    alias, group = entry["alias"].text(), entry.get("group")
    index = -1 if group is None else int(group.number())
    name = groups[index] if 0 <= index < len(groups) else None
    return f"{name} > {alias}" if name else alias


def _run(name: str, run: Node) -> Iterator[Series]:
    if run.get("error") is not None and run.get("stats") is None:
        return
    stats = run["stats"]
    arguments = run.get("args")
    point = () if arguments is None else tuple((key, _text(each)) for key, each in arguments.members())
    samples = stats.get("samples")
    values = () if samples is None else samples.numbers()
    yield Series(
        benchmark=name,
        point=point,
        metric="wall",
        unit=_TIME.name,
        values=_TIME.scaled(values or (stats["p50"].number(),)),
        summary=not values,
        note=None if values else "median",
    )
    heap = stats.get("heap")
    if heap is not None and (mean := heap.get("avg")) is not None:
        yield Series(
            benchmark=name,
            point=point,
            metric="heap",
            unit="B",
            values=(mean.number(),),
            summary=True,
            note="mean",
        )


def _text(argument: Node) -> str:
    """Return an argument in JSON's notation, without quotes if it is a text."""
    return argument.text() if isinstance(argument.value, str) else json.dumps(argument.value)
