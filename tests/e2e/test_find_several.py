"""A search for several metrics on a real git history: the table of changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import found, perftrail, program, write
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow

BOTH = 13
ROOM = 24


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A study of a history in which one revision makes cost better and room worse, and another room worse again."""
    root = tmp_path_factory.mktemp("several")
    repository = Repository(root / "repository")
    made = [
        repository.commit(
            program(
                100 if number < BOTH else 70,
                room=1000 if number < BOTH else 1300 if number < ROOM else 1600,
                name=str(number),
                build="exit 1" if number in (16, 17) else "",
            ),
            subject=f"change {number}",
        )
        for number in range(32)
    ]
    return write(root / "study", repository, find='metric = ["cost", "room"]'), made


@pytest.fixture(scope="module")
def answer(commits: tuple[Path, list[str]]) -> dict[str, Any]:
    return found(commits[0])


def test_each_metric_has_the_answer_of_its_own_search(
    commits: tuple[Path, list[str]], answer: dict[str, Any]
) -> None:
    _, made = commits
    cost, room = answer["metrics"]
    assert (cost["metric"], cost["verdict"]) == ("cost", "found")
    assert [change["revisions"] for change in cost["changes"]] == [[made[BOTH]]]
    assert (room["metric"], room["verdict"]) == ("room", "several")
    assert [change["revisions"] for change in room["changes"]] == [[made[BOTH]], [made[ROOM]]]


def test_a_search_for_several_metrics_builds_each_revision_once(answer: dict[str, Any]) -> None:
    assert answer["builds"] <= 14
    assert answer["invocations"] <= 160, "with a certificate for each of three changes"
    assert answer["revisions"] == 32


def test_the_table_names_the_revisions_with_improved_and_regressed_metrics(
    commits: tuple[Path, list[str]], answer: dict[str, Any]
) -> None:
    study, made = commits
    printed = perftrail("find", study).stdout
    first = printed.splitlines()[0]
    assert first.startswith("found: 2 changes in 2 metrics: ")
    assert made[BOTH][:10] in first
    assert made[ROOM][:10] in first
    assert "better in cost, worse in room" in printed


def test_a_repeated_metric_is_searched_once_and_printed_like_a_single_one(
    commits: tuple[Path, list[str]],
) -> None:
    study, made = commits
    alone = found(study, "--metric", "cost", "--metric", "work.cost", "--no-prior")
    assert alone["verdict"] == "found"
    assert alone["changes"][0]["revisions"] == [made[BOTH]]
    assert alone["priors"] == []


def test_steps_of_the_search_can_be_shown(commits: tuple[Path, list[str]], tmp_path: Path) -> None:
    study, _ = commits
    perftrail("find", study, "--store", tmp_path)
    printed = perftrail("show", study, "--search", "--store", tmp_path).stdout
    assert re.search(r"candidates: work\.cost (\d+|none), work\.room (\d+|none)", printed)
    assert "room several: " in printed


def test_all_metrics_and_one_metric_exclude_each_other(commits: tuple[Path, list[str]]) -> None:
    done = perftrail("find", commits[0], "--all", "--metric", "cost", expect=2)
    assert "--all and --metric" in done.stderr
