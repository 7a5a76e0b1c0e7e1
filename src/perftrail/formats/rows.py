"""Rows with one value each, for CSV, JSON lines and Parquet; files with one JSON document for each revision."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.exchange import SUMMARY, Series
from perftrail.model.recipe import PLAIN
from perftrail.model.wording import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from perftrail.model.exchange import Exported
    from perftrail.model.json_data import Json
    from perftrail.model.metrics import Better


REQUIRED = ("benchmark", "metric", "value")
OPTIONAL = (
    "subject",
    "revision",
    "variant",
    "unit",
    "better",
    "invocation",
    "ordinal",
    "started",
    "when",
    "machine",
    "flags",
    "label",
    "time",
)
COLUMNS = (*REQUIRED, *OPTIONAL)
"""Every column that is not a parameter."""


PREFIX = "point."
"""Prefix of a parameter with the name of a column."""

_NUMBERS, _TIMES = ("invocation", "ordinal"), ("time", "started", "when")
_PER_VALUE = frozenset({"value", *_NUMBERS, *_TIMES})
"""Columns that vary within a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    subject: str | None
    benchmark: str
    point: tuple[tuple[str, str], ...]
    metric: str
    unit: str | None
    better: Better
    machine: str | None
    summary: bool


@dataclass(slots=True)
class _Values:
    """Values by their number in the sample; without numbers, in the order of the rows."""

    numbers: list[tuple[int, float]] = field(default_factory=list)
    when: datetime | None = None


class _Heading:
    """The columns of rows with the same heading, and the samples of their cells."""

    def __init__(self, names: Sequence[str]) -> None:
        columns = {name: column for column, name in enumerate(names)}
        self.value = columns["value"]
        self.numbers = [columns[name] for name in _NUMBERS if name in columns]
        self.times = [columns[name] for name in _TIMES if name in columns]
        self.shared = itemgetter(*(column for name, column in columns.items() if name not in _PER_VALUE))
        self.known: dict[tuple[str, ...], _Values] = {}


class Rows:
    """Collects rows; all values with equal other cells (except number, time and flags) are one sample.

    The cells of equal rows are interpreted once.
    """

    def __init__(self) -> None:
        self._samples: dict[_Sample, _Values] = {}
        self._headings: dict[tuple[str, ...], _Heading] = {}

    def add(self, names: tuple[str, ...], cells: Sequence[str], line: int) -> None:
        """Add one row: the names of its columns, and its cells as text. Raises `FormatError` with the line.

        Other columns are parameters, with or without the prefix.
        """
        heading = self._headings.get(names)
        if heading is None:
            _refuse_missing([name for name in REQUIRED if name not in names], line)
            heading = self._headings[names] = _Heading(names)
        shared = heading.shared(cells)
        values = heading.known.get(shared)
        if values is None:
            sample = _sample(dict(zip(names, cells, strict=True)), line)
            values = heading.known[shared] = self._samples.setdefault(sample, _Values())
        number = _number(cells[heading.value], line)
        values.numbers.append((_ordinal(_first(cells, heading.numbers), len(values.numbers), line), number))
        time = _time(_first(cells, heading.times), line)
        values.when = values.when or time

    def series(self) -> tuple[Series, ...]:
        """Return the collected series."""
        return tuple(
            Series(
                benchmark=sample.benchmark,
                point=sample.point,
                subject=sample.subject,
                metric=sample.metric,
                unit=sample.unit,
                better=sample.better,
                values=tuple(value for _, value in sorted(values.numbers, key=itemgetter(0))),
                when=values.when,
                machine=sample.machine,
                summary=sample.summary,
            )
            for sample, values in self._samples.items()
        )


def _sample(row: Mapping[str, str], line: int) -> _Sample:
    """Return the sample of a row."""
    _refuse_missing([name for name in REQUIRED if not row[name]], line)
    return _Sample(
        subject=_subject(row),
        benchmark=row["benchmark"],
        point=tuple(
            (name.removeprefix(PREFIX), cell) for name, cell in row.items() if name not in COLUMNS and cell
        ),
        metric=row["metric"],
        unit=row.get("unit") or None,
        better=_better(row.get("better", ""), line),
        machine=row.get("machine") or None,
        summary=SUMMARY in row.get("flags", "").split(),
    )


def _refuse_missing(missing: Sequence[str], line: int) -> None:
    if missing:
        raise FormatError(
            f"line {line}: has no {listed(missing, 'and')}; {listed(REQUIRED, 'and')} are required"
        )


def _subject(row: Mapping[str, str]) -> str | None:
    """Return the subject as written, or by revision and variant as perftrail shows it."""
    variant = row.get("variant", "")
    named = row.get("subject") or row.get("revision") or ""
    return f"{named} ({variant})".strip() if variant not in ("", PLAIN) else named or None


def _better(text: str, line: int) -> Better:
    if text in ("", "lower"):
        return "lower"
    if text == "higher":
        return "higher"
    raise FormatError(f"line {line}: better: {quoted(text)} is neither lower nor higher")


def _first(cells: Sequence[str], columns: Sequence[int]) -> str:
    """Return the first cell at these columns that is not empty."""
    for column in columns:
        if cells[column]:
            return cells[column]
    return ""


def _ordinal(text: str, index: int, line: int) -> int:
    if not text:
        return index
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise FormatError(f"line {line}: {quoted(text)} is not the number of an invocation, such as 0")
    return int(text)


def _number(text: str, line: int) -> float:
    if not text:
        _refuse_missing(["value"], line)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"line {line}: value: {quoted(text)} is not a finite number")
    return value


def _time(text: str, line: int) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise FormatError(f"line {line}: {quoted(text)} is not a time such as 2026-01-31T12:00:00") from None


BEFORE = ("revision", "variant", "benchmark")
AFTER = ("metric", "value", "unit", "invocation", "started", "machine", "flags", "label", "time", "better")
"""The columns before and after those of the parameters; new ones may be added at the end."""

Cell = str | int | float


def axes(samples: Sequence[Exported]) -> tuple[str, ...]:
    """Return every parameter of any sample, in the order of occurrence."""
    return tuple(dict.fromkeys(name for each in samples for name in each.point.names))


def column(parameter: str) -> str:
    """Return a parameter's column: its name, unless a fixed column has that name.

    >>> column("threads"), column("value")
    ('threads', 'point.value')
    """
    return f"point.{parameter}" if parameter in (*BEFORE, *AFTER) else parameter


def rows(samples: Sequence[Exported]) -> Iterator[tuple[Exported, dict[str, Cell]]]:
    """Yield a row for each value, without the parameters, and its sample."""
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


def revision_files(
    samples: Sequence[Exported], document: Callable[[Sequence[Exported]], Json], *, ending: str = ".json"
) -> dict[str, bytes]:
    """Return a file for each revision with the JSON document of its samples; empty documents are left out."""
    by_revision: dict[str, list[Exported]] = defaultdict(list)
    for sample in samples:
        by_revision[sample.subject.revision.id].append(sample)
    files: dict[str, bytes] = {}
    for id, those in by_revision.items():
        result = document(those)
        if result:
            name = file_name(those[0].subject.revision.label or id, files, ending)
            files[name] = f"{json.dumps(result, indent=2, ensure_ascii=False)}\n".encode()
    return files


def file_name(text: str, taken: Collection[str], ending: str, *, below: str = "") -> str:
    """Return a file name for any text, different from those taken; no name leads out of the directory `below`.

    >>> file_name("../v1.0", (), ".json"), file_name("a", ["b/a.csv"], ".csv", below="b/")
    ('v1.0.json', 'b/a-2.csv')
    """
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", text)[:80].strip("-.") or "revision"
    number, unique = 2, f"{below}{name}{ending}"
    while unique in taken:
        unique, number = f"{below}{name}-{number}{ending}", number + 1
    return unique
