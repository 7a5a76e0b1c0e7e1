"""Opening a study: the place of its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.opening import open_view
from tests.e2e.printing import program, write_study
from tests.sources.repositories import Repository


def test_results_may_be_named_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started programs work in other directories, and must still find the paths."""
    repository = Repository(tmp_path / "repository")
    commits = [repository.commit(program(cost), subject=f"{cost}") for cost in (100, 140)]
    study = studyfile.load(str(write_study(tmp_path / "study", repository)))
    monkeypatch.chdir(tmp_path)
    with open_view(study, store="results") as view:
        assert [revision.id for revision in view.source.history()] == commits
    assert (tmp_path / "results" / "sources").is_dir()
