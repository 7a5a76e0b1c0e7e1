"""Which functions changed the cost of a program: laws over generated call graphs, and planted changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perftrail.model.profile import Calls, Function, FunctionKey, Profile, averaged, joined
from perftrail.stats.call_graph import folded, in_program, moved
from perftrail.stats.profile_comparison import ProfileComparison, compare_profiles, contributions

LIBC = "/usr/lib/libc.so.6"


def function(name: str) -> Function:
    library = name in ("malloc", "free", "qsort")
    return Function(name, "" if library else f"/src/{name[0]}.c", 1, LIBC if library else "/src/main")


def program(
    calls: Mapping[str, Mapping[str, float]],
    own: Mapping[str, float],
    bodies: Mapping[str, str] | None = None,
) -> Profile:
    """Run a program without recursion: `calls` of each function in one call of it, and `own` cost of one call."""
    count: defaultdict[str, float] = defaultdict(float, main=1.0)
    inclusive = dict.fromkeys(own, 0.0)
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for callee in calls.get(name, {}):
                visit(callee)
            order.append(name)
            inclusive[name] = own[name] + sum(n * inclusive[each] for each, n in calls.get(name, {}).items())

    visit("main")
    for name in reversed(order):
        for callee, number in calls.get(name, {}).items():
            count[callee] += number * count[name]
    return Profile(
        events=("Ir",),
        own={function(name): (own[name] * count[name],) for name in order},
        inclusive={function(name): (inclusive[name] * count[name],) for name in order},
        calls={
            (function(name), function(callee)): Calls(number * count[name], (number * count[name] * inclusive[callee],))
            for name in order
            for callee, number in calls.get(name, {}).items()
        },
        bodies={function(name): body for name, body in (bodies or {}).items()},
    )  # fmt: skip


CALLS = {
    "main": {"parse": 1.0, "insert": 100.0},
    "insert": {"move": 2.0, "malloc": 1.0},
    "parse": {"move": 10.0},
}
OWN = {"main": 10.0, "parse": 300.0, "insert": 20.0, "move": 10.0, "malloc": 30.0}
BASE = program(CALLS, OWN)


def compare(after: Profile, before: Profile = BASE) -> ProfileComparison:
    return compare_profiles([before], [after])


def first(comparison: ProfileComparison) -> tuple[str, float]:
    """Return the function that is blamed first, and its contribution as a cost."""
    change = comparison.responsible[0]
    return change.function.name, round(change.contribution.value * folded(BASE).total, 6)


def test_equal_profiles_have_no_responsible_function() -> None:
    comparison = compare(BASE)
    assert comparison.total.value == 0.0
    assert comparison.responsible == ()
    assert comparison.shifts == ()


def test_a_slower_function_is_responsible_itself_and_not_its_callers() -> None:
    comparison = compare(program(CALLS, {**OWN, "move": 30.0}))
    assert first(comparison) == ("move", 20.0 * 210)
    assert len(comparison.responsible) == 1
    assert [each.name for each in comparison.responsible[0].path] == ["main", "insert", "move"]
    assert comparison.responsible[0].kind == "grown"


def test_a_function_that_calls_another_more_often_is_responsible_for_the_additional_calls() -> None:
    comparison = compare(program({**CALLS, "insert": {"move": 8.0, "malloc": 1.0}}, OWN))
    assert first(comparison) == ("insert", 6.0 * 10 * 100)
    assert len(comparison.responsible) == 1
    [callee] = comparison.responsible[0].callees
    assert (callee.function.name, callee.calls_before, callee.calls_after) == ("move", 200.0, 800.0)


def test_a_caller_of_a_library_function_is_responsible_for_it() -> None:
    comparison = compare(
        program({**CALLS, "insert": {"move": 2.0, "malloc": 3.0, "free": 3.0}}, {**OWN, "free": 5.0})
    )
    assert first(comparison) == ("insert", (60.0 + 15.0) * 100)
    assert [each.function.name for each in comparison.responsible[0].callees] == ["malloc", "free"]
    assert all(in_program(each.function) for each in comparison.functions)


def test_a_new_function_is_the_responsibility_of_its_caller() -> None:
    calls = {**CALLS, "parse": {"move": 10.0, "check": 50.0}}
    comparison = compare(program(calls, {**OWN, "check": 100.0}))
    assert first(comparison) == ("parse", 5000.0)
    assert [each.kind for each in comparison.functions if each.function.name == "check"] == ["new"]


def test_a_context_that_only_one_side_has_does_not_make_the_callee_slower() -> None:
    """`main` calls `move` with large inputs in one build only: the mean cost of its calls grows for `main` alone."""
    before, after = BASE, replace(BASE)
    edge = function("main"), function("move")
    own = {**BASE.own, function("move"): (BASE.own[function("move")][0] + 50_000.0,)}
    after = replace(BASE, own=own, calls={**BASE.calls, edge: Calls(1.0, (50_000.0,))})
    comparison = compare(after, before)
    assert first(comparison) == ("main", 50_000.0)
    assert len(comparison.responsible) == 1


def test_a_function_with_unchanged_machine_code_is_not_blamed_for_its_input() -> None:
    bodies = {"main": "m", "parse": "p", "insert": "i", "move": "v"}
    before = program(CALLS, OWN, bodies)
    after = program(CALLS, {**OWN, "move": 30.0}, {**bodies, "insert": "j"})
    comparison = compare(after, before)
    assert comparison.responsible[0].function.name == "insert"
    assert comparison.responsible[0].changed is True
    assert [each.changed for each in comparison.functions if each.function.name == "move"] == [False]
    assert "move" not in [each.function.name for each in comparison.responsible]


def test_if_no_machine_code_changed_the_input_did() -> None:
    bodies = {"main": "m", "parse": "p", "insert": "i", "move": "v"}
    comparison = compare(program(CALLS, {**OWN, "move": 30.0}, bodies), program(CALLS, OWN, bodies))
    assert comparison.responsible == ()
    assert comparison.input_share == pytest.approx(comparison.total.value)


def test_a_renamed_function_is_a_cost_shift_and_nobody_is_blamed() -> None:
    calls = {"main": {"parse": 1.0, "enter": 100.0}, "enter": CALLS["insert"], "parse": CALLS["parse"]}
    comparison = compare(program(calls, {**OWN, "enter": OWN["insert"]}))
    assert comparison.responsible == ()
    [shift] = comparison.shifts
    assert (shift.kind, shift.before.name, shift.after.name) == ("renamed", "insert", "enter")


def test_a_renamed_function_that_became_slower_is_blamed_under_its_new_name() -> None:
    calls = {"main": {"parse": 1.0, "enter": 100.0}, "enter": CALLS["insert"], "parse": CALLS["parse"]}
    comparison = compare(program(calls, {**OWN, "enter": 35.0}))
    assert first(comparison) == ("enter", 15.0 * 100)


def test_a_function_that_is_no_longer_inlined_is_a_cost_shift_with_its_overhead() -> None:
    calls = {**CALLS, "parse": {"move": 10.0, "digit": 10.0}}
    comparison = compare(program(calls, {**OWN, "parse": 100.0, "digit": 25.0}))
    [shift] = comparison.shifts
    assert (shift.kind, shift.before.name, shift.after.name) == ("split", "parse", "digit")
    whole = folded(BASE).total
    assert round(shift.lost * whole, 6) == 200.0
    assert round(shift.gained * whole, 6) == 250.0
    assert first(comparison) == ("digit", 50.0)


def test_a_function_inlined_into_its_caller_is_a_cost_shift() -> None:
    calls = {"main": CALLS["main"], "insert": CALLS["insert"], "parse": {}}
    before = program({**calls, "parse": {"digit": 10.0}}, {**OWN, "digit": 20.0})
    comparison = compare(program(calls, {**OWN, "parse": 500.0}), before)
    assert [(each.kind, each.before.name, each.after.name) for each in comparison.shifts] == [
        ("merged", "digit", "parse")
    ]
    assert comparison.responsible == ()


def test_a_cost_that_moved_to_another_function_of_the_same_caller_is_a_cost_shift() -> None:
    comparison = compare(program(CALLS, {**OWN, "parse": 50.0, "insert": 22.5}))
    assert [(each.kind, each.before.name, each.after.name) for each in comparison.shifts] == [
        ("moved", "parse", "insert")
    ]
    assert comparison.responsible == ()


def test_few_additional_cache_misses_alone_blame_nobody() -> None:
    def with_misses(number: float) -> Profile:
        own = {each: (*costs, number if each.name == "move" else 0.0) for each, costs in BASE.own.items()}
        return Profile(events=("Ir", "D1mr"), own=own, calls=BASE.calls)

    assert compare(with_misses(12.0), with_misses(0.0)).responsible == ()
    assert first(compare(with_misses(120.0), with_misses(0.0)))[0] == "move"


def test_noise_of_repetitions_blames_nobody() -> None:
    noise = [0.0, 40.0, -30.0, 25.0, -35.0]
    before = [program(CALLS, {**OWN, "parse": 300.0 + each}) for each in noise]
    after = [program(CALLS, {**OWN, "parse": 300.0 + each}) for each in reversed(noise)]
    comparison = compare_profiles(before, after)
    assert comparison.responsible == ()
    slower = [program(CALLS, {**OWN, "parse": 900.0 + each}) for each in reversed(noise)]
    found = compare_profiles(before, slower).responsible[0]
    assert found.function.name == "parse"
    assert found.contribution.low < found.contribution.value < found.contribution.high


def test_sampled_profiles_without_numbers_of_calls_are_compared_by_own_costs() -> None:
    def sampled(profile: Profile) -> Profile:
        return replace(profile, calls={edge: Calls(0.0, each.costs) for edge, each in profile.calls.items()})

    comparison = compare_profiles([sampled(BASE)], [sampled(program(CALLS, {**OWN, "move": 30.0}))])
    assert comparison.responsible[0].function.name == "move"


def test_costs_of_callbacks_belong_to_the_function_that_passes_them() -> None:
    calls = {"main": {"sort": 1.0}, "sort": {"qsort": 1.0}, "qsort": {"less": 50.0}}
    own = {"main": 1.0, "sort": 5.0, "qsort": 100.0, "less": 4.0}
    graph = folded(program(calls, own))
    assert graph.own[function("sort").key] == 105.0
    assert graph.calls[function("sort").key, function("less").key] == 50.0
    assert graph.costs[function("sort").key, function("less").key] == 200.0


def test_moved_functions_are_those_with_own_and_with_call_costs() -> None:
    after = folded(program({**CALLS, "insert": {"move": 8.0, "malloc": 1.0}}, OWN))
    found = moved(folded(BASE), after)
    assert found.own == {function("move").key}
    assert found.path == {function("insert").key, function("main").key}
    assert found.runs == {function("parse").key}
    assert not moved(folded(BASE), folded(BASE)).own


def test_profiles_of_processes_are_added_and_those_of_invocations_averaged() -> None:
    twice = joined([BASE, BASE])
    assert twice.total == (2.0 * BASE.total[0],)
    assert averaged([BASE, BASE]) == BASE


NAMES = [FunctionKey(name, "a.c") for name in "abcdef"]
GRAPHS = st.tuples(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000), min_size=1),
    st.dictionaries(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")),
        st.tuples(st.integers(0, 20), st.integers(0, 1000)),
        max_size=12,
    ),
)


def graph_profile(graph: tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]]) -> Profile:
    own, calls = graph
    return Profile(
        events=("Ir",),
        own={function(name): (float(cost),) for name, cost in own.items()},
        calls={
            (function(one), function(other)): Calls(float(count), (float(cost),))
            for (one, other), (count, cost) in calls.items()
        },
    )


@given(GRAPHS, GRAPHS, st.sets(st.sampled_from("abcdef")))
def test_contributions_add_up_to_the_change_of_the_total(
    before: tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]],
    after: tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]],
    unchanged: set[str],
) -> None:
    graphs = folded(graph_profile(before)), folded(graph_profile(after))
    keys = frozenset(function(name).key for name in unchanged) & {*graphs[0].own} & {*graphs[1].own}
    parts = contributions(*graphs, unchanged=keys)
    assert sum(parts.values()) == pytest.approx(graphs[1].total - graphs[0].total, abs=1e-4)
    assert not any(value for key, value in parts.items() if key in keys)


@given(GRAPHS, st.sets(st.sampled_from("abcdef")))
def test_folding_libraries_keeps_the_total(
    graph: tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]], library: set[str]
) -> None:
    profile = graph_profile(graph)
    found = folded(profile, lambda each: each.name not in library)
    assert found.total == pytest.approx(profile.total[0])
    assert not any(key.name in library for key in found.own)
