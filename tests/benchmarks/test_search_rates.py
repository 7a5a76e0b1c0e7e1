"""The benchmark of searches for a change of a rate judges claims by what they exclude."""

from __future__ import annotations

import pytest

from benchmarks.search import rates


def test_a_certain_failure_is_claimed_and_right() -> None:
    found = rates.search(0.0, 1.0, revisions=50, threshold=0.1, runs=300, seed=2)
    assert (found.claimed, found.right) == (True, True)
    assert found.runs < 60


def test_none_is_right_only_if_it_excludes_the_difference() -> None:
    found = rates.search(0.0, 0.03, revisions=50, threshold=0.1, runs=300, seed=1)
    assert not found.claimed or found.right


@pytest.mark.slow("simulation")
@pytest.mark.long
def test_the_table_has_a_row_for_each_pair_of_rates(capsys: pytest.CaptureFixture[str]) -> None:
    rates.main(["--searches", "1", "--revisions", "20", "--runs", "60"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * len(rates.ROWS) + 1 + 2 + len(rates.PAIRS)


def test_a_difference_of_every_run_takes_far_fewer_rounds_than_a_small_one() -> None:
    assert rates.rounds_to_certify(0.0, 1.0, seed=1) * 3 < rates.rounds_to_certify(0.05, 0.2, seed=1)
