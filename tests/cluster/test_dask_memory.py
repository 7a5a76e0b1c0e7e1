"""Dask's own records do not grow in long runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.cluster.dask import own_workers

if TYPE_CHECKING:
    from pathlib import Path


def test_a_worker_does_not_profile_itself_and_keeps_short_logs(tmp_path: Path) -> None:
    def records(_: object) -> dict[str, int | None]:
        """Return the limits of a worker's records of itself. A nested function is sent with its code."""
        from distributed import get_worker

        worker = get_worker()
        return {
            "profiles": len(worker.profile_history) + len(worker.profile_keys),
            "transfers": worker.transfer_outgoing_log.maxlen,
            "transitions": worker.state.log.maxlen,
            "load": worker.monitor.maxlen,
        }

    with own_workers(1, home=tmp_path) as cluster:
        engine = cluster.building()
        for number in range(20):
            found = engine.begin(records, number).outcome()
        assert found == {"profiles": 0, "transfers": 100, "transitions": 100, "load": 60}
