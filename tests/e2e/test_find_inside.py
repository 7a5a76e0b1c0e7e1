"""Searches inside merges on real git histories: the side and the revision of the change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.printing import find_answer, perftrail, program, revisions, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def commit_line(
    repository: Repository, costs: list[int], *, branch: str, onto: str = "", size: int = 1000
) -> list[str]:
    """Commit a line of revisions with these costs."""
    commits: list[str] = []
    for number, cost in enumerate(costs):
        parents = [commits[-1]] if commits else [onto] if onto else []
        files = program(cost, name=f"{branch} {number}", size=size)
        commits.append(repository.commit(files, subject=f"{branch} {number}", parents=parents, branch=branch))
    return commits


def commit_merge(repository: Repository, cost: int, *parents: str, branch: str = "main") -> str:
    """Commit a merge with this cost."""
    return repository.commit(
        program(cost, name=f"merge {parents}"), subject="Merge it", parents=parents, branch=branch
    )


def test_a_change_of_the_combination_alone_names_the_merge(repository: Repository, tmp_path: Path) -> None:
    trunk = commit_line(repository, [100] * 2, branch="main")
    side = commit_line(repository, [100] * 2, branch="side", onto=trunk[0])
    merge = commit_merge(repository, 150, trunk[-1], side[-1])
    commit_line(repository, [150], branch="main", onto=merge)
    study = write_study(tmp_path / "study", repository)
    answer = find_answer(study)
    assert revisions(answer) == [[merge]]
    inside = answer["changes"][0]["inside"]
    assert (inside["origin"], inside["revisions"]) == ("combination", [merge])
    assert "only both sides together cause the change" in perftrail("find", study).stdout


def test_a_change_before_a_merge_is_attributed_to_the_trunk(repository: Repository, tmp_path: Path) -> None:
    start = commit_line(repository, [100] * 2, branch="main")
    side = commit_line(repository, [100] * 2, branch="one", onto=start[0])
    first = commit_merge(repository, 100, start[-1], side[-1])
    trunk = commit_line(repository, [100, 130, 130], branch="main", onto=first)
    other = commit_line(repository, [100] * 2, branch="two", onto=first)
    second = commit_merge(repository, 130, trunk[-1], other[-1])
    study = write_study(
        tmp_path / "study", repository, source=f'walk = "merges"\nrange = "{first}..{second}"'
    )
    answer = find_answer(study)
    assert revisions(answer) == [[second]]
    assert answer["changes"][0]["inside"]["origin"] == "trunk"
    assert "the change came from the trunk" in perftrail("find", study).stdout


def test_a_squashed_branch_is_searched_if_the_study_links_it(repository: Repository, tmp_path: Path) -> None:
    trunk = commit_line(repository, [100] * 2, branch="main")
    side = commit_line(repository, [100, 70], branch="side", onto=trunk[0])
    squash = repository.commit(program(70, name="squashed"), subject="Squash side")
    link = f'[[source.link]]\nbranch = "side"\nmerge = "{squash}"\n'
    answer = find_answer(write_study(tmp_path / "study", repository, source=link))
    assert revisions(answer) == [[squash]]
    inside = answer["changes"][0]["inside"]
    assert (inside["origin"], inside["revisions"]) == ("branch", [side[1]])


@pytest.mark.long
def test_an_octopus_is_searched_in_the_branch_that_has_the_change(
    repository: Repository, tmp_path: Path
) -> None:
    trunk = commit_line(repository, [100] * 4, branch="main")
    one = commit_line(repository, [100] * 3, branch="one", onto=trunk[1])
    two = commit_line(repository, [100, 100, 160], branch="two", onto=trunk[2])
    three = commit_line(repository, [100] * 2, branch="three", onto=trunk[-1])
    merge = commit_merge(repository, 160, trunk[-1], one[-1], two[-1], three[-1])
    commit_line(repository, [160] * 3, branch="main", onto=merge)
    answer = find_answer(write_study(tmp_path / "study", repository))
    assert revisions(answer) == [[merge]]
    inside = answer["changes"][0]["inside"]
    assert (inside["origin"], inside["revisions"]) == ("branch", [two[2]])


@pytest.mark.long
def test_a_search_in_branches_that_merged_each_other_ends(repository: Repository, tmp_path: Path) -> None:
    trunk = commit_line(repository, [100] * 3, branch="main")
    (one,) = commit_line(repository, [100], branch="one", onto=trunk[-1])
    (two,) = commit_line(repository, [145], branch="two", onto=trunk[-1])
    left = commit_merge(repository, 145, one, two, branch="one")
    right = commit_merge(repository, 145, two, one, branch="two")
    merge = commit_merge(repository, 145, commit_merge(repository, 100, trunk[-1], one, branch="main"), right)
    commit_line(repository, [145] * 3, branch="main", onto=commit_merge(repository, 145, merge, left))
    answer = find_answer(write_study(tmp_path / "study", repository))
    assert revisions(answer) == [[merge]]
    inside = answer["changes"][0]["inside"]
    assert (inside["origin"], inside["revisions"]) == ("branch", [two])


def test_a_merge_on_the_branch_is_searched_too(repository: Repository, tmp_path: Path) -> None:
    trunk = commit_line(repository, [100] * 2, branch="main")
    side = commit_line(repository, [100] * 2, branch="side", onto=trunk[0])
    deep = commit_line(repository, [100, 80, 80], branch="deep", onto=side[0])
    inner = commit_merge(repository, 80, side[-1], deep[-1], branch="side")
    (rest,) = commit_line(repository, [80], branch="side", onto=inner)
    merge = commit_merge(repository, 80, trunk[-1], rest)
    answer = find_answer(write_study(tmp_path / "study", repository))
    assert revisions(answer) == [[merge]]
    inside = answer["changes"][0]["inside"]
    assert (inside["origin"], inside["revisions"]) == ("branch", [inner])
    assert (inside["inside"]["origin"], inside["inside"]["revisions"]) == ("branch", [deep[1]])
