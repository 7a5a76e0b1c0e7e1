"""Every engine, for the contract of engines: a new one is one more line of `ENGINES`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, LocalCluster

from perftrail.cluster.dask import Cluster, WorkerInfo
from perftrail.local_engine import LocalEngine, second_process
from perftrail.model.measurement import Machine
from perftrail.ports import Engine
from tests.contracts.pages import importable

MACHINE = Machine(id="0123456789abcdef", facts={"name": "bench one"})
SECONDS_TO_WAIT = 10.0
DONE = ("memory", "erred", "released", "forgotten")


@dataclass(frozen=True)
class Case:
    """An engine under test, and how many jobs it performs in parallel."""

    engine: Engine
    capacity: int = 1
    cancels: bool = True
    """Whether it skips a job whose pending outcome was dropped."""
    wait_for_drops: Callable[[int], None] = lambda _: None
    """Wait until the engine knows that only this number of jobs is still wanted."""


@contextmanager
def in_this_process() -> Iterator[Case]:
    yield Case(LocalEngine())


@contextmanager
def in_a_second_process() -> Iterator[Case]:
    with second_process() as engine:
        yield Case(engine, cancels=False)  # the second process receives each job immediately


@contextmanager
def one_worker() -> Iterator[LocalCluster]:
    """A scheduler of Dask and one worker with two parallel builds, both in this process."""
    worker_info = WorkerInfo(machine=MACHINE, builds=2, version="0.0.0")
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
            resources=worker_info.resources(),
            startup_information={"perftrail": lambda _: worker_info.facts()},
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


@contextmanager
def on_dask(*, builds: bool) -> Iterator[Case]:
    with one_worker() as scheduler, Client(scheduler.scheduler_address, set_as_default=False) as client:
        cluster = Cluster(client, absence_seconds=0.0)
        dask_scheduler = scheduler.scheduler
        assert dask_scheduler is not None

        def wait_for_drops(jobs: int) -> None:
            deadline = time.monotonic() + SECONDS_TO_WAIT
            while sum(each.state not in DONE for each in dask_scheduler.tasks.values()) != jobs:
                assert time.monotonic() < deadline
                time.sleep(0.01)

        if builds:
            yield Case(cluster.building(), capacity=2, wait_for_drops=wait_for_drops)
        else:
            yield Case(cluster.measuring(MACHINE), wait_for_drops=wait_for_drops)


@contextmanager
def in_a_pool() -> Iterator[Case]:
    """The example of docs/contributing/new-engine.md."""
    with importable("new-engine.md", "pool_of_the_page") as module, module.pool_workers("pool:2") as workers:
        yield Case(workers.building(), capacity=2)


ENGINES: Mapping[str, Callable[[], AbstractContextManager[Case]]] = {
    "local": in_this_process,
    "second-process": in_a_second_process,
    "dask-building": lambda: on_dask(builds=True),
    "dask-measuring": lambda: on_dask(builds=False),
    "pool": in_a_pool,
}
"""The function that opens each engine, by the engine's name in test ids."""
