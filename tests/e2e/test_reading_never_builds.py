"""Everything measured is shown after a compiler update, without a compiler, in a copy, and on another machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.copied import copy_study
from tests.sources.repositories import Repository
from tests.starting import start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.json_data import Json

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "../repository"

[build]
steps = ["cc -O1 -o program main.c"]
pin = false
outputs = ["program"]

[benchmark.it]
command = "{build}/program"
metrics = { cost = { pattern = 'cost ([0-9]+)' } }

[measure]
warmups = 0
invocations = 2
"""
MAIN = '#include <stdio.h>\nint main(void) { printf("cost %d\\n", 4 * COST); return 0; }\n'
COSTS = [4.0, 8.0, 12.0]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a measured study and its repository."""
    root = tmp_path_factory.mktemp("measured")
    repository = Repository(root / "repository")
    for cost in (1, 2, 3):
        repository.commit({"main.c": f"#define COST {cost}\n{MAIN}"})
    (root / "study").mkdir()
    (root / "study" / "perftrail.toml").write_text(STUDY)
    perftrail("run", root / "study")
    return root


@pytest.fixture
def copied(measured: Path, tmp_path: Path) -> Path:
    """A copy of the directory, which a test may change."""
    return copy_study(measured, tmp_path / "copy")


def perftrail(*words: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run perftrail in an environment."""
    done = start(*map(str, words), env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stderr
    return done


def rows(*words: object, env: Mapping[str, str] | None = None) -> list[dict[str, Json]]:
    return costs_in(perftrail("show", *words, "--json", env=env).stdout)


def costs_in(text: str) -> list[dict[str, Json]]:
    """Return the rows of the metric `cost` in what `show --json` printed."""
    found: list[dict[str, Json]] = json.loads(text)
    return [row for row in found if row["metric"] == "cost"]


ON_ONE_CPU = """\
import contextlib, io, json, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import perftrail
from perftrail.cli.main import main
study, store, report = sys.argv[1:]

def printed(*words):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*words, "--store", store])
    return output.getvalue()

rows = perftrail.open(study, store=store).samples().to_pylist()
print(json.dumps({
    "json": printed("show", study, "--json"),
    "shown": printed("show", study),
    "report": printed("report", study, "--format", "markdown", "-o", report),
    "costs": sorted(row["value"] for row in rows if row["metric"] == "cost"),
}))
"""
"""What perftrail prints on one CPU, which is another machine to it; one process, as each costs a second."""


def costs(found: list[dict[str, Json]]) -> list[Json]:
    return [each["estimate"]["value"] for each in found if isinstance(each["estimate"], dict)]


def path_of(*names: str, at: Path) -> dict[str, str]:
    """Return an environment whose search path has only these programs."""
    at.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None, name
        (at / name).symlink_to(found)
    return {"PATH": str(at)}


def newer_compiler(at: Path) -> dict[str, str]:
    """Return an environment whose `cc` is of another version."""
    at.mkdir()
    real = shutil.which("cc")
    program = at / "cc"
    program.write_text(f'#!/bin/sh\ncase "$*" in --version) echo "cc 99.1.0";; *) exec {real} "$@";; esac\n')
    program.chmod(0o755)
    return {"PATH": f"{at}:{os.environ['PATH']}"}


def test_after_a_compiler_update_every_sample_is_shown_and_labelled(copied: Path, tmp_path: Path) -> None:
    env = newer_compiler(tmp_path / "bin")
    found = rows(copied / "study", env=env)
    assert costs(found) == COSTS
    assert {row["outdated"] for row in found} == {"other toolchain"}
    shown = perftrail("show", copied / "study", env=env).stdout
    assert "All 3 measured points are from another toolchain (then “cc: " in shown
    assert "now “cc: cc 99.1.0”). Measure again with: perftrail run" in shown
    report = perftrail("report", copied / "study", "--format", "markdown", "-o", tmp_path / "r", env=env)
    assert report.returncode == 0
    page = next((tmp_path / "r").glob("*.md")).read_text()
    assert "another toolchain" in page


def test_a_run_after_an_update_reports_reused_samples_with_the_reason(copied: Path, tmp_path: Path) -> None:
    env = newer_compiler(tmp_path / "bin")
    ran = perftrail("run", copied / "study", "--json", env=env)
    assert "all 3 measured points are from another toolchain (then “cc: " in ran.stderr
    assert "perftrail reuses these samples only if the new build is identical" in ran.stderr
    assert json.loads(ran.stdout)["invocations"] == 0, "this compiler writes the same bytes"
    assert {row["outdated"] for row in rows(copied / "study", env=env)} == {""}


def test_samples_of_an_older_recipe_are_shown_until_there_are_new_ones(copied: Path) -> None:
    file = copied / "study" / "perftrail.toml"
    file.write_text(STUDY.replace("-O1", "-O1 -DNDEBUG -g"))
    found = rows(copied / "study")
    assert costs(found) == COSTS
    assert {row["outdated"] for row in found} == {"older recipe"}
    shown = perftrail("show", copied / "study").stdout
    assert "from an older recipe (then “cc -O1 -o program main.c”, now “cc -O1 -DNDEBUG -g -o" in shown
    perftrail("run", copied / "study")
    assert {row["outdated"] for row in rows(copied / "study")} == {""}
    assert (
        "3 measured points also have samples of another recipe" in perftrail("show", copied / "study").stdout
    )
    file.write_text(STUDY)
    assert {row["outdated"] for row in rows(copied / "study")} == {""}, "the first samples are valid again"


def test_without_a_compiler_every_sample_is_shown(copied: Path, tmp_path: Path) -> None:
    env = path_of("git", "sh", at=tmp_path / "bin")
    found = rows(copied / "study", env=env)
    assert costs(found) == COSTS
    assert {row["outdated"] for row in found} == {""}


def test_a_copied_directory_shows_every_sample(measured: Path, tmp_path: Path) -> None:
    copied = copy_study(measured / "study", tmp_path / "elsewhere" / "study")
    found = rows(copied)
    assert costs(found) == COSTS
    shown = perftrail("show", copied).stdout
    assert "This is the history of the stored samples, because perftrail cannot read the source:" in shown
    exported = perftrail("export", copied, "--format", "csv", "-o", tmp_path / "samples.csv")
    assert exported.returncode == 0
    assert (tmp_path / "samples.csv").read_text().count(",cost,") == 2 * len(COSTS)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU less is another machine")
def test_a_colleague_with_only_the_study_and_the_stores_file_sees_every_sample(
    measured: Path, tmp_path: Path
) -> None:
    here = tmp_path / "laptop"
    here.mkdir()
    shutil.copy(measured / "study" / "perftrail.toml", here)
    shutil.copy(measured / "study" / ".perftrail" / "results.db", here / "from-a-colleague.db")
    env = {**path_of("sh", at=tmp_path / "bin"), "HOME": str(here), "XDG_CACHE_HOME": str(here / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", ON_ONE_CPU, here, here / "from-a-colleague.db", here / "report"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    found = costs_in(printed["json"])
    assert costs(found) == COSTS
    assert {row["outdated"] for row in found} == {""}
    assert "These samples are from another machine (" in printed["shown"]
    assert "because this one has none. Measure here with: perftrail run" in printed["shown"]
    assert "from another machine" in next((here / "report").glob("*.md")).read_text()
    assert printed["costs"] == sorted(2 * COSTS)
    revisions = [str(row["revision"]) for row in found]
    assert [each["revision"] for each in rows(measured / "study")] == revisions, "in the order of the history"


def test_samples_without_a_metric_that_was_added_are_not_of_an_older_recipe(copied: Path) -> None:
    file = copied / "study" / "perftrail.toml"
    added = "cost = { pattern = 'cost ([0-9]+)' }, digits = { pattern = 'cost [0-9]*([0-9])' }"
    file.write_text(STUDY.replace("cost = { pattern = 'cost ([0-9]+)' }", added))
    found = rows(copied / "study")
    assert costs(found) == COSTS
    assert {row["outdated"] for row in found} == {"new metric"}
    shown = perftrail("show", copied / "study").stdout
    assert (
        "All 3 measured points have no digits yet. Read it from stored outputs with: perftrail run" in shown
    )
    assert "older recipe" not in shown
    file.write_text(file.read_text().replace("-O1", "-O1 -DNDEBUG -g"))
    assert {row["outdated"] for row in rows(copied / "study")} == {"older recipe"}
