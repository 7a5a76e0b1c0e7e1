"""The time that `check --try` states for a search agrees with the published results of searches."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from perftrail.search.forecast import USUAL_BUILDS, USUAL_RUNS

RESULTS = (Path(__file__).parents[2] / "benchmarks" / "results" / "searching.md").read_text(encoding="utf-8")
SIMULATED_REVISIONS = 1000


def rows(start: str, text: str = RESULTS) -> list[list[str]]:
    """Return the cells of table rows that begin with a text."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", cell)]


def real_histories() -> list[tuple[float, float]]:
    """Return the builds beyond log2 of the revisions, and the invocations, of each search in a real history."""
    found = []
    section = RESULTS.partition("## On real histories")[2].partition("\n## ")[0]
    for cells in (row for row in rows("", section) if len(row) == 7 and row[1].isdigit()):
        builds, invocations = numbers(cells[2])[0], numbers(cells[4])[0]
        found.append((builds - math.log2(int(cells[1])), invocations))
    return found


def test_most_real_histories_are_within_the_estimate() -> None:
    found = real_histories()
    assert len(found) == 4
    within = [
        USUAL_BUILDS[0] - 0.5 <= builds <= USUAL_BUILDS[1] and USUAL_RUNS[0] <= invocations <= USUAL_RUNS[1]
        for builds, invocations in found
    ]
    assert sum(within) >= 3  # lz4 has several changes


def test_repeated_searches_are_within_the_estimate() -> None:
    [runs] = [numbers(row[4]) for row in rows("more-itertools |")]
    assert USUAL_RUNS[0] <= min(runs) <= max(runs) <= USUAL_RUNS[1]


@pytest.mark.parametrize("change", ["3.2", "6.1", "13.5", "23.1"])
def test_nineteen_of_twenty_simulated_searches_for_a_clear_change_are_within_the_estimate(
    change: str,
) -> None:
    [cells] = rows(f"d/σ ≥ 3: d/σ = {change} ")
    builds, builds_p95 = numbers(cells[3])
    runs, runs_p95 = numbers(cells[4])
    beyond = math.log2(SIMULATED_REVISIONS)
    assert USUAL_BUILDS[0] <= builds - beyond
    assert builds_p95 <= math.ceil(beyond) + USUAL_BUILDS[1]
    assert USUAL_RUNS[0] <= runs <= runs_p95 <= USUAL_RUNS[1]
