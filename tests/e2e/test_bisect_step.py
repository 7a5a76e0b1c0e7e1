"""`perftrail bisect-step` under a real `git bisect run`: it names the planted commit, skips, and stops in doubt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perftrail.cli.commands.bisect_step import BAD, GOOD, SKIP, STOP
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

STUDY = """\
[source]
kind = "git"
location = "{repository}"

[build]
steps = ["test ! -e broken", "cp work.sh work"]
outputs = ["work"]

[benchmark.it]
command = "sh {{build}}/work"
[benchmark.it.metrics]
steps = {{ pattern = 'steps ([0-9]+)', better = "lower" }}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Twelve commits: the eighth is slower, two before it do not build, and the last fails."""
    made = Repository(tmp_path / "repository")
    for number in range(12):
        files = {"work.sh": f"echo steps {1000 if number < 7 else 1200}  # {number}\n"}
        if number in (4, 5):
            files["broken"] = ""
        if number == 11:
            files["work.sh"] = "exit 3\n"
        made.commit(files, subject=f"commit {number}")
    made.git("reset", "--hard", "--quiet", "HEAD~1")
    (tmp_path / "perftrail.toml").write_text(STUDY.format(repository=made.path))
    return made


def step(repository: Repository, *words: str) -> subprocess.CompletedProcess[str]:
    return start("bisect-step", *words, cwd=repository.path)


def test_git_bisect_finds_the_planted_commit(repository: Repository) -> None:
    slower = repository.git("rev-parse", "HEAD~3")
    good = repository.git("rev-parse", "HEAD~10")
    repository.git("bisect", "start", "HEAD", good)
    output = repository.git(
        "bisect", "run", sys.executable, "-m", "perftrail", "bisect-step", good, "..", "--metric", "steps"
    )
    assert f"{slower} is the first bad commit" in output
    assert "bad: 1 of 1 metric worse" in output


@pytest.mark.parametrize(
    ("commit", "words", "code", "message"),
    [
        ("main~4", (), GOOD, "good: "),
        ("main", (), BAD, "bad: 1 of 1 metric worse: it.steps 20 % more"),
        ("main~6", (), SKIP, "skip: "),
        ("main", ("--threshold", "0.0001%", "--metric", "speed"), STOP, "--metric speed"),
        ("main", ("--no-such-option",), STOP, "No such option"),
        ("main", ("--budget", "soon"), STOP, "--budget"),
    ],
)
def test_the_exit_code_is_the_answer(
    repository: Repository, commit: str, words: tuple[str, ...], code: int, message: str
) -> None:
    repository.git("checkout", "--quiet", "--detach", commit)
    done = step(repository, "main~10", "..", *words)
    assert (done.returncode, message in done.stdout + done.stderr) == (code, True), (done.stdout, done.stderr)


def test_a_good_revision_that_does_not_work_stops_the_bisection(repository: Repository) -> None:
    done = step(repository, "main~6", "..")
    assert (done.returncode, done.stdout[:6]) == (STOP, "stop: "), done.stderr


def test_an_unexpected_error_is_no_verdict(repository: Repository) -> None:
    """A traceback ends Python with 1, which git would read as bad."""
    script = (
        "import sys; from perftrail.cli.commands import bisect_step; bisect_step.comparison_request = None\n"
        "sys.argv[1:] = ['bisect-step', 'main~10', '..']\n"
        "from perftrail.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, cwd=repository.path
    )
    assert done.returncode == STOP
