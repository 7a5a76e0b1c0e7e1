"""A worker that dies between the end of a job and the transfer of its result."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.cluster.machines import Machines, machines, until
from perftrail.cluster.dask import Cluster, connected
from perftrail.errors import MachineLeft

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.ports import Pending

pytestmark = [pytest.mark.long, pytest.mark.slow("cluster")]

SECONDS_TO_BEGIN = 0.5
"""Seconds after which the result of the job is being transferred."""


def test_jobs_of_a_dead_worker_are_repeated_or_its_machine_is_reported_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perftrail.cluster.dask.SECONDS_TO_FETCH", 1.0)
    monkeypatch.setattr("perftrail.cluster.dask.SECONDS_TO_REAPPEAR", 60.0)

    def die_and_come_back() -> None:
        started.kill("one")
        started.start("one")

    with machines(tmp_path, ("one",)) as started, connected(started.address) as cluster:
        pending = done_by_one_who_does_not_answer(cluster, started)
        death = threading.Timer(SECONDS_TO_BEGIN, die_and_come_back)
        death.start()
        assert pending.outcome() == 42
        death.join()
        cluster.absence_seconds = 0.5
        pending = done_by_one_who_does_not_answer(cluster, started)
        death = threading.Timer(SECONDS_TO_BEGIN, started.kill, ("one",))
        death.start()
        with pytest.raises(MachineLeft, match=r'machine "one" has had no worker for 0\.5 s'):
            pending.outcome()
        death.join()


def done_by_one_who_does_not_answer(cluster: Cluster, started: Machines) -> Pending[int]:
    (offer,) = cluster.worker_infos()
    pending: Any = cluster.measuring(offer.machine).begin(abs, -42)
    until(lambda: pending._future.status == "finished")
    started.processes["one"].send_signal(signal.SIGSTOP)
    given: Pending[int] = pending
    return given
