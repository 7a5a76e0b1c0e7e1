"""The JSON of compared functions: what `explain --json` prints and the store keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypedDict, cast

from perftrail.model.benchmark import Value
from perftrail.model.build import content_key
from perftrail.model.profile import Function, base_name
from perftrail.model.store_records import ExplanationRecord
from perftrail.stats.call_tree import CallTree
from perftrail.stats.profile_comparison import Kind, Shift

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftrail.model.json_data import Json
    from perftrail.model.profile import Costs
    from perftrail.stats.profile_comparison import (
        CostShift,
        FunctionChange,
        ProfileComparison,
    )
    from perftrail.stats.ratios import PairedEstimate

MOST_FUNCTIONS = 200
"""Largest number of functions in the JSON: those that contributed most."""

LEAST_SHARE = 1e-5
"""Smallest contribution of a function in the JSON."""


class FunctionNameJson(TypedDict):
    """One function; names and files are text of the program. Empty or 0: unknown."""

    name: str
    file: str
    line: int


class ShareJson(TypedDict):
    """A share of the total cost before, with its interval."""

    value: float
    low: float
    high: float
    confidence: float


class EventCostsJson(TypedDict):
    """The costs of one function in one event: own costs, and inclusive costs, which are those with its callees."""

    own_before: float
    own_after: float
    inclusive_before: float
    inclusive_after: float


class CalleeJson(TypedDict):
    """How the calls of one function by another changed: numbers (0: unknown), and estimated inclusive costs."""

    function: FunctionNameJson
    calls_before: float
    calls_after: float
    cost_before: float
    cost_after: float


class FunctionChangeJson(TypedDict):
    """One function on both sides, and its part in the change of the total."""

    function: FunctionNameJson
    kind: Kind
    contribution: ShareJson
    responsible: Annotated[bool, "whether the function is named as a cause"]
    costs: dict[str, EventCostsJson]
    calls_before: Annotated[float, "0: unknown, for example of an inlined function"]
    calls_after: float
    code_changed: Annotated[bool | None, "whether its machine code or bytecode differs; null: unknown"]
    inlined_before: bool
    inlined_after: bool
    path: Annotated[list[FunctionNameJson], "the most expensive call path, the outermost function first"]
    callees: list[CalleeJson]


class CostShiftJson(TypedDict):
    """A cost that moved from one function to another; the shares are of the total before."""

    kind: Shift
    before: FunctionNameJson
    after: FunctionNameJson
    lost: float
    gained: float


class FunctionsJson(TypedDict):
    """The functions of both revisions compared."""

    method: Annotated[str, "callgrind, cprofile, jfr or perf"]
    pairs: int
    total: Annotated[ShareJson, "the change of the program's estimated cost"]
    before: dict[str, float]
    after: dict[str, float]
    input_share: Annotated[float, "the change that no function with changed code explains"]
    functions: list[FunctionChangeJson]
    shifts: list[CostShiftJson]


class StoredPointJson(TypedDict):
    """The compared functions of one point in the store."""

    benchmark: str
    variant: str
    point: dict[str, Value]
    functions: FunctionsJson


class CallTreeJson(TypedDict):
    """The call paths of the point that changed most, as columns: see `stats.call_tree.CallTree`."""

    benchmark: str
    point: dict[str, Value]
    names: list[FunctionNameJson]
    parents: list[int]
    functions: list[int]
    before: list[float]
    after: list[float]


class ExplanationJson(TypedDict):
    """The stored explanation of a revision."""

    revision: str
    against: Annotated[str, "the revision that it was compared with"]
    finished: str
    points: list[StoredPointJson]


def stored_explanation(record: ExplanationRecord, *, most: int) -> ExplanationJson | None:
    """Return an explanation with at most this number of functions of each point, those that contributed most first.

    `None` for an explanation that another version of perftrail stored in another form.
    """
    try:
        points = cast("list[StoredPointJson]", record.result["points"])
        return {
            "revision": record.revision,
            "against": record.against,
            "finished": record.finished,
            "points": [
                {
                    "benchmark": each["benchmark"],
                    "variant": each["variant"],
                    "point": each["point"],
                    "functions": {
                        **each["functions"],
                        "functions": each["functions"]["functions"][:most],
                    },
                }
                for each in points
            ],
        }
    except (KeyError, TypeError, AttributeError):
        return None


MOST_STORED = 50
"""Largest number of functions of one point in the store."""


def explanation_record(
    revision: str, against: str, points: Sequence[StoredPointJson], *, tree: CallTreeJson | None = None
) -> ExplanationRecord:
    """Return an explanation for the store: the compared functions of each point, and the call paths of one of them."""
    places = [(each["benchmark"], each["variant"], sorted(each["point"].items())) for each in points]
    shortened = [
        {
            **each,
            "functions": {**each["functions"], "functions": each["functions"]["functions"][:MOST_STORED]},
        }
        for each in points
    ]
    return ExplanationRecord(
        key=content_key("explanation", revision, against, places),
        revision=revision,
        against=against,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        result=cast("dict[str, Json]", {"points": shortened, "tree": tree}),
    )


LONGEST_NAME = 300
"""Longest stored name of a function on a call path."""

MOST_STORED_PATHS = 4000
"""Largest number of call paths in the store: about 150 kB."""


def call_tree_json(
    tree: CallTree, *, benchmark: str, point: Mapping[str, Value], shown_file: Callable[[str], str]
) -> CallTreeJson:
    """Return the call paths of a point for the store, with only the functions that they contain."""
    used = sorted(set(tree.functions))
    numbers = {function: number for number, function in enumerate(used)}
    named = [tree.names[function] for function in used]
    return {
        "benchmark": benchmark,
        "point": dict(point),
        "names": [
            {
                "name": each.name[:LONGEST_NAME],
                "file": shown_file(each.file)[:LONGEST_NAME],
                "line": each.line,
            }
            for each in named
        ],
        "parents": [*tree.parents],
        "functions": [numbers[each] for each in tree.functions],
        "before": [float(f"{each:.5g}") for each in tree.before],
        "after": [float(f"{each:.5g}") for each in tree.after],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTree:
    """The stored call paths of a point, and the point in words. Names are untrusted."""

    tree: CallTree
    place: str


def stored_call_tree(record: ExplanationRecord) -> StoredTree | None:
    """Return the call paths of an explanation.

    `None` if it has none, or is damaged, or if another version of perftrail stored it in another form.
    """
    try:
        found = cast("CallTreeJson", record.result["tree"])
        tree = CallTree(
            names=tuple(
                Function(str(each["name"]), str(each["file"]), int(each["line"])) for each in found["names"]
            ),
            parents=tuple(map(int, found["parents"])),
            functions=tuple(map(int, found["functions"])),
            before=tuple(map(float, found["before"])),
            after=tuple(map(float, found["after"])),
        )
        values = ", ".join(f"{name}={value}" for name, value in found["point"].items())
        place = f"{found['benchmark']} {values}".rstrip()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return StoredTree(tree=tree, place=place) if tree.valid else None


def functions_json(
    comparison: ProfileComparison, *, method: str, pairs: int, shown_file: Callable[[str], str]
) -> FunctionsJson:
    """Return a comparison as JSON; `shown_file` shortens the paths of source files."""
    responsible = set(map(id, comparison.responsible))
    listed = [*comparison.responsible]
    listed += [
        each
        for each in comparison.functions
        if id(each) not in responsible and abs(each.contribution.value) >= LEAST_SHARE
    ]

    def name(function: Function) -> FunctionNameJson:
        return {"name": base_name(function.name), "file": shown_file(function.file), "line": function.line}

    return {
        "method": method,
        "pairs": pairs,
        "total": _share(comparison.total),
        "before": dict(zip(comparison.events, comparison.before, strict=True)),
        "after": dict(zip(comparison.events, comparison.after, strict=True)),
        "input_share": comparison.input_share,
        "functions": [
            _change(each, comparison.events, responsible=id(each) in responsible, name=name)
            for each in listed[:MOST_FUNCTIONS]
        ],
        "shifts": [_shift(each, name) for each in comparison.shifts],
    }


def _change(
    change: FunctionChange,
    events: Sequence[str],
    *,
    responsible: bool,
    name: Callable[[Function], FunctionNameJson],
) -> FunctionChangeJson:
    rows = zip(
        events,
        *(
            _padded(costs, len(events))
            for costs in (
                change.own_before,
                change.own_after,
                change.inclusive_before,
                change.inclusive_after,
            )
        ),
        strict=True,
    )
    return {
        "function": name(change.function),
        "kind": change.kind,
        "contribution": _share(change.contribution),
        "responsible": responsible,
        "costs": {
            event: {
                "own_before": own_before,
                "own_after": own_after,
                "inclusive_before": inclusive_before,
                "inclusive_after": inclusive_after,
            }
            for event, own_before, own_after, inclusive_before, inclusive_after in rows
            if any((own_before, own_after, inclusive_before, inclusive_after))
        },
        "calls_before": change.calls_before,
        "calls_after": change.calls_after,
        "code_changed": change.changed,
        "inlined_before": change.inlined_before,
        "inlined_after": change.inlined_after,
        "path": [name(each) for each in change.path],
        "callees": [
            {
                "function": name(each.function),
                "calls_before": each.calls_before,
                "calls_after": each.calls_after,
                "cost_before": each.cost_before,
                "cost_after": each.cost_after,
            }
            for each in change.callees
        ],
    }


def _shift(shift: CostShift, name: Callable[[Function], FunctionNameJson]) -> CostShiftJson:
    return {
        "kind": shift.kind,
        "before": name(shift.before),
        "after": name(shift.after),
        "lost": shift.lost,
        "gained": shift.gained,
    }


def _padded(costs: Costs, width: int) -> Costs:
    return (*costs, *(0.0 for _ in range(width - len(costs))))


def _share(estimate: PairedEstimate) -> ShareJson:
    values = estimate.value, estimate.low, estimate.high
    assert all(map(math.isfinite, values))
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "confidence": estimate.confidence,
    }
