"""A search for several metrics on a real git history: the table of changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import find_answer, perftrail, program, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

BOTH_CHANGED = 13
SIZE_CHANGED = 24


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A study and its commits: one commit improves cost and worsens size, and a later one worsens size again."""
    root = tmp_path_factory.mktemp("several")
    repository = Repository(root / "repository")
    ids = [
        repository.commit(
            program(
                100 if number < BOTH_CHANGED else 70,
                size=1000 if number < BOTH_CHANGED else 1300 if number < SIZE_CHANGED else 1600,
                name=str(number),
                build="exit 1" if number in (16, 17) else "",
            ),
            subject=f"change {number}",
        )
        for number in range(32)
    ]
    return write_study(root / "study", repository, find='metric = ["cost", "size"]'), ids


@pytest.fixture(scope="module")
def answer(commits: tuple[Path, list[str]]) -> dict[str, Any]:
    return find_answer(commits[0])


def test_each_metric_has_the_answer_of_its_own_search(
    commits: tuple[Path, list[str]], answer: dict[str, Any]
) -> None:
    _, ids = commits
    cost, size = answer["metrics"]
    assert (cost["metric"], cost["verdict"]) == ("cost", "found")
    assert [change["revisions"] for change in cost["changes"]] == [[ids[BOTH_CHANGED]]]
    assert (size["metric"], size["verdict"]) == ("size", "several")
    assert [change["revisions"] for change in size["changes"]] == [[ids[BOTH_CHANGED]], [ids[SIZE_CHANGED]]]


def test_a_search_for_several_metrics_builds_each_revision_once(answer: dict[str, Any]) -> None:
    assert answer["builds"] <= 14
    assert answer["invocations"] <= 160, "with a certificate for each of three changes"
    assert answer["revisions"] == 32


def test_the_table_names_the_revisions_with_improved_and_regressed_metrics(
    commits: tuple[Path, list[str]], answer: dict[str, Any]
) -> None:
    study, ids = commits
    printed = perftrail("find", study).stdout
    first = printed.splitlines()[0]
    assert first.startswith("found: 2 changes in 2 metrics: ")
    assert ids[BOTH_CHANGED][:10] in first
    assert ids[SIZE_CHANGED][:10] in first
    assert f"\n  {ids[BOTH_CHANGED][:10]}: better in cost, worse in size\n" in printed


def test_a_repeated_metric_is_searched_once_and_printed_like_a_single_one(
    commits: tuple[Path, list[str]],
) -> None:
    study, ids = commits
    repeated = find_answer(study, "--metric", "cost", "--metric", "work.cost", "--no-prior")
    assert repeated["verdict"] == "found"
    assert repeated["changes"][0]["revisions"] == [ids[BOTH_CHANGED]]
    assert repeated["priors"] == []


def test_steps_of_the_search_can_be_shown(commits: tuple[Path, list[str]], tmp_path: Path) -> None:
    study, _ = commits
    perftrail("find", study, "--store", tmp_path)
    printed = perftrail("show", study, "--search", "--store", tmp_path).stdout
    assert re.search(r"candidates: work\.cost (\d+|none), work\.size (\d+|none)", printed)
    assert "size several: " in printed


def test_all_metrics_and_one_metric_exclude_each_other(commits: tuple[Path, list[str]]) -> None:
    done = perftrail("find", commits[0], "--all", "--metric", "cost", expect=2)
    assert "--all and --metric" in done.stderr
