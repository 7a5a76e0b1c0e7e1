"""Explanations in the store, and what the report says of them."""

from __future__ import annotations

from dataclasses import replace

from perftrail.model.profile import Calls, Function, Profile
from perftrail.present.why import explanation_lines
from perftrail.stats.profile_comparison import compare_profiles
from perftrail.store.memory import MemoryStore
from perftrail.verbs.explain.functions import StoredPointJson, explanation_record, functions_json

MAIN, INSERT = Function("main", "main.c", 3), Function("insert", "tree.c", 20)


def point(insert: float, *, size: int) -> StoredPointJson:
    def profile(cost: float) -> Profile:
        calls = {(MAIN, INSERT): Calls(5.0, (cost,))}
        return Profile(events=("Ir",), own={MAIN: (100.0,), INSERT: (cost,)}, calls=calls)

    comparison = compare_profiles([profile(900.0)], [profile(insert)])
    functions = functions_json(comparison, method="callgrind", pairs=1, shown_file=str)
    return {"benchmark": "work", "variant": "plain", "point": {"size": size}, "functions": functions}


def test_a_stored_explanation_has_the_functions_of_the_largest_change_first() -> None:
    store = MemoryStore()
    store.add_explanation(explanation_record("b", "a", [point(950.0, size=1), point(1800.0, size=2)]))
    [record] = store.explanations()
    assert explanation_lines(record) == [
        "work size=2: +90 % in insert (tree.c:20): 2.0× the instructions",
        "work size=1: +5.0 % in insert (tree.c:20): 1.1× the instructions",
    ]


def test_a_new_explanation_of_the_same_points_replaces_the_old_one() -> None:
    first = explanation_record("b", "a", [point(950.0, size=1)])
    assert explanation_record("b", "a", [point(990.0, size=1)]).key == first.key
    assert explanation_record("b", "a", [point(950.0, size=2)]).key != first.key
    assert explanation_record("c", "a", [point(950.0, size=1)]).key != first.key


def test_an_explanation_in_another_form_has_no_lines() -> None:
    record = explanation_record("b", "a", [point(950.0, size=1)])
    damaged: tuple[dict[str, object], ...] = (
        {},
        {"points": None},
        {"points": [1]},
        {"points": [{"functions": {}}]},
    )
    for result in damaged:
        assert explanation_lines(replace(record, result=result)) == []  # type: ignore[arg-type] # damaged
