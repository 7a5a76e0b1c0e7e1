"""`perftrail find --range ..HEAD`: the search finds the old end itself, and resumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.printing import find_answer, perftrail, program, revisions, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

DAY = 86_400


def history(path: Path, *, tagged: bool = False) -> tuple[Repository, list[str]]:
    """Ten commits, three days apart: the cost grows at the second and at the sixth, the seventh is broken."""
    repository = Repository(path)
    commits = []
    for number in range(10):
        cost = 50 if number < 1 else 100 if number < 5 else 140
        files = program(cost, name=str(number), build="exit 1" if number == 6 else "")
        commits.append(
            repository.commit(files, subject=f"Commit {number}", date=1_700_000_000 + number * 3 * DAY)
        )
        if tagged and number % 2 == 1:
            repository.tag(f"v1.{number}", commits[-1])
    return repository, commits


def test_the_nearest_range_with_a_change_is_searched_and_a_repeated_search_starts_nothing(
    tmp_path: Path,
) -> None:
    repository, commits = history(tmp_path / "repository")
    study = write_study(tmp_path / "study", repository)
    done = perftrail("find", study, "--range", "..HEAD")
    assert done.stdout.startswith(f"found: {commits[5][:10]} “Commit 5” changed cost: 40 % more (worse; ")
    steps = [line for line in done.stderr.splitlines() if "searching from further back" in line]
    assert len(steps) == 2  # 3 and 7 days; the revision of 7 days does not build
    assert steps[0].endswith(f"change since {commits[8][:10]} (2023-12-08); searching from further back")
    again = perftrail("find", study, "--range", "..HEAD")
    assert again.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert "all of them stored before" in again.stdout
    # the whole history has another change, so the range named by the study is another question
    assert len(revisions(find_answer(study))) == 2


def test_with_tags_the_steps_are_releases(tmp_path: Path) -> None:
    repository, commits = history(tmp_path / "repository", tagged=True)
    study = write_study(tmp_path / "study", repository, source='walk = "tags"')
    done = perftrail("find", study, "--range", "..main", "--json")
    assert commits[5] in done.stdout
    assert done.stderr.count("searching from further back") == 2


def test_the_revision_that_broke_a_program_is_found_without_a_good_one(tmp_path: Path) -> None:
    repository, commits = history(tmp_path / "repository")
    study = write_study(tmp_path / "study", repository)
    answer = find_answer(study, "--metric", "works", "--range", f"..{commits[6]}")
    assert revisions(answer) == [[commits[6]]]
    assert answer["revisions"] == 2


def test_the_budget_is_that_of_all_ranges(tmp_path: Path) -> None:
    repository, _ = history(tmp_path / "repository")
    study = write_study(tmp_path / "study", repository)
    done = perftrail("find", study, "--range", "..HEAD", "--budget", "1ms", expect=1)
    assert done.stderr.count("searching from further back") == 0
    assert "the time budget is spent" in done.stdout
