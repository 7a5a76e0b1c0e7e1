"""A cluster of Dask: its workers, and jobs on them.

A perftrail worker offers the resources `measurement` (one), `build` (its parallel builds) and one that names its
machine. A build runs on any worker with a free `build`, a measurement on a free worker of one machine. If a worker
dies, Dask moves its jobs to another worker with the same resources. If too many workers die during a job, perftrail
submits it again.

``--engine`` names a running scheduler, or a number of workers on this machine: then perftrail starts a scheduler in
this process, and worker processes that end with it. Their connections are encrypted with a temporary certificate:
without it, everybody with access to the scheduler's port on this machine could run programs as this user.

Dask's own messages are silenced, because perftrail reports what matters once and in its own messages.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import time
import uuid
from asyncio import CancelledError as TaskCancelled
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic

import dask
from dask.utils import key_split
from distributed import Client, LocalCluster, Security
from distributed import wait as wait_for
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from perftrail._version import __version__
from perftrail.errors import ClusterError, MachineLeft, UsageError
from perftrail.model.measurement import Machine
from perftrail.model.process import Exited, Signalled, describe_end
from perftrail.model.wording import escaped, listed, quoted
from perftrail.own_python import own_python
from perftrail.ports import Done, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from distributed import Future

    from perftrail.ports import Pending


MOST_WORKERS = 64
"""Maximum number of workers on this machine; each is a Python process of about 100 MB."""

_FORMS = "dask://HOST:PORT, dask+tls://HOST:PORT or dask:local:N"
_HOST_PORT = r"([^/\s@?#]+:([0-9]{1,5}))/?"
_SCHEDULER = re.compile(rf"dask(\+tls)?://{_HOST_PORT}")
_DASK_SCHEDULER = re.compile(rf"(tcp|tls)://{_HOST_PORT}")
_LOCAL = re.compile(r"dask:local:([0-9]{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A running scheduler: ``tcp://HOST:PORT``, or ``tls://HOST:PORT`` with encryption."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWorkers:
    """Workers on this machine that live as long as the command: one measures, all build."""

    count: int


Address = Scheduler | OwnWorkers


def parse_address(text: str) -> Address:
    """Parse the value of ``--engine``. Raises `UsageError`.

    >>> parse_address("dask+tls://head:8786").address
    'tls://head:8786'
    >>> parse_address("dask:local:4").count
    4
    """
    if (named := _SCHEDULER.fullmatch(text)) and _is_port(named[3]):
        return Scheduler(address=f"{'tls' if named[1] else 'tcp'}://{named[2]}")
    if local := _LOCAL.fullmatch(text):
        count = int(local[1])
        if not 1 <= count <= MOST_WORKERS:
            raise UsageError(f"--engine {quoted(text)}: 1 to {MOST_WORKERS} local workers are possible")
        return OwnWorkers(count=count)
    raise UsageError(f"--engine {quoted(text)}: write {_FORMS}")


def parse_scheduler(text: str) -> str:
    """Parse the address of a worker's scheduler. Raises `UsageError`.

    >>> parse_scheduler("tls://head:8786/")
    'tls://head:8786'
    """
    named = _DASK_SCHEDULER.fullmatch(text)
    if named is None or not _is_port(named[3]):
        raise UsageError(f"SCHEDULER {quoted(text)}: write tcp://HOST:PORT or tls://HOST:PORT")
    return f"{named[1]}://{named[2]}"


def _is_port(digits: str) -> bool:
    return 0 < int(digits) < 1 << 16


_LOGGERS = ("distributed", "tornado", "asyncio")


BOUNDED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.log-length": 60,
    "distributed.admin.low-level-log-length": 100,
}
"""Dask's own records of itself are shorter: by default, they grow for an hour, and perftrail does not read them."""


def bound_memory() -> None:
    """Limit what Dask records about itself in this process; call it before a worker, client or scheduler starts."""
    dask.config.set(BOUNDED)


MOST_CACHED_KEYS = 100
"""Number of finished jobs whose keys may remain in memory; Dask caches the prefixes of 100,000."""


def forget_finished_keys() -> None:
    """Clear Dask's cache of prefixes of keys if it is large: no job has the key of an earlier one."""
    if key_split.cache_info().currsize > MOST_CACHED_KEYS:
        key_split.cache_clear()


def silence(level: int = logging.CRITICAL) -> None:
    """Silence Dask's own messages below a level; each of its loggers has its own level."""
    for name in (*_LOGGERS, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in _LOGGERS:
            logging.getLogger(name).setLevel(level)


FACTS = "perftrail"
"""Name under which a worker describes itself to the scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """Description of a worker: its machine, its parallel builds, its version of perftrail."""

    machine: Machine
    builds: int
    version: str

    def facts(self) -> dict[str, object]:
        """Return it as plain data."""
        machine = {"id": self.machine.id, "facts": dict(self.machine.facts)}
        return {"machine": machine, "builds": self.builds, "version": self.version}

    def resources(self) -> dict[str, float]:
        """Return it as Dask's resources."""
        return {"measurement": 1, "build": self.builds, resource_of(self.machine): 1}


def machine_name(machine: Machine) -> str:
    """Return a machine's name for people: its own name if it has one."""
    return quoted(machine.facts.get("name", machine.id))


def read_worker_info(facts: Mapping[str, object]) -> WorkerInfo:
    """Return the description of a worker; another version may describe less."""
    machine, builds = facts.get("machine"), facts.get("builds")
    description = machine if isinstance(machine, dict) else {}
    found = description.get("facts")
    return WorkerInfo(
        machine=Machine(
            id=str(description.get("id", "")),
            facts={str(name): str(fact) for name, fact in found.items()} if isinstance(found, dict) else {},
        ),
        builds=builds if isinstance(builds, int) else 0,
        version=str(facts.get("version", "")),
    )


def resource_of(machine: Machine) -> str:
    """Return the name of the Dask resource that only the workers of a machine offer."""
    return f"machine {machine.id}"


SECONDS_TO_CONNECT = 10.0
"""Time limit for a connection to the scheduler."""

SECONDS_TO_APPEAR = 30.0
"""Time to wait for the first worker, for example if one script starts both."""

SECONDS_TO_REAPPEAR = 30.0
"""Time to wait for a machine without workers: a supervisor starts another one."""

SECONDS_TO_FETCH = 10.0
"""Time to wait for an outcome before checking whether it can still come."""

SECONDS_BETWEEN_CHECKS = 1.0
"""Time between two queries for the present workers."""

MOST_WORKER_DEATHS = 8
"""Maximum number of times that perftrail submits a job again because its workers died."""

CONNECTION_ERRORS = (OSError, CommClosedError, TimeoutError, CancelledError, TaskCancelled)
"""Errors of Dask for a lost scheduler."""


class Cluster:
    """The workers of a scheduler, and engines that use them."""

    def __init__(self, client: Client, *, absence_seconds: float) -> None:
        self._client = client
        self.address = str(client.scheduler.address) if client.scheduler is not None else ""
        self.absence_seconds = absence_seconds
        self._kept: Future[None] | None = None

    def keep_group(self) -> None:
        """Submit a job without an effect, whose result Dask keeps as long as this cluster.

        Dask records the time of each group of jobs, also on workers, and never forgets it. A group ends with its last
        job: without this one, every invocation would be another group.
        """
        self._kept = self.submit(_do_nothing, None, {})

    def worker_infos(self) -> tuple[WorkerInfo, ...]:
        """Return the descriptions of all present workers. Raises `ClusterError` if the scheduler is lost."""
        scheduler = self._client.scheduler
        if scheduler is None:
            raise self.lost()
        try:
            # Not `scheduler_info`: Dask's own timer may just have replaced its answer by one without workers.
            result = self._client.sync(scheduler.identity, n_workers=-1)
        except CONNECTION_ERRORS as error:
            raise self.lost() from error
        facts = (worker.get(FACTS) for worker in dict(result["workers"]).values())
        return tuple(read_worker_info(each) for each in facts if isinstance(each, dict))

    def building(self) -> DaskEngine:
        """Return the engine that builds on any free worker."""
        return DaskEngine(self, {"build": 1})

    def measuring(self, machine: Machine) -> DaskEngine:
        """Return the engine that measures on one machine."""
        return DaskEngine(self, {"measurement": 1, resource_of(machine): 1}, machine=machine)

    def submit(
        self, perform: Callable[[Job], Done], job: Job, resources: Mapping[str, float]
    ) -> Future[Done]:
        """Submit a job."""
        forget_finished_keys()
        key = f"perftrail-{uuid.uuid4().hex}"
        try:
            future: Future[Done] = self._client.submit(
                perform, job, key=key, resources=dict(resources), pure=False
            )
        except (*CONNECTION_ERRORS, RuntimeError) as error:
            raise self.lost() from error
        return future

    def wait(self, future: Future[Done], machine: Machine | None) -> None:
        """Wait for the end of a job. Raises `ClusterError` if no worker is left that could perform it."""
        absent_since: float | None = None
        while True:
            try:
                with self._client.as_current():
                    wait_for(future, timeout=SECONDS_BETWEEN_CHECKS)
            except TimeoutError:
                pass
            except (CancelledError, TaskCancelled) as error:
                raise self.lost() from error
            else:
                return
            infos = self.worker_infos()
            if any(machine is None or info.machine.id == machine.id for info in infos):
                absent_since = None
                continue
            absent_since = absent_since or time.monotonic()
            if time.monotonic() - absent_since > self.absence_seconds:
                raise self._machine_left(machine)

    def lost(self) -> ClusterError:
        """Return the error of a lost cluster."""
        return ClusterError(
            f"{self.address}: the scheduler does not answer any more; all samples are stored. "
            "Start it again, with its workers, and repeat the command, which resumes"
        )

    def _machine_left(self, machine: Machine | None) -> ClusterError:
        if machine is None:
            return ClusterError(
                f"{self.address}: no worker is left; all builds and samples are stored. Start one with "
                f'"perftrail worker {self.address}", and repeat the command, which resumes'
            )
        return MachineLeft(
            f"machine {machine_name(machine)} has had no worker for {self.absence_seconds:g} s; its "
            f'samples are stored. Start a worker there with "perftrail worker {self.address}"'
        )


def _do_nothing(_: None) -> None:
    """Do the job of `Cluster.keep_group`."""


class DaskEngine:
    """Implements `ports.Engine` with tasks that need some resources of a worker."""

    def __init__(
        self, cluster: Cluster, resources: Mapping[str, float], *, machine: Machine | None = None
    ) -> None:
        self._cluster = cluster
        self._resources = resources
        self._machine = machine

    def begin(self, perform: Callable[[Job], Done], job: Job) -> Pending[Done]:
        """Submit a job; it waits at the scheduler for a worker with the resources."""
        return _SubmittedJob(self, perform, job)

    def submit(self, perform: Callable[[Job], Done], job: Job) -> Future[Done]:
        """Submit a job to Dask."""
        return self._cluster.submit(perform, job, self._resources)

    def wait(self, future: Future[Done]) -> None:
        """Wait for the end of a job of this engine."""
        self._cluster.wait(future, self._machine)

    def lost(self) -> ClusterError:
        """Return the error of a lost cluster."""
        return self._cluster.lost()


class _SubmittedJob(Generic[Job, Done]):
    """A job that was submitted to Dask."""

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
            if self._resubmitted():
                continue
            ended = self._future.status == "error"
            try:
                done: Done = self._future.result(timeout=seconds)
            except (CancelledError, TaskCancelled, CommClosedError) as error:
                raise self._engine.lost() from error
            except (TimeoutError, KilledWorker):
                if ended:
                    raise
                # The connection is slow, or the worker with the outcome died: then another worker repeats the job.
                seconds *= 2
                continue
            return done

    def _resubmitted(self) -> bool:
        """Submit the job again after its workers died; raise `ClusterError` if that happened too often."""
        if self._future.status != "error":
            return False
        why = self._future.exception()
        if not isinstance(why, KilledWorker):
            return False
        self._deaths += 1
        if self._deaths > MOST_WORKER_DEATHS:
            raise ClusterError(
                f"{self._deaths * (why.allowed_failures + 1)} workers died during the same job, probably "
                "because of it: check the logs and the memory of the workers"
            ) from why
        self._future = self._engine.submit(self._perform, self._job)
        return True


@contextmanager
def connected(
    address: str,
    *,
    security: Security | None = None,
    workers: int = 1,
    while_waiting: Callable[[], None] = lambda: None,
) -> Iterator[Cluster]:
    """Connect to a scheduler; wait until it has enough perftrail workers, or at least one at the time limit.

    `while_waiting` is called repeatedly, and may raise an error. Raises `ClusterError` with the remedy.
    """
    silence()
    bound_memory()
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"})
    encrypted = security or (Security(require_encryption=True) if address.startswith("tls://") else None)
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, security=encrypted, set_as_default=False)
    except (*CONNECTION_ERRORS, TypeError, ValueError, RuntimeError) as error:
        raise ClusterError(_unreachable(address, error)) from error
    try:
        cluster = Cluster(client, absence_seconds=SECONDS_TO_REAPPEAR)
        _refuse_other_versions(cluster, _wait_for_workers(cluster, workers, while_waiting))
        cluster.keep_group()
        yield cluster
    finally:
        with suppress(*CONNECTION_ERRORS):
            client.close(timeout=2)


def _unreachable(address: str, error: BaseException) -> str:
    if address.startswith("tls://") and not isinstance(error, OSError):
        return (
            f"{address}: the encrypted connection failed: {error}. Set Dask's distributed.comm.tls.ca-file, "
            ".client.cert and .client.key, as DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on"
        )
    return (
        f"{address}: no Dask scheduler answers ({_error_text(error)}); start one with "
        f'"dask scheduler", and on each machine "perftrail worker {address}"'
    )


def _wait_for_workers(
    cluster: Cluster, workers: int, while_waiting: Callable[[], None]
) -> tuple[WorkerInfo, ...]:
    began = time.monotonic()
    while len(infos := cluster.worker_infos()) < workers:
        while_waiting()
        if time.monotonic() - began > SECONDS_TO_APPEAR:
            if infos:
                break
            raise ClusterError(
                f"{cluster.address}: the scheduler has no worker of perftrail; start one on each machine: "
                f"perftrail worker {cluster.address}"
            )
        time.sleep(SECONDS_BETWEEN_CHECKS / 4)
    return infos


def _refuse_other_versions(cluster: Cluster, infos: Iterable[WorkerInfo]) -> None:
    """Refuse workers of another version, which would read the same data differently."""
    others = sorted(
        {
            f"{machine_name(each.machine)} has {quoted(each.version)}"
            for each in infos
            if each.version != __version__
        }
    )
    if others:
        raise ClusterError(
            f"{cluster.address}: perftrail is {__version__} here, but {listed(others, 'and')}; install the same "
            "version everywhere"
        )


def _error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__


SECONDS_TO_END = 10.0
"""Time for a worker to end before perftrail kills it."""

ALLOWED_FAILURES = 20
"""Number of workers that may die with one job before the scheduler blames the job."""

_CERTIFICATE_FILES = {
    "tls_ca_file": "CA_FILE",
    "tls_worker_cert": "WORKER__CERT",
    "tls_worker_key": "WORKER__KEY",
}
"""Files of the certificate, with the variables of Dask that name them."""


@contextmanager
def own_workers(count: int, *, home: Path) -> Iterator[Cluster]:
    """Start a scheduler and workers with one build each, all on this machine; they end with the block.

    If this process dies, the workers lose their scheduler and end, too. `home` is their directory, which only this
    user can enter. Raises `ClusterError`.
    """
    try:
        security = Security.temporary()
    except ImportError as error:
        raise ClusterError(
            "--engine dask:local needs cryptography: pip install 'perftrail[cluster]'"
        ) from error
    # Its web server has no password, so it serves no pages.
    quiet = {
        "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
        "distributed.scheduler.http.routes": [],
    }
    dask.config.set(quiet)
    bound_memory()
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
        environment = {**os.environ, **_write_certificate(security, home)}
        started = [_start(address, home / f"{number}", environment) for number in range(count)]
        try:
            with connected(
                address, security=security, workers=count, while_waiting=lambda: _refuse_ended(started, home)
            ) as joined:
                yield joined
        finally:
            _stop_workers(started)


LOG_LINES = 5
"""Number of last lines of a worker's log that an error quotes."""


def _refuse_ended(started: Sequence[subprocess.Popen[bytes]], home: Path) -> None:
    """Raise `ClusterError` if a worker has ended, with the last lines of its log."""
    for number, process in enumerate(started):
        code = process.poll()
        if code is None:
            continue
        end = describe_end(Exited(code=code) if code >= 0 else Signalled(signal=-code)) or "exit code 0"
        log = (home / f"{number}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        lines = "\n".join(f"  {escaped(line, longest=300)}" for line in log[-LOG_LINES:])
        raise ClusterError(f"a worker on this machine ended at its start: {end}; its last lines:\n{lines}")


def _start(address: str, directory: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a worker that counts as this machine."""
    words = own_python("-m", "perftrail", "worker", address, "--builds", "1", "--machine", "")
    with directory.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [*words, "--directory", str(directory)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _write_certificate(security: Security, home: Path) -> dict[str, str]:
    """Write a certificate that only this user can read; return the variables that name it."""
    data = {}
    for name, variable in _CERTIFICATE_FILES.items():
        path = home / name
        path.write_text(str(getattr(security, name)), encoding="ascii")
        path.chmod(0o600)
        data[f"DASK_DISTRIBUTED__COMM__TLS__{variable}"] = str(path)
    return data


def _stop_workers(started: list[subprocess.Popen[bytes]]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
