"""A cluster of Dask as perftrail uses it: who works in it, and jobs handed out to them.

A worker of ours offers the resources `bench` (one), `build` (so many) and one that names its machine. A build
goes to any worker that has a `build` free, a measurement to the bench of one machine. When a worker dies, Dask
gives its jobs to another that offers the same; a job that was on too many that died is handed out anew here.

What ``--engine`` and a worker name: a scheduler of Dask that others started, or so many workers of our own here.

What Dask says by itself: nothing, since what matters of it is said here in words, once.

What a worker tells of itself: which machine it is, and what it offers.

Workers of our own on this machine: a scheduler in this process, and processes that end with it.

Everything between them is encrypted with a certificate that is made for them alone: without it, whoever can
reach the scheduler's port on this machine could run programs as us.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
import uuid
from asyncio import CancelledError as TaskCancelled
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic

import dask
from distributed import Client, LocalCluster, Security
from distributed import wait as wait_for
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from perftrail._version import __version__
from perftrail.errors import ClusterError, MachineLeft, UsageError
from perftrail.model.measurement import Machine
from perftrail.model.wording import listed, quoted
from perftrail.ports import Done, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from distributed import Future

    from perftrail.ports import Pending


MOST_WORKERS = 64
"""So many workers of our own at once; each is a Python process of about 100 MB."""

_FORMS = "dask://HOST:PORT, dask+tls://HOST:PORT or dask:local:N"
_PLACE = r"([^/\s@?#]+:([0-9]{1,5}))/?"
_SCHEDULER = re.compile(rf"dask(\+tls)?://{_PLACE}")
_AS_DASK_HAS_IT = re.compile(rf"(tcp|tls)://{_PLACE}")
_HERE = re.compile(r"dask:local:([0-9]{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A scheduler that runs somewhere: ``tcp://HOST:PORT``, or ``tls://HOST:PORT`` where all is encrypted."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWorkers:
    """So many workers on this machine, started and ended with the command: one measures, all build."""

    count: int


Address = Scheduler | OwnWorkers


def parse_address(text: str) -> Address:
    """Read what ``--engine`` says. Raises `UsageError`.

    >>> parse_address("dask+tls://head:8786").address
    'tls://head:8786'
    >>> parse_address("dask:local:4").count
    4
    """
    if (named := _SCHEDULER.fullmatch(text)) and _is_port(named[3]):
        return Scheduler(address=f"{'tls' if named[1] else 'tcp'}://{named[2]}")
    if here := _HERE.fullmatch(text):
        count = int(here[1])
        if not 1 <= count <= MOST_WORKERS:
            raise UsageError(f"--engine {quoted(text)}: 1 to {MOST_WORKERS} workers of our own can be had")
        return OwnWorkers(count=count)
    raise UsageError(f"--engine {quoted(text)}: give {_FORMS}")


def parse_scheduler(text: str) -> str:
    """Read the address that a worker is given of its scheduler. Raises `UsageError`.

    >>> parse_scheduler("tls://head:8786/")
    'tls://head:8786'
    """
    named = _AS_DASK_HAS_IT.fullmatch(text)
    if named is None or not _is_port(named[3]):
        raise UsageError(f"SCHEDULER {quoted(text)}: give tcp://HOST:PORT or tls://HOST:PORT")
    return f"{named[1]}://{named[2]}"


def _is_port(digits: str) -> bool:
    return 0 < int(digits) < 1 << 16


_SPEAKERS = ("distributed", "tornado", "asyncio")


def silence(level: int = logging.CRITICAL) -> None:
    """Keep Dask's own messages below a level to itself; each of its loggers has a level of its own."""
    for name in (*_SPEAKERS, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in _SPEAKERS:
            logging.getLogger(name).setLevel(level)


FACTS = "perftrail"
"""The name under which a worker tells the scheduler what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker tells of itself: its machine, how many builds at once, its version of perftrail."""

    machine: Machine
    builds: int
    version: str

    def facts(self) -> dict[str, object]:
        """Put it as plain data."""
        machine = {"id": self.machine.id, "facts": dict(self.machine.facts)}
        return {"machine": machine, "builds": self.builds, "version": self.version}

    def resources(self) -> dict[str, float]:
        """Put it as Dask counts it."""
        return {"bench": 1, "build": self.builds, resource_of(self.machine): 1}


def told_machine(machine: Machine) -> str:
    """Name a machine for people: by its name where it has one."""
    return quoted(machine.facts.get("name", machine.id))


def read_offer(facts: Mapping[str, object]) -> Offer:
    """Read what a worker tells; of one that tells less, as another version may, what there is."""
    machine, builds = facts.get("machine"), facts.get("builds")
    kept = machine if isinstance(machine, dict) else {}
    told = kept.get("facts")
    return Offer(
        machine=Machine(
            id=str(kept.get("id", "")),
            facts={str(name): str(fact) for name, fact in told.items()} if isinstance(told, dict) else {},
        ),
        builds=builds if isinstance(builds, int) else 0,
        version=str(facts.get("version", "")),
    )


def resource_of(machine: Machine) -> str:
    """Name the resource that only workers of a machine offer."""
    return f"machine {machine.id}"


SECONDS_TO_CONNECT = 10.0
SECONDS_TO_COME = 30.0
"""How long workers are waited for when there is none yet, as when both were started by one script."""

SECONDS_TO_COME_BACK = 30.0
"""How long a machine that has no worker any more is waited for: a supervisor starts another one."""

SECONDS_TO_FETCH = 10.0
"""How long what came of a job is waited for at first, before it is looked whether it can still come."""

SECONDS_BETWEEN_LOOKS = 1.0

MOST_WORKER_DEATHS = 8
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
        if self._deaths > MOST_WORKER_DEATHS:
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


SECONDS_TO_LEAVE = 10.0

ALLOWED_FAILURES = 20
"""So many workers may die with one job before the scheduler takes it for what kills them."""

_FILES = {
    "tls_ca_file": "CA_FILE",
    "tls_worker_cert": "WORKER__CERT",
    "tls_worker_key": "WORKER__KEY",
}
"""What a worker needs of the certificate, and by which of Dask's own variables it is told."""


@contextmanager
def own_workers(count: int, *, home: Path) -> Iterator[Cluster]:
    """Start a scheduler and workers with a build each, all of them this machine; they end with the block.

    When this process dies, the workers see their scheduler gone and end as well. `home` is a directory of theirs that
    only we can enter. Raises `ClusterError`.
    """
    try:
        security = Security.temporary()
    except ImportError as error:
        raise ClusterError(
            "--engine dask:local needs cryptography: pip install 'perftrail[cluster]'"
        ) from error
    # Its web server serves nothing: it has no password.
    quiet = {
        "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
        "distributed.scheduler.http.routes": [],
    }
    dask.config.set(quiet)
    silence()
    with LocalCluster(
        n_workers=0,
        host="127.0.0.1",
        protocol="tls://",
        dashboard_address="127.0.0.1:0",
        security=security,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        address = str(cluster.scheduler_address)
        environment = {**os.environ, **_written(security, home)}
        started = [_start(address, home / f"{number}", environment) for number in range(count)]
        try:
            with connected(address, security=security, workers=count) as joined:
                yield joined
        finally:
            _end(started)


def _start(address: str, directory: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a worker that is this machine, and no other one by a name."""
    words = [sys.executable, "-m", "perftrail", "worker", address, "--builds", "1", "--machine", ""]
    with directory.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [*words, "--directory", str(directory)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _written(security: Security, home: Path) -> dict[str, str]:
    """Write a certificate where only we can read it; give the variables that say where."""
    told = {}
    for name, variable in _FILES.items():
        path = home / name
        path.write_text(str(getattr(security, name)), encoding="ascii")
        path.chmod(0o600)
        told[f"DASK_DISTRIBUTED__COMM__TLS__{variable}"] = str(path)
    return told


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(SECONDS_TO_LEAVE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
