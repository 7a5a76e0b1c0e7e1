"""Files that check-ins touch, and labels from a file at each of them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import Label
from tests.sources.contents import ids, line, named
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, needs_fossil

pytestmark = needs_fossil


def test_touching_keeps_what_touches_and_both_ends(opened: Open, repository: FossilRepository) -> None:
    texts = [("1", "1"), ("1", "2"), ("2", "2"), ("2", "3"), ("3", "3"), ("3", "4")]
    commits = [repository.commit({"src/a.c": a, "docs": d}) for a, d in texts]
    for touching in ("src/a.c", "src", "*.c", "./src"):
        source = opened(range=f"{commits[1]}..{commits[5]}", touching=(touching,))
        assert ids(source.history()) == [commits[1], commits[2], commits[4], commits[5]]


def test_touching_sees_modes_renames_and_removals(opened: Open, repository: FossilRepository) -> None:
    commits = [
        repository.commit({"a": "1", "b": "1"}),
        repository.commit({"a": "1", "b": "2"}),
        repository.commit({"a": "1", "b": "program:2"}),
        repository.commit({"a": "1", "c": "program:2"}, renamed={"c": "b"}),
        repository.commit({"a": "1"}),
    ]
    assert ids(opened(touching=("b",)).history()) == commits[:4]
    assert ids(opened(touching=("c",)).history()) == commits[3:]


def test_touching_leaves_out_a_merge_that_only_took_a_side(opened: Open, merged: dict[str, str]) -> None:
    assert named(opened(walk="all", touching=("x",)).history(), merged) == "xi"
    assert named(opened(walk="first-parent", touching=("x",)).history(), merged) == "m"


def test_touching_a_missing_path_is_reported(opened: Open, repository: FossilRepository) -> None:
    line(repository, 3)
    with pytest.raises(SourceError, match=r"touches \['scr/a\.c'\]"):
        opened(touching=("scr/a.c",)).history()


def test_touched_names_files_against_what_is_known_of_the_parents(
    opened: Open, repository: FossilRepository
) -> None:
    commits = [
        repository.commit({"a": "1"}),
        repository.commit({"a": "2", "it's": "1"}),
        repository.commit({"a": "2", "b": "1"}),
    ]
    source = opened()
    history = source.history()
    assert source.touched(history) == ((), ("a", "it's"), ("b", "it's"))
    assert source.touched((history[0], history[2])) == ((), ("a", "b"))
    assert ids(history) == commits


def test_touched_is_how_trees_differ_through_renames_modes_and_merges(
    opened: Open, repository: FossilRepository
) -> None:
    trees: list[dict[str, str]] = [
        {"a": "1", "b": "1"},
        {"a": "1", "c": "1"},
        {"a": "program:1", "c": "1"},
        {"a": "unlike either", "c": "1", "s": "1"},
        {"a": "2"},
    ]
    commits = [
        repository.commit(trees[0]),
        repository.commit(trees[1], renamed={"c": "b"}),
        repository.commit(trees[2]),
    ]
    side = repository.commit({"a": "1", "b": "1", "s": "1"}, branch="side", parents=[commits[0]])
    commits.append(repository.commit(trees[3], parents=[commits[2], side]))
    commits.append(repository.commit(trees[4]))
    source = opened()
    history = source.history()
    assert ids(history) == commits
    for chosen in ([0, 1, 2, 3, 4], [0, 2, 4], [1, 3]):
        differences = [
            tuple(sorted({name for name, _ in trees[one].items() ^ trees[other].items()}))
            for one, other in pairwise(chosen)
        ]
        assert source.touched([history[number] for number in chosen]) == ((), *differences)


def test_labels_come_from_a_file_at_each_revision(opened: Open, repository: FossilRepository) -> None:
    texts = ['#define V "1.0"', '#define V "1.0"\n', "nothing here", '// new\n#define V  "1.1"\n', None]
    for text in texts:
        repository.commit({"a": f"{text}", **({"src/ver sion.h": text} if text is not None else {})})
    side = repository.commit({"a": "side", "src/ver sion.h": '#define V "2"'}, branch="side")
    label = Label(file="src/ver sion.h", pattern=r'^#define V +"([^"]+)"')
    assert [revision.label for revision in opened(label=label).history()] == ["1.0", "1.0", "", "1.1", ""]
    assert opened(label=label, range=f"{side}..side").history()[0].label == "2"


def test_without_a_label_file_the_highest_tag_names_its_check_in(
    opened: Open, repository: FossilRepository
) -> None:
    commits = line(repository, 3)
    for name in ("v1.10", "v1.9"):
        repository.tag(name, commits[1])
    assert [revision.label for revision in opened().history()] == ["", "v1.10", ""]


@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.long)])
def test_many_check_ins_are_listed_with_labels_and_contents(
    opened: Open, repository: FossilRepository, count: int
) -> None:
    for number in range(count):
        repository.commit({"v": f'V "{number * 30 // count}"', "n": str(number)})
    source = opened(label=Label(file="v", pattern=r'V "(\d+)"'))
    history = source.history()
    assert len(history) == count
    assert history[-1].label == "29"
    assert len({source.content(revision) for revision in history}) == count
    assert source.touched(history)[1:3] == (("n",), ("n",))
