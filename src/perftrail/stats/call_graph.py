"""The call graph of a program without its libraries: costs of library functions belong to their callers (`folded`).

A maintainer can change only functions of the program. The cost of a library function is divided among its callers in
proportion to the inclusive costs of their calls, as gprof (Graham, Kessler and McKusick 1982) does it, and so are the
program's functions that it calls back. Costs are Callgrind's estimated cycles (`WEIGHTS`), not measured times.

`moved` returns the functions whose cost, or the cost of whose calls, differs between two graphs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from perftrail.model.profile import Function, FunctionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.profile import Costs, Profile

    Inside = Callable[[Function], bool]
    """Whether a function belongs to the program rather than to a library."""

K = TypeVar("K")

WEIGHTS: Mapping[str, float] = {
    "Ir": 1.0,
    "Bcm": 10.0,
    "Bim": 10.0,
    "D1mr": 10.0,
    "D1mw": 10.0,
    "DLmr": 100.0,
    "DLmw": 100.0,
    "Ge": 20.0,
    "sysCount": 1000.0,
    "seconds": 1.0,
    "samples": 1.0,
    "allocations": 1.0,
    "allocated bytes": 1.0,
}
"""Estimated cycles of each event: KCachegrind's cycle estimation, without misses of instructions, which depend on the
layout, and with 1,000 cycles for a system call. Seconds, samples and allocations have separate profiles."""

PROGRAM = FunctionKey("(program)")
"""The caller of functions without a caller."""

_SYSTEM_OBJECTS = ("/usr/lib", "/lib", "[")
_LIBRARY_FILES = (
    "/usr/lib", "/usr/include", "/usr/share", "/usr/local/go/", "/rustc/", "/.cargo/registry/", "/.rustup/",
    "/site-packages/", "/dist-packages/", "/lib/python3", "/go/pkg/mod/", "/include/c++/", "<frozen ",
    "/rust/deps/",
)  # fmt: skip
_COMPILED_IN = ("/rustc/", "/rust/deps/", "/include/c++/")
"""Files of libraries whose code is in the program's object, wherever it lies."""
_LIBRARY_NAMES = (
    "std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "__gnu_cxx::", "operator new", "operator delete",
    "__rust", "__rdl", "_dl_", "__libc", "_start", "(below main)", "runtime.", "<&", "hashbrown::", "<hashbrown::",
    "strings.", "strconv.", "sync.", "fmt.", "sort.", "slices.", "maps.", "bytes.", "bufio.", "io.", "os.", "math.",
    "math/", "internal/", "encoding/", "reflect.", "regexp.", "syscall.", "time.", "unicode/", "container/", "hash/",
    "aeshashbody", "gcWriteBarrier", "memeqbody", "cmpbody", "indexbytebody", "void std::", "bool std::", "0x",
    "__cxa_", "<built-in ", "<method ",
)  # fmt: skip


def in_program(function: Function, roots: Sequence[str] = ()) -> bool:
    """Return whether a function belongs to the program: neither its object, nor its file, nor its name is a library's.

    Everything below the directories `roots` belongs to the program, unless it was compiled from a library's headers.

    >>> in_program(Function("insert", "/src/tree.c", 1, "/cache/bin/db")), in_program(Function("std::sort"))
    (True, False)
    >>> in_program(Function("malloc", "./malloc/malloc.c", 1, "/usr/lib/x86_64-linux-gnu/libc.so.6"))
    False
    >>> venv = Function("run", "/srv/app/venv/lib/python3.12/site-packages/app/main.py")
    >>> in_program(venv), in_program(venv, ["/srv/app/"])
    (False, True)
    """
    if function.name.startswith(_LIBRARY_NAMES):
        return False
    rooted = tuple(roots)
    if rooted and function.file.startswith(rooted):
        return not any(part in function.file for part in _COMPILED_IN)
    if function.object.startswith(_SYSTEM_OBJECTS) and not (rooted and function.object.startswith(rooted)):
        return False
    return not any(part in function.file for part in _LIBRARY_FILES)


def estimated(events: Sequence[str], costs: Costs) -> float:
    """Return costs as one number: estimated cycles, seconds or samples.

    >>> estimated(("Ir", "D1mr"), (100.0, 2.0))
    120.0
    """
    return sum(WEIGHTS.get(event, 0.0) * value for event, value in zip(events, costs, strict=False) if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGraph:
    """The functions of a program by key, without libraries.

    `own` includes library functions that a function calls. `calls` and `costs` are numbers and inclusive costs by
    (caller, callee); `PROGRAM` calls functions without a caller.
    """

    own: Mapping[FunctionKey, float]
    calls: Mapping[tuple[FunctionKey, FunctionKey], float]
    costs: Mapping[tuple[FunctionKey, FunctionKey], float]
    functions: Mapping[FunctionKey, Function]

    @property
    def total(self) -> float:
        """The cost of the program."""
        return sum(self.own.values())


def folded(
    profile: Profile, inside: Inside = in_program, *, events: Sequence[str] | None = None
) -> CallGraph:
    """Return the call graph of the program's own functions; library functions become part of their callers.

    `events` are those that count, by default all of `WEIGHTS`.
    """
    return _Folding(profile, inside, profile.events if events is None else events).graph()


class _Folding:
    """Removes the library functions of a call graph one after another, callees first."""

    def __init__(self, profile: Profile, inside: Inside, events: Sequence[str]) -> None:
        chosen = [event if event in events else "" for event in profile.events]
        self._own: defaultdict[object, float] = defaultdict(float)
        self._out: defaultdict[object, dict[object, list[float]]] = defaultdict(dict)
        self._in: defaultdict[object, set[object]] = defaultdict(set)
        self.functions: dict[FunctionKey, Function] = {}
        nodes: dict[Function, object] = {}
        for function in sorted({*profile.own, *(each for edge in profile.calls for each in edge)}):
            if inside(function):
                key = function.key
                nodes[function] = key
                self.functions.setdefault(key, function)
            else:
                nodes[function] = function
        for function, costs in profile.own.items():
            self._own[nodes[function]] += estimated(chosen, costs)
        for (caller, callee), calls in profile.calls.items():
            self._add(nodes[caller], nodes[callee], calls.count, estimated(chosen, calls.costs))

    def _add(self, caller: object, callee: object, count: float, cost: float) -> None:
        found = self._out[caller].setdefault(callee, [0.0, 0.0])
        found[0] += count
        found[1] += cost
        self._in[callee].add(caller)

    def graph(self) -> CallGraph:
        for library in self._callees_first():
            self._remove(library)
        nodes = [each for each in {*self._own, *self._out} if isinstance(each, FunctionKey)]
        called = {
            callee
            for caller, callees in self._out.items()
            for callee in callees
            if isinstance(caller, FunctionKey) and caller != callee
        }
        for node in nodes:
            if node not in called and node != PROGRAM:
                cost = sum(cost for callee, (_, cost) in self._out[node].items() if callee != node)
                self._add(PROGRAM, node, 1.0, self._own[node] + cost)
        edges = {
            (caller, callee): found
            for caller, callees in self._out.items()
            for callee, found in callees.items()
            if isinstance(caller, FunctionKey) and isinstance(callee, FunctionKey)
        }
        return CallGraph(
            own={each: self._own[each] for each in nodes if each != PROGRAM} | {PROGRAM: self._own[PROGRAM]},
            calls={edge: found[0] for edge, found in edges.items()},
            costs={edge: found[1] for edge, found in edges.items()},
            functions=self.functions,
        )

    def _callees_first(self) -> list[Function]:
        """Return the library functions in post-order, without recursion, which may be deep."""
        done: dict[object, None] = {}
        seen: set[object] = set()
        for start in sorted(
            each for each in {*self._own, *self._out, *self._in} if isinstance(each, Function)
        ):
            stack: list[tuple[object, bool]] = [(start, False)]
            while stack:
                node, left = stack.pop()
                if left:
                    done[node] = None
                elif node not in seen:
                    seen.add(node)
                    stack.append((node, True))
                    stack += [(each, False) for each in self._out[node] if isinstance(each, Function)]
        return [each for each in done if isinstance(each, Function)]

    def _remove(self, library: Function) -> None:
        """Divide a library function among its callers."""
        callees = self._out.pop(library, {})
        callees.pop(library, None)
        callers = {
            caller: self._out[caller].pop(library)
            for caller in self._in.pop(library, ())
            if caller != library
        }
        own = self._own.pop(library, 0.0)
        weights = {caller: found[1] for caller, found in callers.items()}
        if not any(weights.values()):
            weights = {caller: found[0] or 1.0 for caller, found in callers.items()}
        if not weights:
            weights = {PROGRAM: 1.0}
        whole = sum(weights.values())
        for callee in callees:
            self._in[callee].discard(library)
        for caller, weight in weights.items():
            share = weight / whole
            self._own[caller] += share * own
            for callee, (count, cost) in callees.items():
                self._add(caller, callee, share * count, share * cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The functions whose cost moved, as keys. `own`: their own cost; `path`: that of their calls of another one.

    `runs` are the functions that ran on either side and didn't move.
    """

    own: frozenset[FunctionKey]
    path: frozenset[FunctionKey]
    runs: frozenset[FunctionKey]


def moved(before: CallGraph, after: CallGraph, *, share: float = 0.05) -> Moved:
    """Return the functions that account for at least `share` of the sum of all absolute differences.

    A function counts as *own* if its own cost differs by that much, and as *path* if the cost of its calls of one
    other function does.
    """
    changes = differences(before.own, after.own)
    least = share * sum(abs(each) for each in changes.values())
    everything = frozenset(each for each in {*before.own, *after.own} if each != PROGRAM)
    if least <= 0.0:
        return Moved(own=frozenset(), path=frozenset(), runs=everything)
    own = {each for each, value in changes.items() if abs(value) >= least}
    path = {
        caller
        for (caller, callee), value in differences(before.costs, after.costs).items()
        if abs(value) >= least and caller != callee
    }
    found = frozenset(own - {PROGRAM})
    callers = frozenset(path - own - {PROGRAM})
    return Moved(own=found, path=callers, runs=everything - found - callers)


def differences(before: Mapping[K, float], after: Mapping[K, float]) -> dict[K, float]:
    """Return the difference of each value; a missing one is zero."""
    return {each: after.get(each, 0.0) - before.get(each, 0.0) for each in {**before, **after}}
