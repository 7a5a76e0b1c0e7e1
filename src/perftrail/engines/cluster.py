"""A cluster of Dask as perftrail uses it: who works in it, and jobs handed out to them.

A worker of ours offers the resources `bench` (one), `build` (so many) and one that names its machine. A build
goes to any worker that has a `build` free, a measurement to the bench of one machine. When a worker dies, Dask
gives its jobs to another that offers the same; a job that was on too many that died is handed out anew here.
"""

from __future__ import annotations

import time
import uuid
from asyncio import CancelledError as TaskCancelled
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Generic

import dask
from distributed import Client, Security
from distributed import wait as wait_for
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from perftrail import __version__
from perftrail.engines.offers import FACTS, Offer, read_offer, resource_of, told_machine
from perftrail.engines.speech import silence
from perftrail.errors import ClusterError, MachineLeft
from perftrail.model.wording import listed, quoted
from perftrail.ports import Done, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from distributed import Future

    from perftrail.model.measurement import Machine
    from perftrail.ports import Pending

SECONDS_TO_CONNECT = 10.0
SECONDS_TO_COME = 30.0
"""How long workers are waited for when there is none yet, as when both were started by one script."""

SECONDS_TO_COME_BACK = 30.0
"""How long a machine that has no worker any more is waited for: a supervisor starts another one."""

SECONDS_TO_FETCH = 10.0
"""How long what came of a job is waited for at first, before it is looked whether it can still come."""

SECONDS_BETWEEN_LOOKS = 1.0

MOST_DEATHS = 8
"""So often a job is handed out anew that was, each time, on as many workers that died as the scheduler allows."""

LOST = (OSError, CommClosedError, TimeoutError, CancelledError, TaskCancelled)


class Cluster:
    """Workers that a scheduler knows, and engines over them."""

    def __init__(self, client: Client, *, patience_seconds: float) -> None:
        self._client = client
        self.address = str(client.scheduler.address) if client.scheduler is not None else ""
        self.patience_seconds = patience_seconds

    def offers(self) -> tuple[Offer, ...]:
        """Give what the workers offer that are there now. Raises `ClusterError` when the scheduler is lost."""
        scheduler = self._client.scheduler
        if scheduler is None:
            raise self.lost()
        try:
            # Not `scheduler_info`: Dask's own timer may just have replaced its answer by one that has no workers.
            told = self._client.sync(scheduler.identity, n_workers=-1)
        except LOST as error:
            raise self.lost() from error
        facts = (worker.get(FACTS) for worker in dict(told["workers"]).values())
        return tuple(read_offer(each) for each in facts if isinstance(each, dict))

    def building(self) -> DaskEngine:
        """Give the engine that builds, wherever there is room."""
        return DaskEngine(self, {"build": 1})

    def measuring(self, machine: Machine) -> DaskEngine:
        """Give the engine that measures on one machine."""
        return DaskEngine(self, {"bench": 1, resource_of(machine): 1}, machine=machine)

    def submit(
        self, perform: Callable[[Job], Done], job: Job, resources: Mapping[str, float]
    ) -> Future[Done]:
        """Hand a job out."""
        key = f"perftrail-{uuid.uuid4().hex}"
        try:
            handed: Future[Done] = self._client.submit(
                perform, job, key=key, resources=dict(resources), pure=False
            )
        except (*LOST, RuntimeError) as error:
            raise self.lost() from error
        return handed

    def wait(self, future: Future[Done], machine: Machine | None) -> None:
        """Wait until a job has come to an end; while it does not, look whether it still can."""
        absent_since: float | None = None
        while True:
            try:
                with self._client.as_current():
                    wait_for(future, timeout=SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                pass
            except (CancelledError, TaskCancelled) as error:
                raise self.lost() from error
            else:
                return
            offers = self.offers()
            if any(machine is None or offer.machine.id == machine.id for offer in offers):
                absent_since = None
                continue
            absent_since = absent_since or time.monotonic()
            if time.monotonic() - absent_since > self.patience_seconds:
                raise self._left(machine)

    def lost(self) -> ClusterError:
        """Say that nothing can be heard of the cluster any more."""
        return ClusterError(
            f"{self.address}: the scheduler is gone or cannot be reached any more; what was measured is kept. "
            "Start it again, with its workers, and the same command goes on from there"
        )

    def _left(self, machine: Machine | None) -> ClusterError:
        if machine is None:
            return ClusterError(
                f"{self.address}: no worker is left; what was made and measured is kept. Start one with "
                f'"perftrail worker {self.address}", and the same command goes on from there'
            )
        return MachineLeft(
            f"machine {told_machine(machine)} has no worker any more, for {self.patience_seconds:.0f} s; what it "
            f'measured is kept. Start one there with "perftrail worker {self.address}"'
        )


class DaskEngine:
    """Implements `ports.Engine` with tasks that need some resources of a worker."""

    def __init__(
        self, cluster: Cluster, resources: Mapping[str, float], *, machine: Machine | None = None
    ) -> None:
        self._cluster = cluster
        self._resources = resources
        self._machine = machine

    def map(self, perform: Callable[[Job], Done], jobs: Iterable[Job]) -> Iterator[Done]:
        """Perform jobs one after the other, each handed out when the last one's outcome was dealt with."""
        return (self.begin(perform, job).outcome() for job in jobs)

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Hand a job out; it waits at the scheduler until a worker has what it needs."""
        return _Handed(self, perform, job)

    def submit(self, perform: Callable[[Job], Done], job: Job) -> Future[Done]:
        """Give Dask a job."""
        return self._cluster.submit(perform, job, self._resources)

    def wait(self, future: Future[Done]) -> None:
        """Wait until a job of this engine has come to an end."""
        self._cluster.wait(future, self._machine)

    def lost(self) -> ClusterError:
        """Say that nothing can be heard of the cluster any more."""
        return self._cluster.lost()


class _Handed(Generic[Job, Done]):
    """A job that Dask has."""

    def __init__(self, engine: DaskEngine, perform: Callable[[Job], Done], job: Job) -> None:
        self._engine = engine
        self._perform = perform
        self._job = job
        self._deaths = 0
        self._future: Future[Done] = engine.submit(perform, job)

    def outcome(self) -> Done:
        seconds = SECONDS_TO_FETCH
        while True:
            self._engine.wait(self._future)
            if self._began_again():
                continue
            ended = self._future.status == "error"
            try:
                done: Done = self._future.result(timeout=seconds)
            except (CancelledError, TaskCancelled, CommClosedError) as error:
                raise self._engine.lost() from error
            except (TimeoutError, KilledWorker):
                if ended:
                    raise
                # The line is slow, or who has it died: the job is done again then, where somebody is left to do it.
                seconds *= 2
                continue
            return done

    def _began_again(self) -> bool:
        """Hand the job out anew when its workers died; after too often it is the job that kills them."""
        if self._future.status != "error":
            return False
        why = self._future.exception()
        if not isinstance(why, KilledWorker):
            return False
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            raise ClusterError(
                f"a job was on {self._deaths * (why.allowed_failures + 1)} workers that died, so it is likely what "
                "kills them: look at their logs, and at the memory that they have"
            ) from why
        self._future = self._engine.submit(self._perform, self._job)
        return True


@contextmanager
def connected(address: str, *, security: Security | None = None, workers: int = 1) -> Iterator[Cluster]:
    """Connect to a scheduler, and wait until it has so many workers of ours, or has had time enough and has one.

    Raises `ClusterError` with the remedy.
    """
    silence()
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"})
    encrypted = security or (Security(require_encryption=True) if address.startswith("tls://") else None)
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, security=encrypted, set_as_default=False)
    except (*LOST, TypeError, ValueError, RuntimeError) as error:
        raise ClusterError(_unreachable(address, error)) from error
    try:
        cluster = Cluster(client, patience_seconds=SECONDS_TO_COME_BACK)
        _refuse_unfit(cluster, _awaited(cluster, workers))
        yield cluster
    finally:
        with suppress(*LOST):
            client.close(timeout=2)


def _unreachable(address: str, error: BaseException) -> str:
    if address.startswith("tls://") and not isinstance(error, OSError):
        return (
            f"{address}: cannot be reached encrypted: {error}. Set Dask's own distributed.comm.tls.ca-file, "
            ".client.cert and .client.key, as DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on"
        )
    return (
        f"{address}: no scheduler of Dask answers there ({_told(error)}); start one with "
        '"dask scheduler", and on each machine "perftrail worker ADDRESS"'
    )


def _awaited(cluster: Cluster, workers: int) -> tuple[Offer, ...]:
    began = time.monotonic()
    while len(offers := cluster.offers()) < workers:
        if time.monotonic() - began > SECONDS_TO_COME:
            if offers:
                break
            raise ClusterError(
                f"{cluster.address}: the scheduler has no worker of perftrail; start one on each machine: "
                f"perftrail worker {cluster.address}"
            )
        time.sleep(SECONDS_BETWEEN_LOOKS / 4)
    return offers


def _refuse_unfit(cluster: Cluster, offers: Iterable[Offer]) -> None:
    """Refuse workers of another version: what is sent to them would mean something else there."""
    others = sorted(
        {
            f"{told_machine(each.machine)} has {quoted(each.version)}"
            for each in offers
            if each.version != __version__
        }
    )
    if others:
        raise ClusterError(
            f"{cluster.address}: perftrail is {__version__} here, but {listed(others, 'and')}; install the same "
            "version everywhere"
        )


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
