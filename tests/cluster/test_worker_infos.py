"""What the workers of a Dask scheduler say about themselves, and how missing ones are reported."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest
from distributed import Client, LocalCluster

from perftrail.cluster.dask import Cluster, connected
from perftrail.errors import ClusterError, MachineLeft
from perftrail.model.measurement import Machine
from tests.contracts.engines import MACHINE, one_worker
from tests.contracts.jobs import doubled


@pytest.fixture(scope="module")
def scheduler() -> Iterator[LocalCluster]:
    with one_worker() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster(scheduler: LocalCluster) -> Iterator[Cluster]:
    with Client(scheduler.scheduler_address, set_as_default=False) as client:
        yield Cluster(client, absence_seconds=0.0)


def test_workers_say_which_machine_they_are_and_how_many_builds_they_make(cluster: Cluster) -> None:
    (offer,) = cluster.worker_infos()
    assert (offer.machine, offer.builds, offer.version) == (MACHINE, 2, "0.0.0")


def test_workers_are_found_at_every_check(scheduler: LocalCluster) -> None:
    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}),
        Client(scheduler.scheduler_address, set_as_default=False) as client,
    ):
        cluster = Cluster(client, absence_seconds=0.0)
        assert {len(cluster.worker_infos()) for _ in range(300)} == {1}


def test_a_machine_without_a_worker_is_reported_as_gone(cluster: Cluster) -> None:
    gone = Machine(id="fedcba9876543210", facts={"name": "bench two"})
    with pytest.raises(
        MachineLeft, match=r'machine "bench two" has had no worker for 0 s.*perftrail worker tcp://'
    ):
        cluster.measuring(gone).begin(doubled, 1).outcome()


def test_workers_of_another_version_are_refused_by_name(scheduler: LocalCluster) -> None:
    with (
        pytest.raises(ClusterError, match=r'"bench one" has "0.0.0"; install the same version'),
        connected(scheduler.scheduler_address),
    ):
        pass


def test_a_scheduler_that_does_not_answer_is_reported_with_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perftrail.cluster.dask.SECONDS_TO_CONNECT", 0.2)
    remedy = 'no Dask scheduler answers .* "perftrail worker tcp://127.0.0.1:1"'
    with pytest.raises(ClusterError, match=remedy), connected("tcp://127.0.0.1:1"):
        pass
