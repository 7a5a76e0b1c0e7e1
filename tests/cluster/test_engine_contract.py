"""What every engine promises: here, and on a worker of Dask."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import dask
import pytest
from distributed import Client, LocalCluster

from perftrail.cluster.dask import Cluster, WorkerInfo, connected
from perftrail.errors import ClusterError, MachineLeft
from perftrail.local_engine import LocalEngine, second_process
from perftrail.model.measurement import Machine
from perftrail.ports import Engine

MACHINE = Machine(id="0123456789abcdef", facts={"name": "bench one"})


def doubled(number: int) -> int:
    if number < 0:
        raise ClusterError(f"{number} is below zero")
    return 2 * number


@pytest.fixture(scope="module")
def scheduler() -> Iterator[LocalCluster]:
    """A scheduler and one worker of ours, all of it in this process."""
    offer = WorkerInfo(machine=MACHINE, builds=2, version="0.0.0")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        dask.config.set({"distributed.scheduler.http.routes": []}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=3,
            processes=False,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            resources=offer.resources(),
            startup_information={"perftrail": lambda _: offer.facts()},
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def cluster(scheduler: LocalCluster) -> Iterator[Cluster]:
    with Client(scheduler.scheduler_address, set_as_default=False) as client:
        yield Cluster(client, absence_seconds=0.0)


@pytest.fixture(params=["local", "second_process", "building", "measuring"])
def engine(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Engine]:
    if request.param == "local":
        yield LocalEngine()
    elif request.param == "second_process":
        with second_process() as engine:
            yield engine
    else:
        yield cluster.building() if request.param == "building" else cluster.measuring(MACHINE)


def test_outcomes_come_in_the_order_of_the_jobs(engine: Engine) -> None:
    assert list(engine.map(doubled, [3, 1, 2])) == [6, 2, 4]


def test_the_next_job_is_taken_when_the_last_outcome_was_dealt_with(engine: Engine) -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(3):
            taken.append(number)
            yield number

    for outcome in engine.map(doubled, jobs()):
        assert taken[-1] == outcome // 2


def test_what_was_handed_out_is_given_in_whichever_order_it_is_asked_for(engine: Engine) -> None:
    first, second = engine.begin(doubled, 1), engine.begin(doubled, 2)
    assert (second.outcome(), first.outcome()) == (4, 2)


def test_what_performing_raises_comes_through(engine: Engine) -> None:
    with pytest.raises(ClusterError, match="-1 is below zero"):
        engine.begin(doubled, -1).outcome()


def test_workers_say_which_machine_they_are_and_how_many_builds_they_make(cluster: Cluster) -> None:
    (offer,) = cluster.worker_infos()
    assert (offer.machine, offer.builds, offer.version) == (MACHINE, 2, "0.0.0")


def test_workers_are_seen_at_every_look_whatever_dask_asks_for_itself(scheduler: LocalCluster) -> None:
    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}),
        Client(scheduler.scheduler_address, set_as_default=False) as client,
    ):
        cluster = Cluster(client, absence_seconds=0.0)
        assert {len(cluster.worker_infos()) for _ in range(300)} == {1}


def test_a_machine_that_has_no_worker_is_said_to_have_left(cluster: Cluster) -> None:
    gone = Machine(id="fedcba9876543210", facts={"name": "bench two"})
    with pytest.raises(
        MachineLeft, match=r'machine "bench two" has no worker any more.*perftrail worker tcp://'
    ):
        cluster.measuring(gone).begin(doubled, 1).outcome()


def test_workers_of_another_version_are_refused_by_name(scheduler: LocalCluster) -> None:
    with (
        pytest.raises(ClusterError, match=r'"bench one" has "0.0.0"; install the same version'),
        connected(scheduler.scheduler_address),
    ):
        pass


def test_where_no_scheduler_answers_it_is_said_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perftrail.cluster.dask.SECONDS_TO_CONNECT", 0.2)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"), connected("tcp://127.0.0.1:1"):
        pass
