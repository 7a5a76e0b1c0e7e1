"""The check-ins of a range and their order: walks, ends, merges."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import SquashedBranch
from tests.sources.contents import ids, line, named
from tests.sources.fossil.opening import Open
from tests.sources.fossil_repositories import FossilRepository, fossil, needs_fossil

pytestmark = needs_fossil


def test_order_is_topological_whatever_the_dates_say(opened: Open, repository: FossilRepository) -> None:
    dates = [1_600_000_000, 1_000_000_000, 1_650_000_000, 5, 1_500_000_000]
    commits = [repository.commit({"a": f"{date}"}, date=date) for date in dates]
    assert ids(opened(walk="all").history()) == commits
    assert ids(opened(walk="first-parent").history()) == commits


def test_first_parent_stays_on_the_trunk(opened: Open, merged: dict[str, str]) -> None:
    assert named(opened(walk="first-parent").history(), merged) == "abmc"


def test_all_puts_each_merged_line_just_before_its_merge(opened: Open, merged: dict[str, str]) -> None:
    assert named(opened(walk="all").history(), merged) == "abxinmc"


def test_merges_are_those_of_the_trunk_and_the_ends(opened: Open, merged: dict[str, str]) -> None:
    assert named(opened(walk="merges").history(), merged) == "m"
    assert named(opened(walk="merges", range=f"{merged['a']}..{merged['c']}").history(), merged) == "amc"


def test_tags_are_tagged_check_ins_and_not_branches(opened: Open, repository: FossilRepository) -> None:
    commits = line(repository, 6)
    for name, number in (("v9", 1), ("v1", 3), ("v5", 4)):
        repository.tag(name, commits[number])
    off = repository.commit({"z": "z"}, branch="old", parents=[commits[1]], tags=["v1.1"])
    history = opened(walk="tags", range="v9..v5").history()
    assert [revision.label for revision in history] == ["v9", "v1", "v5"]
    assert ids(opened(walk="tags").history()) == [commits[1], commits[3], commits[4]]
    assert off not in opened().within("..trunk")


def test_an_old_end_off_the_trunk_comes_first(opened: Open, merged: dict[str, str]) -> None:
    assert named(opened(range=f"{merged['x']}..trunk").history(), merged) == "xbmc"


def test_ends_are_named_as_fossil_names_them(opened: Open, repository: FossilRepository) -> None:
    commits = [
        repository.commit({"a": str(day)}, date=1_700_000_000 + day * 86_400, tags=[f"v{day}"])
        for day in range(4)
    ]
    source = opened()
    assert ids(source.history("v1..trunk")) == commits[1:]
    assert ids(source.history(f"{commits[1][:8]}..tag:v2")) == commits[1:3]
    assert ids(source.history("2023-11-15T23:59..2023-11-16T23:59")) == commits[1:3]


def test_an_old_end_that_is_no_ancestor_is_replaced_by_the_common_one(
    opened: Open, repository: FossilRepository, merged: dict[str, str]
) -> None:
    other = repository.commit({"o": "o"}, branch="other", parents=[merged["b"]])
    source = opened(range=f"{other}..trunk")
    assert ids(source.history()) == ids(opened(range=f"{merged['b']}..trunk").history())
    assert source.remark == (
        f'"{other}" is not an ancestor of "trunk": the range begins at their common ancestor, {merged["b"][:10]}'
    )


def test_a_backward_range_says_how_to_turn_it(opened: Open, repository: FossilRepository) -> None:
    commits = line(repository, 3)
    repository.tag("v1", commits[0])
    with pytest.raises(SourceError, match=r'is backwards; write "v1\.\.trunk"'):
        opened(range="trunk..v1").history()


def test_ends_without_common_history_are_refused(opened: Open, repository: FossilRepository) -> None:
    line(repository, 2)
    lonely = repository.commit({"q": "q"}, branch="lonely")
    with pytest.raises(SourceError, match="no history in common"):
        opened(range=f"{lonely}..trunk").history()


def test_the_empty_check_in_that_fossil_begins_with_is_left_out(
    opened: Open, repository: FossilRepository
) -> None:
    empty = repository.commit({}, subject="initial empty check-in")
    first = repository.commit({"a": "1"})
    assert ids(opened().history()) == [first]
    assert ids(opened(walk="all").history()) == [first]
    assert ids(opened(range=f"{empty}..trunk").history()) == [empty, first]


def test_within_is_what_contains_one_end_and_is_contained_in_the_other(
    opened: Open, merged: dict[str, str]
) -> None:
    source = opened()
    assert sorted(named(source.within(f"..{merged['b']}"), merged)) == sorted("ab")
    assert sorted(named(source.within(f"{merged['b']}.."), merged)) == sorted("bcm")
    assert sorted(named(source.within(f"{merged['x']}..{merged['m']}"), merged)) == sorted("imnx")


def test_a_merge_is_listed_with_its_parents(opened: Open, merged: dict[str, str]) -> None:
    source = opened()
    revisions = {revision.id: revision for revision in opened(walk="all").history()}
    merge = source.merge(revisions[merged["m"]])
    assert merge is not None
    assert merge.trunk.id == merged["b"]
    (branch,) = merge.branches
    assert branch.base is not None
    assert branch.base.id == merged["a"]
    assert named(branch.revisions, merged) == "xn"
    assert source.merge(revisions[merged["c"]]) is None
    assert source.merge(revisions[merged["a"]]) is None


def test_a_branch_that_was_squashed_is_joined_by_its_link(opened: Open, repository: FossilRepository) -> None:
    base = repository.commit({"a": "0"})
    side = [
        repository.commit({"a": f"s{n}"}, branch="side", parents=[base] if not n else None) for n in (0, 1)
    ]
    squash = repository.commit({"a": "s1"}, parents=[base])
    source = opened(link=(SquashedBranch(branch="side", merge=squash[:12]),))
    merge = source.merge(source.history()[-1])
    assert merge is not None
    assert [ids(branch.revisions) for branch in merge.branches] == [side]
    with pytest.raises(SourceError, match='no revision "gone"'):
        opened(link=(SquashedBranch(branch="gone", merge=squash),)).history()


def test_the_order_is_gits_for_the_same_history(
    opened: Open, repository: FossilRepository, merged: dict[str, str], tmp_path: Path
) -> None:
    exported = fossil("export", "--git", str(repository.make()), directory=tmp_path)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "g")], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=tmp_path / "g", input=exported.encode(), check=True)
    order = subprocess.run(
        ["git", "log", "--topo-order", "--reverse", "--format=%s", "trunk"],
        cwd=tmp_path / "g", check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert order.stdout.split() == [each.summary for each in opened(walk="all").history()]
