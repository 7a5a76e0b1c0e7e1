"""Profiles in Callgrind's format, as Valgrind's Callgrind writes it, and other tools for KCachegrind.

The format is that of https://valgrind.org/docs/manual/cl-format.html: names and positions may be compressed, code of
inlined functions is marked by its file only (`fi`, `fe`), and recursive calls may be separate functions (``f'2``).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.errors import FormatError
from perftrail.model.profile import Calls, Frames, Function, Profile, added, joined

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
    return CallgrindFile(text).profile()


FramesAt = Mapping[tuple[str, int], Frames]
"""The frames by object and address."""


class CallgrindFile:
    """One file of one process. Raises `FormatError` for other texts.

    Files with addresses (``--dump-instr=yes``) can be read with inlined functions as functions.
    """

    def __init__(self, text: str) -> None:
        self._reader = _Reader()
        for number, line in enumerate(text.split("\n"), 1):
            try:
                self._reader.line(line)
            except (ValueError, IndexError, KeyError) as error:
                raise FormatError(
                    f"line {number}: {line[:80]!r} is not a line of Callgrind's format"
                ) from error
        if not self._reader.events:
            raise FormatError("the text has no line events:, so it is not a profile in Callgrind's format")

    def addresses(self) -> dict[str, set[int]]:
        """Return the addresses of each object that have costs or calls; none without ``--dump-instr=yes``."""
        found: defaultdict[str, set[int]] = defaultdict(set)
        for function, address in [*self._reader.own, *((caller, at) for caller, at, _ in self._reader.calls)]:
            if address:
                found[function.object].add(address)
        return dict(found)

    def profile(self, frames: FramesAt | None = None) -> Profile:
        """Return the profile. Functions that are inlined in `frames` have the costs and calls at their addresses."""
        return _profile(self._reader, frames or {})


def read_processes(texts: Iterable[str]) -> Profile:
    """Read the files of all processes and add them up. Raises `FormatError` as `CallgrindFile` does."""
    return joined_processes(CallgrindFile(text).profile() for text in texts)


def joined_processes(profiles: Iterable[Profile]) -> Profile:
    """Add up the profiles of processes; those without any function, which only called exec, are left out.

    Raises `FormatError` if none is left.
    """
    found = [each for each in profiles if each.own]
    if not found:
        raise FormatError("no process left a profile")
    return joined(found)


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
        self.own: dict[tuple[Function, int], list[float]] = {}
        self.lines: defaultdict[tuple[Function, int], defaultdict[tuple[str, int], float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self.calls: defaultdict[tuple[Function, int, Function], list[Calls]] = defaultdict(list)
        self.entry: dict[Function, int] = {}

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
            self.own.setdefault((self._function, 0), [])  # a function without own costs is one, too
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
        address = self._last[0] if self._positions > 1 else 0
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
            self.calls[self._function, address, callee].append(Calls(count, costs))
            self.entry.setdefault(callee, target)
            self._call = self._callee_file = self._callee_object = None
            return
        own = self.own.setdefault((self._function, address), [])
        own += [0.0] * (len(costs) - len(own))
        for index, value in enumerate(costs):
            own[index] += value
        if position > 0 and costs:
            self.lines[self._function, address][self._file, position] += costs[0]


class _Inlining:
    """Finds the function that has the costs at an address: the innermost inlined one, or the function itself."""

    def __init__(self, reader: _Reader, frames: FramesAt) -> None:
        self._frames = frames
        own_lines: defaultdict[Function, list[int]] = defaultdict(list)
        homes: defaultdict[Function, list[tuple[int, str, int]]] = defaultdict(list)
        for (level, address), by_line in reader.lines.items():
            function = outermost(level)
            frame = frames.get((level.object, address))
            if frame is None:
                own_lines[function] += [line for file, line in by_line if file == function.file]
            elif not frame.inlined:
                homes[function] += [(address, file, line) for file, line in by_line]
        self._place = {each: (each.file, min(found)) for each, found in own_lines.items() if found}
        self._place |= {outermost(each): (each.file, line) for each, line in reader.entry.items() if line}
        # Callgrind takes the file of a function from its first instruction, which may be of an inlined function.
        self._place |= {each: _home(found) for each, found in homes.items()}

    def named(self, level: Function) -> Function:
        """Return a function without its recursion level, with its first line: that of its entry, or its smallest."""
        function = outermost(level)
        file, line = self._place.get(function, (function.file, 0))
        return Function(function.name, file, line, function.object)

    def path(self, level: Function, address: int) -> tuple[Function, ...]:
        """Return a function and what was inlined at an address, the innermost last, without direct recursion."""
        path = [self.named(level)]
        frame = self._frames.get((level.object, address))
        for each in frame.inlined if frame is not None else ():
            if each not in path:
                path.append(each)
        return tuple(path)


def _home(positions: list[tuple[int, str, int]]) -> tuple[str, int]:
    """Return the file with most instructions, and the line of the lowest address there.

    That is the function's entry. Smaller lines may be of inlined functions: compilers do not mark all their code.
    """
    file = Counter(file for _, file, _ in positions).most_common(1)[0][0]
    _, line = min((address, line) for address, each, line in positions if each == file)
    return file, line


def _profile(reader: _Reader, frames: FramesAt) -> Profile:
    width = len(reader.events)
    found = _Inlining(reader, frames)
    own: defaultdict[Function, list[Costs]] = defaultdict(list)
    inclusive: defaultdict[Function, list[Costs]] = defaultdict(list)
    edges: defaultdict[tuple[Function, Function], list[Calls]] = defaultdict(list)
    lines: defaultdict[Function, defaultdict[tuple[str, int], float]] = defaultdict(
        lambda: defaultdict(float)
    )

    def pass_up(path: tuple[Function, ...], costs: Costs, *, outer: bool) -> None:
        """Add costs at the end of a path of inlined functions to the inclusive costs along it."""
        for caller, callee in pairwise(path):
            edges[caller, callee].append(Calls(math.nan, costs))
            inclusive[callee].append(costs)
        if outer:
            inclusive[path[0]].append(costs)

    for (level, address), values in reader.own.items():
        costs = tuple(values)
        path = found.path(level, address)
        own[path[-1]].append(costs)
        pass_up(path, costs, outer=outermost(level) == level)
        for place, cost in reader.lines.get((level, address), {}).items():
            lines[path[-1]][place] += cost
    for (level, address, callee), calls in reader.calls.items():
        path = found.path(level, address)
        edge = path[-1], found.named(callee)
        # A call of an inner level is part of an outer call of the same function.
        part = outermost(callee) != callee or edge[0] == edge[1]
        edges[edge] += [Calls(each.count, ()) if part else each for each in calls]
        costs = added(width, (each.costs for each in calls))
        pass_up(path, costs, outer=outermost(level) == level)
    return Profile(
        events=reader.events,
        own={each: added(width, costs) for each, costs in own.items()},
        inclusive={each: added(width, inclusive[each]) for each in own},
        calls={
            edge: Calls(_number(calls), added(width, (each.costs for each in calls)))
            for edge, calls in edges.items()
        },
        lines={each: dict(by_line) for each, by_line in lines.items() if by_line},
    )


def _number(calls: list[Calls]) -> float:
    """Return the number of calls; 0, which is unknown, if some are inlined."""
    number = sum(each.count for each in calls)
    return 0.0 if math.isnan(number) else number


def outermost(function: Function) -> Function:
    """Return a function without its recursion level and its line."""
    return Function(_RECURSION.sub("", function.name) or function.name, function.file, 0, function.object)
