"""Explanations in the store, and what the report says of them."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perftrail.model.json_data import Json
from perftrail.model.profile import Calls, Function, Profile
from perftrail.model.store_records import ExplanationRecord, SearchRecord
from perftrail.model.subject import Revision
from perftrail.present.answer_sentence import revision_name
from perftrail.present.flame_graph import stored_flame_graph
from perftrail.present.report.data import ReportData
from perftrail.present.report.report import NO_CALL_PATHS, why_sections
from perftrail.present.why import explanation_lines
from perftrail.stats.call_tree import CallTree, call_tree
from perftrail.stats.profile_comparison import compare_profiles
from perftrail.verbs.explain.functions import (
    StoredPointJson,
    call_tree_json,
    explanation_record,
    functions_json,
    stored_call_tree,
)
from perftrail.verbs.explained_search import explanations_of
from tests.fakes.memory_store import MemoryStore

MAIN, INSERT = Function("main", "main.c", 3), Function("insert", "tree.c", 20)


def point(insert: float, *, size: int, benchmark: str = "work") -> StoredPointJson:
    def profile(cost: float) -> Profile:
        calls = {(MAIN, INSERT): Calls(5.0, (cost,))}
        return Profile(events=("Ir",), own={MAIN: (100.0,), INSERT: (cost,)}, calls=calls)

    comparison = compare_profiles([profile(900.0)], [profile(insert)])
    functions = functions_json(comparison, method="callgrind", pairs=1, shown_file=str)
    return {"benchmark": benchmark, "variant": "plain", "point": {"size": size}, "functions": functions}


def test_a_stored_explanation_has_the_functions_of_the_largest_change_first() -> None:
    store = MemoryStore()
    store.add_explanation(explanation_record("b", "a", [point(950.0, size=1), point(1800.0, size=2)]))
    [record] = store.explanations()
    assert explanation_lines(record) == [
        "work size=2: +90 % in insert (tree.c:20): 2.0× the instructions",
        "work size=1: +5.0 % in insert (tree.c:20): 1.1× the instructions",
    ]


def test_the_lines_of_one_benchmark_are_selected() -> None:
    record = explanation_record("b", "a", [point(950.0, size=1), point(1800.0, size=1, benchmark="it")])
    assert [line.partition(":")[0] for line in explanation_lines(record, benchmark="work")] == ["work size=1"]
    assert explanation_lines(record, benchmark="work", variant="other") == []


def test_the_explanations_of_a_search_are_those_of_its_culprits_also_inside_merges() -> None:
    inside: Json = {"revisions": ["b"], "inside": {"revisions": ["c"], "inside": None}}
    answer: dict[str, Json] = {"changes": [{"revisions": ["m"], "inside": inside}]}
    search = SearchRecord(key="s", machine="m", question={}, started="", answer=answer)
    points = [point(1800.0, size=1)]
    stored = [explanation_record(revision, "a", points) for revision in ("x", "b", "c")]
    found = explanations_of([*stored, replace(stored[1], result={})], search)
    assert [each["revision"] for each in found] == ["c", "b"]
    assert found[0]["points"][0]["functions"]["functions"] == points[0]["functions"]["functions"]
    several = replace(search, answer={"metrics": [answer, {"changes": []}]})
    assert explanations_of(stored, several) == found
    assert explanations_of(stored, replace(search, answer=None)) == []


def test_a_new_explanation_of_the_same_points_replaces_the_old_one() -> None:
    first = explanation_record("b", "a", [point(950.0, size=1)])
    assert explanation_record("b", "a", [point(990.0, size=1)]).key == first.key
    assert explanation_record("b", "a", [point(950.0, size=2)]).key != first.key
    assert explanation_record("c", "a", [point(950.0, size=1)]).key != first.key


def a_tree() -> CallTree:
    calls = {(MAIN, INSERT): Calls(5.0, (900.0,))}
    profile = Profile(events=("Ir",), own={MAIN: (100.0,), INSERT: (900.0,)}, calls=calls)
    return call_tree(profile, profile)


def explained(**changes: object) -> ExplanationRecord:
    """An explanation with call paths, of which some columns were changed."""
    tree = call_tree_json(a_tree(), benchmark="work", point={"size": 2}, shown_file=str)
    store = MemoryStore()
    store.add_explanation(explanation_record("b", "a", [point(950.0, size=2)], tree=tree))
    [record] = store.explanations()
    changed: Any = {**record.result, "tree": {**tree, **changes}}
    return replace(record, result=changed)


def test_the_call_paths_of_a_stored_explanation_are_its_flame_graph() -> None:
    stored = stored_call_tree(explained())
    assert stored is not None
    assert (stored.place, stored.tree) == ("work size=2", a_tree())
    revision = Revision(id="b", label="v2")
    graph = stored_flame_graph(explained(), {"b": revision})
    assert graph is not None
    assert graph.title == f"Flame graph of the difference: {revision_name(revision)}"
    assert f"work size=2: {revision_name(revision)} against a" in graph.content()
    assert stored_flame_graph(explanation_record("b", "a", [point(950.0, size=1)]), {}) is None


def test_the_report_states_that_an_old_explanation_has_no_call_paths() -> None:
    old = explanation_record("b", "a", [point(950.0, size=1)])
    for stored, states in ((explained(), False), (old, True)):
        data = cast(ReportData, SimpleNamespace(explanations=(stored,), by_id={"b": Revision(id="b")}))
        [section] = why_sections(data)
        assert (NO_CALL_PATHS in section.paragraphs) == states
        assert bool(section.files) != states


def test_the_file_of_a_flame_graph_is_in_the_directory_of_its_page_whatever_the_key_in_a_foreign_store_is() -> (
    None
):
    graph = stored_flame_graph(replace(explained(), key="/../../x"), {})
    assert graph is not None
    assert re.fullmatch(r"flame-[0-9a-f]{12}\.html", graph.name)


@pytest.mark.parametrize(
    "changes",
    [
        {"parents": [-1, 0]},
        {"parents": [-1, 0, 2]},
        {"parents": [-1, -1, 1]},
        {"functions": [0, 1, 3]},
        {"functions": [0, 1, None]},
        {"before": [1.0, 1.0, float("inf")]},
        {"after": [1.0, -1.0, 1.0]},
        {"names": [1, 2, 3]},
        {"point": None},
        {"parents": [], "functions": [], "before": [], "after": []},
    ],
)
def test_damaged_call_paths_are_no_flame_graph(changes: dict[str, object]) -> None:
    assert stored_call_tree(explained(**changes)) is None


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
