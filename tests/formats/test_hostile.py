"""Whatever a file holds, it is read or refused with perftrail's error; nothing else is raised."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types of its own
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from perftrail.errors import FormatError
from perftrail.formats import FORMATS, read
from perftrail.formats.document import Place
from tests.formats.fixtures import DATA


def packed(columns: dict[str, list[Any]]) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


FILES = {
    "hyperfine": "hyperfine/params.json",
    "pyperf": "pyperf/calibrated.json",
    "google-benchmark": "google-benchmark/single.json",
    "jmh": "jmh/sampled.json",
    "pytest-benchmark": "pytest-benchmark/data.json",
    "asv": "asv/bench-machine/70def084-existing-py3.json",
    "rebench": "rebench/bench.data",
    "tclbench": "tclbench/out.list",
    "go": "go/count.txt",
}
TABLE = b"benchmark,metric,value,when\na,wall,1,2026-01-01\n"
LINE = b'{"benchmark": "a", "metric": "wall", "value": 1, "point": {"n": 1}}\n'
CRITERION = b'{"sampling_mode":"Flat","iters":[2.0],"times":[8.0]}'
ABOUT = b'{"group_id":"g","function_id":null,"value_str":"10"}'
PRINTED = b"a/b                     time:   [1.0 ns 2.0 ns 3.0 ns]\n"
WHOLE = {name: (DATA / path).read_bytes() for name, path in FILES.items()} | {
    "csv": TABLE,
    "jsonl": LINE,
    "criterion": CRITERION,
    "criterion-text": PRINTED,
    "parquet": packed({"benchmark": ["a"], "metric": ["wall"], "value": [1.0], "n": [1]}),
}
JUNK: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


def survives(format: str, content: bytes, about: bytes | None = ABOUT) -> None:
    """Read it, and see that what comes is sound or refused."""
    place = Place(path=Path("a/new/sample.json"), beside=lambda _: about)
    with contextlib.suppress(FormatError):
        for series in read(content, name="x", format=format, place=place).series:
            assert series.values
            assert all(map(math.isfinite, series.values))


def test_every_format_is_tried() -> None:
    assert set(WHOLE) == set(FORMATS)


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=12)
@given(content=st.binary(max_size=200))
def test_bytes_are_read_or_refused(format: str, content: bytes) -> None:
    survives(format, content)


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_file_that_was_changed_somewhere_is_read_or_refused(format: str, data: st.DataObject) -> None:
    content = WHOLE[format]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 40)))
    survives(format, content[:start] + data.draw(st.binary(max_size=8)) + content[end:])


@pytest.mark.parametrize("format", ["csv", "go", "rebench", "tclbench", "criterion-text"])
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_table_with_other_words_is_read_or_refused(format: str, data: st.DataObject) -> None:
    words = re.split(r"(\s+|,)", WHOLE[format].decode()[:4000])
    place = data.draw(st.integers(0, len(words) - 1))
    words[place] = data.draw(
        st.sampled_from(["nan", "1e999", "", "{", "}", '"', "\\", "-", "=", "/", "\0", "\x85"])
    )
    survives(format, "".join(words).encode())


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, held in list(inside)[:6] for each in _places(held, (*path, key)))]


def _put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = _put(value[path[0]], path[1:], new)
    return value


@pytest.mark.parametrize(
    "format",
    ["hyperfine", "pyperf", "google-benchmark", "jmh", "pytest-benchmark", "asv", "criterion", "jsonl"],
)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_json_of_other_types_is_read_or_refused(format: str, data: st.DataObject) -> None:
    document = json.loads(WHOLE[format])
    place = data.draw(st.sampled_from(_places(document)))
    survives(format, json.dumps(_put(document, place, data.draw(JUNK))).encode())


@pytest.mark.parametrize("format", ["asv", "criterion"])
@settings(deadline=None, max_examples=12)
@given(data=st.data())
def test_the_files_next_to_a_file_are_read_or_refused(format: str, data: st.DataObject) -> None:
    about = json.loads((DATA / "asv/benchmarks.json").read_text()) if format == "asv" else json.loads(ABOUT)
    place = data.draw(st.sampled_from(_places(about)))
    survives(format, WHOLE[format], json.dumps(_put(about, place, data.draw(JUNK))).encode())


@pytest.mark.parametrize("format", FORMATS)
def test_long_lines_take_no_time_that_grows_beyond_their_length(format: str) -> None:
    for piece in (b" ", b"1 ", b"a", b"time: [", b"{", b"\\", b"/a=", b"-1", b"Benchmark 1 1 ", b'"'):
        survives(format, WHOLE[format] + b"\n" + piece * 40_000 + b"\n")
        survives(format, b"Benchmark" + piece * 40_000 + b"\n")


def test_a_histogram_that_says_a_trillion_is_a_mean() -> None:
    document = json.loads(WHOLE["jmh"])
    document[0]["primaryMetric"]["rawDataHistogram"] = [[[[5.0, 10**12]]]]
    (found,) = read(json.dumps(document).encode(), name="x").series
    assert (found.summary, found.note, len(found.values)) == (True, "mean", 1)


def test_hostile_names_stay_text() -> None:
    name = "<script>\x1b[31m\u202e{0}$(id)"
    content = json.dumps({"results": [{"command": name, "mean": 1.0}]}).encode()
    assert {each.subject for each in read(content, name="x").series} == {name}
