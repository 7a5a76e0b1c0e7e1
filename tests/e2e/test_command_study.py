"""Commands without a study file: a real history of a C program, searched and compared from one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perftrail.cli.main import main
from tests.sources.repositories import Repository
from tests.starting import start

pytestmark = pytest.mark.slow("starts")

PROGRAM = """\
/* revision {number} */
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{{
    unsigned char noise = 0;
    int factor = 0;
    FILE *random = fopen("/dev/urandom", "r"), *data = fopen("factor.txt", "r");
    if (count != 2 || random == NULL || data == NULL || fscanf(data, "%d", &factor) != 1)
        return 3;
    noise = (unsigned char)getc(random);
    printf("cost %d.%d {{brace}}\\n", {cost} * factor * atoi(words[1]), noise % 10);
    return 0;
}}
"""
MAKEFILE = "bench: bench.c\n\t$(CC) -o bench bench.c\n"
COST = ("--pattern", r"cost ([0-9.]+) \{brace\}")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Twelve commits of a program in a subdirectory: the eighth costs a fifth more."""
    made = Repository(tmp_path_factory.mktemp("history") / "repository")
    for number in range(12):
        program = PROGRAM.format(number=number, cost=100 if number < 7 else 120)
        files = {"src/bench.c": program, "src/Makefile": MAKEFILE, "src/factor.txt": "2\n"}
        commit = made.commit(files, subject=f"commit {number}")
        if number == 1:
            made.tag("v1.2", commit)
    made.git("reset", "--hard", "--quiet")
    return made


@pytest.fixture
def checkout(history: Repository, tmp_path: Path) -> Path:
    """A clone of the history without a study; the subdirectory of its program."""
    history.git("clone", "--quiet", str(history.path), str(tmp_path / "clone"))
    return tmp_path / "clone" / "src"


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs a command line, which must exit with 2, in this process, and returns its message."""

    def run(*words: str, directory: Path) -> str:
        monkeypatch.chdir(directory)
        with pytest.raises(SystemExit) as raised:
            main(words)
        assert raised.value.code == 2
        return capsys.readouterr().err

    return run


def answer_of(directory: Path, *words: str) -> dict[str, Any]:
    done = start(*words, cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_line_finds_the_planted_commit_and_is_resumed(history: Repository, checkout: Path) -> None:
    words = ("find", "v1.2", "HEAD", "--json", *COST, "--", "make", "&&", "./bench", "1")
    found = answer_of(checkout, *words)
    assert (found["verdict"], found["metric"], found["revisions"]) == ("found", "printed", 11)
    assert found["changes"][0]["revisions"] == [history.git("rev-parse", "HEAD~4")]
    assert answer_of(checkout, *words) == found
    report = start("report", "--format", "markdown", cwd=checkout.parent)
    assert report.returncode == 0, report.stderr
    assert "perftrail find clone/.perftrail/study.toml" in report.stdout
    # the results are hidden from git, and later commands find the study
    assert start("show", "--search", cwd=checkout).stdout.startswith("What changed printed between ")
    assert "cost" not in start("show", cwd=checkout).stderr
    clean = Repository.__new__(Repository)
    clean.path = checkout
    assert clean.git("status", "--short", "--ignored", "--", ":/").splitlines() == ["!! ../.perftrail/"]


def test_the_study_of_the_last_command_line_is_kept(checkout: Path) -> None:
    words = ("--build", "make", *COST, "--", "./bench", "1")
    first = answer_of(checkout, "compare", "HEAD~5", "HEAD", "--json", *words)
    assert [row["verdict"] for row in first["comparisons"]] == ["slower"]
    file = checkout.parent / ".perftrail" / "study.toml"
    repeated = start("compare", "HEAD~5", "HEAD", cwd=checkout)
    assert repeated.stderr.startswith(f"no study file: using the study of the last command line, {file}\n")
    kept = start("init", "--last", cwd=checkout)
    assert (kept.returncode, kept.stdout.splitlines()[-1]) == (0, "Next: perftrail check"), kept.stderr
    file = checkout.parent / "perftrail.toml"
    assert file.read_text().startswith("[source]\n")
    again = start("compare", "HEAD~5", "HEAD", cwd=checkout)
    assert (again.returncode, "no study file" in again.stderr) == (0, False), again.stderr
    assert start("init", "--last", cwd=checkout).returncode == 2
    # with a study file, the next commands name the other study
    other = start("find", "v1.2..HEAD", "--build", "make", *COST, "--", "./bench", "2", cwd=checkout)
    assert "perftrail show" in other.stdout
    assert ".perftrail/study.toml --search" in other.stdout


def test_the_build_is_detected(checkout: Path) -> None:
    done = start("compare", "HEAD~1", "HEAD", *COST, "--", "./bench", "1", cwd=checkout)
    assert (done.returncode, "equal" in done.stdout or "same" in done.stdout) == (0, True), done.stderr
    assert done.stderr.startswith('build: make -j{cpus} (make, because of "src/Makefile")\n')


def test_parameters_and_shell_lines_and_variables_are_read(checkout: Path) -> None:
    words = ("--build", "make", "--pattern", "n (?P<seen>[0-9]+)", "-L", "n", "1,2")
    line = ("X=a b", "sh", "-c", 'test "$X" = "a b" && ./bench {n} >/dev/null && echo n {n}0')
    found = answer_of(checkout, "compare", "HEAD~1", "HEAD", "--json", *words, "--", *line)
    assert [row["name"] for row in found["comparisons"]] == ["command.seen[n=1]", "command.seen[n=2]"]
    piped = ("A=1", "./bench", "{n}", "|", "sed", "s/{brace}/n/", "|", "awk", "{print $3, $2}")
    found = answer_of(checkout, "compare", "HEAD~5", "HEAD", "--json", *words, "--", *piped)
    assert {str(row["verdict"]) for row in found["comparisons"]} == {"slower"}


def test_git_bisect_runs_one_line(history: Repository, checkout: Path) -> None:
    clone = Repository.__new__(Repository)
    clone.path = checkout.parent
    clone.git("bisect", "start", "HEAD~3", "HEAD~5")
    step = (sys.executable, "-m", "perftrail", "bisect-step", "v1.2", "--build", "make -C src")
    output = clone.git("bisect", "run", *step, *COST, "--", "env", "-C", "src", "./bench", "1")
    assert f"{history.git('rev-parse', 'HEAD~4')} is the first bad commit" in output


def test_a_repository_with_a_benchmark_needs_no_command(checkout: Path) -> None:
    """`init` detects it: the benchmark is the target of the Makefile."""
    done = start("check", "--json", cwd=checkout)
    assert json.loads(done.stdout)["revisions"] == 11, done.stderr
    assert "keep it as perftrail.toml with: perftrail init --last" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("find", "a", "b", "c", "--", "./bench"), '"c": the command after -- is the study'),
        (("find", "a", "b", "c", "d"), '"d": too many arguments'),
        (("find", "a..b", "--range", "c..d"), "are two ranges"),
        (("find", "v1.2", "HEAD", "--build", "make", "--"), "write the command to measure after --"),
        (("find", "v1.2", "HEAD", "--", "make", "&&"), "&& needs words on both sides"),
        (("find", "v1.2", "HEAD", "--", "A=1"), "names no program to run"),
        (("find", "v1.2", "nowhere", "--", "./bench"), 'no revision "nowhere"'),
        (("find", "v1.2", "HEAD", "--pattern", "cost", "--", "./bench"), "has no group"),
        (("find", "v1.2", "HEAD", "--build", "make"), "--build is for a command after --"),
        (("compare", "HEAD", ".", "--staged"), "--staged: leave HEAD out"),
        (("init", "--last"), "no command line was measured here"),
    ],
)
def test_a_wrong_line_is_refused_with_its_reason(
    checkout: Path, words: tuple[str, ...], message: str, refused: Callable[..., str]
) -> None:
    assert message in refused(*words, directory=checkout)


def test_a_path_into_the_check_out_is_refused(checkout: Path, refused: Callable[..., str]) -> None:
    words = ("find", "v1.2", "HEAD", "--build", "make", "--", f"{checkout}/bench", "1")
    assert "every revision would use the same file" in refused(*words, directory=checkout)


def test_a_command_outside_of_a_repository_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "perftrail measure" in refused("find", "a", "b", "--", "./bench", directory=tmp_path)
    assert not (tmp_path / ".perftrail").exists()
