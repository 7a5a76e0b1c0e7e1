"""Otava's input: CSVs with a row for each revision, and one otava.yaml that states the tests in them.

For the export, each metric of a benchmark at a point is a test with its own CSV.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, Node, decoded
from perftrail.formats.rows import file_name
from perftrail.model.exchange import Series
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.formats.document import FileContext
    from perftrail.model.exchange import Exported
    from perftrail.model.metrics import Better
    from perftrail.model.study import Study

_DIRECTIONS: Mapping[Better, int] = {"lower": -1, "higher": 1}
TIME, COMMIT, VALUE = "time", "commit", "value"
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""Time of the first revision if the history does not have all times; each next one is a day later."""


def write(samples: Sequence[Exported], study: Study) -> dict[str, bytes]:  # noqa: ARG001 - every format has it
    """Return medians in the order of the history. Each metric is a test, because rows need a value in every column."""
    series: dict[str, list[Exported]] = defaultdict(list)
    for each in samples:
        series[f"{each.name} {each.metric}"].append(each)
    files: dict[str, bytes] = {}
    tests = []
    for name, those in series.items():
        file = file_name(name, files, ".csv")
        files[file] = _table(those)
        tests.append(_test(file, those[0]))
    files["otava.yaml"] = f"tests:\n{''.join(tests)}".encode()
    return files


def _table(samples: Sequence[Exported]) -> bytes:
    dates = {each.subject.revision.id: each.subject.revision.time for each in samples}
    days = {id: (_FIRST + timedelta(days=day)).isoformat() for day, id in enumerate(dates)}
    times = dates if all(dates.values()) else days
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([TIME, COMMIT, VALUE])
    for each in samples:
        id = each.subject.revision.id
        writer.writerow([times[id], id, each.median])
    return text.getvalue().encode()


def _test(file: str, sample: Exported) -> str:
    """Return a test of the configuration; JSON is YAML, so that no name needs its own quotes."""
    metric = {"direction": _DIRECTIONS[sample.better], "scale": 1, "column": VALUE}
    test = {
        "type": "csv",
        "file": file,
        "time_column": TIME,
        "attributes": [COMMIT],
        "metrics": {sample.metric: metric},
        "csv_options": {"delimiter": ",", "quote_char": '"'},
    }
    return f"  {json.dumps(file.removesuffix('.csv'))}: {json.dumps(test)}\n"


_REVISIONS = ("commit", "version", "run")
"""Attributes that name the revision of a row; the first that a test has. Without one, the time does."""

_BRANCH = "branch"
_CSV = "csv"
_TESTS = re.compile(rb"^tests\s*:", re.MULTILINE)
_CSV_TYPE = re.compile(rb"[\"']?type[\"']?\s*:\s*[\"']?csv\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A metric of a test, and its column."""

    metric: str
    column: str
    better: Better


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A test of the type csv: its file, and the meaning of the columns."""

    name: str
    place: Node
    file: str
    time: str
    attributes: tuple[str, ...]
    columns: tuple[_Column, ...]
    delimiter: str
    quote: str


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this is Otava's configuration with tests of the type csv."""
    return _TESTS.search(head) is not None and _CSV_TYPE.search(head) is not None


def companions(content: bytes) -> tuple[str, ...]:
    """Return the tables that the configuration names, in its directory or below."""
    names = (name for each in _tables(content) for name in _candidates(each.file))
    return tuple(dict.fromkeys(names))


def read(content: bytes, context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the tables of the tests of the type csv: each test is a benchmark, each row a value of its revision.

    The revision is the attribute ``commit``, else ``version`` or ``run``, else the time. With several branches,
    the branch is a parameter. A table is searched below the directory of the configuration, also by its last names.
    Values keep their column's unit, which the configuration does not state.
    """
    return tuple(series for each in _tables(content) for series in _series(each, context))


def _tables(content: bytes) -> Iterator[_Table]:
    document = _configuration(content)
    templates = document.get("templates")
    for name, test in document["tests"].members():
        merged = _merged(test, templates)
        kind = merged.get("type")
        if kind is not None and kind.scalar() == _CSV:
            yield _table_of(name, merged)


def _configuration(content: bytes) -> Node:
    try:
        import yaml  # noqa: PLC0415 - an optional library
    except ImportError as error:
        raise FormatError('needs PyYAML; install it with "pip install perftrail[otava]"') from error
    text = decoded(content)
    try:
        return Node(yaml.safe_load(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise FormatError(f"line {line}: is not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, TypeError) as error:
        raise FormatError("is not valid YAML, or nested too deeply") from error


def _merged(test: Node, templates: Node | None) -> Node:
    """Return a test with the keys of the templates that it inherits; its own keys are used first."""
    names = test.get("inherit")
    merged: dict[str, object] = {}
    for name in () if names is None else names.elements():
        if templates is None:
            raise name.error(f"no template {quoted(name.scalar())}")
        _merge(merged, templates[name.text()])
    _merge(merged, test)
    return Node(merged, test.path)


def _merge(into: dict[str, object], node: Node) -> None:
    for key, each in node.members():
        inside = into.get(key)
        if isinstance(inside, dict) and isinstance(each.value, dict):
            into[key] = {**inside, **each.value}
        else:
            into[key] = each.value


def _table_of(name: str, test: Node) -> _Table:
    options, attributes, time = test.get("csv_options"), test.get("attributes"), test.get("time_column")
    return _Table(
        name=str(name),
        place=test["file"],
        file=test["file"].text(),
        time=TIME if time is None else time.text(),
        attributes=() if attributes is None else tuple(each.scalar() for each in attributes.elements()),
        columns=tuple(_columns(test["metrics"])),
        delimiter=_letter(options, "delimiter", ","),
        quote=_letter(options, "quote_char", '"'),
    )


def _letter(options: Node | None, key: str, default: str) -> str:
    found = None if options is None else options.get(key)
    if found is None:
        return default
    if len(found.text()) != 1 or found.text() in "\r\n":
        raise found.error("must be one character")
    return found.text()


def _columns(metrics: Node) -> Iterator[_Column]:
    if isinstance(metrics.value, list):
        for each in metrics.elements():
            yield _Column(metric=each.scalar(), column=each.scalar(), better="higher")
        return
    for name, metric in metrics.members():
        column, direction = metric.get("column"), metric.get("direction")
        lower = direction is not None and direction.scalar().strip().startswith("-")
        yield _Column(
            metric=str(name),
            column=str(name) if column is None else column.text(),
            better="lower" if lower else "higher",
        )


def _candidates(file: str) -> tuple[str, ...]:
    """Return where a table may be, relative to the configuration: Otava's paths are relative to where it ran."""
    parts = [part for part in PurePosixPath(file.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    return tuple("/".join(parts[index:]) for index in range(len(parts)))


def _series(table: _Table, context: FileContext) -> Iterator[Series]:
    content = next(
        (found for name in _candidates(table.file) if (found := context.read_relative(name))), None
    )
    if content is None:
        raise table.place.error(
            f"{quoted(table.file)} is not below the directory of this file; keep them together"
        )
    values: dict[tuple[str, str, str], list[float]] = {}
    times: dict[str, datetime] = {}
    for number, row in _rows(table, content):
        when = _time(row[table.time], table.file, number)
        attribute = next((each for each in _REVISIONS if each in table.attributes and row.get(each)), None)
        revision = row[attribute] if attribute is not None else row[table.time]
        times.setdefault(revision, when)
        for column in table.columns:
            key = (column.metric, revision, row.get(_BRANCH, ""))
            values.setdefault(key, []).append(_value(row[column.column], table.file, number))
    several = len({branch for _, _, branch in values}) > 1
    better = {each.metric: each.better for each in table.columns}
    for (metric, revision, branch), numbers in values.items():
        yield Series(
            benchmark=table.name,
            point=((_BRANCH, branch),) if several else (),
            subject=revision,
            metric=metric,
            unit=None,
            better=better[metric],
            values=tuple(numbers),
            when=times[revision],
        )


def _rows(table: _Table, content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows with the numbers of their lines. Raises `FormatError` for missing columns and cells."""
    lines = io.StringIO(decoded(content), newline="")
    reader = csv.reader(lines, delimiter=table.delimiter, quotechar=table.quote)
    try:
        heading = next(reader, [])
        for name in (table.time, *(each.column for each in table.columns)):
            if name not in heading:
                raise FormatError(f"{table.file}: line 1: the heading has no column {quoted(name)}")
        for cells in reader:
            if not cells:
                continue
            if len(cells) < len(heading):
                raise FormatError(
                    f"{table.file}: line {reader.line_num}: has {len(cells)} cells; the heading has {len(heading)}"
                )
            yield reader.line_num, dict(zip(heading, cells, strict=False))
    except csv.Error as error:
        raise FormatError(f"{table.file}: line {reader.line_num}: {error}") from error


def _value(text: str, file: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"{file}: line {line}: {quoted(text)} is not a finite number")
    return value


_DATE = re.compile(
    r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(.*))?"
)
_ZONE = re.compile(r"([+-])(\d{2}):?(\d{2})")


def _time(text: str, file: str, line: int) -> datetime:
    """Return a time as ISO 8601, as ``2024.01.02 3:00:00 +0100``, or as seconds since 1970; without a zone, in UTC."""
    try:
        if re.fullmatch(r"\d{9,11}(\.\d+)?", text.strip()):
            return datetime.fromtimestamp(float(text), UTC)
        found = _DATE.fullmatch(text.strip())
        if found is not None:
            year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
            zone = _ZONE.fullmatch(found[7] or "")
            if zone is not None or (found[7] or "") in ("", "Z", "UTC", "GMT"):
                when = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
                shift = timedelta(hours=int(zone[2]), minutes=int(zone[3])) if zone else timedelta()
                return when - shift if zone is None or zone[1] == "+" else when + shift
    except (ValueError, OverflowError):
        pass
    raise FormatError(f"{file}: line {line}: {quoted(text)} is not a time such as 2026-01-31T12:00:00+00:00")
