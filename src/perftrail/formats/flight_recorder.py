"""Samples of stacks that ``jfr print --events jdk.ExecutionSample`` prints, from a recording of a Java program."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from perftrail.formats.perf_script import LONGEST_STACK, from_paths
from perftrail.model.profile import Function

if TYPE_CHECKING:
    from perftrail.model.profile import Profile

_FRAME = re.compile(r"^ {4}(?P<type>\S+)\.(?P<method>[^\s.(]+)\((?P<arguments>.*)\)(?: +line: -?[0-9]+)?$")
_LIBRARIES = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.openjdk.jmh.")
LIBRARY = "/usr/lib/jvm"
"""The object of functions of the Java library and of JMH, wherever they are installed."""


def read_flight_recorder(text: str, *, root: str = "") -> Profile:
    r"""Return the profile of all samples. Source files, guessed from the names of types, are below `root`.

    >>> found = read_flight_recorder("  stackTrace = [\n    a.B$C.run(int) line: 3\n    a.B.main() line: 9\n  ]\n")
    >>> [(each.name, each.file, costs) for each, costs in found.inclusive.items()]
    [('a.B$C.run(int)', 'a/B.java', (1.0,)), ('a.B.main()', 'a/B.java', (1.0,))]
    """
    paths: defaultdict[tuple[Function, ...], float] = defaultdict(float)
    stack: list[Function] = []
    for line in text.splitlines():
        match = _FRAME.match(line)
        if match is not None:
            stack.append(_function(match, root))
        elif stack and line.strip() == "]":
            paths[tuple(reversed(stack[:LONGEST_STACK]))] += 1.0
            stack = []
    return from_paths(paths, event="samples")


def _function(match: re.Match[str], root: str) -> Function:
    type_name = match["type"]
    name = f"{type_name}.{match['method']}({match['arguments']})"
    if type_name.startswith(_LIBRARIES):
        return Function(name, object=LIBRARY)
    outer = type_name.partition("$")[0].partition("/")[0]
    return Function(name, file=f"{root}{outer.replace('.', '/')}.java")
