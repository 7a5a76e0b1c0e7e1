"""Ranges of a git history in each notation: ids, dates, reflogs, the newest, tags."""

from __future__ import annotations

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import Label
from tests.sources.contents import ids, line
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository

DAY = 86_400
NEW_YEAR = 1_704_067_200
"""2024-01-01T00:00:00Z"""


def daily(repository: Repository, days: list[int]) -> list[str]:
    """Make a commit at noon of each of these days of 2024, counted from 1."""
    return [
        repository.commit({"a": f"{n}"}, date=NEW_YEAR + (day - 1) * DAY + DAY // 2)
        for n, day in enumerate(days)
    ]


@pytest.mark.parametrize(
    "range",
    ["v1..main", "^v1 main", "main ^v1", "v1^{commit}..main", "main~2..main^{/change 3}", "HEAD~2..", "v1.."],
)
def test_ends_are_whatever_git_takes_for_a_commit(opened: Open, repository: Repository, range: str) -> None:
    commits = line(repository, 4)
    repository.git("tag", "-a", "-m", "annotated", "v1", commits[1])
    assert ids(opened(range=range).history()) == commits[1:]


def test_a_history_is_read_once_until_it_is_refreshed(opened: Open, repository: Repository) -> None:
    commits = line(repository, 3)
    source = opened(range="..main")
    assert ids(source.history()) == commits
    newest = repository.commit({"a": "newest"})
    assert ids(source.history()) == commits
    assert ids(source.history("main~1..main")) == [commits[-1], newest]
    source.refresh()
    assert ids(source.history()) == [*commits, newest]


def test_an_open_beginning_is_that_of_the_history(opened: Open, repository: Repository) -> None:
    commits = line(repository, 4)
    assert ids(opened(range="..main~1").history()) == commits[:3]


def test_reflogs_are_read_from_the_users_clone(opened: Open, repository: Repository) -> None:
    commits = line(repository, 4)
    repository.git("reset", "--quiet", "--soft", commits[0])
    repository.git("reset", "--quiet", "--soft", commits[3])
    assert ids(opened(range="main@{1}..main").history()) == commits
    with pytest.raises(SourceError, match="only your own clone has"):
        opened(f"file://{repository.path}", range="main@{2 weeks ago}..main").history()


@pytest.mark.parametrize(
    ("range", "why"),
    [
        ("v1...v2", "too many dots"),
        ("v1", "not a range"),
        (".", "not a range"),
        ("^v1 ^v2", "not a range"),
        ("last 0", "no revision"),
        ("last few", "not a range"),
        ("tags:", "names no tags"),
        ("tags:v9*", 'no tag like "v9\\*"'),
        ("..2023-01-01", 'no revision is as old as "2023-01-01"'),
        ("2024-13-45..main", 'no revision "2024-13-45"'),
    ],
)
def test_an_invalid_range_is_reported(opened: Open, repository: Repository, range: str, why: str) -> None:
    repository.tag("v1", daily(repository, [1, 2])[0])
    with pytest.raises(SourceError, match=why):
        opened(range=range).history()


def test_the_newest_are_counted_in_the_walk(opened: Open, merged: dict[str, str]) -> None:
    assert ids(opened(range="last 2").history()) == [merged[name] for name in "mc"]
    assert ids(opened(range="last 3", walk="all").history())[1:] == [merged[name] for name in "mc"]
    assert ids(opened(range="last 1", walk="merges").history()) == [merged["m"]]
    assert len(opened(range="last 999").history()) == 4


def test_a_day_means_the_last_commit_of_the_main_line_until_then(
    opened: Open, repository: Repository
) -> None:
    commits = daily(repository, [1, 3, 5, 7, 9])
    source = opened()

    def between(range: str) -> list[int]:
        return [commits.index(id_) for id_ in ids(source.history(range))]

    assert between("2024-01-04..2024-01-07") == [1, 2, 3]
    assert between("2024-01-05..2024-01-07T11:59") == [1, 2]
    assert between("2024-01-05T12:00Z..") == [2, 3, 4]
    assert between("2020-01-01..2024-01-01") == [0]
    assert between("..2030-01-01") == [0, 1, 2, 3, 4]
    assert between("main~3..2024-01-06") == [1, 2]
    assert between("2024-01-02..main~3") == [0, 1]
    with pytest.raises(SourceError, match=r'backwards; write "2024-01-03\.\.2024-01-08"'):
        between("2024-01-08..2024-01-03")
    assert source.within("2024-01-04..2024-01-07") == set(commits[1:4])


def test_single_wrong_clocks_do_not_move_a_day(opened: Open, repository: Repository) -> None:
    commits = daily(repository, [1, 2, 3, -9000, 4, 5, 6, 9000, 7, 8, 9])
    assert ids(opened(range="2024-01-05..2024-01-08").history()) == commits[4:10]


def test_a_tag_that_looks_like_a_day_is_the_tag(opened: Open, repository: Repository) -> None:
    commits = daily(repository, [1, 2, 3, 4])
    repository.tag("2024-01-03", commits[1])
    assert ids(opened(range="2024-01-03..main").history()) == commits[1:]


def test_tags_are_walked_by_version_and_never_before_what_they_contain(
    opened: Open, repository: Repository
) -> None:
    commits = line(repository, 6)
    fixed = repository.commit({"fix": "1"}, branch="old", parents=[commits[1]])
    for name, commit in (
        ("v1.9", commits[1]), ("v1.9.1", fixed), ("v1.10", commits[3]), ("v1.2", commits[4]), ("w1", commits[2]),
        ("$(pwned)", commits[2]), ("--all", commits[5]),
    ):  # fmt: skip
        repository.tag(name, commit)
    assert [each.label for each in opened(range="tags:v1.*").history()] == ["v1.9", "v1.9.1", "v1.10", "v1.2"]
    assert ids(opened(range="tags:--*").history()) == [commits[5]]
    assert ids(opened(range="tags:$(*").history()) == [commits[2]]
    with pytest.raises(SourceError, match=r"leave source\.touching out"):
        opened(range="tags:v*", touching=("a",)).history()
    with pytest.raises(SourceError, match="needs two ends"):
        opened().within("tags:v*")


def test_hostile_tags_and_authors_are_inert(opened: Open, repository: Repository) -> None:
    commits = line(repository, 2)
    hostile = "--upload-pack=pwned", "v1\u2028refs/heads/main", "`pwned`", "-x", "caf\u00e9"
    for name in hostile:
        repository.tag(name, commits[0])
    raw = repository.git("cat-file", "commit", commits[1]).encode()
    raw = raw.replace(b"A <a@example", b"\xff\xfe <--exec=pwned@example").replace(b"change", b"\x00change")[
        :-9
    ]
    odd = repository.git(
        "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw + b"\n\n\xe9\xff\n"
    )
    repository.git("update-ref", "refs/heads/main", odd)
    history = opened(label=Label(file="a", pattern="(.)"), walk="tags", range=f"{hostile[0]}..main").history()
    assert ids(history) == [commits[0], odd]
    assert {each.label for each in opened(range=f"{hostile[1]}..{hostile[4]}").history()} <= set(hostile)


@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.long)])
def test_a_long_history_is_read_in_each_notation(opened: Open, repository: Repository, count: int) -> None:
    stream = ["reset refs/heads/main\n"]
    for number in range(count):
        text = str(number)
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\ncommitter C <c@d> {number} +0000\n")
        stream.append(f"data 2\nc\nM 644 inline f{number % (count // 50)}\ndata {len(text)}\n{text}\n")
        if number % (count // 50) == 0:
            stream.append(f"reset refs/tags/v{number}\nfrom :{number + 1}\n\n")
    repository.git("fast-import", "--quiet", stdin="".join(stream).encode())
    source = opened(touching=("f7",))
    assert len(source.history()) == 50
    assert len(opened().history()) == count
    assert len(opened().history("tags:v*")) == 50
    assert next(each.label for each in opened().history(f"last {count // 50}")) == f"v{count - count // 50}"
