"""Printed output of tclbench's ``runbench.tcl``: ``-output text``, ``list`` or ``csv``."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, decoded
from perftrail.model.exchange import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.formats.document import FileContext


NOTE = "mean time of an iteration"

_HEADING = re.compile(r"^(0+)([ ,])VERSIONS:", re.MULTILINE)
_MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    name: str
    cells: tuple[str, ...]


def recognises(head: bytes, _name: str) -> bool:
    """Return whether this has tclbench's first row."""
    return _HEADING.search(head.decode("utf-8", "replace")) is not None


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the table: a column for each interpreter, which is the subject.

    Other texts than numbers are missing values. Equal version numbers are preceded by their position. Ratios by
    `-normalize` look like times in two of the forms: do not import normalised results.
    """
    text = decoded(content)
    heading = _HEADING.search(text)
    if heading is None:
        raise FormatError('line 1: has no row "VERSIONS:"; write the output of runbench.tcl to a file')
    line = text.count("\n", 0, heading.start()) + 1
    lines = text[heading.start() :].splitlines()
    if heading[2] == ",":
        rows = _csv(lines, line)
    elif len(heading[1]) > 1:
        rows = _columns(lines, line)
    else:
        rows = _list(lines, line)
    subjects = _subjects(next(rows).cells)
    return tuple(
        Series(
            benchmark=row.name,
            subject=subject,
            metric="wall",
            unit="s",
            values=(float(cell) / _MICROSECONDS,),
            summary=True,
            note=NOTE,
        )
        for row in rows
        for subject, cell in zip(subjects, row.cells, strict=False)
        if _is_time(cell)
    )


def _subjects(labels: Sequence[str]) -> list[str]:
    """Return the interpreters' names: their versions, with their number if several are equal."""
    versions = [label.partition(":")[2] or label for label in labels]
    return list(labels) if len(set(versions)) < len(versions) else versions


def _is_time(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _columns(lines: Sequence[str], first: int) -> Iterator[_Row]:
    """Read the text form: columns are counted from the right, because names may contain blanks."""
    labels = lines[0].split()[2:]
    yield _Row(name="", cells=tuple(labels))
    for number, line in enumerate(lines[1:], start=first + 1):
        if re.match(r"\d{3,} BENCHMARKS", line):
            return
        name, *cells = line.partition(" ")[2].rsplit(maxsplit=len(labels)) or [""]
        if len(cells) < len(labels):
            raise FormatError(f"line {number}: has fewer columns than the first row, which has {len(labels)}")
        yield _Row(name=name.strip(), cells=tuple(cells))


def _csv(lines: Sequence[str], first: int) -> Iterator[_Row]:
    reader = csv.reader(lines)
    try:
        for cells in reader:
            if len(cells) > 1 and cells[1] == "BENCHMARKS":
                return
            yield _row(cells, first + reader.line_num - 1)
    except csv.Error as error:
        raise FormatError(f"line {first + reader.line_num - 1}: {error}") from error


def _list(lines: Sequence[str], first: int) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=first):
        cells = _words(line, number)
        if len(cells) > 1 and cells[1] == "BENCHMARKS":
            return
        yield _row(cells, number)


def _row(cells: Sequence[str], line: int) -> _Row:
    if len(cells) < 2:
        raise FormatError(f"line {line}: needs a number, a name and times")
    return _Row(name=cells[1], cells=tuple(cells[2:]))


def _words(line: str, number: int) -> list[str]:
    r"""Split a Tcl list: words in braces are literal, others may have backslashes.

    >>> _words("1 {LIST append, \"long\"} 4.7 a\\ b", 1)
    ['1', 'LIST append, "long"', '4.7', 'a b']
    """
    words: list[str] = []
    index = 0
    while index < len(line):
        if line[index].isspace():
            index += 1
            continue
        end = _end_of_braces(line, index) if line[index] == "{" else index
        if line[index] == "{":
            if end < 0:
                raise FormatError(f"line {number}: a brace is not closed")
            words.append(line[index + 1 : end])
            index = end + 1
            continue
        found = re.compile(r"(?:\\.|[^\s\\])+|\\").match(line, index)
        assert found is not None, "every other text is a word"
        words.append(re.sub(r"\\(.)", r"\1", found[0]))
        index = found.end()
    return words


def _end_of_braces(line: str, start: int) -> int:
    depth = 0
    for index in range(start, len(line)):
        if line[index] == "\\":
            continue
        if line[index] in "{}" and line[index - 1] != "\\":
            depth += 1 if line[index] == "{" else -1
            if depth == 0:
                return index
    return -1
