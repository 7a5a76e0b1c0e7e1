"""A search end to end: a real git history, real builds, real invocations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.histories import History, make_history, write_study
from tests.starting import start

CULPRIT = 37
LONG = 40_000_000
"""Steps beside which starting a program is nothing: its time goes as its steps."""

UNBUILDABLE = range(30, 35)

pytestmark = pytest.mark.slow


def perftrail(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = start(*arguments)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> History:
    root = tmp_path_factory.mktemp("changed")
    return make_history(root / "repository", commits=60, culprit=CULPRIT, unbuildable=UNBUILDABLE, steps=LONG)


@pytest.fixture(scope="module")
def found(changed: History, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    study = write_study(tmp_path_factory.mktemp("found") / "study", changed)
    return study, answer_of(perftrail("find", str(study), "--json"))


def test_the_planted_culprit_is_found_with_its_probability_and_effect(
    changed: History, found: tuple[Path, dict[str, Any]]
) -> None:
    _, answer = found
    assert answer["verdict"] == "found", answer
    [change] = answer["changes"]
    assert change["revisions"] == [changed.commits[CULPRIT]]
    assert change["confidence"] >= 0.99
    assert change["effect"]["low"] / 1.05 <= 1.6 <= change["effect"]["high"] * 1.05
    assert change["inside"] is None


def test_the_history_follows_parents_and_not_dates(
    changed: History, found: tuple[Path, dict[str, Any]]
) -> None:
    study, answer = found
    assert answer["revisions"] == 60
    plan = json.loads(perftrail("check", str(study), "--json").stdout)
    assert (plan["first"], plan["last"]) == (changed.commits[0], changed.commits[-1])


def test_only_a_few_revisions_are_built(found: tuple[Path, dict[str, Any]]) -> None:
    _, answer = found
    assert answer["builds"] <= 16


def test_a_culprit_behind_an_unbuildable_range_is_a_range(tmp_path: Path) -> None:
    history = make_history(tmp_path / "repository", commits=24, culprit=10, unbuildable=range(8, 12))
    answer = answer_of(perftrail("find", str(write_study(tmp_path / "study", history)), "--json"))
    assert answer["verdict"] == "range", answer
    [change] = answer["changes"]
    assert change["revisions"] == list(history.commits[8:13])
    assert set(answer["unbuildable"]) <= history.unbuildable
    assert {failure["stage"] for failure in answer["failures"]} == {"build"}


def test_a_history_without_a_change_has_no_culprit(tmp_path: Path) -> None:
    history = make_history(tmp_path / "repository", commits=20, culprit=None, unbuildable=range(8, 10))
    answer = answer_of(perftrail("find", str(write_study(tmp_path / "study", history)), "--json"))
    assert answer["verdict"] == "none", answer
    assert answer["changes"] == []
    assert answer["minimum_detectable"] <= 0.2


def test_hostile_commit_messages_are_escaped(changed: History, found: tuple[Path, dict[str, Any]]) -> None:
    study, _ = found
    shown = perftrail("show", str(study), "--search")
    again = perftrail("find", str(study))
    for text in (shown.stdout, again.stdout, again.stderr):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert not list(changed.repository.parent.rglob("pwned"))
    assert not list(study.parent.rglob("pwned"))


def test_a_repeated_search_measures_nothing_and_has_the_same_answer(
    found: tuple[Path, dict[str, Any]],
) -> None:
    study, answer = found
    assert answer_of(perftrail("find", str(study), "--json")) == answer


def test_the_search_is_replayed_in_words(found: tuple[Path, dict[str, Any]]) -> None:
    study, answer = found
    told = json.loads(perftrail("show", str(study), "--search", "--json").stdout)
    assert told["answer"]["verdict"] == "found"
    assert [step["number"] for step in told["steps"]] == list(range(1, len(told["steps"]) + 1))
    assert all(step["words"] for step in told["steps"])
    assert answer["builds"] == len({step["action"]["position"] for step in told["steps"]})


def test_the_first_line_for_people_names_the_culprit(
    changed: History, found: tuple[Path, dict[str, Any]]
) -> None:
    study, _ = found
    first = perftrail("find", str(study)).stdout.splitlines()[0]
    assert first.startswith("found: ")
    assert changed.commits[CULPRIT][:10] in first
    assert "probability" in first


def test_the_users_repository_is_unchanged(
    changed: History,
    found: tuple[Path, dict[str, Any]],
) -> None:
    git = ["git", "-C", str(changed.repository)]
    assert not subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=True).stdout
    worktrees = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(worktrees.splitlines()) == 1
