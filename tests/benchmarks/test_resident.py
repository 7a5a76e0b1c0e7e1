"""The benchmark of resident processes, at a size for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.long
def test_both_ways_to_start_a_suite_are_compared() -> None:
    words = (
        "--benchmarks",
        "2",
        "--import-seconds",
        "0.1",
        "--effect",
        "7",
        "--steps",
        "20000",
        "--json",
        "--quiet-threshold",
        "100",
    )
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.resident", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["planted"], each["resident"]) for each in outcomes] == [
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert all(each["right"] + each["unclear"] + each["wrong"] == 2 for each in outcomes)
    assert all(each["right"] >= 1 for each in outcomes if each["planted"])
