"""Comments, tags, branches, files and addresses, hostile or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import Label
from tests.sources.contents import ids, line, put
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, needs_fossil

pytestmark = needs_fossil


def test_comments_are_kept_as_they_were_written_hostile_or_not(
    opened: Open, repository: FossilRepository
) -> None:
    comments = [
        "$(touch pwned)", "\x1b[31mred", "a\tb", ".shell touch pwned", "'; DROP TABLE event; --",
        "--help", "[the end]", 'right \u202eto left "quoted"', "plain\n\nthe rest is left out",
    ]  # fmt: skip
    for number, comment in enumerate(comments):
        repository.commit({"a": str(number)}, subject=comment)
    repository.commit({"a": "latin"}, subject="caf\udce9")
    summaries = [revision.summary for revision in opened().history()]
    assert summaries[:-2] == comments[:-1]
    assert summaries[-2] == "plain"
    assert summaries[-1].startswith("caf")


def test_times_are_iso_8601(opened: Open, repository: FossilRepository) -> None:
    repository.commit({"a": "a"}, date=1_700_000_000)
    assert opened().history()[0].time == "2023-11-14T22:13:20+00:00"


HOSTILE = [
    "--upload-pack=touch pwned", "-R", "$(touch pwned)", "`touch pwned`", "'; .shell touch pwned", '"', "x'41'",
    "{names}", "{name}", "[the end]", "\x1b[2J",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_names_and_nothing_else(
    opened: Open, repository: FossilRepository, tmp_path: Path, name: str
) -> None:
    commits = line(repository, 3)
    for range in (f"{name}..trunk", f"trunk..{name}"):
        with pytest.raises(SourceError, match="no revision") as caught:
            opened(range=range).history()
        assert "\x1b" not in str(caught.value)
    branch = repository.commit({"a": "b", name: "x"}, branch=name, parents=[commits[2]])
    repository.tag(f"{name} tag", commits[1])
    source = opened(range=f"{name} tag..{name}", touching=(name,), label=Label(file=name, pattern="(.)"))
    history = source.history()
    assert ids(history) == [commits[1], branch]
    assert history[-1].label == "x"
    tree = put(source, history[-1], tmp_path / "tree")
    assert sorted(path.name for path in tree.iterdir()) == sorted(["a", name])
    assert not list(tmp_path.rglob("pwned"))


def test_a_name_with_a_line_end_is_refused(opened: Open, repository: FossilRepository) -> None:
    line(repository, 2)
    with pytest.raises(SourceError, match="line end"):
        opened(range="trunk\n.shell x..trunk").history()


@pytest.mark.parametrize(
    "location",
    [
        "ext::sh -c 'touch pwned'",
        "--upload-pack=touch pwned",
        "ssh://-oProxyCommand=touch pwned/x",
        "test:x",
        "x",
    ],
)
def test_hostile_addresses_start_nothing(opened: Open, tmp_path: Path, location: str) -> None:
    with pytest.raises(SourceError, match="not an allowed address"):
        opened(location).history()
    assert not list(tmp_path.rglob("pwned"))


def test_near_names_are_offered(opened: Open, repository: FossilRepository) -> None:
    repository.tag("v1.25.0", line(repository, 1)[0])
    with pytest.raises(SourceError, match=r'no revision "v1\.25".*did you mean "v1\.25\.0"'):
        opened(range="v1.25..trunk").history()
