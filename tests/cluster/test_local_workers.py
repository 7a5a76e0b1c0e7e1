"""Workers that a command starts on its own machine: their start, and Dask's own records, which do not grow."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dask.utils import key_split
from distributed import Scheduler, Status

from benchmarks.cluster.machines import until
from perftrail.cluster.dask import MOST_CACHED_KEYS, SECONDS_TO_APPEAR, Cluster, own_workers
from perftrail.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.slow("cluster")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One worker, started in a directory with a module that must not be imported."""
    directory = tmp_path_factory.mktemp("own")
    (directory / "json.py").write_text("raise SystemExit('a module of the current directory was imported')\n")
    home = directory / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        with own_workers(1, home=home) as cluster:
            yield cluster


def test_a_worker_that_ends_at_its_start_is_reported_at_once_with_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho starting\necho 'ImportError: no module named lz4' >&2\nexit 7\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    began = time.monotonic()
    with pytest.raises(ClusterError) as raised, own_workers(2, home=tmp_path):
        pass
    assert time.monotonic() - began < SECONDS_TO_APPEAR
    first, *rest = str(raised.value).splitlines()
    assert first == "a worker on this machine ended at its start: exit code 7; its last lines:"
    assert rest == ["  starting", "  ImportError: no module named lz4"]


def test_no_module_of_the_current_directory_runs_in_a_worker(own: Cluster) -> None:
    assert len(own.worker_infos()) == 1


def test_a_worker_does_not_profile_itself_and_keeps_short_logs(own: Cluster) -> None:
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

    engine = own.building()
    for number in range(20):
        found = engine.begin(records, number).outcome()
    assert found == {"profiles": 0, "transfers": 100, "transitions": 100, "load": 60}


def test_a_worker_and_its_client_forget_the_keys_of_finished_jobs(own: Cluster) -> None:
    def cached_keys(_: object) -> int:
        from dask.utils import key_split

        return int(key_split.cache_info().currsize)

    key_split.cache_clear()
    engine = own.building()
    for number in range(MOST_CACHED_KEYS + 20):
        engine.begin(cached_keys, number).outcome()
    assert key_split.cache_info().currsize <= MOST_CACHED_KEYS + 2
    until(lambda: engine.begin(cached_keys, 0).outcome() <= MOST_CACHED_KEYS)


def test_jobs_leave_no_record_of_their_time_on_workers_or_the_scheduler(own: Cluster) -> None:
    def recorded(_: object) -> int:
        from distributed import get_worker

        return len(get_worker().digests_total) + len(get_worker().digests_max)

    on_worker, on_scheduler = [], []
    engine = own.building()
    [scheduler] = [each for each in Scheduler._instances if each.status == Status.running]
    engine.begin(recorded, 0).outcome()  # after the job that keeps the group
    until(lambda: len(scheduler.tasks) <= 1)
    kept = set(scheduler.tasks)
    for number in range(30):
        on_worker.append(engine.begin(recorded, number).outcome())
        spans = scheduler.extensions["spans"].spans.values()
        on_scheduler.append(len(spans) + sum(len(span.groups) for span in spans))
        until(lambda: kept.issuperset(scheduler.tasks))  # Dask has forgotten the job
    # Each of Dask's kinds of activity is recorded once, at its first occurrence.
    assert on_worker[-1] - on_worker[10] < 10
    assert on_scheduler[-1] == on_scheduler[0]
