"""gungraun's JSON (``--output-format=json``) and printed output: counts of Valgrind's tools."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import NO_FILE, Node, begins_with, decoded
from perftrail.formats.units import unit
from perftrail.model.exchange import Series
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from perftrail.formats.document import FileContext
    from perftrail.model.metrics import Better

_VERSION = "7"
"""Version of the JSON's schema, of gungraun 0.20."""

_DEFAULT_TOOL = "Callgrind"
_INSTRUCTIONS = "instructions"
_NAMES: Mapping[str, str] = {
    "Ir": _INSTRUCTIONS,
    "Instructions": _INSTRUCTIONS,
    "L1 Hits": "L1hits",
    "LL Hits": "LLhits",
    "RAM Hits": "RamHits",
    "Total read+write": "TotalRW",
    "Estimated Cycles": "EstimatedCycles",
}
"""Names of metrics in the study by those in the JSON and in the printed output; other names stay."""

_HEADING = re.compile(r"(\w+(?:::\w+)+)(?: (\w+)?:\(.*| ?\(.*)?")
_TOOL = re.compile(r"  =+ ([A-Z]+) =+")
_METRIC = re.compile(r"  (\S[^|:]{0,80}): +(\d[\d.]{0,40})\|.*")
_ANY_METRIC = re.compile(r"  \S[^|:]{0,80}: +([^|]*)\|.*\(.*\)")
_PRINTED = re.compile(
    rb"^\w+(::\w+)+[^\n]{0,1000}\n  (=+ [A-Z]+ =+\n  )?\S[^|:\n]{0,80}: +\d[\d.]*\|", re.MULTILINE
)
_TOOLS: Mapping[str, str] = {
    "CALLGRIND": "Callgrind",
    "CACHEGRIND": "Cachegrind",
    "MEMCHECK": "Memcheck",
    "HELGRIND": "Helgrind",
    "MASSIF": "Massif",
    "PERF": "Perf",
}


def recognises(head: bytes, _name: str) -> bool:
    """Return whether gungraun wrote or printed this."""
    is_json = begins_with(head, rb'\{\s*"baselines"\s*:') and b'"benchmark_exe"' in head
    return is_json or _PRINTED.search(head) is not None


def read(content: bytes, _context: FileContext = NO_FILE) -> tuple[Series, ...]:
    """Read the new counts of every benchmark: those of Callgrind, and of other tools with the tool in their name.

    The name is the one that ``--list`` prints: ``file::group::function::id``. Other lines are skipped.
    """
    text = decoded(content)
    if re.search(r"^\{", text, re.MULTILINE):
        return tuple(series for summary in _summaries(text) for series in _summary(summary))
    return tuple(_printed(text.splitlines()))


def _summaries(text: str) -> Iterator[Node]:
    """Yield every JSON object that begins at the start of a line."""
    decoder, end = json.JSONDecoder(), 0
    while found := re.compile(r"^\{", re.MULTILINE).search(text, end):
        line = text.count("\n", 0, found.start()) + 1
        try:
            value, end = decoder.raw_decode(text, found.start())
        except json.JSONDecodeError as error:
            raise FormatError(f"line {error.lineno}: is not valid JSON: {error.msg.lower()}") from error
        except (RecursionError, ValueError) as error:
            raise FormatError(
                f"line {line}: is not valid JSON: nested too deeply, or with a too long number"
            ) from error
        yield Node(value, f"line {line}")


def _summary(summary: Node) -> Iterator[Series]:
    version = summary["version"].text()
    if version != _VERSION:
        raise summary["version"].error(
            f"{quoted(version)} is not a known version of gungraun's JSON; perftrail reads {_VERSION}, of gungraun 0.20"
        )
    id, started = summary.get("id"), summary.get("started_at")
    name = summary["module_path"].text() if id is None else f"{summary['module_path'].text()}::{id.text()}"
    when = None if started is None else started.time()
    for profile in summary["profiles"].elements():
        metrics = profile["data"]["total"].get("metrics")
        for metric, result in () if metrics is None else metrics.members():
            value = result["values"].get("new")
            if value is not None:
                yield _series(name, profile["tool"].text(), metric, value, when)


def _series(name: str, tool: str, metric: str, value: Node, when: datetime | None) -> Series:
    """Return a count; Perf's have a unit."""
    known = unit("")
    if isinstance(value.value, dict):
        text = value.get("unit")
        value, known = value["value"], unit("" if text is None else text.text())
    return _one(name, tool, metric, known.scaled((value.number(),)), unit_name=known.name, when=when)


def _one(
    name: str,
    tool: str,
    metric: str,
    values: tuple[float, ...],
    *,
    unit_name: str | None = None,
    when: datetime | None = None,
) -> Series:
    better: Better = "higher" if metric in ("L1HitRate", "L1 Hit Rate") else "lower"
    chosen = _NAMES.get(metric, metric)
    if unit_name is None:
        unit_name = "B" if metric.lower().endswith("bytes") else "%" if metric.endswith("Rate") else None
    return Series(
        benchmark=name,
        metric=chosen if tool == _DEFAULT_TOOL else f"{tool} {chosen}",
        unit=unit_name,
        better=better,
        values=values,
        when=when,
    )


def _printed(lines: list[str]) -> Iterator[Series]:
    name, tool = "", _DEFAULT_TOOL
    for number, line in enumerate(lines, start=1):
        if found := _HEADING.fullmatch(line):
            name, tool = "::".join(filter(None, (found[1], found[2]))), _DEFAULT_TOOL
        elif name and (found := _TOOL.fullmatch(line)):
            tool = _TOOLS.get(found[1], found[1])
        elif name and (found := _METRIC.fullmatch(line)):
            try:
                value = float(found[2])
            except ValueError:
                raise FormatError(f"line {number}: {quoted(found[2])} is not a number") from None
            yield _one(name, tool, _written(found[1]), (value,))
        elif name and (found := _ANY_METRIC.fullmatch(line)) and found[1].strip() not in ("N/A", ""):
            raise FormatError(f"line {number}: {quoted(found[1].strip())} is not a number")


def _written(printed: str) -> str:
    """Return the name in the JSON of a printed metric.

    >>> _written("At t-gmax bytes"), _written("RAM Hits")
    ('AtTGmaxBytes', 'RamHits')
    """
    words = re.split(r"[ -]", printed)
    return _NAMES.get(printed) or "".join(word[:1].upper() + word[1:] for word in words)
