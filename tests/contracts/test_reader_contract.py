"""Contract of readers: they recognise and read their tool's files, and refuse other content with a reason."""

from __future__ import annotations

import gzip
import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from perftrail.errors import FormatError
from perftrail.formats import FORMATS, ReadResult, read, read_file, recognise
from perftrail.formats.document import FileContext
from tests.contracts.pages import code, example
from tests.formats.fixtures import DATA
from tests.formats.recorded import RECORDED, WHOLE, Recorded, content
from tests.formats.spoilt import overwritten, shortened, with_other_json

EXAMPLE = "demobench"
REPORT = code("new-reader.md", "json").encode()
FILES = [pytest.param(content(path), DATA / path, each, id=path) for path, each in RECORDED.items()] + [
    pytest.param(REPORT, Path("report.json"), Recorded(EXAMPLE, "Demo.Sums.Fold", 2.5e-6), id=EXAMPLE)
]
VALID = {**WHOLE, EXAMPLE: REPORT}

every_file = pytest.mark.parametrize(("data", "path", "expected"), FILES)
every_reader = pytest.mark.parametrize("format", VALID)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Register the example of docs/contributing/new-reader.md, as the page describes."""
    example("new-reader.md", f"perftrail.formats.{EXAMPLE}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FORMATS, EXAMPLE, "demobench's JSON (--json)")
        yield


def read_or_refuse(data: bytes, format: str) -> ReadResult | None:
    """Read content, which must yield finite values or perftrail's error with the name of the file."""
    try:
        found = read(data, name="file", format=format, context=FileContext(path=Path("a/new/sample.json")))
    except FormatError as error:
        assert str(error).startswith("file: ")
        return None
    assert all(each.values and all(map(math.isfinite, each.values)) for each in found.series)
    return found


def test_every_reader_has_a_valid_file() -> None:
    assert set(VALID) == set(FORMATS)


@every_file
def test_a_file_is_recognised_by_its_content(data: bytes, path: Path, expected: Recorded) -> None:
    assert recognise(data, path.name) == expected.format


@every_file
def test_a_file_has_the_values_and_units_of_its_tool(data: bytes, path: Path, expected: Recorded) -> None:
    first = (read_file(path) if path.exists() else read(data, name="x")).series[0]
    assert (first.benchmark, first.metric, first.unit) == (expected.benchmark, expected.metric, expected.unit)
    assert statistics.median(first.values) == pytest.approx(expected.median, rel=5e-3)


@every_file
def test_a_compressed_file_is_read_the_same(
    data: bytes, path: Path, expected: Recorded, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    with suppress(FormatError):  # a file that needs another file of its directory
        plain = read_file(tmp_path / "plain")
        assert plain.format == expected.format
        assert read_file(tmp_path / "packed") == plain


@every_reader
@pytest.mark.parametrize("corrupted", [shortened, overwritten, with_other_json])
@pytest.mark.parametrize(
    "every", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(7, id="some")]
)
def test_corrupt_content_is_read_or_refused(
    format: str, corrupted: Callable[..., Iterator[bytes]], every: int
) -> None:
    for data in corrupted(VALID[format], every=every):
        read_or_refuse(data, format)
        recognise(data)


@every_reader
def test_the_file_of_another_tool_is_read_or_refused(format: str) -> None:
    for other in VALID.values():
        read_or_refuse(other, format)
    # criterion and Otava need another file of their directory.
    assert read_or_refuse(VALID[format], format) or format in ("criterion", "otava")
