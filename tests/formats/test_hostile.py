"""Any file is read or refused with perftrail's error; nothing else is raised."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perftrail.errors import FormatError
from perftrail.formats import FORMATS, read
from perftrail.formats.document import FileContext
from tests.formats.fixtures import DATA
from tests.formats.recorded import WHOLE
from tests.formats.spoilt import changed, paths

ABOUT = b'{"group_id":"g","function_id":null,"value_str":"10"}'
JUNK: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


def survives(format: str, content: bytes, about: bytes | None = ABOUT) -> None:
    """Read a file, and check that the result is valid or an error."""
    context = FileContext(path=Path("a/new/sample.json"), read_relative=lambda _: about)
    with contextlib.suppress(FormatError):
        for series in read(content, name="x", format=format, context=context).series:
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


@pytest.mark.parametrize(
    "format", ["csv", "go", "rebench", "tclbench", "criterion-text", "divan", "gungraun", "otava"]
)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_a_table_with_other_words_is_read_or_refused(format: str, data: st.DataObject) -> None:
    words = re.split(r"(\s+|,)", WHOLE[format].decode()[:4000])
    index = data.draw(st.integers(0, len(words) - 1))
    words[index] = data.draw(
        st.sampled_from(["nan", "1e999", "", "{", "}", '"', "\\", "-", "=", "/", "\0", "\x85"])
    )
    survives(format, "".join(words).encode())


@pytest.mark.parametrize(
    "format",
    [name for name, content in WHOLE.items() if content.startswith((b"{", b"["))],
)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_json_of_other_types_is_read_or_refused(format: str, data: st.DataObject) -> None:
    document = json.loads(WHOLE[format])
    path = data.draw(st.sampled_from(list(paths(document))))
    survives(format, json.dumps(changed(document, path, data.draw(JUNK))).encode())


@pytest.mark.parametrize("format", ["asv", "criterion"])
@settings(deadline=None, max_examples=12)
@given(data=st.data())
def test_the_files_next_to_a_file_are_read_or_refused(format: str, data: st.DataObject) -> None:
    about = json.loads((DATA / "asv/benchmarks.json").read_text()) if format == "asv" else json.loads(ABOUT)
    path = data.draw(st.sampled_from(list(paths(about))))
    survives(format, WHOLE[format], json.dumps(changed(about, path, data.draw(JUNK))).encode())


@pytest.mark.parametrize("format", FORMATS)
def test_long_lines_take_no_time_that_grows_beyond_their_length(format: str) -> None:
    for piece in (
        b" ",
        b"1 ",
        b"a",
        b"time: [",
        b"{",
        b"\\",
        b"/a=",
        b"-1",
        b"Benchmark 1 1 ",
        b'"',
        "│ ".encode(),
    ):
        survives(format, WHOLE[format] + b"\n" + piece * 40_000 + b"\n")
        survives(format, b"Benchmark" + piece * 40_000 + b"\n")


TABLES = {path.name: path.read_bytes() for path in (DATA / "otava/tables").iterdir()}


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_otavas_tables_with_other_bytes_are_read_or_refused(data: st.DataObject) -> None:
    content = TABLES["sort.csv"]
    start = data.draw(st.integers(0, len(content)))
    tables = {
        "tables/plain.csv": TABLES["plain.csv"],
        "tables/sort.csv": content[:start]
        + data.draw(st.binary(max_size=8) | st.sampled_from([b",", b'"', b"\n", b"9" * 400, b"\0", b"1e999"]))
        + content[start + data.draw(st.integers(0, 40)) :],
    }
    context = FileContext(path=Path("otava.yaml"), read_relative=tables.get)
    with contextlib.suppress(FormatError):
        for series in read((DATA / "otava/otava.yaml").read_bytes(), name="x", context=context).series:
            assert all(map(math.isfinite, series.values))


@settings(deadline=None, max_examples=40)
@given(samples=st.binary(max_size=40), name=st.text(max_size=30))
def test_nvbenchs_samples_with_other_bytes_are_read_or_refused(samples: bytes, name: str) -> None:
    text = (DATA / "nvbench/out.json").read_text().replace("build/out.json-bin/0.bin", json.dumps(name)[1:-1])
    context = FileContext(path=Path("out.json"), read_relative=lambda _: samples)
    with contextlib.suppress(FormatError):
        for series in read(text.encode(), name="x", context=context).series:
            assert all(map(math.isfinite, series.values))


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../secret/0.bin", "..", "/", "a/../b", "C:\\x\\..\\0.bin"]
)
def test_no_name_in_a_file_leads_out_of_its_directory(name: str) -> None:
    asked: list[str] = []

    def absent(other: str) -> None:
        asked.append(other)

    text = (DATA / "nvbench/out.json").read_text().replace("build/out.json-bin/0.bin", json.dumps(name)[1:-1])
    table = f"tests:\n  a:\n    type: csv\n    file: {json.dumps(name)}\n    metrics: [m]\n"
    for content in (text, table):
        context = FileContext(path=Path("x"), read_relative=absent)
        with contextlib.suppress(FormatError):
            read(content.encode(), name="x", context=context)
    assert not [each for each in asked if each.startswith("/") or ".." in Path(each).parts]


def test_a_histogram_that_says_a_trillion_is_a_mean() -> None:
    document = json.loads(WHOLE["jmh"])
    document[0]["primaryMetric"]["rawDataHistogram"] = [[[[5.0, 10**12]]]]
    (found,) = read(json.dumps(document).encode(), name="x").series
    assert (found.summary, found.note, len(found.values)) == (True, "mean", 1)


def test_hostile_names_stay_text() -> None:
    name = "<script>\x1b[31m\u202e{0}$(id)"
    content = json.dumps({"results": [{"command": name, "mean": 1.0}]}).encode()
    assert {each.subject for each in read(content, name="x").series} == {name}
