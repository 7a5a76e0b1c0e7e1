"""The contest on real repositories: both searches run, and their answers are read rightly."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bisect.contest import Said, bisect, find
from benchmarks.bisect.history import git, make


def test_the_history_has_its_step_where_it_is_said_to(tmp_path: Path) -> None:
    history = make(tmp_path / "repository", commits=12, culprit=5)
    assert len(history.commits) == 12
    levels = [git(history.repository, "show", f"{commit}:level.h").split()[-1] for commit in history.commits]
    assert levels == ["100.0"] * 5 + ["110.5"] * 7


def test_a_range_with_the_culprit_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    history = make(tmp_path / "repository", commits=4, culprit=2)
    said = Said(commits=history.commits[1:3], verdict="range", builds=1, runs=1)
    assert not said.is_right(history)
    assert not said.accuses(history)


@pytest.mark.slow
def test_both_searches_answer(tmp_path: Path) -> None:
    history = make(tmp_path / "repository", commits=20, culprit=7)
    said = bisect(history, 1)
    assert len(said.commits) == 1
    assert said.runs >= 4
    found = find(history, 1)
    assert found.is_right(history)
    assert not git(history.repository, "status", "--porcelain", "--untracked-files=no")
