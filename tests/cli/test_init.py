"""`init`, then `check`, then `check --try`: from a tree without a study to one that was built and started."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import called
from tests.cli.test_commands import perftrail
from tests.needs import skip_for
from tests.sources.repositories import Repository
from tests.verbs.init.projects import PROJECTS, Project

QUICK = {"make", "cmake", "cargo", "npm"}
"""Systems whose builds take few seconds."""

RELINKED = {"autotools", "go"}
"""Systems whose builds take long, and whose equal projects `test_init_pinning` builds by the same recipe."""


def written(project: Project, directory: Path) -> tuple[Repository, dict[str, Any]]:
    """Return a repository of a project, of two commits, and what `init` found there."""
    repository = Repository(directory / "tiny")
    for note in ("one", "two"):
        repository.commit({**project.files, "NOTES": note})
    done = called("init", "--json", cwd=repository.path)
    assert done.returncode == 0, done.stderr
    return repository, json.loads(done.stdout)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.system)
def test_the_study_of_init_is_valid_and_names_missing_tools(project: Project, tmp_path: Path) -> None:
    repository, found = written(project, tmp_path)
    assert (found["source"]["kind"], found["build"]["system"]) == ("git", project.system)
    assert set(found["build"]["lacking"]) == set(lacking(project)) - {"cc"}
    checked = called("check", "--json", cwd=repository.path)
    assert json.loads(checked.stdout)["revisions"] == 2


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(
            each, marks=[pytest.mark.slow("builds"), *([] if each.system in QUICK else [pytest.mark.long])]
        )
        for each in PROJECTS
        if each.system not in RELINKED
    ],
    ids=lambda project: project.system,
)
def test_the_study_of_init_can_be_built_and_run(project: Project, tmp_path: Path) -> None:
    if missing := lacking(project):
        skip_for(*missing)
    repository, _ = written(project, tmp_path)
    tried = perftrail("check", "--try", "1", "--json", cwd=repository.path)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    report = json.loads(tried.stdout)
    assert (report["built"], report["usable"], report["tried"]) == (
        1,
        1,
        [repository.git("rev-parse", "HEAD").strip()],
    )


def lacking(project: Project) -> list[str]:
    return [tool for tool in project.tools if shutil.which(tool) is None]


def test_init_prints_its_findings_and_the_next_command(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    repository.commit(PROJECTS[3].files)
    done = called("init", str(repository.path), "--output", str(tmp_path / "study"))
    assert done.returncode == 0, done.stderr
    assert "cmake" in done.stdout
    assert "git" in done.stdout
    file = tmp_path / "study" / "perftrail.toml"
    assert done.stdout.splitlines()[-1].endswith(f"perftrail check {file}")


def test_init_does_not_change_an_existing_study(tmp_path: Path) -> None:
    (tmp_path / "perftrail.toml").write_text("mine")
    done = called("init", str(tmp_path))
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (tmp_path / "perftrail.toml").read_text() == "mine"


def test_init_in_an_empty_tree_writes_a_study_that_check_accepts(tmp_path: Path) -> None:
    assert called("init", cwd=tmp_path).returncode == 0
    done = perftrail("check", "--try", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "\x1b[31mred\x07")
    repository.commit({"\x1b[2J/CMakeLists.txt": "add_executable(a a.c)", "a\x07/Makefile": "a: b\n"})
    done = called("init", str(repository.path))
    assert done.returncode == 0, done.stderr
    assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)
    assert called("check", str(repository.path)).returncode == 0
    inside = repository.path / "a\x07"
    inside.mkdir()
    for arguments in ((str(inside),), (str(repository.path), "--output", str(tmp_path))):
        refused = called("init", *arguments)
        assert (refused.returncode, "\x07" in refused.stderr) == (2, False)


def test_check_try_without_a_build_exits_1_and_names_the_line_to_correct(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tiny")
    for note in ("one", "two", "three"):
        repository.commit({"Makefile": "all:\n\tcc -c missing.c\n", "NOTES": note})
    called("init", str(repository.path))
    done = perftrail("check", "--try", "3", str(repository.path))
    assert done.returncode == 1
    assert "nothing was built: all 3 builds failed" in done.stdout
    assert "3 failures at build: " in done.stdout
    assert "missing.c" in done.stdout
    assert "perftrail.toml:18 (build.steps)" in done.stdout.splitlines()[-1]
    known = perftrail("check", "--try", "3", "--json", str(repository.path))
    [failure] = json.loads(known.stdout)["failures"]
    assert (failure["stage"], failure["count"], failure["oldest"]) == ("build", 3, False)


def test_build_options_are_refused_without_builds(tmp_path: Path) -> None:
    done = called("check", "--retry-failed", str(tmp_path))
    assert done.returncode == 2
    assert "--try" in done.stderr
