"""perftrail needs no home directory, no terminal and no language: containers and services have none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources.repositories import Repository

pytestmark = pytest.mark.slow("starts")

BARE = {
    "HOME": "/proc/nonexistent",  # nobody, not even root, can create it
    "TERM": "dumb",
    "LC_ALL": "C",
    "TZ": "Asia/Kolkata",
    "COLUMNS": "40",
}


def test_a_comparison_in_a_bare_environment_has_the_usual_verdict(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    for cost in (100, 150):
        repository.commit({"work.sh": f"echo cost {cost}\n"})
    repository.git("reset", "--hard", "--quiet")
    words = ["compare", "HEAD~1", "HEAD", "--build", "true", "--pattern", "cost ([0-9]+)", "--json"]
    words += ["--max-pairs", "9"]
    done = subprocess.run(
        [
            "sh",
            "-c",
            'umask 077; exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "perftrail",
            *words,
            "--",
            "sh",
            "work.sh",
        ],
        cwd=repository.path,
        env={**BARE, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["comparisons"]
    assert (row["metric"], row["verdict"]) == ("printed", "slower")
    assert "Traceback" not in done.stderr
