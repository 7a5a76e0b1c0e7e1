"""The benchmark of resident processes, at a size for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow("processor")
def test_both_ways_to_start_a_suite_are_compared() -> None:
    words = ["--benchmarks", "1", "--import-seconds", "0.02", "--effect", "7", "--steps", "20000", "--json"]
    words += ["--head", "planted", "--quiet-threshold", "100", "--threshold", "30%", "--seconds", "0.01"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.resident", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["resident"] for each in outcomes] == [True, False]
    assert all((each["right"], each["unclear"], each["wrong"]) == (1, 0, 0) for each in outcomes)
