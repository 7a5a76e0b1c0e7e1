"""The benchmark of uncommitted changes, at a size for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow("processor")
def test_uncommitted_changes_are_judged_by_the_command(tmp_path: Path) -> None:
    words = ("--milliseconds", "20", "--effect", "0.5", "--language", "C", "--into", str(tmp_path))
    for trials in (1, 2):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.working_tree", "--trials", str(trials), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
    noted = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert [each["edit"] for each in noted] == ["slower", "comment", "faster", "comment"]
    assert [each["one_build"] for each in noted] == [False, True, False, True]
    assert (noted[0]["verdict"], noted[1]["verdict"]) == ("slower", "same")
