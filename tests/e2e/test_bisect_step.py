"""`perftrail bisect-step` under a real `git bisect run`: it names the planted commit, skips, and stops in doubt."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perftrail.cli.commands.bisect_step import BAD, GOOD, SKIP, STOP
from perftrail.cli.main import main
from tests.sources.repositories import Repository
from tests.starting import start

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


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Twelve commits: the eighth is slower, two before it do not build, and the last fails."""
    made = Repository(tmp_path_factory.mktemp("original") / "repository")
    for number in range(12):
        files = {"work.sh": f"echo steps {1000 if number < 7 else 1200}  # {number}\n"}
        if number in (4, 5):
            files["broken"] = ""
        if number == 11:
            files["work.sh"] = "exit 3\n"
        made.commit(files, subject=f"commit {number}")
    made.git("reset", "--hard", "--quiet", "HEAD~1")
    return made


@pytest.fixture
def repository(original: Repository, tmp_path: Path) -> Repository:
    """A copy of the repository, with a study next to it."""
    made = Repository.__new__(Repository)
    made.path = tmp_path / "repository"
    shutil.copytree(original.path, made.path)
    (tmp_path / "perftrail.toml").write_text(STUDY.format(repository=made.path))
    return made


def step(repository: Repository, *words: str) -> subprocess.CompletedProcess[str]:
    return start("bisect-step", *words, cwd=repository.path)


@pytest.mark.slow("starts")
@pytest.mark.parametrize(
    ("newest", "oldest"),
    [("HEAD~2", "HEAD~5"), pytest.param("HEAD", "HEAD~10", marks=pytest.mark.long)],
)
def test_git_bisect_finds_the_planted_commit(repository: Repository, newest: str, oldest: str) -> None:
    slower = repository.git("rev-parse", "HEAD~3")
    good = repository.git("rev-parse", "HEAD~10")
    repository.git("bisect", "start", newest, oldest)
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
    ],
)
def test_the_exit_code_is_the_answer(
    repository: Repository, commit: str, words: tuple[str, ...], code: int, message: str
) -> None:
    repository.git("checkout", "--quiet", "--detach", commit)
    done = step(repository, "main~10", "..", *words)
    assert (done.returncode, message in done.stdout + done.stderr) == (code, True), (done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--threshold", "0.0001%", "--metric", "speed"), "--metric speed"),
        (("--no-such-option",), "No such option"),
        (("--budget", "soon"), "--budget"),
    ],
)
def test_a_mistake_in_the_command_line_stops_the_bisection(
    repository: Repository,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(repository.path)
    with pytest.raises(SystemExit) as raised:
        main(("bisect-step", "main~10", "..", *words))
    assert (raised.value.code, message in capsys.readouterr().err) == (STOP, True)


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
