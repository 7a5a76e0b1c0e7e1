"""The git history: order, walks, ranges, touched files, labels."""

from __future__ import annotations

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import Label
from tests.sources.contents import ids, line
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def test_order_is_topological_whatever_the_dates_say(opened: Open, repository: Repository) -> None:
    dates = [1_600_000_000, 1_000_000_000, 1_650_000_000, 5, 1_500_000_000]
    commits = [repository.commit({"a": f"{date}"}, date=date) for date in dates]
    assert ids(opened(walk="all").history()) == commits
    assert ids(opened(walk="first-parent").history()) == commits


def test_first_parent_stays_on_the_main_line(opened: Open, merged: dict[str, str]) -> None:
    assert ids(opened(walk="first-parent").history()) == [merged[name] for name in "abmc"]


def test_all_walks_into_side_branches_parents_first(opened: Open, merged: dict[str, str]) -> None:
    history = opened(walk="all").history()
    assert sorted(ids(history)) == sorted(merged.values())
    seen: set[str] = set()
    for revision in history:
        assert set(revision.parents) <= seen
        seen.add(revision.id)


def test_merges_are_those_of_the_main_line_and_the_ends(opened: Open, merged: dict[str, str]) -> None:
    assert ids(opened(walk="merges").history()) == [merged["m"]]
    source = opened(walk="merges", range=f"{merged['a']}..{merged['c']}")
    assert ids(source.history()) == [merged[name] for name in "amc"]


def test_tags_are_tagged_commits_in_topological_order(opened: Open, repository: Repository) -> None:
    commits = line(repository, 6)
    for name, number in (("v9", 1), ("v1", 3), ("v5", 4)):
        repository.tag(name, commits[number])
    repository.git("tag", "-a", "-m", "annotated", "annotated", commits[2])
    off = repository.commit({"z": "z"}, branch="old", parents=[commits[1]])
    repository.tag("v1.1", off)
    history = opened(walk="tags", range="v9..v5").history()
    assert [revision.label for revision in history] == ["v9", "annotated", "v1", "v5"]
    assert ids(opened(walk="tags").history()) == [commits[1], commits[2], commits[3], commits[4]]


def test_an_old_end_off_the_main_line_comes_first(opened: Open, merged: dict[str, str]) -> None:
    source = opened(walk="first-parent", range=f"{merged['x']}..main")
    assert ids(source.history()) == [merged[name] for name in "xbmc"]


def test_an_old_end_that_is_no_ancestor_is_replaced_by_the_common_one(
    opened: Open, repository: Repository, merged: dict[str, str]
) -> None:
    other = repository.commit({"o": "o"}, branch="other", parents=[merged["b"]])
    source = opened(range=f"{other}..main")
    assert ids(source.history()) == ids(opened(range=f"{merged['b']}..main").history())
    assert source.remark == (
        f'"{other}" is not an ancestor of "main": the range begins at their common ancestor, {merged["b"][:10]}'
    )


def test_a_backward_range_says_how_to_turn_it(opened: Open, merged: dict[str, str]) -> None:
    with pytest.raises(SourceError, match=r'is backwards; write ".*\.\.main~1"'):
        opened(range=f"main~1..{merged['a']}").history()


def test_ends_without_common_history_are_refused(opened: Open, repository: Repository) -> None:
    line(repository, 2)
    lonely = repository.commit({"q": "q"}, branch="lonely")
    with pytest.raises(SourceError, match="no history in common"):
        opened(range=f"{lonely}..main").history()


def test_touching_keeps_what_touches_and_both_ends(opened: Open, repository: Repository) -> None:
    texts = [("1", "1"), ("1", "2"), ("2", "2"), ("2", "3"), ("3", "3"), ("3", "4")]
    commits = [repository.commit({"src/a.c": a, "docs": d}) for a, d in texts]
    source = opened(range=f"{commits[1]}..{commits[5]}", touching=("src/a.c",))
    assert ids(source.history()) == [commits[1], commits[2], commits[4], commits[5]]


def test_touching_a_missing_path_is_reported(opened: Open, repository: Repository) -> None:
    line(repository, 3)
    with pytest.raises(SourceError, match=r"touches \['scr/a\.c'\]"):
        opened(touching=("scr/a.c",)).history()


def test_touching_names_that_look_like_options_or_shell(opened: Open, repository: Repository) -> None:
    repository.commit({"a": "1"})
    commit = repository.commit({"a": "1", "--output=pwned": "1", "$(touch pwned)": "1"})
    repository.commit({"a": "2", "--output=pwned": "1", "$(touch pwned)": "1"})
    assert ids(opened(touching=("--output=pwned",)).history()) == [commit]
    assert ids(opened(touching=("$(touch pwned)",)).history()) == [commit]


def test_within_is_what_contains_one_end_and_is_contained_in_the_other(
    opened: Open, merged: dict[str, str]
) -> None:
    def named(found: frozenset[str]) -> str:
        return "".join(sorted(name for name, commit in merged.items() if commit in found))

    source = opened()
    assert named(source.within(f"..{merged['b']}")) == "ab"
    assert named(source.within(f"{merged['b']}..")) == "bcm"
    assert named(source.within(f"{merged['x']}..{merged['m']}")) == "imnx"


def test_labels_come_from_a_file_at_each_revision(opened: Open, repository: Repository) -> None:
    texts = ['#define V "1.0"', '#define V "1.0"\n', "nothing here", '// new\n#define V  "1.1"\n', None]
    for text in texts:
        repository.commit({"a": f"{text}", **({"src/ver sion.h": text} if text is not None else {})})
    label = Label(file="src/ver sion.h", pattern=r'^#define V +"([^"]+)"')
    assert [revision.label for revision in opened(label=label).history()] == ["1.0", "1.0", "", "1.1", ""]


def test_without_a_label_file_a_tag_names_its_commit(opened: Open, repository: Repository) -> None:
    commits = line(repository, 3)
    for name in ("v1.10", "v1.9"):
        repository.tag(name, commits[1])
    assert [revision.label for revision in opened().history()] == ["", "v1.10", ""]


def test_thousands_of_revisions_are_listed_with_labels(opened: Open, repository: Repository) -> None:
    stream = ["reset refs/heads/main\n"]
    for number in range(3000):
        text = f'V "{number // 100}"'
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\ncommitter C <c@d> {number} +0000\n")
        stream.append(f"data 2\nc\nM 644 inline v\ndata {len(text)}\n{text}\n")
        stream.append(f"M 644 inline n\ndata {len(str(number))}\n{number}\n")
    repository.git("fast-import", "--quiet", stdin="".join(stream).encode())
    source = opened(label=Label(file="v", pattern=r'V "(\d+)"'))
    history = source.history()
    assert len(history) == 3000
    assert history[-1].label == "29"
    assert len({source.content(revision) for revision in history}) == 3000
