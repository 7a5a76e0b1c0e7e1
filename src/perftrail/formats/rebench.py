"""ReBench's data files (``.data``)."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, decoded, parse
from perftrail.formats.units import unit
from perftrail.model.exchange import Series
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from perftrail.formats.document import FileContext

_FIRST = ("invocation", "iteration", "value", "unit", "criterion")
_AXES = {
    "extraArgs": "arguments",
    "cores": "cores",
    "inputSize": "size",
    "varValue": "variable",
    "tag": "tag",
}
_METRICS = {"total": "wall"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeriesKey:
    benchmark: str
    point: tuple[tuple[str, str], ...]
    subject: str | None
    machine: str | None
    metric: str
    unit: str


@dataclass(slots=True)
class _State:
    """Properties of a row from the comments and the heading above it."""

    columns: list[str] = field(default_factory=list)
    when: datetime | None = None
    host: str | None = None
    commit: str | None = None


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this has the columns of ReBench."""
    return "\t".join(_FIRST).encode() in head


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the values of every benchmark, of all invocations together.

    The subject is the executor, and the commit if the file has several. Several starts of ReBench write several
    headings.
    """
    state = _State()
    values: dict[_SeriesKey, list[float]] = {}
    whens: dict[_SeriesKey, datetime | None] = {}
    for number, line in enumerate(decoded(content).splitlines(), start=1):
        if line.startswith("#"):
            _comment(state, line, number)
        elif line.startswith(_FIRST[0] + "\t"):
            state.columns = line.split("\t")
        elif line.strip():
            key, value = _row(state, line, number)
            values.setdefault(key, []).append(value)
            whens.setdefault(key, state.when)
    return tuple(
        Series(
            benchmark=key.benchmark,
            point=key.point,
            subject=key.subject,
            metric=_METRICS.get(key.metric, key.metric),
            unit=unit(key.unit).name,
            values=unit(key.unit).scaled(numbers),
            when=whens[key],
            machine=key.machine,
        )
        for key, numbers in values.items()
    )


def _comment(state: _State, line: str, number: int) -> None:
    key, _, rest = line.removeprefix("#").strip().partition(": ")
    if key == "Execution Start":
        try:
            state.when = datetime.fromisoformat(rest.strip())
        except ValueError:
            raise FormatError(f"line {number}: {quoted(rest)} is not a time") from None
    elif key == "Environment":
        host = parse(rest.encode(), line=number).get("hostName")
        state.host = None if host is None else host.text()
    elif key == "Source":
        commit = parse(rest.encode(), line=number).get("commitId")
        state.commit = None if commit is None else commit.text()


def _row(state: _State, line: str, number: int) -> tuple[_SeriesKey, float]:
    if not state.columns:
        raise FormatError(f"line {number}: a row before the heading {listed(_FIRST, 'and')}")
    try:
        cells = next(csv.reader([line], delimiter="\t", quoting=csv.QUOTE_NONE))
    except csv.Error as error:
        raise FormatError(f"line {number}: {error}") from error
    row = dict(zip(state.columns, cells, strict=False))
    missing = [name for name in (*_FIRST, "benchmark") if name not in row]
    if missing:
        raise FormatError(f"line {number}: has no {listed(missing, 'and')}")
    try:
        value = float(row["value"])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"line {number}: {quoted(row['value'])} is not a finite number")
    suite = row.get("suite", "")
    key = _SeriesKey(
        benchmark=f"{suite}/{row['benchmark']}" if suite else row["benchmark"],
        point=tuple((axis, row[name]) for name, axis in _AXES.items() if row.get(name)),
        subject=_subject(state, row),
        machine=row.get("machine") or state.host,
        metric=row["criterion"],
        unit=row["unit"],
    )
    return key, value


def _subject(state: _State, row: dict[str, str]) -> str | None:
    words = [word for word in (state.commit, row.get("executor")) if word]
    return " ".join(words) or None
