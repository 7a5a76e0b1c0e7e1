"""The call sites that allocate, and a profile of allocations, from stacks of functions.

The call site of an allocation is the innermost function of the program itself, with its caller: libraries and
allocation functions of the language are skipped.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from perftrail.model.profile import Calls, Function, Profile, base_name
from perftrail.stats.call_graph import in_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.process import AllocationStack


ALLOCATION_EVENTS = ("allocations", "allocated bytes")
"""Events of a profile of allocations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """The function that allocates, the base name of its source file if known, and its caller; "" for none."""

    function: str
    file: str
    caller: str

    def __str__(self) -> str:
        return (
            (f"{self.caller} → " if self.caller else "")
            + self.function
            + (f" ({self.file})" if self.file else "")
        )


@dataclass(slots=True)
class Allocated:
    """Allocations and their bytes."""

    allocations: int = 0
    bytes: int = 0


def call_sites(
    stacks: Sequence[AllocationStack],
    names: Mapping[tuple[str, int], tuple[Function, ...]],
    inside: Callable[[Function], bool] = in_program,
) -> Mapping[CallSite, Allocated]:
    """Return the allocations of each call site. `inside` returns whether a function belongs to the program."""
    found: defaultdict[CallSite, Allocated] = defaultdict(Allocated)
    for stack in stacks:
        functions = [function for frame in stack.frames for function in names[frame]]
        allocated = found[_site(functions, inside)]
        allocated.allocations += stack.allocations
        allocated.bytes += stack.bytes
    return found


def allocation_profile(
    stacks: Sequence[AllocationStack], names: Mapping[tuple[str, int], tuple[Function, ...]]
) -> Profile:
    """Return allocations and their bytes as a profile: costs of the functions that allocate, and of their callers.

    A call edge counts once for each allocation, also if it is on the stack several times.
    """
    own: defaultdict[Function, list[float]] = defaultdict(lambda: [0.0, 0.0])
    calls: defaultdict[tuple[Function, Function], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for stack in stacks:
        functions = [function for frame in stack.frames for function in names[frame] if function.name]
        if not functions:
            continue
        costs = (float(stack.allocations), float(stack.bytes))
        edges = {(caller, callee) for callee, caller in pairwise(functions) if caller != callee}
        for found in (own[functions[0]], *(calls[edge] for edge in edges)):
            found[0] += costs[0]
            found[1] += costs[1]
    return Profile(
        events=ALLOCATION_EVENTS,
        own={function: tuple(costs) for function, costs in own.items()},
        calls={edge: Calls(costs[0], tuple(costs)) for edge, costs in calls.items()},
    )


def _site(functions: Sequence[Function], inside: Callable[[Function], bool]) -> CallSite:
    """Return the two innermost functions of the program; without one, those of libraries."""
    known = [each for each in functions if each.name]
    chosen = [each for each in known if inside(each)] or known
    if not chosen:
        return CallSite(function="unknown functions", file="", caller="")
    site = chosen[0]
    caller = next((each for each in chosen[1:] if each.key != site.key), None)
    return CallSite(
        function=base_name(site.name),
        file=site.file.rpartition("/")[2],
        caller="" if caller is None else base_name(caller.name),
    )
