"""Merges in real git repositories: branches, squashes, octopuses and criss-cross merges."""

from __future__ import annotations

import pytest

from perftrail.errors import SourceError
from perftrail.model.source import SquashedBranch
from perftrail.model.subject import Merge, Revision
from perftrail.sources.git import GitSource
from tests.sources.git.opening import Open
from tests.sources.repositories import Repository


def lines(merge: Merge | None) -> list[tuple[str | None, list[str]]]:
    assert merge is not None
    return [
        (branch.base.id if branch.base else None, [each.id for each in branch.revisions])
        for branch in merge.branches
    ]


def last(source: GitSource) -> Revision:
    return source.history()[-1]


def branch_of(repository: Repository, count: int, *, branch: str, onto: str = "") -> list[str]:
    created: list[str] = []
    for number in range(count):
        parents = [created[-1]] if created else [onto] if onto else []
        text = f"{branch} {number}"
        created.append(repository.commit({branch: text}, subject=text, parents=parents, branch=branch))
    return created


def test_a_merge_gives_its_trunk_and_its_branch_oldest_first(repository: Repository, opened: Open) -> None:
    trunk = branch_of(repository, 3, branch="main")
    side = branch_of(repository, 4, branch="side", onto=trunk[0])
    repository.commit({"main": "joined"}, parents=[trunk[2], side[-1]])
    source = opened()
    merge = source.merge(last(source))
    assert lines(merge) == [(trunk[0], side)]
    assert merge is not None
    assert merge.trunk.id == trunk[2]
    assert merge.branches[0].tip.summary == "side 3"


def test_a_commit_with_one_parent_joined_nothing(repository: Repository, opened: Open) -> None:
    branch_of(repository, 2, branch="main")
    source = opened()
    assert [source.merge(revision) for revision in source.history()] == [None, None]


def test_an_octopus_gives_each_of_its_branches(repository: Repository, opened: Open) -> None:
    (root,) = branch_of(repository, 1, branch="main")
    sides = [branch_of(repository, number + 1, branch=f"side{number}", onto=root) for number in range(3)]
    repository.commit({"main": "joined"}, parents=[root, *(side[-1] for side in sides)])
    source = opened()
    assert lines(source.merge(last(source))) == [(root, side) for side in sides]


def test_lines_that_merged_each_other_crosswise_end(repository: Repository, opened: Open) -> None:
    (root,) = branch_of(repository, 1, branch="main")
    (one,) = branch_of(repository, 1, branch="one", onto=root)
    (two,) = branch_of(repository, 1, branch="two", onto=root)
    left = repository.commit({"f": "left"}, parents=[one, two], branch="one")
    right = repository.commit({"f": "right"}, parents=[two, one], branch="two")
    repository.commit({"f": "both"}, parents=[left, right])
    source = opened()
    revision = last(source)
    assert lines(source.merge(revision)) == [(two, [right])]
    right_revision = source.merge(revision).branches[0].tip  # type: ignore[union-attr] # asserted above
    assert lines(source.merge(right_revision)) == [(root, [one])]


def test_a_merge_without_common_history_has_no_base(repository: Repository, opened: Open) -> None:
    trunk = branch_of(repository, 2, branch="main")
    foreign = branch_of(repository, 2, branch="foreign")
    repository.commit({"main": "joined"}, parents=[trunk[-1], foreign[-1]])
    source = opened()
    assert lines(source.merge(last(source))) == [(None, foreign)]


def test_a_parent_that_the_trunk_contains_brought_nothing(repository: Repository, opened: Open) -> None:
    trunk = branch_of(repository, 3, branch="main")
    repository.commit({"main": "joined"}, parents=[trunk[-1], trunk[0]])
    source = opened()
    assert source.merge(last(source)) is None


def test_a_squashed_branch_counts_as_joined_where_the_study_links_it(
    repository: Repository, opened: Open
) -> None:
    trunk = branch_of(repository, 2, branch="main")
    side = branch_of(repository, 3, branch="side", onto=trunk[0])
    squash = repository.commit({"main": "squashed"})
    source = opened(link=(SquashedBranch(branch="side", merge=squash[:12]),))
    assert lines(source.merge(last(source))) == [(trunk[0], side)]
    assert source.merge(source.history()[1]) is None


def test_a_dangling_link_is_reported_when_the_history_is_read(repository: Repository, opened: Open) -> None:
    branch_of(repository, 2, branch="main")
    with pytest.raises(SourceError, match='no revision "sied"'):
        opened(link=(SquashedBranch(branch="sied", merge="main"),)).history()


def test_the_paths_that_each_revision_touches_are_compared_with_its_parent(
    repository: Repository, opened: Open
) -> None:
    root = repository.commit({"a": "1", "b": "1"})
    side = repository.commit({"a": "1", "b": "1", "new\nline": "1"}, parents=[root], branch="side")
    straight = repository.commit({"a": "2", "b": "1"}, parents=[root])
    repository.commit({"a": "2", "b": "1", "new\nline": "1"}, parents=[straight, side])
    source = opened(walk="all")
    touched = {
        each.id: paths for each, paths in zip(source.history(), source.touched(source.history()), strict=True)
    }
    assert touched[root] == ()
    assert touched[straight] == ("a",)
    assert touched[side] == ('"new\\nline"',)
    assert touched[last(source).id] == ('"new\\nline"',)


def test_revisions_chosen_among_others_are_compared_with_the_one_chosen_before(
    repository: Repository, opened: Open
) -> None:
    repository.tag("v1", repository.commit({"a": "1"}))
    repository.commit({"a": "2"})
    repository.tag("v2", repository.commit({"a": "2", "b": "1"}))
    source = opened(walk="tags", range="v1..v2")
    assert source.touched(source.history()) == ((), ("a", "b"))
