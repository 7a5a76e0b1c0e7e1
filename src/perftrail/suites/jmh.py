"""JMH: benchmarks in Java, in a jar with all that they need, or in several jars and directories of classes.

The program `runners/JmhSuite.java` runs them in its own JVM, by JMH's programming interface. `runners/jmh_suite.sh`
compiles it at each start, with the JDK and the JMH of the revision: that takes a second, and works with Java 8, which
cannot start a source file. ``JAVA_HOME`` of the suite's `env` chooses the JDK.

The JVM gets the options of the suite, those of the benchmark's annotation ``Fork``, and the instructions to the
compiler that JMH passes to its forks.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from perftrail.formats.document import parse
from perftrail.model.benchmark import Point
from perftrail.model.suite import SuiteItem
from perftrail.suites.shell import RUNNERS, in_directory, patterns, word, words

if TYPE_CHECKING:
    from perftrail.formats.document import Node
    from perftrail.model.benchmark import Value
    from perftrail.model.metrics import Printed
    from perftrail.model.suite import Suite

READS: Printed = "jsonl"

_VERSION = 1
"""Version of the program; a change of what it measures needs another one, so that samples are not mixed."""

_ONCE = "ss"
"""JMH's name of the mode SingleShotTime: a benchmark that measures a cold start."""

_MODES = ("avgt", _ONCE)


def listing(suite: Suite) -> str:
    """List the benchmarks without a run of any."""
    return _run(suite, "list", "", ())


def read_listing(output: str, suite: Suite) -> tuple[SuiteItem, ...]:
    """Return every benchmark at every combination of its parameters."""
    items: dict[tuple[str, Point], SuiteItem] = {}
    for number, line in enumerate(output.splitlines(), start=1):
        item = _item(parse(line.encode(), line=number), suite)
        items.setdefault((item.name, item.point), item)
    return tuple(items.values())


def command(suite: Suite, item: SuiteItem) -> str:
    """Measure one benchmark in a separate JVM."""
    jvm, request = _selected(item)
    return _run(suite, "run", request, jvm)


def server(suite: Suite, item: SuiteItem) -> str:
    """Return the resident JVM of all benchmarks with the same options; a cold start needs a separate JVM."""
    jvm, request = _selected(item)
    return "" if request.split(" ")[1] == _ONCE else _run(suite, "serve", "", jvm)


def request(_suite: Suite, item: SuiteItem) -> str:
    """Return the request to the resident JVM."""
    return _selected(item)[1]


def _run(suite: Suite, mode: str, request: str, jvm: tuple[str, ...]) -> str:
    script = f'"${RUNNERS}"/jmh_suite.sh {_VERSION}'
    what = f'"$scratch" {word(suite.path)} {mode} {word(request)}'
    options = words((*suite.arguments, *jvm))
    return f"scratch=$PWD && {in_directory('')} && exec sh {script} {what} {patterns(suite)} --{options}"


def _selected(item: SuiteItem) -> tuple[tuple[str, ...], str]:
    """Return the JVM's options and the request of a benchmark."""
    selector = json.loads(item.selector)
    return tuple(selector["jvm"]), selector["request"]


def _item(line: Node, suite: Suite) -> SuiteItem:
    name, mode = line["name"].text(), line["mode"].text()
    if mode not in _MODES:
        raise line["mode"].error(f"must be {_MODES[0]} or {_MODES[1]}")
    point = [(key, each.text()) for key, each in line["point"].members()]
    pairs = (f"{quote_plus(key)}={quote_plus(text)}" for key, text in point)
    request = " ".join((quote_plus(name), mode, f"{suite.seconds:g}", *pairs))
    jvm = [each.text() for each in line["jvm"].elements()]
    return SuiteItem(
        name=name,
        point=Point(tuple((key, _value(text)) for key, text in point)),
        selector=json.dumps({"request": request, "jvm": jvm}, sort_keys=True),
        printed="time",
    )


def _value(text: str) -> Value:
    """Return a number for the text that JMH would print for it.

    >>> _value("10"), _value("010"), _value("1_000")
    (10, '010', '1_000')
    """
    return int(text) if re.fullmatch(r"-?[1-9]\d{0,14}|0", text, re.ASCII) else text
