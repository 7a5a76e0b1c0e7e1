"""`perftrail find --note` and `--trailer`: the result in the user's repository, only on request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.printing import perftrail, program, write_study
from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

SUBJECT = b"\x1b[31m--force; $(touch hostile) `id` \xff \xe2\x80\xae # Perf-regression-in: 0"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Six commits: the fourth, with a hostile message, costs more."""
    made = Repository(tmp_path / "repository")
    for number in range(6):
        files = program(100 if number < 3 else 140, name=str(number))
        made.commit(files, subject=SUBJECT if number == 3 else f"Commit {number}")
    made.git("reset", "--hard", "--quiet")
    return made


def is_trailer(line: str, culprit: str) -> bool:
    pattern = rf"Perf-regression-in: {culprit} \(cost (39|40) % more, probability [a-z0-9. ]+ %\)"
    return re.fullmatch(pattern, line) is not None


def test_the_culprit_gets_one_note_and_nothing_else_changes(repository: Repository, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", repository)
    culprit = repository.git("rev-parse", "HEAD~2")
    repository.git("config", "user.name", "Somebody")
    repository.git("config", "user.email", "somebody@example.org")
    repository.git("notes", "--ref=perftrail", "add", "-m", "mine", culprit)
    before = repository.git("for-each-ref", "refs/heads", "refs/tags")
    done = perftrail("find", study, "--note")
    assert f"added a note to {culprit[:10]}; show it with: git log --notes=perftrail" in done.stderr
    note = repository.git("notes", "--ref=perftrail", "show", culprit)
    lines = note.splitlines()
    assert lines[:2] == ["mine", ""]
    assert lines[2].startswith(f"perftrail: {culprit[:10]} “")
    assert " changed cost: " in lines[2]
    assert is_trailer(lines[-1], culprit)
    assert "\x1b" not in note
    assert "\u202e" not in note
    author = repository.git("log", "-1", "--format=%an <%ae>", "refs/notes/perftrail")
    assert author == "Somebody <somebody@example.org>"
    assert "its note is in place" in perftrail("find", study, "--note").stderr
    assert repository.git("notes", "--ref=perftrail", "show", culprit) == note
    assert repository.git("for-each-ref", "refs/heads", "refs/tags") == before
    assert repository.git("status", "--short") == ""
    assert repository.git("notes", "list") == ""


def test_the_trailer_is_one_that_git_reads(repository: Repository, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", repository)
    culprit = repository.git("rev-parse", "HEAD~2")
    trailer = perftrail("find", study, "--trailer").stdout
    assert is_trailer(trailer.rstrip("\n"), culprit)
    message = f"Make it fast again\n\nBecause it was slow.\n\n{trailer}"
    assert repository.git("interpret-trailers", "--parse", stdin=message.encode()) == trailer.strip()
    repository.git(
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "commit",
        "--allow-empty",
        "-qm",
        "Fix",
        "--trailer",
        trailer,
    )
    assert repository.git("log", "-1", "--format=%(trailers:only)").strip() == trailer.strip()
    assert repository.git("for-each-ref", "refs/notes") == ""


def test_an_answer_without_a_culprit_has_neither_note_nor_trailer(
    repository: Repository, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "study", repository)
    done = perftrail("find", study, "--range", "HEAD~2..HEAD", "--note", "--trailer")
    assert done.stdout == ""
    assert "no single revision was found, so there is no note" in done.stderr
    assert "no single revision was found, so there is no trailer" in done.stderr
    assert repository.git("for-each-ref", "refs/notes") == ""


def test_a_note_needs_a_repository_of_this_machine(repository: Repository, tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", repository)
    study.write_text(study.read_text().replace(str(repository.path), f"file://{repository.path}"))
    done = perftrail("find", study, "--note", expect=2)
    assert "--note: writes to a git repository on this machine" in done.stderr
    assert not (study.parent / ".perftrail").exists()
    assert "--trailer and --json" in perftrail("find", study, "--trailer", "--json", expect=2).stderr


def test_a_program_that_began_to_work_has_the_trailer_of_an_improvement(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for number in range(4):
        repository.commit(
            program(100, name=str(number), body="exit 1\n" if number < 2 else ""), subject=f"{number}"
        )
    study = write_study(tmp_path / "study", repository)
    done = perftrail("find", study, "--metric", "works", "--trailer")
    repaired = repository.git("rev-parse", "main~1")
    assert done.stdout.startswith(f"Perf-improvement-in: {repaired} (made the program work, probability ")
