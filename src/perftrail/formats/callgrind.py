"""Profiles in Callgrind's format, as Valgrind's Callgrind writes it, and other tools for KCachegrind.

The format is that of https://valgrind.org/docs/manual/cl-format.html: names and positions may be compressed, code of
inlined functions is marked by its file only (`fi`, `fe`), and recursive calls may be separate functions (``f'2``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.profile import Calls, Function, Profile, added, joined

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perftrail.model.profile import Costs

UNKNOWN = "???"
"""Callgrind's name for unknown files, objects and functions."""

_NAME = re.compile(r"^\((?P<number>[0-9]+)\)(?: (?P<name>.*))?$", re.DOTALL)
_SPECIFICATION = re.compile(
    r"^(?P<key>fn|fl|fi|fe|ob|cfn|cfi|cfl|cob|calls|jump|jcnd|jfi|jfn|events|positions)[=:]\s?(?P<value>.*)$",
    re.DOTALL,
)
_KINDS = {
    "fn": "fn", "cfn": "fn", "jfn": "fn", "fl": "file", "fi": "file", "fe": "file", "cfi": "file", "cfl": "file",
    "jfi": "file", "ob": "object", "cob": "object",
}  # fmt: skip
_RECURSION = re.compile(r"'[0-9]+$")


def read_callgrind(text: str) -> Profile:
    r"""Read the text of one file, which may have several parts. Raises `FormatError` for other texts.

    Recursion levels of a function become one function; its inclusive costs are those of its outermost calls.

    >>> found = read_callgrind("events: Ir\nfl=a.c\nfn=main\n3 10\ncfn=add\ncalls=2 9\n4 40\nfn=add\n9 40\n")
    >>> {each.name: (costs, found.inclusive[each]) for each, costs in found.own.items()}
    {'main': ((10.0,), (50.0,)), 'add': ((40.0,), (40.0,))}
    """
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        try:
            reader.line(line)
        except (ValueError, IndexError, KeyError) as error:
            raise FormatError(f"line {number}: {line[:80]!r} is not a line of Callgrind's format") from error
    if not reader.events:
        raise FormatError("the text has no line events:, so it is not a profile in Callgrind's format")
    return reader.profile()


def read_processes(texts: Iterable[str]) -> Profile:
    """Read the files of all processes and add them up. Raises `FormatError` as `read_callgrind` does.

    A process without any cost, which for example only called exec, is left out.
    """
    profiles = [read_callgrind(text) for text in texts if "\nfn=" in text]
    if not profiles:
        raise FormatError("no process left a profile")
    return joined(profiles)


class _Reader:
    """The state of the format: current function, file, object, position, and names by number."""

    def __init__(self) -> None:
        self.events: tuple[str, ...] = ()
        self._positions = 1
        self._names: dict[str, dict[str, str]] = {"fn": {}, "file": {}, "object": {}}
        self._object, self._file = "", ""
        self._function = Function("")
        self._callee_name, self._callee_file, self._callee_object = "", None, None  # type: str, str | None, str | None
        self._last = [0, 0]
        self._call: tuple[float, int] | None = None
        self._jump = False
        self._own: defaultdict[Function, list[float]] = defaultdict(list)
        self._lines: defaultdict[Function, defaultdict[tuple[str, int], float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._calls: defaultdict[tuple[Function, Function], list[Calls]] = defaultdict(list)
        self._entry: dict[Function, int] = {}

    def line(self, line: str) -> None:
        """Read one line."""
        first = line[:1]
        if first.isdigit() or first in ("+", "-", "*"):
            self._costs(line.split())
            return
        match = _SPECIFICATION.match(line)
        if match is None:
            return  # headers, comments, totals
        key, value = match["key"], match["value"].rstrip("\r")
        if key == "events":
            self.events = self.events or tuple(value.split())
        elif key == "positions":
            self._positions = len(value.split())
        elif key == "calls":
            words = value.split()
            self._call = (float(int(words[0], 0)), self._positions_of(words[1:], keep=False))
        elif key in ("jump", "jcnd"):
            self._jump = True
        else:
            self._named(key, value)

    def _named(self, key: str, value: str) -> None:
        """Read a line with a name."""
        name = self._name(_KINDS[key], value)
        if key == "ob":
            self._object = name
        elif key in ("fl", "fi", "fe"):
            self._file = name
        elif key == "fn":
            self._function = Function(name, self._file, 0, self._object)
            self._own[self._function]  # a function without own costs is one, too
        elif key == "cob":
            self._callee_object = name
        elif key in ("cfi", "cfl"):
            self._callee_file = name
        elif key == "cfn":
            self._callee_name = name

    def _name(self, kind: str, value: str) -> str:
        match = _NAME.match(value)
        if match is None:
            name = value
        elif match["name"] is None:
            name = self._names[kind][match["number"]]
        else:
            name = self._names[kind][match["number"]] = match["name"]
        return "" if name == UNKNOWN and kind != "fn" else name

    def _positions_of(self, words: list[str], *, keep: bool = True) -> int:
        """Return the line of a position; subpositions are relative to the last ones if compressed."""
        found = []
        for index in range(self._positions):
            word, last = words[index], self._last[index]
            if word == "*":
                found.append(last)
            elif word[0] in "+-":
                found.append(last + int(word, 0))
            else:
                found.append(int(word, 0))
        if keep:
            self._last[: self._positions] = found
        return found[-1]

    def _costs(self, words: list[str]) -> None:
        position = self._positions_of(words)
        if self._jump:  # the line below a jump is its source; it has no cost
            self._jump = False
            return
        costs = tuple(float(int(word, 0)) for word in words[self._positions :])
        if self._call is not None:
            count, target = self._call
            callee = Function(
                self._callee_name,
                self._file if self._callee_file is None else self._callee_file,
                0,
                self._object if self._callee_object is None else self._callee_object,
            )
            self._calls[self._function, callee].append(Calls(count, costs))
            self._entry.setdefault(callee, target)
            self._call = self._callee_file = self._callee_object = None
            return
        own = self._own[self._function]
        own += [0.0] * (len(costs) - len(own))
        for index, value in enumerate(costs):
            own[index] += value
        if position > 0 and costs:
            self._lines[self._function][self._file, position] += costs[0]

    def profile(self) -> Profile:
        """Return everything that was read, with one function for all its recursion levels."""
        width = len(self.events)
        outer = {each: _outermost(each) for edge in self._calls for each in edge}
        outer |= {each: _outermost(each) for each in self._own}
        lines: defaultdict[Function, defaultdict[tuple[str, int], float]] = defaultdict(
            lambda: defaultdict(float)
        )
        for level, by_line in self._lines.items():
            for place, cost in by_line.items():
                lines[outer[level]][place] += cost
        named = {each: self._placed(each, lines[each]) for each in outer.values()}
        own: defaultdict[Function, list[Costs]] = defaultdict(list)
        inclusive: defaultdict[Function, list[Costs]] = defaultdict(list)
        for level, costs in self._own.items():
            function = named[outer[level]]
            own[function].append(tuple(costs))
            if outer[level] == level:
                inclusive[function].append(tuple(costs))
        edges: defaultdict[tuple[Function, Function], list[Calls]] = defaultdict(list)
        for (caller, callee), found in self._calls.items():
            edge = named[outer[caller]], named[outer[callee]]
            # A call of an inner level is part of an outer call of the same function.
            part = outer[callee] != callee or edge[0] == edge[1]
            edges[edge] += [Calls(each.count, ()) if part else each for each in found]
            if outer[caller] == caller:
                inclusive[edge[0]] += [each.costs for each in found]
        return Profile(
            events=self.events,
            own={each: added(width, costs) for each, costs in own.items()},
            inclusive={each: added(width, inclusive[each]) for each in own},
            calls={
                edge: Calls(sum(each.count for each in found), added(width, (each.costs for each in found)))
                for edge, found in edges.items()
            },
            lines={named[each]: dict(by_line) for each, by_line in lines.items() if by_line},
        )

    def _placed(self, function: Function, lines: dict[tuple[str, int], float]) -> Function:
        """Return a function with its first line: that of its entry, or else its smallest."""
        line = self._entry.get(function, 0) or min(
            (line for file, line in lines if file == function.file), default=0
        )
        return Function(function.name, function.file, line, function.object)


def _outermost(function: Function) -> Function:
    return Function(_RECURSION.sub("", function.name) or function.name, function.file, 0, function.object)
