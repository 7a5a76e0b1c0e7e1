"""Why a program became faster or slower: the functions that changed its cost, in words for every interface.

It words the JSON of `explain`, which the store keeps, so all interfaces show the same sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from perftrail.model.wording import escaped, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftrail.model.store_records import ExplanationRecord
    from perftrail.verbs.explain.functions import (
        CalleeJson,
        CostShiftJson,
        EventCostsJson,
        FunctionChangeJson,
        FunctionNameJson,
        FunctionsJson,
        StoredPointJson,
    )

LONGEST_NAME = 80
LONGEST_PATH = 6
"""Functions of a call path that are shown; those in the middle of a longer path are left out."""

SAME = 0.02
"""Largest relative difference of two counts that are called unchanged."""

METHODS: Mapping[str, str] = {
    "callgrind": "estimated cycles: counted instructions, simulated misses, system calls",
    "cprofile": "seconds by cProfile",
    "jfr": "samples of stacks by Flight Recorder",
    "perf": "samples of stacks",
}
_EVENTS: Mapping[str, tuple[str, ...]] = {
    "instructions": ("Ir",),
    "cache misses": ("D1mr", "D1mw"),
    "last-level cache misses": ("DLmr", "DLmw"),
    "branch misses": ("Bcm", "Bim"),
    "system calls": ("sysCount",),
    "atomic operations": ("Ge",),
    "seconds": ("seconds",),
    "samples": ("samples",),
}
_LEAST: Mapping[str, float] = {"instructions": 0.0, "seconds": 0.0, "samples": 0.0}
"""Events that are always worth a word; others need a difference that matters."""
_CYCLES: Mapping[str, float] = {
    "cache misses": 10.0,
    "last-level cache misses": 100.0,
    "branch misses": 10.0,
    "system calls": 1000.0,
    "atomic operations": 20.0,
}


def function_name(function: FunctionNameJson, *, place: bool = True) -> str:
    """Return a function with its source line: ``btreeInsert (lib/btree.c:210)``."""
    name = escaped(function["name"], longest=LONGEST_NAME)
    if not place or not function["file"]:
        return name
    line = f":{function['line']}" if function["line"] else ""
    return f"{name} ({escaped(function['file'], longest=LONGEST_NAME)}{line})"


def responsible(functions: FunctionsJson) -> list[FunctionChangeJson]:
    """Return the functions that are named as causes, the largest first."""
    return [each for each in functions["functions"] if each["responsible"]]


def function_words(change: FunctionChangeJson) -> str:
    """Return one function's part in a sentence: ``+31 % in btreeInsert (lib/btree.c:210): 2.1x the instructions``."""
    return f"{signed_share(change)} in {function_name(change['function'])}: {reason_words(change)}"


def signed_share(change: FunctionChangeJson) -> str:
    """Return a contribution with its sign, and its interval if it has one."""
    found = change["contribution"]
    interval = ""
    if found["high"] - found["low"] > 0.02 * abs(found["value"]):
        interval = f" [{_signed(found['low'])}, {_signed(found['high'])}]"
    return f"{_signed(found['value'])} %{interval}"


def reason_words(change: FunctionChangeJson) -> str:
    """Return what changed about a function: its costs with callees, its calls, its inlining and its callees."""
    parts = [] if change["kind"] in ("grown", "shrunk") else [f"{change['kind']} function"]
    if change["kind"] in ("grown", "shrunk") and change["inlined_before"] != change["inlined_after"]:
        parts.append("inlined" if change["inlined_after"] else "no longer inlined")
    parts += _event_words(change["costs"])
    if (
        change["calls_before"]
        and change["calls_after"]
        and _differ(change["calls_before"], change["calls_after"])
    ):
        parts.append(f"called {_times(change['calls_after'] / change['calls_before'])} as often")
    parts += [_callee_words(each) for each in _telling_callees(change)]
    if change["code_changed"] is False:
        parts.append("its code is unchanged")
    return ", ".join(parts) if parts else "the same costs"


def path_words(path: Sequence[FunctionNameJson]) -> str:
    """Return a call path, the outermost function first."""
    names = [function_name(each, place=False) for each in path]
    if len(names) > LONGEST_PATH:
        half = LONGEST_PATH // 2
        names = [*names[:half], "…", *names[-half:]]
    return " → ".join(names)


def shift_words(shift: CostShiftJson) -> str:
    """Return a cost shift in a sentence."""
    before, after = function_name(shift["before"]), function_name(shift["after"])
    costs = f"{percent(shift['lost'])} → {percent(shift['gained'])} of the total"
    if shift["kind"] == "renamed":
        return f"Cost shift: {before} is now {after}: {costs}."
    if shift["kind"] == "split":
        return f"Cost shift: from {before} to the new function {after}, which it calls: {costs}."
    if shift["kind"] == "merged":
        return f"Cost shift: from {before} into its caller {after}: {costs}."
    return f"Cost shift: from {before} to {after}: {costs}."


def input_words(functions: FunctionsJson) -> str:
    """Return a sentence if the cost changed although no function's code did; empty otherwise."""
    share = functions["input_share"]
    if abs(share) < 0.01 or abs(share) < 0.5 * abs(functions["total"]["value"]):
        return ""
    return f"{_signed(share)} % in functions whose code did not change: other input, libraries, or layout."


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else '−'}{number(abs(100.0 * share), digits=2)}"


def _event_words(costs: Mapping[str, EventCostsJson]) -> list[str]:
    """Return the costs that changed, with callees, then the cache misses if only they did not."""
    words, instructions = [], 0.0
    for name, events in _EVENTS.items():
        before = sum(costs[event]["inclusive_before"] for event in events if event in costs)
        after = sum(costs[event]["inclusive_after"] for event in events if event in costs)
        if name == "instructions":
            instructions = max(before, after)
        elif name in _CYCLES and _CYCLES[name] * max(before, after) < SAME * instructions:
            continue  # too few to matter
        if not before and not after:
            continue
        if _differ(before, after):
            own = sum(
                costs[event]["own_after"] - costs[event]["own_before"] for event in events if event in costs
            )
            in_callees = name == "instructions" and abs(own) < abs(after - before) / 2
            words.append(_ratio_words(name, before, after) + (" with its callees" if in_callees else ""))
        elif name in ("instructions", "cache misses"):
            words.append(f"{name} unchanged")
    return words


def _ratio_words(name: str, before: float, after: float) -> str:
    if before <= 0.0:
        return f"{number(after)} {name} instead of none"
    if after <= 0.0:
        return f"no {name} instead of {number(before)}"
    return f"{_times(after / before)} the {name}"


def _differ(before: float, after: float) -> bool:
    return abs(after - before) > SAME * max(before, after)


def _times(ratio: float) -> str:
    return f"{number(ratio, digits=2 if ratio < 10 else 3)}×"


def _telling_callees(change: FunctionChangeJson) -> list[CalleeJson]:
    """Return the callees whose number of calls changed and that explain much of the difference."""
    own = sum(abs(each["own_after"] - each["own_before"]) for each in change["costs"].values())
    most = max((abs(each["cost_after"] - each["cost_before"]) for each in change["callees"]), default=0.0)
    return [
        each
        for each in change["callees"]
        if _differ(each["calls_before"], each["calls_after"])
        and abs(each["cost_after"] - each["cost_before"]) >= max(0.3 * most, 0.1 * own)
    ][:2]


def _callee_words(callee: CalleeJson) -> str:
    name = function_name(callee["function"], place=False)
    before, after = callee["calls_before"], callee["calls_after"]
    if not before:
        return f"{number(after)} new calls of {name}"
    if not after:
        return f"no more calls of {name}"
    return f"{_times(after / before)} the calls of {name}"


MOST_IN_SUMMARY = 3
"""Functions of one point in a summary."""


def explanation_lines(
    record: ExplanationRecord, *, most: int = MOST_IN_SUMMARY, benchmark: str = "", variant: str = ""
) -> list[str]:
    """Return the functions and cost shifts of a stored explanation, the point with the largest change first.

    `benchmark` and `variant` select points, if they are not empty. An explanation that another version of perftrail
    stored in another form has no lines.
    """
    try:
        points = [
            each
            for each in cast("list[StoredPointJson]", record.result["points"])
            if benchmark in ("", each["benchmark"]) and variant in ("", each["variant"])
        ]
        points.sort(key=lambda each: -abs(each["functions"]["total"]["value"]))
        return [line for point in points[:most] for line in _point_lines(point, most)]
    except (KeyError, TypeError, AttributeError):
        return []


def _point_lines(point: StoredPointJson, most: int) -> list[str]:
    functions = point["functions"]
    values = ", ".join(f"{name}={value}" for name, value in point["point"].items())
    place = escaped(f"{point['benchmark']} {values}".rstrip(), longest=LONGEST_NAME)
    lines = [function_words(each) for each in responsible(functions)[:most]]
    lines += [shift_words(each) for each in functions["shifts"][:most]]
    if sentence := input_words(functions):
        lines.append(sentence)
    return [f"{place}: {line}" for line in lines or ["no function changed the cost"]]
