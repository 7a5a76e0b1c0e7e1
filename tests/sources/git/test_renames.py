"""Files that a study follows are followed through renames, each name only while the file had it."""

from __future__ import annotations

from tests.sources.contents import ids
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def text(number: int) -> str:
    return "".join(f"line {each}\n" for each in range(20)) + f"{number}\n"


def test_a_file_is_followed_through_its_renames(opened: Open, repository: Repository) -> None:
    commits = [
        repository.commit({"old.c": text(0), "x": "0"}),
        repository.commit({"old.c": text(1), "x": "0"}),
        repository.commit({"old.c": text(1), "x": "1"}),
        repository.commit({"src/mid.c": text(2), "x": "1"}),
        repository.commit({"src/new.c": text(2), "x": "1"}),
        repository.commit({"src/new.c": text(2), "x": "2"}),
        repository.commit({"src/new.c": text(3), "x": "2"}),
    ]
    touching = [commits[number] for number in (0, 1, 3, 4, 6)]
    for walk in ("first-parent", "all"):
        assert ids(opened(walk=walk, touching=("src/new.c",)).history()) == touching
    assert ids(opened(touching=("./src/new.c",), range=f"{commits[2]}..main").history()) == [
        commits[number] for number in (2, 3, 4, 6)
    ]


def test_another_file_that_takes_the_old_name_later_is_not_followed(
    opened: Open, repository: Repository
) -> None:
    commits = [
        repository.commit({"old.c": text(0)}),
        repository.commit({"new.c": text(0)}),
        repository.commit({"new.c": text(0), "old.c": "another file\n"}),
        repository.commit({"new.c": text(0), "old.c": "another file, changed\n"}),
        repository.commit({"new.c": text(1), "old.c": "another file, changed\n"}),
    ]
    assert ids(opened(touching=("new.c",)).history()) == [commits[0], commits[1], commits[4]]


def test_a_directory_is_followed_too(opened: Open, repository: Repository) -> None:
    commits = [
        repository.commit({"lib/a.c": text(0), "lib/b.c": text(100), "x": "0"}),
        repository.commit({"lib/a.c": text(0), "lib/b.c": text(101), "x": "0"}),
        repository.commit({"src/a.c": text(0), "src/b.c": text(101), "x": "0"}),
        repository.commit({"src/a.c": text(0), "src/b.c": text(101), "x": "1"}),
    ]
    assert ids(opened(touching=("src",)).history()) == commits[:3]
    assert ids(opened(touching=("src/*.c",)).history()) == [commits[2]]


def test_a_rename_on_a_side_branch_is_followed_where_it_came_in(opened: Open, repository: Repository) -> None:
    root = repository.commit({"old.c": text(0), "x": "0"})
    second = repository.commit({"old.c": text(1), "x": "0"})
    side = repository.commit({"new.c": text(1), "x": "0"}, branch="side", parents=[second])
    straight = repository.commit({"old.c": text(1), "x": "1"}, parents=[second])
    merge = repository.commit({"new.c": text(1), "x": "1"}, parents=[straight, side])
    last = repository.commit({"new.c": text(2), "x": "1"})
    source = opened(walk="first-parent", touching=("new.c",))
    assert ids(source.history()) == [root, second, merge, last]
    everything = ids(opened(walk="all", touching=("new.c",)).history())
    assert {root, second, side, last} <= set(everything)
    assert straight not in everything


def test_names_that_look_like_options_or_shell_are_followed(opened: Open, repository: Repository) -> None:
    commits = [
        repository.commit({"$(pwned)": text(0)}),
        repository.commit({"--output=pwned": text(0)}),
        repository.commit({"a\nb\u2028--output=pwned --output=pwned": text(0)}),
        repository.commit({"end": text(0)}),
    ]
    assert ids(opened(touching=("end",)).history()) == commits
