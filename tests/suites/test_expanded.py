"""Studies with the benchmarks of listings: names, parameters, selections, and keys of samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perftrail.model.benchmark import Point
from perftrail.model.source import Source
from perftrail.model.store_records import ListingRecord
from perftrail.model.study import Study
from perftrail.model.suite import Suite, SuiteBenchmark, SuiteItem, with_iterations_of
from perftrail.model.target import parse_metric, resolve
from perftrail.suites import expanded, items_of

SUITE = Suite(kind="go", program=("perftrail-bench/**/*.test",))
STUDY = Study(
    title="t",
    file="f",
    directory="/d",
    source=Source(kind="git", location="/r"),
    benchmarks={},
    suites={"go": SUITE},
)


def item(name: str, *, iterations: int = 5, **point: int | str) -> SuiteItem:
    words = "/".join([name, *(f"{key}={value}" for key, value in point.items())])
    return SuiteItem(
        name=name,
        selector=f"perftrail-bench/a.test\t{words}",
        point=Point(tuple(point.items())),
        iterations=iterations,
    )


def record(*items: SuiteItem, suite: Suite = SUITE, revision: str = "1") -> ListingRecord:
    return ListingRecord(
        suite=suite.content,
        key=revision,
        revision=revision,
        variant="plain",
        finished="2026-01-01T00:00:00Z",
        result={"benchmarks": [each.as_json() for each in items]},
    )


def test_an_item_survives_its_json() -> None:
    items = (item("a", n=3, how="x"), replace(item("b"), metric="memory", unit="B", printed="memory"))
    assert items_of(record(*items)) == items


def test_parameters_span_points_and_missing_combinations_are_excluded() -> None:
    listed = record(item("sort", n=1, how="a"), item("sort", n=1, how="b"), item("sort", n=2, how="a"))
    [benchmark] = expanded(STUDY, [listed]).benchmarks.values()
    assert benchmark.parameters == {"n": (1, 2), "how": ("a", "b")}
    assert [str(point) for point in benchmark.points("plain")] == ["n=1 how=a", "n=1 how=b", "n=2 how=a"]
    assert "n=2" in benchmark.command_at(Point((("n", 2), ("how", "a"))))


def test_sparse_combinations_become_benchmarks_of_their_own() -> None:
    listed = record(*(item("sort", a=number, b=number) for number in range(6)))
    found = expanded(STUDY, [listed]).benchmarks
    assert list(found)[:2] == ["sort[a=0 b=0]", "sort[a=1 b=1]"]
    assert len(found) == 6


def test_the_first_listing_of_a_benchmark_decides_its_iterations() -> None:
    first, second = record(item("a", iterations=7)), record(item("a", iterations=9), item("b"), revision="2")
    found = expanded(STUDY, [first, second]).benchmarks
    assert list(found) == ["a", "b"]
    assert "-test.benchtime 7x" in found["a"].command
    kept = with_iterations_of(items_of(second), {("a", Point()): items_of(first)[0]})
    assert [each.iterations for each in kept] == [7, 5]


def test_selections_of_the_suite_and_of_the_command_line_both_count() -> None:
    study = replace(STUDY, suites={"go": replace(SUITE, select="parse|sort")}, selected="sort")
    listed = record(item("parse"), item("sort"), item("sum"))
    assert list(expanded(study, [listed]).benchmarks) == ["sort"]


def test_listings_of_another_suite_do_not_count() -> None:
    other = replace(SUITE, arguments=("-test.cpu", "1"))
    assert expanded(STUDY, [record(item("a"), suite=other)]).benchmarks == {}


def test_equal_names_of_two_suites_begin_with_the_suite() -> None:
    study = replace(STUDY, suites={"one": SUITE, "two": replace(SUITE, path="x")})
    listings = [record(item("a"), item("b")), record(item("a"), suite=study.suites["two"])]
    assert list(expanded(study, listings).benchmarks) == ["one/a", "b", "two/a"]


def test_only_the_time_of_a_benchmark_is_a_metric() -> None:
    study = expanded(STUDY, [record(item("deep/parse.Utf8", n=3))])
    benchmark = study.benchmarks["deep/parse.Utf8"]
    assert isinstance(benchmark, SuiteBenchmark)
    assert (tuple(benchmark.metrics), dict(benchmark.measured), benchmark.leading) == (
        ("time",),
        {},
        ("time",),
    )
    assert resolve(study, "deep/parse.Utf8.time").benchmark == "deep/parse.Utf8"


@pytest.mark.parametrize(
    ("text", "benchmark", "name", "fixed"),
    [
        ("tests/test_a.py::test_b.time[n=1]", "tests/test_a.py::test_b", "time", {"n": 1}),
        ("test_x[1-2].time", "test_x[1-2]", "time", {}),
        ("groupby.Apply.time_scalar.time", "groupby.Apply.time_scalar", "time", {}),
        ("time", None, "time", {}),
    ],
)
def test_metrics_name_benchmarks_of_suites(
    text: str, benchmark: str, name: str, fixed: dict[str, object]
) -> None:
    found = parse_metric(text)
    assert (found.benchmark, found.name, dict(found.fixed)) == (benchmark, name, fixed)
