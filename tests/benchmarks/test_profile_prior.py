"""The benchmark of a profile as a prior, at a size for a test."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.profile_prior.simulation import ProfiledHistory, drawn_history, run_trial


@pytest.mark.slow("processor")
@pytest.mark.long
def test_each_history_is_searched_with_a_profile_and_without() -> None:
    words = ("--trials", "1", "--kind", "own", "--revisions", "8", "--build-seconds", "1", "--markdown")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.profile_prior", "planted", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| own "))
    assert "| 2 of 2 |" in row


def test_a_wrong_profile_gives_the_culprit_less_than_its_even_part_and_a_right_one_more() -> None:
    history = drawn_history(random.Random(1), 200, culprit=57)
    assert ProfiledHistory.from_json(history.as_json()) == history
    weights = {
        profiled: history.weights(profiled, random.Random(2))
        for profiled in ("right", "exchanged", "elsewhere")
    }
    assert history.weights("none", random.Random(2)) is None
    culprits = {profiled: each[57] for profiled, each in weights.items() if each is not None}
    assert culprits["right"] > 5.0
    assert culprits["exchanged"] < 1.0
    assert culprits["elsewhere"] < 0.2


def test_one_trial_searches_the_same_history_with_each_profile() -> None:
    found = run_trial(3, None, seed=1)
    assert list(found) == ["none", "right", "exchanged", "elsewhere"]
    assert all(each.right for each in found.values())
    assert run_trial(3, None, seed=1) == found
