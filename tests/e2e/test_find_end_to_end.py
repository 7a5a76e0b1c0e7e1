"""A search end to end: a real git history, real builds, real invocations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.histories import STUDY, History, make_history, write_study
from tests.starting import start

REVISIONS = 30
CULPRIT = 18
MANY_STEPS = 20_000_000
"""So many steps that the time to start the program does not matter."""

UNBUILDABLE = range(12, 16)

pytestmark = pytest.mark.slow("starts")


def perftrail(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = start(*arguments)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    root = tmp_path_factory.mktemp("changed")
    return make_history(
        root / "repository", commits=REVISIONS, culprit=CULPRIT, unbuildable=UNBUILDABLE, steps=MANY_STEPS
    )


@pytest.fixture(scope="module")
def searched(history: History, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    # Builds that cost less than three samples would be spread over the whole history.
    text = STUDY.replace('steps = ["make"]\npin = false', 'steps = ["sleep 0.5", "make"]')
    study = write_study(tmp_path_factory.mktemp("found") / "study", history, text)
    return study, answer_of(perftrail("find", str(study), "--json"))


def test_the_planted_culprit_is_found_with_its_probability_and_effect(
    history: History, searched: tuple[Path, dict[str, Any]]
) -> None:
    _, answer = searched
    assert answer["verdict"] == "found", answer
    [change] = answer["changes"]
    assert change["revisions"] == [history.commits[CULPRIT]]
    assert change["confidence"] >= 0.99
    assert change["effect"]["low"] / 1.05 <= 1.6 <= change["effect"]["high"] * 1.05
    assert change["inside"] is None


def test_the_history_follows_parents_and_not_dates(
    history: History, searched: tuple[Path, dict[str, Any]]
) -> None:
    study, answer = searched
    assert answer["revisions"] == REVISIONS
    plan = json.loads(perftrail("check", str(study), "--json").stdout)
    assert (plan["first"], plan["last"]) == (history.commits[0], history.commits[-1])


def test_only_a_few_revisions_are_built(searched: tuple[Path, dict[str, Any]]) -> None:
    _, answer = searched
    assert answer["builds"] <= 16


@pytest.mark.long
def test_a_culprit_behind_an_unbuildable_range_is_a_range(tmp_path: Path) -> None:
    history = make_history(tmp_path / "repository", commits=12, culprit=6, unbuildable=range(4, 8))
    answer = answer_of(perftrail("find", str(write_study(tmp_path / "study", history)), "--json"))
    assert answer["verdict"] == "range", answer
    [change] = answer["changes"]
    assert change["revisions"] == list(history.commits[4:9])
    assert set(answer["unbuildable"]) <= history.unbuildable
    assert {failure["stage"] for failure in answer["failures"]} == {"build"}


@pytest.mark.long
def test_a_history_without_a_change_has_no_culprit(tmp_path: Path) -> None:
    history = make_history(tmp_path / "repository", commits=10, culprit=None, unbuildable=range(4, 6))
    answer = answer_of(perftrail("find", str(write_study(tmp_path / "study", history)), "--json"))
    assert answer["verdict"] == "none", answer
    assert answer["changes"] == []
    assert answer["minimum_detectable"] <= 0.2


@pytest.fixture(scope="module")
def repeated(searched: tuple[Path, dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    return perftrail("find", str(searched[0]))


def test_hostile_commit_messages_are_escaped(
    history: History,
    searched: tuple[Path, dict[str, Any]],
    repeated: subprocess.CompletedProcess[str],
) -> None:
    study, _ = searched
    shown = perftrail("show", str(study), "--search")
    for text in (shown.stdout, repeated.stdout, repeated.stderr):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert not list(history.repository.parent.rglob("pwned"))
    assert not list(study.parent.rglob("pwned"))


def test_a_repeated_search_measures_nothing_and_names_the_culprit_first(
    history: History, repeated: subprocess.CompletedProcess[str]
) -> None:
    assert repeated.stderr.splitlines()[-1].endswith(" stored steps, no new step")
    first = repeated.stdout.splitlines()[0]
    assert first.startswith("found: ")
    assert history.commits[CULPRIT][:10] in first
    assert "probability" in first


def test_the_search_is_replayed_in_words(searched: tuple[Path, dict[str, Any]]) -> None:
    study, answer = searched
    shown = json.loads(perftrail("show", str(study), "--search", "--json").stdout)
    assert shown["answer"]["verdict"] == "found"
    assert shown["answer"]["changes"] == answer["changes"], "a repeated search has the same answer"
    assert [step["number"] for step in shown["steps"]] == list(range(1, len(shown["steps"]) + 1))
    assert all(step["words"] for step in shown["steps"])
    ran = {revision for step in shown["steps"] for revision in step["action"]["order"]}
    assert answer["builds"] == len(ran)
    failed = {step["action"]["measure"] for step in shown["steps"] if "unusable" in step["observation"]}
    assert failed == set(answer["unbuildable"]), "the step of a failed build is about this build"


def test_the_users_repository_is_unchanged(
    history: History,
    searched: tuple[Path, dict[str, Any]],
) -> None:
    git = ["git", "-C", str(history.repository)]
    assert not subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=True).stdout
    worktrees = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(worktrees.splitlines()) == 1
