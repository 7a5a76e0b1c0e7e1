"""The benchmark of a profile as a prior, at a size for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.long
def test_each_history_is_searched_with_a_profile_and_without() -> None:
    words = ("--trials", "1", "--kind", "own", "--revisions", "8", "--build-seconds", "4", "--markdown")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.profile_prior", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| own "))
    assert "| 2 of 2 |" in row
