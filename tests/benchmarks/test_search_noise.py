"""The benchmark of noise runs `find` with simulated builds and a simulated machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.search.noise import ROWS, Outcome, Row, search

ROW = {row.name: row for row in ROWS}


@pytest.mark.parametrize(
    "row",
    [
        replace(ROW["whole seconds of 8"], revisions=20),
        replace(ROW["layouts of 1 σ, relinked"], revisions=20, change=0.5),
    ],
    ids=["plain", "relinked"],
)
def test_a_search_in_simulated_time_finds_the_change(row: Row) -> None:
    outcome = search(row, 1)
    assert isinstance(outcome, Outcome)
    assert (outcome.verdict, outcome.right) == ("found", True)
    assert 2 <= outcome.builds <= 20
    assert outcome.seconds > outcome.certificate_seconds > 0.0
