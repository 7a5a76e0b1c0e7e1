"""Contract of engines: each job once, errors unchanged, and never more jobs than its capacity."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.errors import ClusterError
from perftrail.ports import Engine
from tests.contracts.engines import Case
from tests.contracts.jobs import append_line, count_running_jobs, doubled, inverted, wait_for_file


def test_pending_outcomes_can_be_awaited_in_any_order(engine: Engine) -> None:
    first, second = engine.begin(doubled, 1), engine.begin(doubled, 2)
    assert (second.outcome(), first.outcome()) == (4, 2)


def test_errors_of_a_job_are_raised_unchanged(engine: Engine) -> None:
    with pytest.raises(ClusterError, match="-1 is below zero"):
        engine.begin(doubled, -1).outcome()
    assert engine.begin(doubled, 4).outcome() == 8
    with pytest.raises(ZeroDivisionError):
        engine.begin(inverted, 0).outcome()


def test_each_job_is_performed_once(engine: Engine, tmp_path: Path) -> None:
    pending = [engine.begin(append_line, tmp_path / f"{number}") for number in range(6)]
    assert [each.outcome() for each in pending] == [1] * 6
    again = [engine.begin(append_line, tmp_path / "0").outcome() for _ in range(2)]
    assert again == [2, 3]


def test_no_more_jobs_run_in_parallel_than_the_capacity_of_the_engine(
    engine_case: Case, tmp_path: Path
) -> None:
    several = engine_case.capacity > 1  # a pool may need seconds to start one process too many
    jobs = range(14 * engine_case.capacity if several else 3)
    pending = [engine_case.engine.begin(count_running_jobs, tmp_path) for _ in jobs]
    assert max(each.outcome() for each in pending) <= engine_case.capacity


def test_an_abandoned_job_disturbs_no_other_job(engine_case: Case, tmp_path: Path) -> None:
    go_file = tmp_path / "go"
    pending = [engine_case.engine.begin(wait_for_file, go_file) for _ in range(2 * engine_case.capacity + 1)]
    dropped = engine_case.engine.begin(append_line, tmp_path / "dropped")
    del dropped
    engine_case.wait_for_drops(len(pending))
    go_file.touch()
    assert [each.outcome() for each in pending] == [None] * len(pending)
    assert engine_case.engine.begin(append_line, tmp_path / "next").outcome() == 1
    assert (tmp_path / "dropped").exists() == (not engine_case.cancels)
