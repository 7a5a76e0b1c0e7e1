"""Stacks that ``perf script -F comm,pid,tid,ip,sym,dso`` prints, as a sampled profile."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

from perftrail.model.profile import Calls, Function, Profile

_FRAME = re.compile(
    r"^\s+(?P<address>[0-9a-f]+) (?P<name>.*?)(?:\+0x[0-9a-f]+)? \((?P<object>[^()]*(?:\([^()]*\))?)\)$"
)
LONGEST_STACK = 400
"""Frames of one stack that count; the outermost ones are left out."""


def read_perf_script(text: str) -> Profile:
    r"""Return the profile of all samples; recursive calls count once in inclusive costs.

    >>> found = read_perf_script("work 7/7:\n\t4012 leaf+0x2 (/bin/w)\n\t4044 main (/bin/w)\n\n")
    >>> [(each.name, costs) for each, costs in found.inclusive.items()]
    [('leaf', (1.0,)), ('main', (1.0,))]
    """
    paths: defaultdict[tuple[Function, ...], float] = defaultdict(float)
    stack: list[Function] = []
    for line in (*text.splitlines(), ""):
        match = _FRAME.match(line)
        if match is not None:
            name = match["name"].strip()
            unknown = name in ("", "[unknown]")
            stack.append(
                Function("???" if unknown else name, object=match["object"].removesuffix(" (deleted)"))
            )
        elif not line.strip() and stack:
            paths[tuple(reversed(stack[:LONGEST_STACK]))] += 1.0
            stack = []
    return from_paths(paths, event="samples")


def from_paths(paths: dict[tuple[Function, ...], float], *, event: str) -> Profile:
    """Return the profile of call paths with their own costs."""
    own: defaultdict[Function, float] = defaultdict(float)
    inclusive: defaultdict[Function, float] = defaultdict(float)
    edges: defaultdict[tuple[Function, Function], float] = defaultdict(float)
    for path, cost in paths.items():
        own[path[-1]] += cost
        for function in dict.fromkeys(path):
            own[function] += 0.0
            inclusive[function] += cost
        seen: set[Function] = {path[0]} if path else set()
        for caller, callee in pairwise(path):
            # A call of a function that already runs is part of its outer call.
            edges[caller, callee] += 0.0 if callee in seen else cost
            seen.add(callee)
    return Profile(
        events=(event,),
        own={each: (cost,) for each, cost in own.items()},
        inclusive={each: (inclusive[each],) for each in own},
        calls={edge: Calls(0.0, (cost,)) for edge, cost in edges.items()},
        paths=dict(paths),
    )
