"""`run` measures again after a change of a file that only the program names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.printing import perftrail
from tests.needs import needs
from tests.sources.repositories import Repository

pytestmark = [pytest.mark.slow("starts"), needs("strace")]

STUDY = """\
[source]
kind = "git"
location = "repository"

[build]
steps = ["cp program.sh program", "chmod +x program"]
outputs = ["program"]

[benchmark.work]
command = "{build}/program"
metrics = { steps = { pattern = 'steps ([0-9]+)' } }

[measure]
warmups = 0
invocations = 3
quiet_threshold = 100
"""


def run(study: Path) -> tuple[int, str]:
    """Run, and return the number of invocations and what was reported."""
    done = perftrail("run", study, "--json")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer["invocations"], " ".join(done.stderr.split())


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of two builds of a program that starts a script; the script reads a file, and counts its starts."""
    repository = Repository(tmp_path / "repository")
    script = f"#!/bin/sh\necho start >> {tmp_path}/starts\ncat {tmp_path}/near/steps.txt\n"
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "work.sh").write_text(script)
    (tmp_path / "near" / "steps.txt").write_text("steps 1\n")
    for number in (1, 2):
        program = f"#!/bin/sh\n# {number}\nsh {tmp_path}/near/work.sh\n"
        repository.commit({"program.sh": program})
    (tmp_path / "perftrail.toml").write_text(STUDY)
    return tmp_path


def starts(study: Path) -> int:
    return len((study / "starts").read_text().split())


def test_a_change_is_measured_and_a_restored_file_is_not(study: Path) -> None:
    # Two starts more than invocations: the benchmark is observed at each revision.
    assert (run(study)[0], starts(study)) == (6, 8)
    assert (run(study)[0], starts(study)) == (0, 8)
    steps = study / "near" / "steps.txt"
    steps.write_text("steps 2\n")
    note = "are from before a change of a file that the benchmark opens (“near/steps.txt” changed)"
    assert note in " ".join(perftrail("show", study).stdout.split())
    count, reported = run(study)
    assert note not in " ".join(perftrail("show", study).stdout.split())
    assert (count, starts(study)) == (6, 16)
    assert (
        "work: measured again, because 1 file that it opens changed, for example near/steps.txt" in reported
    )
    steps.write_text("steps 1\n")
    assert run(study)[0] == 0
    assert starts(study) == 16


def test_without_strace_the_remedy_is_reported(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = study.with_name(f"{study.name}-tools")
    tools.mkdir()
    for directory in ("/bin", "/usr/bin", "/usr/local/bin"):
        for program in Path(directory).iterdir():
            if program.name != "strace" and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tools))
    count, reported = run(study)
    assert (count, starts(study)) == (6, 6)
    assert reported.count("cannot observe which files the benchmarks open without strace") == 1
    assert "install strace" in reported
