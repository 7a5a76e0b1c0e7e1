"""Profiles: what each function of a program costs, and which function calls which.

A `Profile` is a call graph. Its costs are tuples with one value for each of its `events`. Counted profiles
(Callgrind, cProfile) have numbers of calls; sampled profiles (perf) have none, and may have call paths instead.

`joined` adds up profiles of several processes, `averaged` those of several invocations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Costs = tuple[float, ...]
"""One value for each event of a profile."""


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """One function of one program: its names are untrusted text.

    `file` is its source file, `line` its first line, `object` the program or library. Empty or 0: unknown.
    """

    name: str
    file: str = ""
    line: int = 0
    object: str = ""

    @property
    def key(self) -> FunctionKey:
        """Return what identifies the function in another build: builds differ in directories and lines."""
        return FunctionKey(base_name(self.name), self.file.rpartition("/")[2])


@dataclass(frozen=True, slots=True, order=True)
class FunctionKey:
    """A function in every build: its name without the compiler's suffixes, and the base name of its file."""

    name: str
    file: str = ""


_SUFFIX = re.compile(
    r"(?:'[0-9]+|\.(?:constprop|isra|part|cold|lto_priv|llvm)(?:\.[0-9]+)*|"
    r"\.<locals>\.<(?:listcomp|setcomp|dictcomp|genexpr)>|::\{\{closure\}\}|::\{closure#[0-9]+\}|::\{lambda.*|"
    r" ?\[clone \.[a-z0-9_.]+\]|@@?[A-Z][A-Za-z0-9_.]*|::h[0-9a-f]{16})$"
)


def base_name(name: str) -> str:
    """Return a function's name without recursion levels, compilers' suffixes, symbol versions and hashes.

    Comprehensions, closures and lambdas are part of their function.

    >>> base_name("even'2"), base_name("sum.constprop.0.isra.0"), base_name("memcpy@@GLIBC_2.14")
    ('even', 'sum', 'memcpy')
    >>> base_name("app::run::h0123456789abcdef"), base_name("f(int) [clone .part.0]")
    ('app::run', 'f(int)')
    >>> base_name("words.<locals>.<listcomp>"), base_name("app::median::{{closure}}")
    ('words', 'app::median')
    >>> base_name("run(int)::{lambda(int)#1}::operator()(int) const")
    'run(int)'
    """
    while (shorter := _SUFFIX.sub("", name)) != name and shorter:
        name = shorter
    return name


@dataclass(frozen=True, slots=True)
class Frames:
    """What is at an address: the source position of the function that has it, and what was inlined there.

    `inlined` has the outermost function first.
    """

    file: str
    line: int
    inlined: tuple[Function, ...] = ()


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one function from another: how many, 0 in sampled profiles, and their inclusive costs."""

    count: float
    costs: Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The costs of one invocation of a program.

    `own` are costs without callees, `inclusive` with them (missing: as own). `calls` are the edges from caller to
    callee. `lines` are the own costs in the first event by (source file, line): the file of an inlined function
    is that function's. `paths` are own costs in the first event by call path from the outermost function, if the
    profiler observed paths. `bodies` are fingerprints of functions' code: equal code has equal fingerprints.
    """

    events: tuple[str, ...]
    own: Mapping[Function, Costs]
    inclusive: Mapping[Function, Costs] = field(default_factory=dict)
    calls: Mapping[tuple[Function, Function], Calls] = field(default_factory=dict)
    lines: Mapping[Function, Mapping[tuple[str, int], float]] = field(default_factory=dict)
    paths: Mapping[tuple[Function, ...], float] = field(default_factory=dict)
    bodies: Mapping[Function, str] = field(default_factory=dict)

    @property
    def total(self) -> Costs:
        """The costs of the whole program."""
        return added(len(self.events), self.own.values())

    @property
    def counted(self) -> bool:
        """Whether the numbers of calls are known."""
        return any(each.count > 0.0 for each in self.calls.values())

    def with_bodies(self, bodies: Mapping[Function, str]) -> Profile:
        """Return the profile with fingerprints of its functions' code."""
        return replace(self, bodies=bodies)


def added(width: int, costs: Iterable[Costs]) -> Costs:
    """Return the sum of costs with `width` events; shorter costs are zero at the end."""
    total = [0.0] * width
    for each in costs:
        for index, value in enumerate(each):
            total[index] += value
    return tuple(total)


def joined(profiles: Sequence[Profile]) -> Profile:
    """Add up the profiles of several processes, which must have equal events.

    Raises `ValueError` without a profile, and for different events.
    """
    if not profiles or len({each.events for each in profiles}) != 1:
        raise ValueError("profiles to add up need equal events")
    if len(profiles) == 1:
        return profiles[0]
    width = len(profiles[0].events)
    own = _summed(width, [each.own for each in profiles])
    inclusive = _summed(width, [each.inclusive for each in profiles])
    edges: defaultdict[tuple[Function, Function], list[Calls]] = defaultdict(list)
    lines: defaultdict[Function, defaultdict[tuple[str, int], float]] = defaultdict(
        lambda: defaultdict(float)
    )
    paths: defaultdict[tuple[Function, ...], float] = defaultdict(float)
    for each in profiles:
        for edge, calls in each.calls.items():
            edges[edge].append(calls)
        for function, by_line in each.lines.items():
            for position, cost in by_line.items():
                lines[function][position] += cost
        for path, cost in each.paths.items():
            paths[path] += cost
    return Profile(
        events=profiles[0].events,
        own=own,
        inclusive=inclusive,
        calls={
            edge: Calls(sum(each.count for each in found), added(width, (each.costs for each in found)))
            for edge, found in edges.items()
        },
        lines={function: dict(by_line) for function, by_line in lines.items()},
        paths=dict(paths),
        bodies={function: body for each in profiles for function, body in each.bodies.items()},
    )


def averaged(profiles: Sequence[Profile]) -> Profile:
    """Return the mean of the profiles of several invocations. Raises `ValueError` as `joined` does."""
    whole = joined(profiles)
    if len(profiles) == 1:
        return whole
    share = 1.0 / len(profiles)

    def scaled(costs: Costs) -> Costs:
        return tuple(share * each for each in costs)

    return replace(
        whole,
        own={each: scaled(costs) for each, costs in whole.own.items()},
        inclusive={each: scaled(costs) for each, costs in whole.inclusive.items()},
        calls={edge: Calls(share * each.count, scaled(each.costs)) for edge, each in whole.calls.items()},
        lines={
            each: {place: share * cost for place, cost in by_line.items()}
            for each, by_line in whole.lines.items()
        },
        paths={path: share * cost for path, cost in whole.paths.items()},
    )


def _summed(width: int, maps: Sequence[Mapping[Function, Costs]]) -> dict[Function, Costs]:
    found: defaultdict[Function, list[Costs]] = defaultdict(list)
    for each in maps:
        for function, costs in each.items():
            found[function].append(costs)
    return {function: added(width, costs) for function, costs in found.items()}
