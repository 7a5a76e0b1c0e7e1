"""Suites in Python: asv and pytest-benchmark, which a small program runs in the environment of the revision.

The program is `runners/python_suite.py`. It lists the suite, chooses iterations, measures one benchmark, or serves as a
resident process.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.formats.document import parse
from perftrail.model.benchmark import Point
from perftrail.model.suite import SuiteItem
from perftrail.suites.shell import RUNNERS, in_directory, word, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftrail.formats.document import Node
    from perftrail.model.benchmark import Value
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "jsonl"

_VERSION = 4
"""Version of the program; a change of what it measures needs another one, so that samples are not mixed."""

_DIRECTORIES = {"asv": "benchmarks", "pytest-benchmark": "."}
"""Default directory of each tool's suite."""


def listing(suite: Suite) -> str:
    """List the suite, without running a benchmark."""
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


def calibration(suite: Suite, items: Sequence[SuiteItem]) -> str:
    """Run each of these benchmarks for a moment to choose its iterations."""
    requests = ", ".join(each.selector for each in items)
    return _run(suite, f"calibrate {word(f'[{requests}]')}")


def read_calibration(output: str, items: Sequence[SuiteItem]) -> dict[SuiteItem, SuiteItem | None]:
    """Return the benchmarks of a calibration so far, each with its iterations; `None` if it skips its parameters."""
    waiting = {each.selector: each for each in items}
    found: dict[SuiteItem, SuiteItem | None] = {}
    for line in _lines(output[: output.rfind("\n") + 1]):
        item = waiting.get(_selector(line["requested"]))
        if item is None:
            raise FormatError("a line of the calibration is about another benchmark")
        iterations = int(line["iterations"].number())
        chosen = replace(item, selector=_selector(line["request"]), iterations=iterations, is_calibrated=True)
        found[item] = None if line["skipped"].value is True else chosen
    return found


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


def _selector(request: Node) -> str:
    return json.dumps({name: each.value for name, each in request.members()}, sort_keys=True)


def _item(line: Node) -> SuiteItem:
    point: dict[str, Value] = {}
    for pair in line["point"].elements():
        match [each.value for each in pair.elements()]:
            case [str(name), int() | float() | str() as value]:
                point[name] = value
            case _:
                raise pair.error("must be a name with a number or a text")
    return SuiteItem(
        name=line["name"].text(),
        point=Point(tuple(point.items())),
        selector=_selector(line["request"]),
        is_calibrated=False,
        metric=line["metric"].text(),
        unit=line["unit"].text(),
        printed=line["metric"].text(),
    )
