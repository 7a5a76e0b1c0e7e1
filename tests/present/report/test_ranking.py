"""The answer of a matrix: ranks by workload, and no order that the samples do not show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perftrail.model.benchmark import Benchmark, Value
from perftrail.model.recipe import Variant, VariantRun
from perftrail.model.study import Invocations, MeasurePolicy
from perftrail.present.html_page import to_markdown
from perftrail.present.report.ranking import joined
from perftrail.present.report.report import make_report
from perftrail.results.selection import Selection
from perftrail.verbs.run import Run
from tests.fakes.subject_builder import FakeSource, FakeStarter
from tests.fakes.watcher import NOISY, FakeWatcher
from tests.measure.fake_session import a_session, a_study, drain

if TYPE_CHECKING:
    from perftrail.model.study import Study
    from perftrail.present.html_page import Page

TIMES = {"array": 0.1, "list": 0.2, "tree": 0.2, "hash": 0.4}
"""List and tree take the same time."""


def seconds(arguments: tuple[str, ...]) -> float:
    """The time grows with the size; in the order ``sorted`` the hash is the fastest one."""
    _, kind, order, size = arguments
    factor = 0.1 if (kind, order) == ("--hash", "sorted") else 1.0
    return TIMES[kind.removeprefix("--")] * float(size) * factor


def a_matrix(*names: str, **changes: object) -> Study:
    parameters: dict[str, tuple[Value, ...]] = {"order": ("random", "sorted"), "size": (1, 2)}
    return a_study(
        benchmarks={
            "sort": Benchmark(command="{build}/work {kind} {order} {size}", parameters=parameters),
        },
        variants={
            name: Variant(rebuild=False, run=VariantRun(parts={"kind": f"--{name}"})) for name in names
        },
        measure=MeasurePolicy(invocations=Invocations(least=20, most=20), warmups=0),
        **changes,
    )


def report(study: Study, tmp_path: Path, watcher: FakeWatcher | None = None) -> Page:
    session = a_session(
        study, tmp_path, source=FakeSource(1), starter=FakeStarter(seconds=seconds), watcher=watcher
    )
    drain(Run(session, Selection()).events())
    return make_report(session, tmp_path)


def test_a_matrix_is_answered_by_ranks_of_each_workload(tmp_path: Path) -> None:
    page = report(a_matrix(*TIMES), tmp_path)
    assert page.verdict.sentence == (
        "array and hash need the least time in 1 of 2 workloads each; the samples rank no variant in memory."
    )
    assert page.lead is not None
    assert page.lead.name == "ranking"
    time, memory = page.lead.tables
    assert time.title == "Time (wall)"
    assert time.head == ("workload", "points", "array", "hash", "list", "tree")
    first, second = ([text.split(" (")[0] for text in row] for row in time.rows)
    assert first == ["sort order=random", "2", "1", "4", "2–3", "2–3"]
    assert second == ["sort order=sorted", "2", "2", "1", "3–4", "3–4"]
    assert memory.rows[0][2:] == ("1–4 (1.00×)",) * 4
    assert "| sort order=random | 2 | 1 \\(1.00×\\) |" in to_markdown(page)
    [ranking, *_] = [each.as_json() for each in page.rankings if each.metric == "wall"]
    assert ranking["workload"] == {"order": "random"}
    assert ranking["points"] == [{"order": "random", "size": 1}, {"order": "random", "size": 2}]
    assert [(each["variant"], each["first"], each["last"]) for each in ranking["ranks"]] == [
        ("array", 1, 1),
        *[(each["variant"], 2, 3) for each in ranking["ranks"][1:3]],
        ("hash", 4, 4),
    ]
    assert ranking["ranks"][3]["relative"] == pytest.approx(4.0, rel=0.02)
    assert json.dumps(ranking)


def test_noisy_times_rank_nothing(tmp_path: Path) -> None:
    page = report(a_matrix(*TIMES), tmp_path, FakeWatcher.with_conditions(*[NOISY] * 900))
    assert page.verdict.sentence.startswith("The samples rank no variant in time; ")
    assert page.rankings[0].winner is None


def test_one_winner_is_named_once() -> None:
    time, memory = (
        "array needs the least time in 2 of 4 workloads",
        "array needs the least memory in all 4 workloads",
    )
    assert joined([time, memory]) == f"{time}, and the least memory in all 4 workloads"
    assert (
        joined([time, memory.replace("array", "hash")])
        == f"{time}; hash needs the least memory in all 4 workloads"
    )
    assert joined(["one of 9 variants has the highest rate"]) == "One of 9 variants has the highest rate"


def test_two_variants_are_compared_and_not_ranked(tmp_path: Path) -> None:
    page = report(a_matrix("array", "hash"), tmp_path)
    assert page.rankings == ()
    assert page.verdict.sentence.startswith("sort.wall against array: hash ")


def test_a_variant_without_samples_at_a_point_has_no_rank(tmp_path: Path) -> None:
    study = a_matrix(*TIMES)
    excluded: tuple[dict[str, Value], ...] = (
        {"order": "sorted", "variant": "tree"},
        {"order": "random", "size": 2, "variant": "tree"},
    )
    benchmark = replace(study.benchmarks["sort"], exclude=excluded)
    page = report(replace(study, benchmarks={"sort": benchmark}), tmp_path)
    random, in_order = (each for each in page.rankings if each.metric == "wall")
    assert [point["size"] for point in random.points] == [1], "where the most variants have samples"
    assert in_order.unranked == ("tree",)
    assert page.lead is not None
    time = page.lead.tables[0]
    assert time.rows[1][time.head.index("tree")] == "–"
