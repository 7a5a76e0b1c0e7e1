"""The benchmark of the gate, at a size for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow("processor")
def test_both_branches_are_judged_by_the_command_and_a_campaign_resumes(tmp_path: Path) -> None:
    words = ("--milliseconds", "20", "--effect", "2.0", "--most", "20", "--quiet", "--into", str(tmp_path))
    for runs in (1, 2):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.gate", "--runs", str(runs), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
        noted = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
        assert [run["truth"] for run in noted] == ["unchanged", "slower"] * runs
    assert all(run["code"] == 3 for run in noted if run["truth"] == "slower")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["unchanged", "2"], ["slower", "2"]]
