"""Suites in Python: asv and pytest-benchmark, which a small program runs in the environment of the revision.

The program is `runners/python_suite.py`. It lists the suite, measures one benchmark, or serves as a resident process.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import parse
from perftrail.model.benchmark import Point
from perftrail.model.suite import SuiteItem
from perftrail.suites.shell import RUNNERS, in_directory, word, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftrail.formats.document import Node
    from perftrail.model.benchmark import Value
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "jsonl"

_VERSION = 3
"""Version of the program; a change of what it measures needs another one, so that samples are not mixed."""

_DIRECTORIES = {"asv": "benchmarks", "pytest-benchmark": "."}
"""Default directory of each tool's suite."""


def listing(suite: Suite) -> str:
    """List the suite, and run each benchmark for a moment to choose its iterations."""
    return _run(suite, f"list {suite.seconds:g}")


def read_listing(output: str, _suite: Suite) -> tuple[SuiteItem, ...]:
    """Return every benchmark at every combination of its parameters."""
    items: dict[tuple[str, Point], SuiteItem] = {}
    for line in _lines(output):
        if line.get("unlisted") is None:
            item = _item(line)
            items.setdefault((item.name, item.point), item)
    return tuple(items.values())


def unlisted(output: str) -> tuple[str, ...]:
    """Return each file whose benchmarks could not be listed, with the reason. Raises `FormatError`."""
    return tuple(
        f"{file.text()}: {line['reason'].text()}"
        for line in _lines(output)
        if (file := line.get("unlisted")) is not None
    )


def command(suite: Suite, item: SuiteItem) -> str:
    """Measure one benchmark in a separate process."""
    return _run(suite, f"run {word(item.selector)}")


def server(suite: Suite, item: SuiteItem) -> str:
    """Return the resident process; peak memory needs a separate process."""
    return "" if json.loads(item.selector).get("peak") else _run(suite, "serve")


def request(_suite: Suite, item: SuiteItem) -> str:
    """Return the request to the resident process."""
    return item.selector


def _run(suite: Suite, what: str) -> str:
    python = f"{{build}}/{word(suite.program[0])}" if suite.program else "python3"
    directory = word(suite.path or _DIRECTORIES[suite.kind])
    runner = f'"${RUNNERS}"/python_suite.py {_VERSION} {suite.kind}'
    return f"{in_directory('')} && exec {python}{words(suite.arguments)} {runner} {what} {directory}"


def _lines(output: str) -> Iterator[Node]:
    for number, line in enumerate(output.splitlines(), start=1):
        yield parse(line.encode(), line=number)


def _item(line: Node) -> SuiteItem:
    request = dict(line["request"].members())
    point: dict[str, Value] = {}
    for pair in line["point"].elements():
        name, value = (each.value for each in pair.elements())
        if not isinstance(name, str) or not isinstance(value, int | float | str):
            raise FormatError("a parameter of the list is not a name with a number or a text")
        point[name] = value
    plain = {name: each.value for name, each in request.items()}
    if line["peak"].value is True:
        plain["peak"] = True
    return SuiteItem(
        name=line["name"].text(),
        point=Point(tuple(point.items())),
        selector=json.dumps(plain, sort_keys=True),
        iterations=int(line["iterations"].number()),
        metric=line["metric"].text(),
        unit=line["unit"].text(),
        printed=line["metric"].text(),
    )
