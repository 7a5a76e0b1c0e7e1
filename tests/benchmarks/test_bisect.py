"""The comparison on real repositories: both searches run, and their answers are read correctly."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bisect.history import create_history, git
from benchmarks.bisect.searches import SearchAnswer, bisect, find


def test_the_history_has_its_step_at_the_culprit(tmp_path: Path) -> None:
    history = create_history(tmp_path / "repository", commits=12, culprit=5)
    assert len(history.commits) == 12
    levels = [git(history.repository, "show", f"{commit}:level.h").split()[-1] for commit in history.commits]
    assert levels == ["100.0"] * 5 + ["110.5"] * 7


def test_a_range_with_the_culprit_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    history = create_history(tmp_path / "repository", commits=4, culprit=2)
    answer = SearchAnswer(commits=history.commits[1:3], verdict="range", builds=1, runs=1)
    assert not answer.is_right(history)
    assert not answer.names_only_others(history)


@pytest.mark.slow("processor")
def test_both_searches_answer(tmp_path: Path) -> None:
    history = create_history(tmp_path / "repository", commits=20, culprit=7)
    answer = bisect(history, 1)
    assert len(answer.commits) == 1
    assert answer.runs >= 4
    found = find(history, 1)
    assert found.is_right(history)
    assert not git(history.repository, "status", "--porcelain", "--untracked-files=no")
