"""Opening a study: the place of its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail import studyfile
from perftrail.opening import open_build_view, open_view
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


def test_git_status_does_not_list_the_results_after_the_first_check(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for cost in (100, 140):
        repository.commit(program(cost), subject=f"{cost}")
    study = studyfile.load(str(write_study(tmp_path / "study", repository)))
    with open_build_view(study, store=None) as view:
        view.source.history()
    results = tmp_path / "study" / ".perftrail"
    assert (results / "sources").is_dir()
    assert (results / ".gitignore").read_text() == "*\n"
