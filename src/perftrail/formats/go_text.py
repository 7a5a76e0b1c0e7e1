"""Printed output of ``go test -bench``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, decoded
from perftrail.formats.units import unit
from perftrail.model.exchange import Series
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.formats.document import FileContext
    from perftrail.model.metrics import Better

_RESULT = re.compile(r"Benchmark(\S*)\s+(\d+)((?:\s+\S+\s+\S+)+)\s*")
_ANY = re.compile(rb"^Benchmark\S*\s+\d+\s+[0-9.e+]+ \S", re.MULTILINE)
_SETTING = re.compile(r"([a-z][^\s:]*):(.*)")
_DIRECTION = re.compile(r"Unit\s+(\S+)\s.*\bbetter=(higher|lower)\b.*")
_TIME = "ns/op"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeriesKey:
    package: str
    name: str
    commit: str | None
    metric: str


@dataclass(slots=True)
class _Printed:
    """State of the reader: the present settings, and the values of every metric."""

    settings: dict[str, str] = field(default_factory=dict)
    better: dict[str, Better] = field(default_factory=dict)
    values: dict[_SeriesKey, list[float]] = field(default_factory=dict)


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this has a line of a benchmark by Go."""
    return _ANY.search(head) is not None


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read every line of a benchmark; equal names are one sample (``-count``). Other lines are skipped.

    `key=value` in a name is a parameter, and so is the number of threads at its end. ``commit:`` names the subject.
    With several packages, names begin with theirs.
    """
    printed = _Printed()
    for number, line in enumerate(decoded(content).splitlines(), start=1):
        if found := _SETTING.fullmatch(line):
            printed.settings[found[1]] = found[2].strip()
        elif found := _DIRECTION.fullmatch(line):
            printed.better[found[1]] = "higher" if found[2] == "higher" else "lower"
        elif found := _RESULT.fullmatch(line):
            _add_values(printed, found[1], found[3].split(), number)
    packages = {key.package for key in printed.values}
    return tuple(_series(printed, with_package=len(packages) > 1))


def _add_values(printed: _Printed, name: str, words: list[str], line: int) -> None:
    for text, metric in zip(words[::2], words[1::2], strict=True):
        key = _SeriesKey(
            package=printed.settings.get("pkg", ""),
            name=name,
            commit=printed.settings.get("commit"),
            metric=metric,
        )
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise FormatError(f"line {line}: {quoted(text)} is not a finite number before {quoted(metric)}")
        printed.values.setdefault(key, []).append(value)


def _series(printed: _Printed, *, with_package: bool) -> Iterator[Series]:
    for key, values in printed.values.items():
        benchmark, point = _split(key.name)
        numerator, _, denominator = key.metric.partition("/")
        known = unit(numerator)
        unit_name = known.name
        if denominator == "s":
            unit_name = f"{known.name}/s"
        elif denominator != "op":
            known, unit_name = unit(""), key.metric
        yield Series(
            benchmark=f"{key.package}.{benchmark}" if with_package and key.package else benchmark,
            point=point,
            subject=key.commit,
            metric="wall" if key.metric == _TIME else key.metric,
            unit=unit_name,
            better=printed.better.get(key.metric, "higher" if denominator == "s" else "lower"),
            values=known.scaled(values),
        )


def _split(name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Split a name into benchmark and point. Go appends the number of threads unless it is one.

    >>> _split("Sum/size=100/fast-8")
    ('Sum/fast', (('size', '100'), ('threads', '8')))
    """
    found = re.fullmatch(r"(.*?)-(\d+)", name)
    rest, threads = (found[1], found[2]) if found else (name, "1")
    parts = [part.partition("=") for part in rest.split("/")]
    benchmark = "/".join(key + equals + value for key, equals, value in parts if not (key and equals))
    point = {key: value for key, equals, value in parts if key and equals}
    return benchmark or rest, tuple({**point, "threads": threads}.items())
