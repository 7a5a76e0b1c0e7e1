"""Names, messages and addresses of a git repository, hostile or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import SourceError
from tests.sources.contents import ids, line
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def test_summaries_are_kept_as_they_were_written_hostile_or_not(opened: Open, repository: Repository) -> None:
    subjects = ["$(touch pwned)", "\x1b[31mred", "a\tb", "%H %x00 %n", "--help", "plain\n\nbody is left out"]
    for number, subject in enumerate(subjects):
        repository.commit({"a": str(number)}, subject=subject)
    repository.commit({"a": "latin"}, subject=b"caf\xe9 \xff")
    repository.commit({"a": "none"}, subject="")
    history = opened().history()
    assert [revision.summary for revision in history[:5]] == subjects[:5]
    assert history[5].summary == "plain"
    assert history[6].summary.startswith("caf")
    assert history[7].summary == ""


def test_times_are_iso_8601(opened: Open, repository: Repository) -> None:
    repository.commit({"a": "a"}, date=1_700_000_000)
    assert opened().history()[0].time == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize(
    "name", ["--upload-pack=touch pwned", "-x", "$(touch pwned)", "--all", "--output=pwned", "`touch pwned`"]
)
def test_hostile_ends_are_names_and_nothing_else(
    opened: Open, repository: Repository, tmp_path: Path, name: str
) -> None:
    commits = line(repository, 3)
    for range in (f"{name}..main", f"main..{name}"):
        with pytest.raises(SourceError, match="no revision"):
            opened(range=range).history()
    if " " not in name and "`" not in name:
        repository.git("update-ref", f"refs/tags/{name}", commits[1])
        assert ids(opened(cache="second", range=f"{name}..main").history()) == commits[1:]
    assert not list(tmp_path.rglob("pwned"))


def test_a_name_with_a_line_end_is_refused(opened: Open, repository: Repository) -> None:
    line(repository, 2)
    with pytest.raises(SourceError, match="line end"):
        opened(range="main\nmain..main").history()


@pytest.mark.parametrize(
    "location",
    ["ext::sh -c 'touch pwned'", "--upload-pack=touch pwned", "-oProxyCommand=touch pwned:x", "fd::3"],
)
def test_hostile_addresses_start_nothing(opened: Open, tmp_path: Path, location: str) -> None:
    with pytest.raises(SourceError):
        opened(location).history()
    assert not list(tmp_path.rglob("pwned"))


def test_near_names_are_offered(opened: Open, repository: Repository) -> None:
    repository.tag("v1.25.0", line(repository, 1)[0])
    with pytest.raises(SourceError, match=r'no revision "v1\.25".*did you mean "v1\.25\.0"'):
        opened(range="v1.25..main").history()


def test_a_mistyped_head_is_offered(opened: Open, repository: Repository) -> None:
    line(repository, 2)
    with pytest.raises(SourceError, match=r'no revision "HAED".*did you mean "HEAD"\?'):
        opened(range="HAED..main").history()


def test_an_unknown_name_cannot_upset_the_terminal(opened: Open, repository: Repository) -> None:
    line(repository, 1)
    with pytest.raises(SourceError) as caught:
        opened(range="\x1b[2Jgone..main").history()
    assert "\x1b" not in str(caught.value)
