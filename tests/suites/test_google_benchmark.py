"""Suites of Google Benchmark: their listing, and a real program where the library is installed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from perftrail.errors import FormatError
from perftrail.model.placeholders import fill
from perftrail.model.suite import Suite, SuiteItem
from perftrail.suites import google_benchmark, unlisted
from tests.needs import needs

SUITE = Suite(kind="google-benchmark", program=("bin/*",), seconds=0.1)


def entry(name: str, *, cpu: float = 1000.0, **more: object) -> dict[str, object]:
    run = {"run_name": name, "run_type": "iteration", "iterations": 10, "real_time": 2 * cpu}
    return {"name": name, **run, "cpu_time": cpu, "time_unit": "ns", **more}


def listing(*programs: tuple[str, list[dict[str, object]]], version: str | None = "v1.9.0") -> str:
    context = {"num_cpus": 2, **({"library_version": version} if version else {})}
    return "".join(
        f"\nperftrail: program {name}\n{json.dumps({'context': context, 'benchmarks': entries}, indent=1)}\n"
        for name, entries in programs
    )


def test_arguments_are_parameters_and_iterations_fill_the_time() -> None:
    output = listing(("bin/a", [entry("BM_Sort/64"), entry("BM_Sort/128", cpu=2000.0), entry("BM_One<int>")]))
    found = google_benchmark.read_listing(output, SUITE)
    assert [(each.name, str(each.point), each.iterations, each.printed) for each in found] == [
        ("BM_Sort", "arg=64", 100_000, "cpu"),
        ("BM_Sort", "arg=128", 50_000, "cpu"),
        ("BM_One<int>", "", 100_000, "cpu"),
    ]


def test_wall_time_counts_where_the_benchmark_asks_for_it() -> None:
    output = listing(("bin/a", [entry("BM_IO/real_time"), entry("BM_Fork/threads:4")]))
    found = google_benchmark.read_listing(output, SUITE)
    assert [(each.printed, each.iterations) for each in found] == [("wall", 50_000), ("wall", 50_000)]


def test_an_old_library_chooses_its_iterations() -> None:
    [item] = google_benchmark.read_listing(listing(("bin/a", [entry("BM_A")]), version=None), SUITE)
    assert item.iterations == 0
    assert "--benchmark_min_time=0.1 " in google_benchmark.command(SUITE, item)


def test_a_named_program_that_lists_nothing_is_reported() -> None:
    output = listing(("bin/a", [entry("BM_A")]))
    output += "\nperftrail: program bin/b\nusage: b PATTERN\n\nperftrail: program bin/c\n"
    suite = replace(
        SUITE, program=("bin/a", "bin/b", "bin/*")
    )  # c is perhaps another program with such a name
    assert unlisted(suite, output) == (
        "bin/b: it printed no JSON; if it needs arguments, set them as arguments of the suite",
    )


def test_several_programs_give_their_names_and_others_are_left_out() -> None:
    output = listing(("bin/a", [entry("BM_A")]), ("bin/b", [entry("BM_A")]))
    output += "\nperftrail: program bin/c\nusage: c FILE\n"
    found = google_benchmark.read_listing(output, SUITE)
    assert [each.name for each in found] == ["a/BM_A", "b/BM_A"]


def test_a_benchmark_that_stops_with_an_error_is_listed() -> None:
    [item] = google_benchmark.read_listing(
        listing(("bin/a", [entry("BM_A", error_occurred=True, error_message="no")])), SUITE
    )
    assert (item.name, item.iterations) == ("BM_A", 0)


def test_output_that_is_no_listing_is_an_error_with_the_program() -> None:
    with pytest.raises(FormatError, match="bin/a: line 1"):
        google_benchmark.read_listing("\nperftrail: program bin/a\nusage\n", SUITE)


def test_the_filter_means_exactly_one_name() -> None:
    [item] = google_benchmark.read_listing(listing(("bin/a", [entry("BM_f(x)/a.b|c")])), SUITE)
    assert r"--benchmark_filter='^BM_f\(x\)/a\.b\|c$'" in google_benchmark.command(SUITE, item)


PROGRAM = """\
#include <benchmark/benchmark.h>
static void BM_Sum(benchmark::State& state) {
    for (auto _ : state) { long sum = 0; for (long i = 0; i < state.range(0); i++) benchmark::DoNotOptimize(sum += i); }
}
BENCHMARK(BM_Sum)->Arg(10)->Arg(100);
BENCHMARK_MAIN();
"""


@pytest.mark.slow("builds")
@needs("g++", "/usr/include/benchmark/benchmark.h")
def test_a_real_program_is_listed_and_each_benchmark_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "a.cc").write_text(PROGRAM)
    subprocess.run(
        ["g++", "-O1", "-o", "bin/a", "a.cc", "-lbenchmark", "-lpthread"], cwd=tmp_path, check=True
    )
    found = google_benchmark.read_listing(_shell(google_benchmark.listing(SUITE), tmp_path), SUITE)
    own = subprocess.run(
        [tmp_path / "bin/a", "--benchmark_list_tests=true"], capture_output=True, text=True, check=True
    )
    assert len(found) == len(own.stdout.split()) == 2
    for item in found:
        printed = json.loads(_shell(google_benchmark.command(SUITE, item), tmp_path))
        assert [each["name"] for each in printed["benchmarks"]] == [item.selector.partition("\t")[2]]
    absent = SuiteItem(name="x", selector="bin/a\tBM_None")
    assert _shell(google_benchmark.command(SUITE, absent), tmp_path).strip() == ""


def _shell(line: str, build: Path) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", fill(line, {"build": str(build)})], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
