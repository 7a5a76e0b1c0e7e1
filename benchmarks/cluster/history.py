"""A git history whose builds take time and whose programs print their cost, and studies of it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from perftrail import studyfile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftrail.model.study import Study

STUDY = """\
[source]
kind = "git"
location = "{repository}"

[build]
steps = ["sleep {seconds}", "echo '#!/bin/sh' > program", "cat body >> program", "chmod +x program"]
outputs = ["program"]

[benchmark.work]
command = "{{build}}/program"
metrics = {{ cost = {{ pattern = 'cost ([0-9.]+)' }} }}

[measure]
warmups = 0
invocations = {invocations}
"""


def rising(number: int) -> int:
    """Return the cost of the program of a revision, if each revision costs more than the one before."""
    return 100 + number


def create_repository(repository: Path, *, revisions: int, cost: Callable[[int], int] = rising) -> Path:
    """Commit a different program for each revision, which prints its cost. Needs git."""
    repository.mkdir(parents=True)
    commits = [
        f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + number} +0000\n"
        f"data 6\nchange\nM 100644 inline body\n{_data(f'echo cost {cost(number)}; sleep 0.05 # {number}')}"
        for number in range(revisions)
    ]
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repository], check=True)
    subprocess.run(
        ["git", "-C", repository, "fast-import", "--quiet"],
        input="".join(commits).encode(),
        check=True,
    )
    return repository


def study(directory: Path, repository: Path, *, seconds: float, invocations: int = 3) -> Study:
    """Write a study of such a history, in which each build waits for `seconds`, and read it."""
    directory.mkdir(parents=True)
    file = directory / "perftrail.toml"
    text = STUDY.format(repository=repository, seconds=seconds, invocations=invocations)
    file.write_text(text, encoding="utf-8")
    return studyfile.load(str(file))


def _data(text: str) -> str:
    return f"data {len(text) + 1}\n{text}\n\n"
