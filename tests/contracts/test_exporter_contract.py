"""Contract of exporters: valid files below the destination, and every missing metric is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from perftrail.formats import FORMATS as READERS
from perftrail.formats import files_in, read_file
from perftrail.formats.exports import FORMATS, Format, missing_metrics, write
from tests.contracts.exports import HOSTILE_SAMPLES, RULES, SAMPLES, STUDY
from tests.contracts.pages import example

EXAMPLE = Format("benchstat", "everything", "Go's benchmark format, for benchstat.")
MEDIANS = {"otava"}
"""Formats with one value for each revision."""

READABLE = {**{name: name for name in FORMATS if name in READERS and name not in MEDIANS}, "benchstat": "go"}
"""Formats that perftrail also reads, with the name of the reader, and that keep every sample."""

every_format = pytest.mark.parametrize("format", RULES)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Register the example of docs/contributing/new-exporter.md, as the page describes."""
    example("new-exporter.md", f"perftrail.formats.{EXAMPLE.module}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FORMATS, EXAMPLE.module, EXAMPLE)
        yield


def test_every_format_has_its_rules() -> None:
    assert set(RULES) == set(FORMATS)


@every_format
def test_files_are_valid_by_the_rules_of_their_format(format: str) -> None:
    files = write(format, SAMPLES, STUDY)
    assert files
    RULES[format](files)


@every_format
def test_equal_samples_yield_equal_files(format: str) -> None:
    assert write(format, SAMPLES, STUDY) == write(format, SAMPLES, STUDY)


@every_format
def test_hostile_names_stay_valid_and_below_the_destination(format: str) -> None:
    files = write(format, HOSTILE_SAMPLES, STUDY)
    RULES[format](files)
    for name in files:
        assert not PurePosixPath(name).is_absolute()
        assert ".." not in PurePosixPath(name).parts
        assert name.isprintable()


@every_format
def test_two_revisions_with_one_label_are_both_exported(format: str) -> None:
    both, first = write(format, HOSTILE_SAMPLES, STUDY), write(format, HOSTILE_SAMPLES[:1], STUDY)
    assert sum(map(len, both.values())) > sum(map(len, first.values()))


@every_format
def test_every_sample_is_in_the_files_or_its_metric_is_named(format: str) -> None:
    all_files, missing = write(format, SAMPLES, STUDY), missing_metrics(format, SAMPLES)
    for sample in SAMPLES:
        without = [each for each in SAMPLES if each is not sample]
        assert (write(format, without, STUDY) == all_files) == (sample.metric in missing), sample


@every_format
def test_samples_that_a_format_cannot_represent_yield_no_files(format: str) -> None:
    missing = missing_metrics(format, SAMPLES)
    assert write(format, [each for each in SAMPLES if each.metric in missing], STUDY) == {} or not missing


@pytest.mark.parametrize("format", READABLE)
def test_values_survive_export_and_import(format: str, tmp_path: Path) -> None:
    for name, content in write(format, SAMPLES, STUDY).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    results = [read_file(path) for path in files_in(tmp_path) if path.name != "asv.conf.json"]
    assert {each.format for each in results} == {READABLE[format]}
    imported = sorted(series.values for each in results for series in each.series if not series.summary)
    exported = sorted(each.numbers for each in SAMPLES if each.metric not in missing_metrics(format, SAMPLES))
    assert imported == [pytest.approx(values, rel=1e-12) for values in exported]
