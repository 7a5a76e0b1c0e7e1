"""A search for several metrics on a real git history: the table of changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.printing import find_answer, perftrail, program, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

REVISIONS = 14
BOTH_CHANGED = 4
BROKEN = (6, 7)
SIZE_CHANGED = 10


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
                build="exit 1" if number in BROKEN else "",
            ),
            subject=f"change {number}",
        )
        for number in range(REVISIONS)
    ]
    return write_study(root / "study", repository, find='metric = ["cost", "size"]'), ids


class Printed(NamedTuple):
    """What the search, its steps and the report print."""

    table: str
    steps: str
    report: str


@pytest.fixture(scope="module")
def printed(commits: tuple[Path, list[str]]) -> Printed:
    study, _ = commits
    return Printed(
        perftrail("find", study).stdout,
        perftrail("show", study, "--search").stdout,
        perftrail("report", study, "--format", "markdown").stdout,
    )


@pytest.fixture(scope="module")
def answer(commits: tuple[Path, list[str]], printed: Printed) -> dict[str, Any]:
    assert printed.table, "the search is stored"
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
    assert answer["invocations"] <= 160, "with rounds for each of three changes"
    assert answer["revisions"] == REVISIONS


def test_the_table_names_the_revisions_with_improved_and_regressed_metrics(
    commits: tuple[Path, list[str]], printed: Printed
) -> None:
    _, ids = commits
    first = printed.table.splitlines()[0]
    assert first.startswith("found: 2 changes in 2 metrics: ")
    assert ids[BOTH_CHANGED][:10] in first
    assert ids[SIZE_CHANGED][:10] in first
    assert f"\n  {ids[BOTH_CHANGED][:10]}: better in cost, worse in size\n" in printed.table


def test_a_repeated_metric_is_searched_once_and_printed_like_a_single_one(
    commits: tuple[Path, list[str]],
) -> None:
    study, ids = commits
    repeated = find_answer(study, "--metric", "cost", "--metric", "work.cost", "--no-prior")
    assert repeated["verdict"] == "found"
    assert repeated["changes"][0]["revisions"] == [ids[BOTH_CHANGED]]
    assert repeated["priors"] == []


def test_steps_of_the_search_can_be_shown(printed: Printed) -> None:
    assert re.search(r"candidates: work\.cost (\d+|none), work\.size (\d+|none)", printed.steps)
    assert "size several: " in printed.steps


def test_unusable_revisions_are_counted_in_json_and_in_the_report(
    answer: dict[str, Any], printed: Printed
) -> None:
    assert 0 < answer["unusable"] <= len(BROKEN)
    assert f"built, {answer['unusable']} of them unusable" in printed.report


def test_all_metrics_and_one_metric_exclude_each_other(commits: tuple[Path, list[str]]) -> None:
    done = perftrail("find", commits[0], "--all", "--metric", "cost", expect=2)
    assert "--all and --metric" in done.stderr
