"""Options for several sources override the study."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.cli.options import SourceOptions, study_path
from perftrail.errors import UsageError

ONE = """\
[source]
kind = "git"
location = "."

[benchmark.it]
command = "true"
"""

TWO = """\
[source]
kind = "git"
location = "."
at = "v1"

[sources.app]
kind = "git"
location = "."

[sources.data]
kind = "directory"
location = "."

[benchmark.it]
command = "{source.app}/it {source.data}/file"
"""


@pytest.fixture
def study(tmp_path: Path) -> str:
    file = tmp_path / "perftrail.toml"
    file.write_text(TWO)
    return str(file)


def test_options_override_the_study(study: str) -> None:
    loaded = SourceOptions(along="app", at=("main=v2",)).load(study)
    assert (loaded.along, loaded.source.at) == ("app", "v2")
    assert SourceOptions(along=None, at=("app=v3",)).load(study).sources["app"].at == "v3"


@pytest.mark.parametrize(
    ("along", "at", "expected"),
    [
        ("ap", (), '--along ap: no source "ap"; did you mean "app"?'),
        (None, ("ap=v1",), '--at ap=v1: no source "ap"; did you mean "app"?'),
        (
            None,
            ("main=v1",),
            "the history of main is used, so it cannot be pinned; choose its part with --range",
        ),
        (
            "app",
            ("app=v1",),
            "the history of app is used, so it cannot be pinned; choose its part with --range",
        ),
        (None, ("app",), "--at app: write SOURCE=REVISION, for example --at main=v1.2"),
        (None, ("app=",), "write SOURCE=REVISION"),
        (None, ("data=v1",), "data is a directory, which has only one revision; omit the option"),
        (None, ("app=--upload-pack=x",), "is not a revision; name one revision"),
        (None, ("app=v1..v2",), "is not a revision; name one revision"),
    ],
)
def test_invalid_options_are_reported_with_their_remedy(
    study: str, along: str | None, at: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(UsageError) as refused:
        SourceOptions(along=along, at=at).load(study)
    assert expected in str(refused.value)


def test_a_study_of_one_source_names_the_table_for_others(tmp_path: Path) -> None:
    file = tmp_path / "perftrail.toml"
    file.write_text(ONE)
    with pytest.raises(UsageError, match=r"the study has no \[sources.NAME\]"):
        SourceOptions(along="app", at=()).load(str(file))


def test_the_error_about_a_missing_study_names_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        study_path(None, to_read=True)
    assert str(refused.value).startswith(f"{tmp_path}: no perftrail.toml in this directory or above; ")
