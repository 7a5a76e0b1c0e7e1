"""Dask's own records do not grow in long runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dask.utils import key_split
from distributed import Scheduler, Status

from benchmarks.cluster.machines import until
from perftrail.cluster.dask import MOST_CACHED_KEYS, own_workers

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


def test_a_worker_and_its_client_forget_the_keys_of_finished_jobs(tmp_path: Path) -> None:
    def cached_keys(_: object) -> int:
        from dask.utils import key_split

        return int(key_split.cache_info().currsize)

    key_split.cache_clear()
    with own_workers(1, home=tmp_path) as cluster:
        engine = cluster.building()
        for number in range(3 * MOST_CACHED_KEYS):
            engine.begin(cached_keys, number).outcome()
        assert key_split.cache_info().currsize <= MOST_CACHED_KEYS + 2
        until(lambda: engine.begin(cached_keys, 0).outcome() <= MOST_CACHED_KEYS)


def test_jobs_leave_no_record_of_their_time_on_workers_or_the_scheduler(tmp_path: Path) -> None:
    def recorded(_: object) -> int:
        from distributed import get_worker

        return len(get_worker().digests_total) + len(get_worker().digests_max)

    on_worker, on_scheduler = [], []
    with own_workers(1, home=tmp_path) as cluster:
        engine = cluster.building()
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
