"""A search that stops because everything fails names the correct line of the study file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, program, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[str]]:
    """Six revisions, oldest first."""
    repository = Repository(tmp_path_factory.mktemp("history") / "repository")
    ids = [
        repository.commit(program(100, name=f"{number}"), subject=f"Commit {number}") for number in range(6)
    ]
    return repository, ids


@pytest.fixture
def study(history: tuple[Repository, list[str]], tmp_path: Path) -> Path:
    """A study of the revisions with two variants, a second benchmark, and two eras."""
    repository, ids = history
    file = write_study(tmp_path / "study", repository)
    tables = f"""
[variants.plain]
[variants.fast]
build.steps = ["sh ./build.sh"]
build.outputs = ["program"]
run.prefix = ["env"]

[benchmark.other]
build = ["cp {{build}}/program {{out}}/other"]
command = "{{out}}/other"

[[build.when]]
range = "..{ids[5]}"
steps = ["sh ./build.sh"]
[[build.when]]
range = "..{ids[5]}"
env = {{ UNUSED = "1" }}
"""
    file.write_text(file.read_text() + tables)
    return file


def line_with(study: Path, text: str) -> int:
    """Return the number of the last line that contains a text."""
    return [number for number, line in enumerate(study.read_text().splitlines(), 1) if text in line][-1]


@pytest.mark.parametrize(
    ("old", "new", "options", "key"),
    [
        (
            'build.steps = ["sh ./build.sh"]',
            'build.steps = ["sh ./biuld.sh"]',
            ["--metric", "work.wall", "--variant", "fast"],
            "variants.fast.build.steps",
        ),
        (
            'build.outputs = ["program"]',
            'build.outputs = ["progarm"]',
            ["--metric", "work.wall", "--variant", "fast"],
            "variants.fast.build.outputs",
        ),
        (
            'run.prefix = ["env"]',
            'run.prefix = ["envv"]',
            ["--metric", "work.wall", "--variant", "fast"],
            "variants.fast.run.prefix",
        ),
        (
            "cp {build}/program",
            "cp {build}/progarm",
            ["--metric", "other.wall", "--variant", "plain"],
            "benchmark.other.build",
        ),
        (
            '"\nsteps = ["sh ./build.sh"]',
            '"\nsteps = ["sh ./biuld.sh"]',
            ["--metric", "work.wall", "--variant", "plain"],
            "build.when[0].steps",
        ),
    ],
)
def test_the_line_of_the_table_that_sets_the_failing_step_is_named(
    study: Path, old: str, new: str, options: list[str], key: str
) -> None:
    text = study.read_text()
    assert text.count(old) == 1
    study.write_text(text.replace(old, new))
    stderr = " ".join(perftrail("find", study, *options, expect=1).stderr.split())
    expected = line_with(study, new.splitlines()[-1])
    assert f"/perftrail.toml:{expected} ({key}), then test it with" in stderr, stderr


def test_each_failed_revision_has_its_log_and_the_line_of_its_recipe(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    commits = [
        repository.commit(
            program(
                100 if number < 6 else 150,
                name=f"{number}",
                build="echo no such header >&2; exit 1" if number in (4, 5) else "",
            ),
            subject=f"Commit {number}",
        )
        for number in range(9)
    ]
    study = write_study(tmp_path / "study", repository)
    location = f"{study}:{line_with(study, 'steps = ')} (build.steps)"
    output = perftrail("find", study).stdout
    _, _, unusable = output.partition("\nUnusable revisions:\n")
    lines = unusable.splitlines()
    assert lines[0].startswith("  2 failures at build: ")
    assert f"      see {location}" in lines
    logs = {line.split()[0]: line.partition("  log: ")[2] for line in lines if "  log: " in line}
    assert sorted(logs) == sorted(each[:10] for each in commits[4:6])
    assert all("no such header" in Path(log).read_text() for log in logs.values())
    assert len(set(logs.values())) == 2
    built = perftrail("build", commits[4], study, expect=1).stdout
    assert f"\nstudy        {location}\n" in built
