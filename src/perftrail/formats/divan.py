"""Printed output of divan: a tree of benchmarks next to a table of times."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, decoded
from perftrail.model.exchange import Series
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.formats.document import FileContext
    from perftrail.model.metrics import Better

_TIMES = ("fastest", "slowest", "wall", "mean")
"""Metrics of the first columns; divan prints no samples, so that its median is the time of a benchmark."""

_MEDIAN = _TIMES.index("wall")
_SECONDS: Mapping[str, float] = {
    "ps": 1e12,
    "ns": 1e9,
    "µs": 1e6,
    "ms": 1e3,
    "s": 1,
    "m": 1 / 60,
    "h": 1 / 3600,
    "d": 1 / 86400,
}
"""Number of each unit in a second. divan prints minutes as ``m``."""

_MULTIPLES: Mapping[str, float] = {
    "": 1,
    **{f"{letter}": 1000.0**power for power, letter in enumerate("KMGTP", start=1)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", start=1)},
}
_RATES: Mapping[str, tuple[str, str]] = {
    "B/s": ("bytes_per_second", "B/s"),
    "char/s": ("chars_per_second", "1/s"),
    "item/s": ("items_per_second", "1/s"),
    "Hz": ("cycles_per_second", "Hz"),
}
_ALLOCATIONS = ("max alloc", "alloc", "dealloc", "grow", "shrink")
_IGNORED = "(ignored)"
_COLUMNS = r"fastest +│ slowest +│ median +│ mean +│ samples *│ iters"

_HEADING = re.compile(rf"(\S.*?) {{2,}}{_COLUMNS}\s*")
_ANY = re.compile(_COLUMNS.encode())
_BRANCH = re.compile(r"((?:│  |   )*)(?:├─|╰─) (.*)")
_FIRST_CELL = re.compile(r"(.*?)(?: {2,}| *)([\d.]+ \S+|\(ignored\))?")
_DETAIL = re.compile(r"[│ ]*?([^│ ].*)")
_QUANTITY = re.compile(r"(\d{1,40}(?:\.\d{1,40})?)(?: (\S+))?")


@dataclass(slots=True)
class _Leaf:
    """A benchmark at a point: the path of its tree, and its metrics with their units."""

    path: tuple[str, ...]
    values: dict[str, tuple[float, str | None]] = field(default_factory=dict)


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this has the heading of divan's table."""
    return _ANY.search(head) is not None


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the row of every benchmark: times, throughput, and allocations, the last two of the median sample.

    The name is the path in the tree, as divan filters it: ``crate::module::function``. Numbers at its end are
    the parameter ``arg``, and ``t=4`` is ``threads``. Ignored benchmarks and lines between the rows are skipped.
    """
    return tuple(series for leaf in _leaves(decoded(content).splitlines()) for series in _series(leaf))


def _leaves(lines: Sequence[str]) -> list[_Leaf]:
    leaves: list[_Leaf] = []
    path: list[str] = []
    leaf: _Leaf | None = None
    allocation = ""
    sizes = False
    for number, line in enumerate(lines, start=1):
        if found := _HEADING.fullmatch(line):
            path, leaf = [found[1]], None
            continue
        if not path:
            continue
        if found := _BRANCH.fullmatch(line):
            depth = len(found[1]) // 3 + 1
            name, cells = _row(found[2])
            path, allocation = [*path[:depth], name], ""
            leaf = _Leaf(path=tuple(path))
            if cells and cells[0] != _IGNORED:
                _add_times(leaf, cells, number)
                leaves.append(leaf)
        elif leaf is not None and (found := _DETAIL.fullmatch(line)):
            cells = [cell.strip() for cell in found[1].split("│")]
            if len(cells) != len(_TIMES) + 2:
                continue
            if not leaf.values and all(cells):  # the benchmark itself printed to the line of its name
                _add_times(leaf, cells, number)
                leaves.append(leaf)
            elif cells[0].endswith(":"):
                allocation, sizes = cells[0].removesuffix(":"), False
            elif leaf.values and not any(cells[len(_TIMES) :]):
                if allocation in _ALLOCATIONS:
                    _add_allocation(leaf, allocation, cells[_MEDIAN], number, is_size=sizes)
                    sizes = True
                else:
                    _add_rate(leaf, cells[_MEDIAN])
    return leaves


def _row(text: str) -> tuple[str, list[str]]:
    """Return the name of a row, and its cells; none if the row has no values."""
    first, *others = text.rsplit("│", len(_TIMES) + 1)
    if len(others) < len(_TIMES) + 1:
        return re.split(r" {2,}", text.strip())[0], []
    found = _FIRST_CELL.fullmatch(first.rstrip())
    assert found is not None, "every text is a name"
    cells = [found[2] or "", *(cell.strip() for cell in others)]
    return found[1].strip(), cells if any(cells) else []


def _add_times(leaf: _Leaf, cells: Sequence[str], line: int) -> None:
    for metric, cell in zip(_TIMES, cells, strict=False):
        value, unit = _quantity(cell, line)
        if unit not in _SECONDS:
            raise FormatError(f"line {line}: {quoted(cell)} is not a time; units are {listed(_SECONDS)}")
        leaf.values[metric] = (value / _SECONDS[unit], "s")


def _add_rate(leaf: _Leaf, cell: str) -> None:
    """Add the throughput at the median time. An infinite one, of a time below the timer's precision, is left out."""
    found = _QUANTITY.fullmatch(cell)
    for suffix, (metric, unit) in _RATES.items():
        multiple = (found[2] or "").removesuffix(suffix) if found else ""
        if found and (found[2] or "").endswith(suffix) and multiple in _MULTIPLES:
            leaf.values[metric] = (float(found[1]) * _MULTIPLES[multiple], unit)


def _add_allocation(leaf: _Leaf, allocation: str, cell: str, line: int, *, is_size: bool) -> None:
    value, unit = _quantity(cell, line)
    metric = allocation.replace(" ", "_")
    multiple = unit.removesuffix("B")
    if is_size != unit.endswith("B") or multiple not in _MULTIPLES:
        raise FormatError(
            f"line {line}: {quoted(cell)} is not the {'size' if is_size else 'count'} of {allocation}"
        )
    leaf.values[f"{metric}_{'bytes' if is_size else 'count'}"] = (
        value * _MULTIPLES[multiple],
        "B" if is_size else None,
    )


def _quantity(cell: str, line: int) -> tuple[float, str]:
    found = _QUANTITY.fullmatch(cell)
    if found is None:
        raise FormatError(f"line {line}: {quoted(cell)} is not a number with a unit, such as 1.5 ns")
    return float(found[1]), found[2] or ""


def _series(leaf: _Leaf) -> Iterator[Series]:
    benchmark, point = _split(leaf.path)
    for metric, (value, unit) in leaf.values.items():
        better: Better = "higher" if metric.endswith("_per_second") else "lower"
        yield Series(
            benchmark=benchmark,
            point=point,
            metric=metric,
            unit=unit,
            better=better,
            values=(value,),
            summary=True,
            note=metric if metric in _TIMES and metric != "wall" else "median",
        )


def _split(path: Sequence[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Split a path into benchmark and point.

    >>> _split(("sums", "fill", "Vec<u8>", "10", "t=2"))
    ('sums::fill::Vec<u8>', (('arg', '10'), ('threads', '2')))
    """
    names = list(path)
    threads = re.fullmatch(r"t=(\d+)", names[-1])
    if threads:
        names.pop()
    numbers: list[str] = []
    while len(names) > 1 and re.fullmatch(r"-?\d+(\.\d+)?", names[-1]):
        numbers.insert(0, names.pop())
    point = [("arg" if index == 1 else f"arg{index}", value) for index, value in enumerate(numbers, start=1)]
    if threads:
        point.append(("threads", threads[1]))
    return "::".join(names), tuple(point)
