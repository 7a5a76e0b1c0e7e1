"""Call trees: their costs are those of the profiles, and other tools can read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from perftrail.formats.perf_script import from_paths
from perftrail.formats.pprof import write_pprof
from perftrail.formats.speedscope import write_speedscope
from perftrail.model.profile import Calls, Function, Profile
from perftrail.stats.call_tree import CallTree, call_tree, layout_widths
from tests.needs import needs
from tests.stats.test_profile_comparison import GRAPHS, graph_profile

A, B, C, D = (Function(name, f"{name}.c", 1) for name in "abcd")


def paths(tree: CallTree) -> dict[str, tuple[float, float]]:
    return {
        "/".join(tree.names[each].name for each in tree.path(node)): (before, after)
        for node, (before, after) in enumerate(zip(tree.before, tree.after, strict=True))
    }


def test_a_shared_callee_is_divided_among_its_callers() -> None:
    profile = Profile(
        events=("Ir",),
        own={A: (0.0,), B: (10.0,), C: (20.0,), D: (90.0,)},
        calls={
            (A, B): Calls(1.0, (40.0,)),
            (A, C): Calls(1.0, (80.0,)),
            (B, D): Calls(1.0, (30.0,)),
            (C, D): Calls(2.0, (60.0,)),
        },
    )
    found = paths(call_tree(profile, profile))
    assert found["a/b/d"] == (30.0, 30.0)
    assert found["a/c/d"] == (60.0, 60.0)
    assert found[""] == (120.0, 120.0)


def test_observed_paths_are_kept_and_both_sides_are_in_one_tree() -> None:
    before = from_paths({(A, B): 3.0, (A, C, A): 2.0}, event="samples")
    after = from_paths({(A, B, D): 4.0}, event="samples")
    found = paths(call_tree(before, after))
    assert found == {"": (5, 4), "a": (5, 4), "a/b": (3, 4), "a/c": (2, 0), "a/c/a": (2, 0), "a/b/d": (0, 4)}


def test_a_recursive_call_ends_a_path() -> None:
    profile = Profile(
        events=("Ir",),
        own={A: (1.0,), B: (5.0,), C: (4.0,)},
        calls={(A, B): Calls(1.0, (9.0,)), (B, C): Calls(3.0, (4.0,)), (C, B): Calls(3.0, (0.0,))},
    )
    assert set(paths(call_tree(profile, profile))) == {"", "a", "a/b", "a/b/c"}


@given(GRAPHS, GRAPHS)
def test_callees_fit_into_their_callers(
    before: tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]],
    after: tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]],
) -> None:
    tree = call_tree(graph_profile(before), graph_profile(after), most=500)
    widths = layout_widths(tree)
    sums = [0.0] * len(widths)
    for node in range(len(widths) - 1, 0, -1):
        assert tree.parents[node] < node
        sums[tree.parents[node]] += widths[node]
        assert widths[node] >= max(tree.before[node], tree.after[node])
    assert all(width >= total - 1e-6 for width, total in zip(widths, sums, strict=True))


def test_speedscope_has_a_profile_of_each_side() -> None:
    tree = call_tree(
        from_paths({(A, B): 3.0, (A,): 1.0}, event="samples"), from_paths({(A, D): 4.0}, event="samples")
    )
    document = json.loads(write_speedscope(tree, name="work", unit="none"))
    names = [each["name"] for each in document["shared"]["frames"]]
    before, after = (
        {
            tuple(names[frame] for frame in sample): weight
            for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
        }
        for profile in document["profiles"]
    )
    assert before == {("a", "b"): 3.0, ("a",): 1.0}
    assert after == {("a", "d"): 4.0}


@pytest.mark.slow("simulation")
@needs("go")
@pytest.mark.long
def test_pprof_reads_the_file(tmp_path: Path) -> None:
    tree = call_tree(
        from_paths({(A, B): 30.0, (A,): 10.0}, event="samples"), from_paths({(A, D): 44.0}, event="samples")
    )
    (tmp_path / "work.pb.gz").write_bytes(write_pprof(tree, unit="samples"))
    done = subprocess.run(
        ["go", "tool", "pprof", "-sample_index=difference", "-traces", "work.pb.gz"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and "no such tool" in done.stderr:
        pytest.skip("this Go has no pprof")
    assert done.returncode == 0, done.stderr
    traces = [" ".join(each.split()) for each in done.stdout.split("-----------+")]
    assert any(each.endswith("44 d a") or " 44 d a " in each for each in traces), done.stdout
    assert any(" -30 b a " in f" {each} " for each in traces), done.stdout
