"""The call paths of two profiles as one tree: what each path cost before and after.

A sampled profile has call paths. A call graph has none, so they are derived as gprof and KCachegrind do it: the cost of
a function is divided among its callers in proportion to the inclusive costs of their calls, and every call path to a
function has the same proportions of callees. A call of a function that is on the path already ends the path; its
cost is the caller's.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.model.profile import Function
from perftrail.stats.call_graph import estimated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.profile import FunctionKey, Profile

MOST_NODES = 100_000
SMALLEST_SHARE = 2e-5
"""Smallest share of a node in the total of a side; smaller ones are part of their callers."""

LONGEST_PATH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTree:
    """Nodes in an order in which callers come before callees; the first one is the whole program.

    `parents` are indices of nodes, −1 for the first; `functions` are indices of `names`, where the first name is the
    program's. `before` and `after` are inclusive costs, estimated by `profile_comparison.estimated`.
    """

    names: tuple[Function, ...]
    parents: tuple[int, ...]
    functions: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def valid(self) -> bool:
        """Whether the columns are complete, and indices and costs are possible: stored trees may be damaged."""
        count = len(self.parents)
        return (
            0 < count == len(self.functions) == len(self.before) == len(self.after)
            and all(
                -1 <= parent < node and (parent >= 0 or not node) for node, parent in enumerate(self.parents)
            )
            and all(0 <= each < len(self.names) for each in self.functions)
            and all(0.0 <= each < math.inf for each in (*self.before, *self.after))
        )

    def own(self) -> list[tuple[float, float]]:
        """Return the costs of each node without its callees, before and after."""
        own = [[before, after] for before, after in zip(self.before, self.after, strict=True)]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                own[parent][0] -= self.before[node]
                own[parent][1] -= self.after[node]
        return [(max(0.0, before), max(0.0, after)) for before, after in own]

    def path(self, node: int) -> list[int]:
        """Return the functions of a node's call path, the outermost first, without the program."""
        path = []
        while node > 0:
            path.append(self.functions[node])
            node = self.parents[node]
        return path[::-1]


PROGRAM = Function("all")


def call_tree(
    before: Profile, after: Profile, *, most: int = MOST_NODES, smallest: float = SMALLEST_SHARE
) -> CallTree:
    """Return the tree of both profiles: its most expensive nodes, at most `most`."""
    sides: list[_Graph | _Paths] = [_Paths(each) if each.paths else _Graph(each) for each in (before, after)]
    names: dict[FunctionKey, int] = {}
    functions = [PROGRAM]
    for side in reversed(sides):
        for key, function in side.functions.items():
            if key not in names:
                names[key] = len(functions)
                functions.append(function)
    least = [smallest * side.total for side in sides]
    parents, numbers, costs = [-1], [0], [(sides[0].total, sides[1].total)]
    waiting: list[tuple[float, int, int, tuple[FunctionKey, ...], tuple[float, float]]] = []
    count = 0

    def enqueue(parent: int, path: tuple[FunctionKey, ...], cost: tuple[float, float]) -> None:
        nonlocal count
        children = [side.callees(path, part) for side, part in zip(sides, cost, strict=True)]
        for key in sorted({**children[0], **children[1]}):
            found = children[0].get(key, 0.0), children[1].get(key, 0.0)
            if found[0] > least[0] or found[1] > least[1]:
                count += 1
                heapq.heappush(waiting, (-max(found), count, parent, (*path, key), found))

    enqueue(0, (), costs[0])
    while waiting and len(parents) < most:
        _, _, parent, path, cost = heapq.heappop(waiting)
        node = len(parents)
        parents.append(parent)
        numbers.append(names[path[-1]])
        costs.append(cost)
        if len(path) < LONGEST_PATH:
            enqueue(node, path, cost)
    return CallTree(
        names=tuple(functions),
        parents=tuple(parents),
        functions=tuple(numbers),
        before=tuple(cost for cost, _ in costs),
        after=tuple(cost for _, cost in costs),
    )


class _Graph:
    """Call paths of a call graph."""

    def __init__(self, profile: Profile) -> None:
        named = (*profile.own, *(each for edge in profile.calls for each in edge))
        self.functions = {each.key: each for each in named}
        inclusive: defaultdict[FunctionKey, float] = defaultdict(float)
        for function, costs in profile.own.items():
            inclusive[function.key] += estimated(profile.events, costs)
        self._callees: defaultdict[FunctionKey, dict[FunctionKey, float]] = defaultdict(dict)
        called = set()
        self.total = sum(inclusive.values())
        for (caller, callee), calls in profile.calls.items():
            one, other = caller.key, callee.key
            if one != other:
                cost = estimated(profile.events, calls.costs)
                self._callees[one][other] = self._callees[one].get(other, 0.0) + cost
                inclusive[one] += cost
                if cost > 0.0:
                    called.add(other)
        self._inclusive = inclusive
        self._roots = {each: cost for each, cost in inclusive.items() if each not in called}

    def callees(self, path: tuple[FunctionKey, ...], cost: float) -> Mapping[FunctionKey, float]:
        """Return the costs of the callees at the end of a path that has this cost."""
        if not path:
            return self._roots
        whole = self._inclusive.get(path[-1], 0.0)
        if whole <= 0.0 or cost <= 0.0:
            return {}
        return {
            callee: each * cost / whole
            for callee, each in self._callees[path[-1]].items()
            if callee not in path
        }


class _Paths:
    """Call paths that were observed."""

    def __init__(self, profile: Profile) -> None:
        self.functions = {each.key: each for each in profile.own}
        self._children: defaultdict[tuple[FunctionKey, ...], dict[FunctionKey, float]] = defaultdict(dict)
        self.total = sum(profile.paths.values())
        for functions, cost in profile.paths.items():
            path = tuple(each.key for each in functions)
            for end, key in enumerate(path):
                children = self._children[path[:end]]
                children[key] = children.get(key, 0.0) + cost

    def callees(self, path: tuple[FunctionKey, ...], cost: float) -> Mapping[FunctionKey, float]:
        """Return the costs of the callees at the end of a path."""
        del cost
        return self._children.get(path, {})


def layout_widths(tree: CallTree) -> Sequence[float]:
    """Return the width of each node: the larger cost, or the sum of its callees' widths if that is larger.

    So callees fit into their caller, also where one of them is gone and another one is new.
    """
    widths = [max(before, after) for before, after in zip(tree.before, tree.after, strict=True)]
    sums = [0.0] * len(widths)
    for node in range(len(widths) - 1, 0, -1):
        widths[node] = max(widths[node], sums[node])
        sums[tree.parents[node]] += widths[node]
    if widths:
        widths[0] = max(widths[0], sums[0])
    return widths
