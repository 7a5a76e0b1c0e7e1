"""Formats are recognised by content, and metadata besides the values is read."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perftrail.errors import FormatError
from perftrail.formats import FORMATS, files_in, read, read_file, recognise
from perftrail.formats.document import FileContext
from tests.formats.fixtures import DATA, one, series
from tests.formats.recorded import RECORDED, UNKNOWN, WRITTEN

KNOWN = {path: each.format for path, each in RECORDED.items()} | dict.fromkeys(UNKNOWN)

TABLE = """\
revision,variant,benchmark,threads,point.value,metric,value,unit,invocation,started,machine,flags,better
abc,plain,work,2,a,wall,0.25,s,1,2026-01-02T03:04:05+00:00,box,,lower
abc,plain,work,2,a,wall,0.5,s,0,2026-01-02T03:04:05+00:00,box,noisy,lower
abc,fast,work,2,a,rate,3e3,,0,,box,,higher
"""


@pytest.mark.parametrize(("path", "format"), KNOWN.items())
def test_a_file_is_recognised_by_its_content(path: str, format: str | None) -> None:
    assert recognise((DATA / path).read_bytes(), path) == format


def test_every_format_has_a_file_here_or_in_this_test() -> None:
    assert set(FORMATS) == {*filter(None, KNOWN.values()), *WRITTEN}


def test_an_unknown_format_is_refused_with_the_list_of_formats() -> None:
    with pytest.raises(
        FormatError, match=r"^notes.txt: unknown format; name the format if it is hyperfine, pyperf"
    ):
        read(b"hello", name="notes.txt")


def test_a_format_that_there_is_not_is_refused_with_the_near_miss() -> None:
    with pytest.raises(FormatError, match=r'no format "hyperfin"; did you mean "hyperfine"'):
        read(b"{}", name="a.json", format="hyperfin")


def test_a_packed_file_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    packed = tmp_path / "out.json.gz"
    packed.write_bytes(gzip.compress((DATA / "pyperf/out.json").read_bytes()))
    assert read_file(packed).series == series("pyperf/out.json")


def test_a_packed_file_that_ends_early_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "out.json.gz"
    packed.write_bytes(gzip.compress((DATA / "pyperf/out.json").read_bytes())[:200])
    with pytest.raises(FormatError, match="cannot be read"):
        read_file(packed)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"results": [\n{"command": 5}]}', r"^x: results\[0\]\.command: must be a text, but is \"5\""),
        (b'{"results": [{"command": "a",\n "times": [1}', r"^x: line 2: is not valid JSON"),
        (
            b'{"results": [{"command": "a", "times": [NaN]}]}',
            r"^x: results\[0\]\.times\[0\]: must be a finite",
        ),
        (b'{"results": [{"command": "a"}]}', r'^x: results\[0\]: has no "mean"'),
        (b'{"results": [{"command": "a", "mean": 1e999}]}', r"finite number"),
        (b'{"results": ' + b"[" * 100_000, r"^x: line 1: is not valid JSON: nested too deeply"),
    ],
)
def test_an_error_is_reported_with_its_place(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(content, name="x", format="hyperfine")


def test_google_benchmarks_names_are_split_into_benchmark_and_point() -> None:
    found = series("google-benchmark/single.json")
    sort = one(found, "wall", "BM_Sort", arg="64")
    assert (sort.unit, sort.machine, sort.better) == ("s", "bench-machine", "lower")
    assert sort.when is not None
    assert sort.when.tzinfo is not None
    assert one(found, "items_per_second", "BM_Sort", arg="64").better == "higher"
    assert one(found, "Made", "BM_Sort", arg="64").values == (3.0,)
    assert one(found, "wall", "BM_Fill/real_time", threads="2").point == (("threads", "2"),)


def test_google_benchmarks_errors_and_fits_are_no_values() -> None:
    assert {each.benchmark for each in series("google-benchmark/repeated.json")} == {
        "BM_Sort",
        "BM_SortUnits",
        "BM_Fill/real_time",
    }


def test_gos_threads_and_named_parts_are_parameters() -> None:
    found = series("go/count.txt")
    assert {each.point for each in found if each.benchmark == "Sum"} == {
        (("size", size), ("threads", threads)) for size in ("100", "1000") for threads in ("1", "2")
    }
    assert one(found, "MB/s", "Sum", size="100", threads="1").values[0] == pytest.approx(32.7e6)
    assert one(found, "MB/s", "Sum", size="100", threads="1").unit == "B/s"


def test_gos_directions_commits_and_packages_are_kept() -> None:
    printed = (
        b"Unit hits better=higher\ncommit: abc\npkg: a/b\nBenchmarkX 1 2 ns/op 7 hits\nlog\n"
        b"pkg: a/c\ncommit: def\nBenchmarkX 1 4 ns/op\n"
    )
    found = read(printed, name="-").series
    assert [(each.benchmark, each.subject, each.better) for each in found] == [
        ("a/b.X", "abc", "lower"),
        ("a/b.X", "abc", "higher"),
        ("a/c.X", "def", "lower"),
    ]


def test_asvs_parameters_have_names_only_next_to_benchmarks_json() -> None:
    path = DATA / "asv/bench-machine/70def084-existing-py3.json"
    points = {name for each in read_file(path).series for name, _ in each.point}
    assert points == {"size", "kind", "environment"}
    without = read(path.read_bytes(), name="x").series
    assert {name for each in without for name, _ in each.point} == {"arg", "arg2", "environment"}
    assert without[0].when == datetime(2024, 1, 2, tzinfo=UTC)
    assert without[0].subject == "70def0849347400f55ebfcde5bf998b8766dcf29"


def test_a_directory_of_asv_has_the_results_and_not_the_settings() -> None:
    assert [path.name for path in files_in(DATA / "asv/bench-machine")] == [
        "70def084-existing-py3.json",
        "e8c3b713-existing-py3.json",
    ]


def test_a_directory_of_criterion_has_its_newest_samples() -> None:
    root = DATA / "criterion"
    assert [str(path.relative_to(root)) for path in files_in(root)] == [
        "slow/flat/new/sample.json",
        "sum alone/new/sample.json",
        "sums/fold/100/new/sample.json",
    ]


def test_cargo_criterions_messages_are_read() -> None:
    # by hand, after its documentation: the tool itself is not installed where this was written
    message = {
        "reason": "benchmark-complete",
        "id": "norm",
        "iteration_count": [30, 60],
        "measured_values": [124200.0, 248400.0],
        "unit": "ns",
    }
    lines = json.dumps(message) + "\n" + json.dumps({"reason": "group-complete", "group_name": "norm"})
    found = read(lines.encode(), name="x")
    assert found.format == "criterion"
    assert [(each.benchmark, each.values) for each in found.series] == [("norm", (4.14e-6, 4.14e-6))]


def test_a_table_is_read_by_its_columns_and_what_else_there_is_are_parameters() -> None:
    wall, rate = read(TABLE.encode(), name="samples.csv").series
    assert wall.values == (0.5, 0.25)
    assert wall.point == (("threads", "2"), ("value", "a"))
    assert (wall.subject, wall.machine, wall.unit) == ("abc", "box", "s")
    assert wall.when == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (rate.subject, rate.better, rate.unit, rate.values) == ("abc (fast)", "higher", None, (3000.0,))


def test_json_lines_say_the_same_as_the_table() -> None:
    lines = []
    heading, *rows = (line.split(",") for line in TABLE.splitlines())
    for cells in rows:
        row = dict(zip(heading, cells, strict=True))
        point = {"threads": int(row.pop("threads")), "value": row.pop("point.value")}
        lines.append(json.dumps({**row, "value": float(row["value"]), "point": point}))
    assert read("\n".join(lines).encode(), name="x").series == read(TABLE.encode(), name="x").series
    assert recognise(lines[0].encode()) == "jsonl"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a,b\n", "line 1: the heading has no benchmark, metric and value"),
        ("benchmark,metric,value,value\n", 'line 1: two columns are named "value"'),
        ("benchmark,metric,value\nb,wall\n", "line 2: has 2 cells; the heading has 3"),
        ("benchmark,metric,value\n\nb,wall,fast\n", 'line 3: value: "fast" is not a finite number'),
        (
            "benchmark,metric,value,better\nb,wall,1,more\n",
            'line 2: better: "more" is neither lower nor higher',
        ),
        ("benchmark,metric,value\nb,,1\n", "line 2: has no metric"),
        ('benchmark,metric,value\nb,"wall\n', "line 2: unexpected end of data"),
    ],
)
def test_a_wrong_table_is_refused_with_the_line(table: str, message: str) -> None:
    with pytest.raises(FormatError, match=f"^x: {message}"):
        read(table.encode(), name="x", format="csv")


def test_a_sample_of_criterion_needs_the_file_with_its_name() -> None:
    sample = b'{"sampling_mode":"Flat","iters":[2.0],"times":[8.0]}'
    with pytest.raises(FormatError, match=r"benchmark\.json.*is not in its directory"):
        read(sample, name="sample.json")
    about = b'{"group_id":"g","function_id":"f","value_str":"10","directory_name":"g/f"}'
    for directory, subject in (("new", "target/criterion/new"), ("main", "target/criterion/main")):
        context = FileContext(
            path=Path(f"target/criterion/g/f/{directory}/sample.json"),
            read_relative={"benchmark.json": about}.get,
        )
        (found,) = read(sample, name="sample.json", context=context).series
        assert (found.benchmark, found.point, found.values) == ("g/f", (("parameter", "10"),), (4e-9,))
        assert found.subject == subject
