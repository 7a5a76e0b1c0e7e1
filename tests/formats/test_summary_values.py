"""Values read from another tool's file have the mean and median that the tool prints."""

from __future__ import annotations

import csv
import json
import re
import statistics
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perftrail.errors import FormatError
from perftrail.formats import read
from perftrail.formats.document import FileContext
from tests.formats.fixtures import DATA, document, one, rows, series

EXACT = 1e-9


def test_hyperfine_has_the_mean_and_median_of_its_json_and_csv() -> None:
    found = series("hyperfine/plain.json")
    table = {row["command"]: row for row in rows("hyperfine/plain.csv")}
    times = [each for each in found if each.metric == "wall"]
    assert [each.subject for each in times] == ["true", "sleep 0.01"]
    for each in times:
        assert each.subject is not None
        assert len(each.values) == 5
        assert statistics.fmean(each.values) == pytest.approx(float(table[each.subject]["mean"]), rel=EXACT)
        assert statistics.median(each.values) == pytest.approx(
            float(table[each.subject]["median"]), rel=EXACT
        )
    user = one(found[:3], "user", "command")
    assert user.values == (float(table["true"]["user"]),)
    assert (user.summary, user.note) == (True, "mean")


def test_a_command_with_parameters_is_one_subject_at_several_points() -> None:
    times = [each for each in series("hyperfine/params.json") if each.metric == "wall"]
    assert {each.subject for each in times} == {"sleep {size}"}
    assert [dict(each.point)["size"] for each in times] == ["0.01", "0.02"]
    means = [float(row["mean"]) for row in rows("hyperfine/params.csv")]
    assert [statistics.fmean(each.values) for each in times] == pytest.approx(means, rel=EXACT)


@pytest.mark.parametrize("name", ["out", "calibrated"])
def test_pyperf_has_the_mean_and_median_that_its_stats_print(name: str) -> None:
    found = series(f"pyperf/{name}.json")
    printed = (DATA / f"pyperf/{name}.stats.txt").read_text()
    counts = [int(each) for each in re.findall(r"Total number of values: (\d+)", printed)]
    assert [len(each.values) for each in found] == counts
    for word, of in (("Mean", statistics.fmean), ("Median", statistics.median)):
        reported = [float(each) for each in re.findall(rf"{word} \+- \w+(?: dev)?:\s+([\d.]+) us", printed)]
        assert [of(each.values) * 1e6 for each in found] == pytest.approx(reported, rel=0.005)


def test_google_benchmark_has_the_aggregates_next_to_the_repetitions() -> None:
    found = {
        (each.benchmark, each.point, each.metric): each for each in series("google-benchmark/repeated.json")
    }
    checked = 0
    for entry in document("google-benchmark/repeated.json")["benchmarks"]:
        if entry.get("aggregate_name") not in ("mean", "median"):
            continue
        name, _, rest = entry["run_name"].partition("/")
        for (benchmark, point, metric), each in found.items():
            written = "/".join([benchmark, *(value for _, value in point)])
            if metric != "wall" or written.replace("/real_time", "") != "/".join(
                [name, *re.findall(r"(?:\w+:)?(\d+)", rest)]
            ):
                continue
            of = statistics.fmean if entry["aggregate_name"] == "mean" else statistics.median
            seconds = {"ns": 1e-9, "us": 1e-6}[entry["time_unit"]] * entry["real_time"]
            assert of(each.values) == pytest.approx(seconds, rel=EXACT)
            checked += 1
    assert checked == 12


def test_google_benchmarks_aggregates_alone_are_summaries() -> None:
    found = series("google-benchmark/aggregates.json")
    assert {each.note for each in found} == {"median"}
    sort = one(found, "wall", "BM_SortUnits", n="64")
    entries = document("google-benchmark/aggregates.json")["benchmarks"]
    (written,) = [each for each in entries if each["name"] == "BM_SortUnits/n:64_median"]
    assert sort.values == pytest.approx((written["real_time"] * 1e-6,), rel=EXACT)


@pytest.mark.parametrize("name", ["fold", "sampled"])
def test_jmh_has_the_scores_that_it_wrote(name: str) -> None:
    scores = [
        metric["score"]
        for each in document(f"jmh/{name}.json")
        for metric in (each["primaryMetric"], *each["secondaryMetrics"].values())
        if name == "fold" or metric is each["primaryMetric"]
    ]
    scale = {"wall": 1e6 if name == "fold" else 1e9, "throughput": 1e-6}
    found = series(f"jmh/{name}.json")
    means = [statistics.fmean(each.values) * scale.get(each.metric, 1) for each in found]
    # a histogram's bounds are rounded, as its own mean is not
    assert means == pytest.approx(scores, rel=EXACT if name == "fold" else 0.002)


def test_jmh_has_the_table_that_it_printed() -> None:
    printed = (DATA / "jmh/fold.txt").read_text()
    reported = re.findall(r"^Sums\.fold +plain +(\d+) +(thrpt|avgt) +6 +([\d.]+)", printed, re.MULTILINE)
    assert len(reported) == 4
    for size, mode, score in reported:
        metric, scale = ("wall", 1e6) if mode == "avgt" else ("throughput", 1e-6)
        each = one(series("jmh/fold.json"), metric, "demo.Sums.fold", size=size, mode=mode)
        assert len(each.values) == 6
        assert statistics.fmean(each.values) * scale == pytest.approx(float(score), abs=0.0006)


def test_pytest_benchmark_has_its_own_statistics() -> None:
    found = series("pytest-benchmark/data.json")
    stats = [each["stats"] for each in document("pytest-benchmark/data.json")["benchmarks"]]
    assert [len(each.values) for each in found] == [each["rounds"] for each in stats]
    assert [statistics.fmean(each.values) for each in found] == pytest.approx(
        [each["mean"] for each in stats]
    )
    assert [statistics.median(each.values) for each in found] == pytest.approx(
        [each["median"] for each in stats]
    )
    assert [each.point for each in found] == [
        (),
        (("kind", "list"), ("size", "10")),
        (("kind", "list"), ("size", "1000")),
    ]


def test_go_has_the_medians_that_benchstat_says() -> None:
    found = series("go/count.txt")
    metric = {
        "sec/op": "wall",
        "B/s": "MB/s",
        "B/op": "B/op",
        "allocs/op": "allocs/op",
        "things/op": "things/op",
    }
    checked, unit = 0, ""
    with (DATA / "go/benchstat.csv").open(newline="") as file:
        for cells in csv.reader(file):
            if cells[:1] == [""] and len(cells) > 1 and cells[1] in metric:
                unit = cells[1]
            elif len(cells) == 3 and unit and cells[0] not in ("", "geomean"):
                name, _, threads = cells[0].partition("-")
                benchmark, _, size = name.partition("/size=")
                point = {"threads": threads or "1", **({"size": size} if size else {})}
                each = one(found, metric[unit], benchmark, **point)
                assert len(each.values) == 3
                assert statistics.median(each.values) == pytest.approx(float(cells[1]), rel=EXACT)
                checked += 1
    assert checked == len(found) == 24


def test_asv_has_what_asv_show_prints() -> None:
    found = series("asv/bench-machine/70def084-existing-py3.json")
    printed = (DATA / "asv/show.70def084.txt").read_text()

    def value(metric: str, benchmark: str, **point: str) -> float:
        return statistics.median(one(found, metric, benchmark, **point).values)

    for reported, metric, benchmark, scale, point in (
        ("27.1M", "peak_memory", "b.Work.peakmem_work", 1e6, {"size": "1000", "kind": "a"}),
        ("18.1", "wall", "b.Work.time_work", 1e-6, {"size": "1000", "kind": "b"}),
        ("499500", "value", "b.Work.track_answer", 1, {"size": "1000", "kind": "b"}),
        ("8.06k", "size", "b.mem_list", 1e3, {}),
        ("2.26", "wall", "b.time_alone", 1e-6, {}),
    ):
        assert reported in printed
        assert value(metric, benchmark, **point) / scale == pytest.approx(
            float(reported.rstrip("kM")), rel=0.005
        )
    # skipped points are n/a, and a failed one is no result
    assert len(found) == 3 + 3 + 2 + 1 + 1
    assert len(one(found, "wall", "b.time_alone").values) == 3


def test_rebench_has_the_means_that_it_printed() -> None:
    found = series("rebench/bench.data")
    printed = (DATA / "rebench/summary.txt").read_text()
    reported = re.findall(r"^ (\w+) +Shell +Sums +1 +(\d+) +4 +(\d+) *$", printed, re.MULTILINE)
    assert len(reported) == 4
    for benchmark, size, milliseconds in reported:
        each = one(found, "wall", f"Sums/{benchmark}", size=size)
        assert len(each.values) == 4
        assert statistics.fmean(each.values) * 1000 == pytest.approx(float(milliseconds), abs=0.5)


@pytest.mark.parametrize("form", ["text", "list", "csv"])
def test_tclbench_has_the_times_of_its_table_in_every_form(form: str) -> None:
    printed = (DATA / f"tclbench/out.{form}").read_text()
    found = series(f"tclbench/out.{form}")
    assert [(each.benchmark, each.subject) for each in found] == [
        ('LIST append, "long"', "1:8.6.13"),
        ('LIST append, "long"', "2:8.6.13"),
        ("ONE only", "1:8.6.13"),
        ("SUM of words $x", "1:8.6.13"),
        ("SUM of words $x", "2:8.6.13"),
    ]
    times = re.findall(r"[ ,](\d+\.\d+)(?![\d.])", printed.replace("8.6.13", ""))
    assert [each.values[0] * 1e6 for each in found] == pytest.approx(
        [float(each) for each in times], rel=EXACT
    )
    assert {each.summary for each in found} == {True}


@pytest.mark.parametrize("name", ["sum alone", "sums/fold/100", "slow/flat"])
def test_criterion_has_its_own_mean_and_median(name: str) -> None:
    (found,) = series(f"criterion/{name}/new/sample.json")
    estimates = document(f"criterion/{name}/new/estimates.json")
    assert len(found.values) == 10
    for word, of in (("mean", statistics.fmean), ("median", statistics.median)):
        own = estimates[word]["point_estimate"]
        assert of(found.values) * 1e9 == pytest.approx(own, rel=EXACT)


def test_the_printed_values_of_criterion_are_its_written_estimates() -> None:
    found = {each.benchmark: each for each in series("criterion/printed.txt")}
    assert set(found) == {"sum alone", "sums/fold/100", "sums/fold/1000", "slow/flat"}
    for printed, directory in (
        ("sum alone", "sum alone"),
        ("sums/fold/100", "sums/fold/100"),
        ("slow/flat", "slow/flat"),
    ):
        estimates = document(f"criterion/{directory}/new/estimates.json")
        own = (estimates["slope"] or estimates["mean"])["point_estimate"]
        assert found[printed].values[0] * 1e9 == pytest.approx(own, rel=2e-4)
        assert found[printed].summary


@pytest.mark.parametrize(
    ("metric", "benchmark", "point", "value", "unit"),
    [
        ("fastest", "plain", {}, 143.9e-9, "s"),
        ("slowest", "plain", {}, 782.9e-9, "s"),
        ("wall", "plain", {}, 156.4e-9, "s"),
        ("mean", "plain", {}, 161.6e-9, "s"),
        ("slowest", "shared", {"threads": "2"}, 4.407e-6, "s"),
        ("wall", "counters::slow one", {}, 3.078e-3, "s"),
        ("wall", "counters::slower", {}, 1.109, "s"),
        ("bytes_per_second", "counters::bytes", {"arg": "100000"}, 4.169e9, "B/s"),
        ("items_per_second", "counters::bytes", {"arg": "100"}, 222e6, "1/s"),
        ("chars_per_second", "counters::chars", {}, 493.2e6, "1/s"),
        ("dealloc_bytes", "counters::bytes", {"arg": "100000"}, 1e5, "B"),
        ("max_alloc_count", "words::x│y", {}, 1, None),
        ("alloc_bytes", "fill::VecDeque<u8>", {"arg": "1000"}, 1000, "B"),
    ],
)
def test_divan_has_the_columns_and_rows_that_it_printed(
    metric: str, benchmark: str, point: dict[str, str], value: float, unit: str | None
) -> None:
    found = series("divan/out.txt")
    assert not [each for each in found if "left_out" in each.benchmark]
    each = one(found, metric, f"sums::{benchmark}", **point)
    assert each.values == pytest.approx((value,))
    assert (each.unit, each.summary) == (unit, True)
    assert each.better == ("higher" if metric.endswith("_per_second") else "lower")


def test_divan_has_binary_sizes_if_it_prints_them() -> None:
    found = series("divan/binary.txt")
    rate = one(found, "bytes_per_second", "sums::counters::bytes", arg="100000")
    assert rate.values == pytest.approx((4.013 * 2**30,))
    assert one(found, "dealloc_bytes", "sums::counters::bytes", arg="100000").values == (97.65 * 1024,)


def test_divan_with_a_benchmark_that_prints_has_its_times() -> None:
    printed = (DATA / "divan/out.txt").read_text()
    head, separator, rest = printed.partition("├─ plain         ")
    found = read(f"{head}{separator}a line of the benchmark\nanother\n{rest}".encode(), name="x").series
    assert found == series("divan/out.txt")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("782.9 ns", "782.9 xs", 'line 4: "782.9 xs" is not a time; units are ps, ns, µs, ms, s, m, h or d'),
        ("782.9 ns", "??", 'line 4: "[?][?]" is not a number with a unit, such as 1.5 ns'),
        ("│ 3 B           │ 3 B ", "│ 3 B           │ 3 X ", 'line 9: "3 X" is not the size of max alloc'),
    ],
)
def test_a_wrong_value_of_divan_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    printed = (DATA / "divan/out.txt").read_text()
    with pytest.raises(FormatError, match=message):
        read(printed.replace(old, new, 1).encode(), name="x")


def test_benchmarkdotnet_has_its_values_its_memory_and_its_metrics() -> None:
    found = series("benchmarkdotnet/Demo.Sums-report-full.json")
    entries = document("benchmarkdotnet/Demo.Sums-report-full.json")["Benchmarks"]
    for job, entry in zip(("Runtime=.NET 8.0", "Runtime=.NET 9.0"), entries[:2], strict=True):
        times = one(found, "wall", "Demo.Sums.Fold", job=job)
        assert times.point == (("N", "1000"), ("Kind", "list"), ("job", job))
        assert len(times.values) == entry["Statistics"]["N"]
        assert statistics.fmean(times.values) * 1e9 == pytest.approx(entry["Statistics"]["Mean"], rel=EXACT)
        assert not times.summary
        assert times.when == datetime(2026, 1, 31, 12)
        assert one(found, "Allocated", "Demo.Sums.Fold", job=job).values == (24,)
        assert one(found, "Allocated", "Demo.Sums.Fold", job=job).unit == "B"
        assert one(found, "Lock time", "Demo.Sums.Fold", job=job).values == pytest.approx((2.5e-6,))
        assert one(found, "Gen0", "Demo.Sums.Fold", job=job).unit == "Count"
    assert {each.benchmark for each in found} == {"Demo.Sums.Fold"}
    brief = series("benchmarkdotnet/Demo.Sums-report-brief.json")
    assert one(brief, "wall", "Demo.Sums.Fold", N="10").point == (("N", "10"), ("Text", "a=b & c"))
    assert one(brief, "wall", "Demo.Sums.Plain").point == ()


def test_benchmarkdotnets_measurements_are_divided_by_their_operations() -> None:
    written = document("benchmarkdotnet/Demo.Sums-report-full.json")
    for entry in written["Benchmarks"][:2]:
        del entry["Statistics"]["OriginalValues"]
    found = read(json.dumps(written).encode(), name="x").series
    assert one(found, "wall", "Demo.Sums.Fold", job="Runtime=.NET 8.0").values == pytest.approx(
        (2.5e-6, 2.4e-6, 2.6e-6)
    )
    for entry in written["Benchmarks"][:2]:
        del entry["Measurements"]
    median = one(
        read(json.dumps(written).encode(), name="x").series, "wall", "Demo.Sums.Fold", job="Runtime=.NET 8.0"
    )
    assert median.values == pytest.approx((2.5e-6,))
    assert (median.summary, median.note) == (True, "median")


def test_nvbench_has_its_samples_and_the_mean_of_its_summaries() -> None:
    found = series("nvbench/out.json")
    states = document("nvbench/out.json")["benchmarks"][0]["states"]
    for state, size in zip(states, ("1024", "4096"), strict=False):
        means = {each["tag"]: each["data"][0]["value"] for each in state["summaries"]}
        times = one(found, "wall", "copy", N=size)
        assert times.point == (("T", "I32"), ("N", size))
        assert len(times.values) == int(means["nv/cold/sample_size"])
        assert statistics.fmean(times.values) == pytest.approx(
            float(means["nv/cold/time/gpu/mean"]), rel=1e-6
        )
        assert (times.summary, times.machine) == (False, "GPU A")
        rate = one(found, "cold/bw/global/bytes_per_second", "copy", N=size)
        assert rate.values == pytest.approx((float(means["nv/cold/bw/global/bytes_per_second"]),))
        assert (rate.unit, rate.better, rate.note) == ("B/s", "higher", "mean")
        assert one(found, "cold/time/cpu/mean", "copy", N=size).unit == "s"
    assert not [each for each in found if ("T", "I64") in each.point]
    assert not [each for each in found if "stdev" in each.metric or "walltime" in each.metric]
    host = one(found, "wall", "host")
    assert (host.values, host.note, host.machine) == ((0.0025,), "mean", "GPU A")


def test_nvbench_without_its_samples_has_their_mean() -> None:
    found = read((DATA / "nvbench/out.json").read_bytes(), name="x").series
    mean = one(found, "wall", "copy", N="1024")
    assert (len(mean.values), mean.summary, mean.note) == (1, True, "mean")
    assert mean.values == pytest.approx((2.05e-5,), rel=0.02)


def test_nvbench_with_too_few_samples_is_refused() -> None:
    context = FileContext(path=Path("out.json"), read_relative=lambda _: bytes(8))
    with pytest.raises(
        FormatError,
        match=r"^x: benchmarks\[0\].states\[0\].summaries\[10\]: out.json-bin/0.bin has 8 bytes; 7 samples have 28",
    ):
        read((DATA / "nvbench/out.json").read_bytes(), name="x", context=context)


def test_vitest_has_its_medians_in_seconds() -> None:
    found = series("vitest/out.json")
    written = {
        f"{group['fullName']} > {each['name']}": each
        for file in document("vitest/out.json")["files"]
        for group in file["groups"]
        for each in group["benchmarks"]
    }
    assert {each.benchmark for each in found} == set(written) - {"b.bench.ts > outer > inner > fails"}
    for each in found:
        assert each.values == pytest.approx((written[each.benchmark]["median"] / 1000,))
        assert (each.unit, each.summary, each.note) == ("s", True, "median")


def test_vitests_samples_are_read_if_they_were_saved() -> None:
    written = document("vitest/out.json")
    written["files"][0]["groups"][0]["benchmarks"][0]["samples"] = [2.0, 1.0, 4.0]
    top = one(read(json.dumps(written).encode(), name="x").series, "wall", "a.bench.ts > top")
    assert (top.values, top.summary, top.note) == ((0.002, 0.001, 0.004), False, None)


def test_mitata_has_its_samples_or_medians_and_its_heap() -> None:
    (run,) = document("mitata/samples.json")["benchmarks"][0]["runs"]
    found = series("mitata/samples.json")
    sleep = one(found, "wall", "sleep")
    assert not sleep.summary
    assert statistics.fmean(sleep.values) * 1e9 == pytest.approx(run["stats"]["avg"], rel=EXACT)
    assert one(found, "heap", "sleep").values == (run["stats"]["heap"]["avg"],)
    summaries = series("mitata/summaries.json")
    assert {(each.benchmark, each.point) for each in summaries} == {
        ("noop", ()),
        ("lists > sum $n $kind", (("n", "10"), ("kind", "a"))),
        ("lists > sum $n $kind", (("n", "1000"), ("kind", "a"))),
        ("sleep", ()),
    }
    assert one(summaries, "wall", "sleep").values == pytest.approx((0.0653,), abs=0.001)
    assert one(summaries, "wall", "sleep").note == "median"


def test_gungraun_has_equal_counts_in_its_json_and_its_printed_output() -> None:
    written, printed = series("gungraun/out.json"), series("gungraun/out.txt")
    counts = {(each.benchmark, each.metric): each for each in written}
    both = [each for each in printed if (each.benchmark, each.metric) in counts]
    assert len(both) == 6 + 6 + 6 + 8 + 4 + 6
    for each in both:
        other = counts[each.benchmark, each.metric]
        assert (each.values, each.unit) == (other.values, other.unit)
    fill = "tools::memory::fill::short"
    assert one(written, "DHAT TotalBytes", fill).values == (10,)
    assert one(written, "DHAT TotalBytes", fill).unit == "B"
    assert one(written, "Cachegrind instructions", fill).values == (374237,)
    assert one(written, "Memcheck Errors", fill).values == (0,)
    assert {each.benchmark for each in printed} == {
        "my_bench::my_group::plain",
        fill,
        *(f"my_bench::my_group::sums::{id}" for id in ("short", "long", "many_0", "many_1")),
    }


def test_another_version_of_gungrauns_json_is_refused_with_its_line() -> None:
    lines = (DATA / "gungraun/out.json").read_text().splitlines()
    lines[1] = lines[1].replace('"version":"7"', '"version":"9"')
    with pytest.raises(FormatError, match=r'^x: line 2.version: "9" is not a known version'):
        read("\n".join(lines).encode(), name="x")


def test_otava_has_the_rows_of_its_tables() -> None:
    found = series("otava/otava.yaml")
    table = rows("otava/tables/sort.csv")
    for metric, column, better in (
        ("latency", "latency_ms", "lower"),
        ("throughput", "throughput", "higher"),
    ):
        those = [each for each in found if (each.benchmark, each.metric) == ("sort", metric)]
        assert [each.subject for each in those] == [f"c{index:04x}" for index in range(6)]
        assert [value for each in those for value in each.values] == [float(row[column]) for row in table]
        assert {each.better for each in those} == {better}
        assert those[0].when == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert [(each.subject, each.values) for each in found if each.benchmark == "plain"] == [
        ("2026-01-01", (100.0,)),
        ("2026-01-02", (101.0,)),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("latency_ms,", "latency,", r'tables/sort.csv: line 1: the heading has no column "latency_ms"'),
        ("10.011", "fast", r'tables/sort.csv: line 3: "fast" is not a finite number'),
        ("2026-01-02 10", "tomorrow", r'tables/sort.csv: line 3: "tomorrow:00:00 \+0000" is not a time'),
        (",c0000,main,10.011,100.08", "", "tables/sort.csv: line 3: has 1 cells; the heading has 5"),
    ],
)
def test_a_wrong_table_of_otava_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    tables = {f"tables/{path.name}": path.read_bytes() for path in (DATA / "otava/tables").iterdir()}
    tables["tables/sort.csv"] = tables["tables/sort.csv"].replace(old.encode(), new.encode())
    context = FileContext(path=Path("otava.yaml"), read_relative=tables.get)
    with pytest.raises(FormatError, match=message):
        read((DATA / "otava/otava.yaml").read_bytes(), name="x", context=context)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[common]", "[other]", 'x: templates: has no "other"'),
        ("    file: tables/sort.csv", "", 'x: tests.sort: has no "file"'),
        ("tables/sort.csv", "elsewhere.csv", '"elsewhere.csv" is not below the directory of this file'),
        ("metrics: [size]", "metrics: [", "x: line 26: is not valid YAML"),
        ('delimiter: ";"', "delimiter: ab", "tests.plain.csv_options.delimiter: must be one character"),
    ],
)
def test_a_wrong_configuration_of_otava_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    tables = {f"tables/{path.name}": path.read_bytes() for path in (DATA / "otava/tables").iterdir()}
    text = (DATA / "otava/otava.yaml").read_text().replace(old, new)
    with pytest.raises(FormatError, match=message):
        read(
            text.encode(),
            name="x",
            format="otava",
            context=FileContext(path=Path("x"), read_relative=tables.get),
        )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024.01.02 3:00:00 +0100", 1704160800),
        ("2024-01-02T02:00:00Z", 1704160800),
        ("2024-01-02T02:00:00.500+00:00", 1704160800),
        ("1704160800", 1704160800),
        ("2024-01-02", 1704153600),
    ],
)
def test_otavas_times_are_read_in_its_notations(text: str, seconds: int) -> None:
    tables = {"t.csv": f"time,m\n{text},1\n".encode()}
    (found,) = read(
        b"tests:\n  a: {type: csv, file: t.csv, metrics: [m]}\n",
        name="x",
        context=FileContext(path=Path("x"), read_relative=tables.get),
    ).series
    assert found.when is not None
    assert found.when.timestamp() == seconds
