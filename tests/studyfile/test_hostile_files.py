"""Reading any file as a study gives a study or a StudyError."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perftrail import studyfile
from perftrail.errors import StudyError, UsageError
from tests.studyfile.studies import GOOD, SMALL, complaints, read, write
from tests.studyfile.toml_texts import documents, values

_ONE_DIRECTORY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
FEW_OR_MANY = pytest.mark.parametrize("examples", [15, pytest.param(100, marks=pytest.mark.long)])
"""Number of drawn texts."""
_KEYS = [line.partition("=")[0].strip() for line in GOOD.splitlines() if "=" in line and line[0].isalpha()]


def _refused_or_read(directory: Path, text: str | bytes) -> None:
    try:
        read(directory, text)
    except StudyError as error:
        assert error.mistakes
        assert all(mistake.line >= 1 for mistake in error.mistakes)
        assert all(str(mistake).isprintable() for mistake in error.mistakes)


@_ONE_DIRECTORY
@given(content=st.binary(max_size=200))
def test_garbage_is_refused_and_never_crashes(content: bytes, tmp_path: Path) -> None:
    _refused_or_read(tmp_path, content)


@FEW_OR_MANY
def test_any_toml_is_read_or_refused(examples: int, tmp_path: Path) -> None:
    @settings(max_examples=examples)
    @given(documents())
    def holds(text: str) -> None:
        _refused_or_read(tmp_path, text)

    holds()


@FEW_OR_MANY
def test_a_study_with_any_value_in_a_place_is_read_or_refused(examples: int, tmp_path: Path) -> None:
    @settings(max_examples=examples)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        lines = GOOD.splitlines()
        candidates = [number for number, line in enumerate(lines) if "=" in line and line[0].isalpha()]
        for number in data.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=4)):
            lines[number] = f"{lines[number].partition('=')[0]}= {data.draw(values())}"
        _refused_or_read(tmp_path, "\n".join(lines))

    holds()


@FEW_OR_MANY
def test_a_study_with_lines_gone_or_moved_is_read_or_refused(examples: int, tmp_path: Path) -> None:
    @settings(max_examples=examples)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        lines = data.draw(st.permutations(GOOD.splitlines()))
        _refused_or_read(tmp_path, "\n".join(lines[: data.draw(st.integers(0, len(lines)))]))

    holds()


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"perftrail\.toml: no such file"):
        studyfile.load(str(tmp_path))
    with pytest.raises(StudyError, match=r"gone\.toml: no such file"):
        studyfile.load(str(tmp_path / "gone.toml"))


def test_a_directory_called_like_a_study_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").mkdir()
    with pytest.raises(StudyError, match=r"perftrail\.toml: cannot be read: is a directory"):
        studyfile.load(str(tmp_path))


def test_a_path_that_no_file_can_have_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        studyfile.load("a\0b")
    with pytest.raises(StudyError, match="cannot be read"):
        studyfile.load("x" * 5000)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, SMALL).chmod(0)
    with pytest.raises(StudyError, match="permission denied"):
        studyfile.load(str(tmp_path))


def test_text_that_is_not_utf_8_is_reported_with_its_line(tmp_path: Path) -> None:
    assert complaints(tmp_path, SMALL.encode() + b"# caf\xe9\n") == [
        "perftrail.toml:7: file: is not UTF-8 text: byte 0xe9; save it as UTF-8"
    ]


def test_a_file_without_an_end_is_not_read_to_its_end() -> None:
    with pytest.raises(StudyError, match="larger than 1 MiB"):
        studyfile.load("/dev/zero")


def test_nesting_that_would_exhaust_the_stack_is_reported(tmp_path: Path) -> None:
    depth = 50_000
    assert complaints(tmp_path, f"a = {'[' * depth}{']' * depth}") == [
        "perftrail.toml:1: syntax: is nested too deeply"
    ]


def test_dotted_keys_however_long_are_only_unknown(tmp_path: Path) -> None:
    reported = complaints(tmp_path, f"{SMALL}{'.'.join('a' * 3000)} = 1\n")
    assert [line.partition(": ")[0] for line in reported] == ["perftrail.toml:7"]


@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "1e999", "9" * 5000, "-0x1", "1" + "0" * 400])
def test_numbers_of_any_size_are_refused(number: str, tmp_path: Path) -> None:
    assert complaints(tmp_path, f"{SMALL}timeout = {number}\n")


@pytest.mark.parametrize(
    "pattern", ["(" * 2000 + ")" * 2000, "(a{99999999999})", "([[a]&&b])", "(?P<a>x)(?P=b)"]
)
def test_patterns_that_cannot_be_compiled_are_reported(pattern: str, tmp_path: Path) -> None:
    _refused_or_read(tmp_path, f"{SMALL}metrics.m = {{ pattern = '{pattern}' }}\n")


def test_what_a_message_quotes_cannot_steer_a_terminal(tmp_path: Path) -> None:
    reported = complaints(
        tmp_path, SMALL.replace('"true"', '"\\u001b[2J {\\u202ex}"').replace(".it", '."\\u001b[31m"')
    )
    assert reported
    assert all(line.isprintable() for line in reported)


def test_a_location_that_cannot_be_printed_is_reported_escaped(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as raised:
        read(tmp_path, SMALL.replace('location = "', 'location = "\\u202e', 1))
    [mistake] = [each for each in raised.value.mistakes if "location" in str(each)]
    assert str(mistake).isprintable()
    assert str(mistake).count("\\u202e") == 2


def test_a_study_whose_path_is_not_utf_8_is_refused_before_anything_runs(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"st\xffudy")
    directory.mkdir()
    (directory / "perftrail.toml").write_text('[source]\nkind = "directory"\nlocation = "."\n')
    with pytest.raises(UsageError, match="the path of a study must be UTF-8; rename the directory"):
        studyfile.load(str(directory))
