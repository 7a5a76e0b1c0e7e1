"""The benchmark of searches on other scales names culprits, and judges its claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.search import scales


@pytest.mark.parametrize("number", [0, 6])
def test_a_change_from_zero_and_runs_that_time_out_are_claimed_and_right(number: int, tmp_path: Path) -> None:
    found = scales.search(scales.ROWS[number], revisions=30, runs=300, seed=1, directory=tmp_path)
    assert (found.claimed, found.right) == (True, True)


def test_a_history_without_a_change_is_right_without_a_culprit(tmp_path: Path) -> None:
    found = scales.search(scales.ROWS[4], revisions=12, runs=200, seed=1, directory=tmp_path)
    assert not found.claimed or found.right


@pytest.mark.slow("simulation")
@pytest.mark.long
def test_the_table_has_a_row_for_each_kind_of_change(capsys: pytest.CaptureFixture[str]) -> None:
    scales.main(["--searches", "1", "--revisions", "12", "--runs", "60"])
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(scales.ROWS)
