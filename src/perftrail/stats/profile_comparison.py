"""Which functions changed a program's cost: two profiles compared by function and by call path.

It compares call graphs without libraries (`call_graph`). f's calls of g cost n·e with their callees: their number and
the cost of one. The change of n·e is split exactly:

    Δ(n·e) = Δn · mean(e) + mean(n) · Δe

f is responsible for the first part, the additional calls. So the part of a function is the change of its own cost,
plus its additional calls of others, less the additional calls of itself:

    R_f = Δown_f + Σ_g Δn_fg mean(e_fg) - Σ_c Δn_cf mean(e_cf),   and Σ R is the change of the total.

A function that calls another one more often is responsible for the additional calls; a callee that became slower is
responsible itself. A call that only one side has takes the cost of that side, so its caller is responsible. Functions
that call each other in circles are one unit, whose part is divided by `_within`. Sampled profiles have no numbers of
calls; each function is responsible for the change of its own cost.

If the machine code of both sides is known, an unchanged function is not responsible: its part goes to its callers, in
proportion to how much each caller's calls of it changed. A part that finds no changed caller is shared by the changed
functions that ran; if there is none, it remains with the input.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perftrail.model.profile import Function, FunctionKey, added, averaged
from perftrail.stats.call_graph import PROGRAM, CallGraph, differences, estimated, folded, in_program
from perftrail.stats.ratios import centre

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from perftrail.model.profile import Costs, Profile
    from perftrail.stats.call_graph import Inside
    from perftrail.stats.ratios import PairedEstimate


SMALLEST_SHARE = 0.005
"""Smallest contribution to the total that names a function."""

SMALLEST_MISSES = 0.05
"""The same for a contribution by cache and branch misses alone: smaller ones also come from the layout."""

SMALLEST_MISSES_OF_CHANGED = 0.01
"""The same for a function whose machine code is known to differ."""

SHIFT_TOLERANCE = 0.35
"""Largest relative difference between a loss and a gain that are one cost shift."""

SHIFT_SHARE = 0.01
"""Smallest share of the total of a cost shift."""

Kind = Literal["grown", "shrunk", "new", "gone"]
Shift = Literal["renamed", "split", "merged", "moved"]
"""How a cost moved: to the same function under a new name; to a new function that the old one calls (a split function,
or one that is no longer inlined); into the caller (inlined); to another function with the same caller."""


def contributions(
    before: CallGraph,
    after: CallGraph,
    *,
    unchanged: frozenset[FunctionKey] = frozenset(),
    changed: frozenset[FunctionKey] = frozenset(),
) -> dict[FunctionKey, float]:
    """Return how much of the change of the total each function is responsible for; the sum is that change.

    `unchanged` are functions with the same machine code on both sides, `changed` those with different code.
    """
    parts = _by_calls(before, after)
    moving = unchanged & {*before.own} & {*after.own}
    return _passed_to_callers(parts, before, after, moving - {PROGRAM}, changed)


def _by_calls(before: CallGraph, after: CallGraph) -> dict[FunctionKey, float]:
    """Split the change of the total over the functions, as the module describes."""
    parts: defaultdict[FunctionKey, float] = defaultdict(float, differences(before.own, after.own))
    rates: dict[tuple[FunctionKey, FunctionKey], tuple[_Edge, _Edge]] = {}
    for edge in {**before.costs, **after.costs}:
        caller, callee = edge
        if caller == callee:
            continue
        rates[edge] = one, other = _edges(before, after, edge)
        additional = (other.count - one.count) * (_per_call(other, one) + _per_call(one, other)) / 2.0
        parts[caller] += additional
        parts[callee] -= additional
    for members in _recursive(rates):
        whole = sum(parts[node] for node in members)
        parts.update(_within(members, whole, before, after, rates))
    return parts


@dataclass(frozen=True, slots=True)
class _Edge:
    count: float
    cost: float


def _edges(before: CallGraph, after: CallGraph, edge: tuple[FunctionKey, FunctionKey]) -> tuple[_Edge, _Edge]:
    """Return the calls of one function by another; numbers that one side does not know count as equal."""
    sides = [_Edge(graph.calls.get(edge, 0.0), graph.costs.get(edge, 0.0)) for graph in (before, after)]
    if any(each.cost and not each.count for each in sides):
        sides = [_Edge(1.0 if each.cost or each.count else 0.0, each.cost) for each in sides]
    return sides[0], sides[1]


def _per_call(edge: _Edge, other: _Edge) -> float:
    """Return the cost of one call; without calls, that of the other side."""
    chosen = edge if edge.count else other
    return chosen.cost / chosen.count if chosen.count else 0.0


def _recursive(edges: Collection[tuple[FunctionKey, FunctionKey]]) -> list[list[FunctionKey]]:
    """Return the sets of functions that call each other in circles: strong components, by Kosaraju's method."""
    callees: defaultdict[FunctionKey, list[FunctionKey]] = defaultdict(list)
    callers: defaultdict[FunctionKey, list[FunctionKey]] = defaultdict(list)
    for caller, callee in sorted(edges):
        callees[caller].append(callee)
        callers[callee].append(caller)
    finished: list[FunctionKey] = []
    seen: set[FunctionKey] = set()
    for node in sorted({*callees, *callers}):
        finished += _finished(node, callees, seen)
    seen.clear()
    groups = (_finished(node, callers, seen) for node in reversed(finished))
    return sorted(sorted(members) for members in groups if len(members) > 1)


def _finished(
    start: FunctionKey, following: Mapping[FunctionKey, Sequence[FunctionKey]], seen: set[FunctionKey]
) -> list[FunctionKey]:
    """Return the nodes reached from `start` that were not seen before, each after all that follow it."""
    if start in seen:
        return []
    seen.add(start)
    found, path = [], [(start, iter(following.get(start, ())))]
    while path:
        node, rest = path[-1]
        unseen = next((each for each in rest if each not in seen), None)
        if unseen is None:
            found.append(node)
            path.pop()
        else:
            seen.add(unseen)
            path.append((unseen, iter(following.get(unseen, ()))))
    return found


def _within(
    members: Sequence[FunctionKey],
    whole: float,
    before: CallGraph,
    after: CallGraph,
    rates: Mapping[tuple[FunctionKey, FunctionKey], tuple[_Edge, _Edge]],
) -> dict[FunctionKey, float]:
    """Divide the part of functions that call each other, for whose calls Callgrind has no inclusive costs.

    Solves N = e + c'N and I = o + cI for the members only: o is the own cost of a call and of its calls to others,
    c the calls of members in a call. The parts are mean-N (Δo + Δc mean-I), scaled to their sum `whole`.
    """
    import numpy as np  # noqa: PLC0415 - numpy is imported where it is used

    index = {node: number for number, node in enumerate(members)}
    size = len(members)
    own = np.array([[graph.own.get(node, 0.0) for node in members] for graph in (before, after)])
    calls, entries = np.zeros((2, size, size)), np.zeros((2, size))
    for (caller, callee), sides in rates.items():
        for side, edge in enumerate(sides):
            if callee in index and caller in index:
                calls[side, index[caller], index[callee]] += edge.count
            elif callee in index:
                entries[side, index[callee]] += edge.count
            elif caller in index:
                mean = (_per_call(sides[0], sides[1]) + _per_call(sides[1], sides[0])) / 2.0
                own[side, index[caller]] += edge.count * mean
    for graph_side, graph in enumerate((before, after)):
        for node, number in index.items():
            calls[graph_side, number, number] += graph.calls.get((node, node), 0.0)
    counts = calls.sum(axis=1) + entries
    called = np.where(counts > 0.0, counts, 1.0)
    own, calls = own / called, calls / called[:, :, None]
    for side in (0, 1):  # a function that one side lacks takes the other's parameters
        lacking = counts[side] <= 0.0
        own[side, lacking], calls[side, lacking] = own[1 - side, lacking], calls[1 - side, lacking]
    try:
        inclusive = [np.linalg.solve(np.eye(size) - calls[side], own[side]) for side in (0, 1)]
        visits = np.linalg.solve(np.eye(size) - calls.mean(axis=0).T, entries.mean(axis=0))
    except np.linalg.LinAlgError:
        visits = np.full(size, np.nan)
        inclusive = [visits, visits]
    parts = visits * (own[1] - own[0] + (calls[1] - calls[0]) @ (inclusive[0] + inclusive[1]) / 2.0)
    largest = before.total + after.total
    # Circles whose rates reach one call in a call have no solution, or a meaningless one.
    if not np.isfinite(parts).all() or visits.min() < 0.0 or np.abs(parts).max() > largest:
        parts = np.array([after.own.get(node, 0.0) - before.own.get(node, 0.0) for node in members])
    scale = float(np.abs(parts).sum())
    shares = np.abs(parts) / scale if scale > 0.0 else np.full(size, 1.0 / size)
    parts = parts + (whole - parts.sum()) * shares
    return {node: float(parts[number]) for node, number in index.items()}


ROUNDS = 200
"""Largest number of steps from a function to the caller that is responsible."""


def _passed_to_callers(
    parts: Mapping[FunctionKey, float],
    before: CallGraph,
    after: CallGraph,
    moving: frozenset[FunctionKey],
    changed: frozenset[FunctionKey],
) -> dict[FunctionKey, float]:
    """Pass the parts of `moving` functions to their callers, until a caller keeps them."""
    kept = {node: value for node, value in parts.items() if node not in moving}
    passed = {node: value for node, value in parts.items() if node in moving and value}
    changes = differences(before.costs, after.costs)
    callers: defaultdict[FunctionKey, dict[FunctionKey, float]] = defaultdict(dict)
    for (caller, callee), value in changes.items():
        if caller != callee:
            callers[callee][caller] = value
    lost = 0.0
    for _ in range(ROUNDS):
        arriving: defaultdict[FunctionKey, float] = defaultdict(float)
        for node, value in passed.items():
            weights = {
                caller: abs(change)
                for caller, change in callers[node].items()
                if change * value > 0.0 and caller != PROGRAM
            }
            if not weights:
                lost += value
                continue
            whole = sum(weights.values())
            for caller, weight in weights.items():
                arriving[caller] += value * weight / whole
        passed = {}
        for node, value in arriving.items():
            if node in moving:
                passed[node] = value
            else:
                kept[node] = kept.get(node, 0.0) + value
        if not passed:
            break
    lost += sum(passed.values())
    if lost:
        heirs = sorted(changed & ({*before.own} | {*after.own})) or [PROGRAM]
        for node in heirs:
            kept[node] = kept.get(node, 0.0) + lost / len(heirs)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class CalleeChange:
    """How a function's calls of another one changed: their numbers, 0 in sampled profiles, and inclusive costs."""

    function: Function
    calls_before: float
    calls_after: float
    cost_before: float
    cost_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionChange:
    """One function in both profiles, and what it contributed to the change of the total.

    `contribution` is a share of the total before, with its interval. Costs have one value for each event; `own` are
    without callees, `inclusive` with them. `path` is the most expensive call path to the function. `changed` says
    whether the machine code differs, `None` if that is unknown. `inlined_before` and `inlined_after`: callers contain
    the code of the function. `callees` are the calls that changed most.
    """

    function: Function
    kind: Kind
    contribution: PairedEstimate
    own_before: Costs
    own_after: Costs
    inclusive_before: Costs
    inclusive_after: Costs
    calls_before: float
    calls_after: float
    changed: bool | None
    inlined_before: bool
    inlined_after: bool
    path: tuple[Function, ...]
    callees: tuple[CalleeChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostShift:
    """A cost that moved from one function to another. Costs are shares of the total before.

    `lost` left the old function, `gained` arrived in the new one.
    """

    kind: Shift
    before: Function
    after: Function
    lost: float
    gained: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileComparison:
    """Two profiles compared: the functions that changed the total, the largest contribution first, and cost shifts.

    `total` is the change of the total as a share of the total before. `input_share` is a change that no changed
    function explains. `functions` has all functions of either side, `responsible` those worth naming.
    """

    events: tuple[str, ...]
    before: Costs
    after: Costs
    total: PairedEstimate
    functions: tuple[FunctionChange, ...]
    responsible: tuple[FunctionChange, ...]
    shifts: tuple[CostShift, ...]
    input_share: float


def compare_profiles(
    before: Sequence[Profile], after: Sequence[Profile], inside: Inside = in_program
) -> ProfileComparison:
    """Compare profiles of equal numbers of invocations of two builds, in the order of measurement.

    If no function is `inside`, every function belongs to the program. Raises `ValueError` without a profile, for
    different numbers or events, and for profiles without cost.
    """
    if len(before) != len(after) or not before:
        raise ValueError("profiles to compare need pairs")
    means = averaged(before), averaged(after)
    events = means[0].events
    if means[1].events != events:
        raise ValueError("profiles to compare need equal events")
    if not any(inside(each) for mean in means for each in mean.own):
        inside = _everything
    bodies = [_bodies(each, inside) for each in means]
    renamed = _renamed(folded(means[0], inside), folded(means[1], inside), bodies[0], bodies[1])
    bodies[1] = {renamed.get(key, key): body for key, body in bodies[1].items()}
    unchanged = frozenset(key for key, body in bodies[0].items() if body and bodies[1].get(key) == body)
    changed = frozenset(
        key for key, body in bodies[0].items() if body and bodies[1].get(key, body) not in ("", body)
    )
    graphs = folded(means[0], inside), _with_names(folded(means[1], inside), renamed)
    exact = [event for event in events if event in _EXACT_EVENTS]
    exact_parts = contributions(
        folded(means[0], inside, events=exact),
        _with_names(folded(means[1], inside, events=exact), renamed),
        unchanged=unchanged,
        changed=changed,
    )
    sides = (
        [folded(each, inside) for each in before],
        [_with_names(folded(each, inside), renamed) for each in after],
    )
    whole = graphs[0].total
    if whole <= 0.0:
        raise ValueError("a profile without cost can't be compared")
    parts = [
        contributions(one, other, unchanged=unchanged, changed=changed)
        for one, other in zip(*sides, strict=True)
    ]
    _charge_lost_inlining([*parts, exact_parts], *graphs)
    shifts = [
        each
        for each in _shifts(*graphs, renamed, whole)
        if each.kind == "renamed" or all(_shows(one, other, each) for one, other in zip(*sides, strict=True))
    ]
    _net_shifts([*parts, exact_parts], shifts)
    builder = _Changes(means, graphs, renamed, inside, bodies if any(bodies[0].values()) else None)
    functions = []
    responsible = []
    for key in sorted({*graphs[0].own, *graphs[1].own} - {PROGRAM}):
        found = centre([each.get(key, 0.0) / whole for each in parts])
        change = builder.change(key, found)
        functions.append(change)
        size = min(abs(found.low), abs(found.high)) if found.low * found.high > 0.0 else 0.0
        certain = abs(exact_parts.get(key, 0.0)) / whole >= SMALLEST_SHARE
        if size >= (SMALLEST_SHARE if certain else _least_misses(changed=key in changed)):
            responsible.append(change)
    total = centre([(other.total - one.total) / whole for one, other in zip(*sides, strict=True)])
    sign = math.copysign(1.0, total.value)

    def rank(change: FunctionChange) -> tuple[bool, float]:
        value = change.contribution.value
        return (value * sign < 0.0, -abs(value))

    return ProfileComparison(
        events=events,
        before=means[0].total,
        after=means[1].total,
        total=total,
        functions=tuple(sorted(functions, key=rank)),
        responsible=tuple(sorted(responsible, key=rank)),
        shifts=tuple(_shift_values(shifts, graphs, whole)),
        input_share=statistics.fmean(each.get(PROGRAM, 0.0) for each in parts) / whole,
    )


def _least_misses(*, changed: bool) -> float:
    return SMALLEST_MISSES_OF_CHANGED if changed else SMALLEST_MISSES


_EXACT_EVENTS = ("Ir", "Ge", "sysCount", "seconds", "samples")
"""Events that don't depend on the layout of code and data."""


def _everything(_: Function) -> bool:
    return True


def _bodies(profile: Profile, inside: Inside) -> dict[FunctionKey, str]:
    """Return the fingerprint of the code of each function; several clones of a function have a common one."""
    found: defaultdict[FunctionKey, set[str]] = defaultdict(set)
    for function in profile.own:
        if inside(function):
            found[function.key].add(profile.bodies.get(function, ""))
    return {key: "" if "" in bodies else "+".join(sorted(bodies)) for key, bodies in found.items()}


def _with_names(graph: CallGraph, names: Mapping[FunctionKey, FunctionKey]) -> CallGraph:
    """Return a graph with other names for some functions."""
    if not names:
        return graph

    def named(key: FunctionKey) -> FunctionKey:
        return names.get(key, key)

    return CallGraph(
        own={named(key): value for key, value in graph.own.items()},
        calls={(named(one), named(other)): value for (one, other), value in graph.calls.items()},
        costs={(named(one), named(other)): value for (one, other), value in graph.costs.items()},
        functions={named(key): function for key, function in graph.functions.items()},
    )


def _renamed(
    before: CallGraph,
    after: CallGraph,
    bodies_before: Mapping[FunctionKey, str],
    bodies_after: Mapping[FunctionKey, str],
) -> dict[FunctionKey, FunctionKey]:
    """Return the new name of each renamed function, with its old one.

    A new function is a gone one if their machine code is equal, or if they have equal callers and callees and a
    similar own cost of a call.
    """
    gone, new = (
        sorted({*one.own} - {*other.own} - {PROGRAM}) for one, other in ((before, after), (after, before))
    )
    found: dict[FunctionKey, FunctionKey] = {}
    around = {key: (_neighbours(before, key), _number(before, key)) for key in gone}
    for key in new:
        candidates = [each for each in gone if each not in found.values()]
        same = [
            each
            for each in candidates
            if bodies_after.get(key) and bodies_after[key] == bodies_before.get(each)
        ]
        if not same:
            mine, count = _neighbours(after, key), _number(after, key)
            same = [
                each
                for each in candidates
                if around[each] == (mine, count)
                and (mine[0] or mine[1])
                and _close(before.own[each], after.own[key], 2.0)
            ]
            same.sort(key=lambda each: abs(math.log((before.own[each] + 1.0) / (after.own[key] + 1.0))))
        if same:
            found[key] = same[0]
    return found


def _neighbours(graph: CallGraph, key: FunctionKey) -> tuple[frozenset[FunctionKey], frozenset[FunctionKey]]:
    return (
        frozenset(caller for caller, callee in graph.calls if callee == key and caller != key),
        frozenset(callee for caller, callee in graph.calls if caller == key and callee != key),
    )


def _number(graph: CallGraph, key: FunctionKey) -> float:
    return sum(count for (_, callee), count in graph.calls.items() if callee == key)


def _inlined(graph: CallGraph, key: FunctionKey) -> bool:
    """Return whether callers have costs of a function without calls of it, in a counted profile."""
    callers = [edge for edge in graph.costs if edge[1] == key and PROGRAM != edge[0] != key]
    return any(graph.costs[edge] and not graph.calls[edge] for edge in callers) and any(graph.calls.values())


CALL_COST = 12.0
"""Largest cost of a call to its caller, without the callee: arguments, saved registers, the call itself."""


def _charge_lost_inlining(
    parts: Sequence[dict[FunctionKey, float]], before: CallGraph, after: CallGraph
) -> None:
    """Leave the cost of calling a function to it, if only one side inlines it in a caller."""
    for edge in {**before.costs, **after.costs}:
        counts = [graph.calls.get(edge, 0.0) for graph in (before, after)]
        costs = [graph.costs.get(edge, 0.0) for graph in (before, after)]
        if not all(costs) or all(counts) or not any(counts) or PROGRAM in edge:
            continue
        most = CALL_COST * max(counts)
        for values in parts:
            cost = values.get(edge[0], 0.0)
            sign = 1.0 if counts[1] else -1.0
            if cost * sign > 0.0:
                moving = sign * min(abs(cost), most)
                values[edge[0]] -= moving
                values[edge[1]] = values.get(edge[1], 0.0) + moving


def _close(one: float, other: float, factor: float) -> bool:
    return min(one, other) * factor >= max(one, other) > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyShift:
    kind: Shift
    before: FunctionKey
    after: FunctionKey
    lost: float
    gained: float


def _shifts(
    before: CallGraph, after: CallGraph, renamed: Mapping[FunctionKey, FunctionKey], whole: float
) -> list[_KeyShift]:
    """Return the cost shifts, the largest first; `after` has the old names of renamed functions."""
    found = [
        _KeyShift(kind="renamed", before=old, after=old, lost=before.own[old], gained=after.own[old])
        for old in renamed.values()
        if max(before.own[old], after.own[old]) >= SHIFT_SHARE * whole
    ]
    changes = {
        key: value
        for key, value in differences(before.own, after.own).items()
        if abs(value) >= SHIFT_SHARE * whole and key != PROGRAM
    }
    callers = {key: _neighbours(before, key)[0] | _neighbours(after, key)[0] for key in changes}
    candidates = []
    for old, loss in changes.items():
        for new, gain in changes.items():
            if loss < 0.0 < gain and _close(-loss, gain, 1.0 / (1.0 - SHIFT_TOLERANCE)):
                kind = _shift_kind(old, new, before, after, callers)
                if kind is not None:
                    candidates.append(_KeyShift(kind=kind, before=old, after=new, lost=-loss, gained=gain))
    used: set[FunctionKey] = set()
    for each in sorted(
        candidates, key=lambda shift: (abs(shift.gained - shift.lost) / shift.lost, shift.before)
    ):
        if not used & {each.before, each.after}:
            used |= {each.before, each.after}
            found.append(each)
    return sorted(found, key=lambda shift: (-shift.gained, shift.before))


def _shows(before: CallGraph, after: CallGraph, shift: _KeyShift) -> bool:
    """Return whether one pair has at least half of the loss and of the gain: those of noise differ between pairs."""
    lost = before.own.get(shift.before, 0.0) - after.own.get(shift.before, 0.0)
    gained = after.own.get(shift.after, 0.0) - before.own.get(shift.after, 0.0)
    return lost >= shift.lost / 2.0 and gained >= shift.gained / 2.0


def _shift_kind(
    old: FunctionKey,
    new: FunctionKey,
    before: CallGraph,
    after: CallGraph,
    callers: Mapping[FunctionKey, frozenset[FunctionKey]],
) -> Shift | None:
    if new not in before.own and (old, new) in after.costs:
        return "split"
    if old not in after.own and (new, old) in before.costs:
        return "merged"
    related = bool(callers[old] & callers[new]) or (old, new) in after.costs or (new, old) in before.costs
    return "moved" if related else None


def _net_shifts(parts: Sequence[dict[FunctionKey, float]], shifts: Sequence[_KeyShift]) -> None:
    """Leave only the difference between loss and gain of a shift, with the function that has the cost now."""
    for each in shifts:
        if each.before != each.after:
            for values in parts:
                values[each.after] = values.get(each.after, 0.0) + values.pop(each.before, 0.0)


def _shift_values(
    shifts: Sequence[_KeyShift],
    graphs: tuple[CallGraph, CallGraph],
    whole: float,
) -> Iterator[CostShift]:
    for each in shifts:
        yield CostShift(
            kind=each.kind,
            before=graphs[0].functions.get(each.before) or graphs[1].functions[each.before],
            after=graphs[1].functions.get(each.after) or graphs[0].functions[each.after],
            lost=each.lost / whole,
            gained=each.gained / whole,
        )


MOST_CALLEES = 6


class _Changes:
    """Describes single functions in both profiles."""

    def __init__(
        self,
        means: tuple[Profile, Profile],
        graphs: tuple[CallGraph, CallGraph],
        renamed: Mapping[FunctionKey, FunctionKey],
        inside: Inside,
        bodies: Sequence[Mapping[FunctionKey, str]] | None,
    ) -> None:
        self._graphs, self._bodies = graphs, bodies
        self._width = len(means[0].events)
        self._own: list[defaultdict[FunctionKey, list[Costs]]] = []
        self._inclusive: list[defaultdict[FunctionKey, list[Costs]]] = []
        self._callees: list[defaultdict[FunctionKey, dict[FunctionKey, tuple[Function, float, float]]]] = []
        for profile, names in zip(means, ({}, renamed), strict=True):
            own: defaultdict[FunctionKey, list[Costs]] = defaultdict(list)
            inclusive: defaultdict[FunctionKey, list[Costs]] = defaultdict(list)
            for function, costs in profile.own.items():
                if inside(function):
                    key = names.get(function.key, function.key)
                    own[key].append(costs)
                    inclusive[key].append(profile.inclusive.get(function, costs))
            callees: defaultdict[FunctionKey, dict[FunctionKey, tuple[Function, float, float]]] = defaultdict(
                dict
            )
            for (caller, callee), calls in profile.calls.items():
                if inside(caller) and caller != callee:
                    key, other = (names.get(each.key, each.key) for each in (caller, callee))
                    _, count, cost = callees[key].get(other, (callee, 0.0, 0.0))
                    callees[key][other] = (
                        callee, count + calls.count, cost + estimated(profile.events, calls.costs)
                    )  # fmt: skip
            self._own.append(own)
            self._inclusive.append(inclusive)
            self._callees.append(callees)
        self._callers = _best_callers(graphs[1]), _best_callers(graphs[0])

    def change(self, key: FunctionKey, contribution: PairedEstimate) -> FunctionChange:
        """Return one function's costs, calls, path and callees on both sides."""
        before, after = self._graphs
        own = [added(self._width, side[key]) for side in self._own]
        inclusive = [added(self._width, side[key]) for side in self._inclusive]
        old, new = key in before.own, key in after.own
        kind: Kind = (
            "new" if not old else "gone" if not new else "grown" if contribution.value >= 0 else "shrunk"
        )
        bodies = None if self._bodies is None else [side.get(key, "") for side in self._bodies]
        return FunctionChange(
            function=after.functions.get(key) or before.functions[key],
            kind=kind,
            contribution=contribution,
            own_before=own[0],
            own_after=own[1],
            inclusive_before=inclusive[0],
            inclusive_after=inclusive[1],
            calls_before=_number(before, key),
            calls_after=_number(after, key),
            changed=None if bodies is None or not all(bodies) else bodies[0] != bodies[1],
            inlined_before=_inlined(before, key),
            inlined_after=_inlined(after, key),
            path=self._path(key),
            callees=self._callee_changes(key),
        )

    def _path(self, key: FunctionKey) -> tuple[Function, ...]:
        """Return the most expensive path to a function, outermost first, in the newer profile if it is there."""
        newer = key in self._graphs[1].own
        callers = self._callers[0 if newer else 1]
        path = [key]
        while (caller := callers.get(path[-1])) is not None and caller not in path:
            path.append(caller)
        graphs = self._graphs[::-1] if newer else self._graphs
        return tuple(graphs[0].functions.get(each) or graphs[1].functions[each] for each in reversed(path))

    def _callee_changes(self, key: FunctionKey) -> tuple[CalleeChange, ...]:
        sides = [side[key] for side in self._callees]
        found = []
        for callee in {*sides[0], *sides[1]}:
            function = (sides[1].get(callee) or sides[0][callee])[0]
            (_, calls_before, before), (_, calls_after, after) = (
                side.get(callee, (function, 0.0, 0.0)) for side in sides
            )
            found.append(
                CalleeChange(
                    function=function,
                    calls_before=calls_before,
                    calls_after=calls_after,
                    cost_before=before,
                    cost_after=after,
                )
            )
        found.sort(key=lambda each: (-abs(each.cost_after - each.cost_before), each.function))
        return tuple(each for each in found[:MOST_CALLEES] if each.cost_after != each.cost_before)


def _best_callers(graph: CallGraph) -> dict[FunctionKey, FunctionKey]:
    """Return the caller of each function whose calls cost most."""
    best: dict[FunctionKey, tuple[float, FunctionKey]] = {}
    for (caller, callee), cost in graph.costs.items():
        if caller not in (callee, PROGRAM) and (cost, caller) > best.get(callee, (-1.0, PROGRAM)):
            best[callee] = cost, caller
    return {callee: caller for callee, (_, caller) in best.items()}
