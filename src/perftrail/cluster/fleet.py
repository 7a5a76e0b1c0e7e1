"""The command's side of a cluster: its machines, its build workers, and the runner of its invocations.

Jobs are values that run on a worker, with its state. The command submits them, sends what a worker lacks, and receives
outcomes, builds and logs.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from perftrail._version import __version__
from perftrail.builds.packing import pack_build, unpack_build, unpack_logs
from perftrail.cluster.dask import OwnWorkers, Scheduler, connected, own_workers, parse_address
from perftrail.cluster.dask_worker import current_worker_state
from perftrail.cluster.study_copy import LOGS, STUDY, build_name, pack_study, study_digest
from perftrail.cluster.values import (
    BuildRequest,
    MissingFiles,
    OutcomeWithFiles,
    PackedFiles,
    RelinkRequest,
    RemoteStudy,
)
from perftrail.cluster.worker import StudyWorker
from perftrail.errors import ClusterError
from perftrail.file_tree import claimed_directory
from perftrail.local_engine import LocalEngine
from perftrail.measure.invocation_runner import InvocationRunner
from perftrail.measure.sandboxes import TEMPORARY_DIRECTORY, WORKERS
from perftrail.model.build import Built

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.cluster.dask import WorkerInfo
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.opened_inputs import OpenedInputs
    from perftrail.measure.subjects import PlannedInvocation
    from perftrail.model.build import Failure, Recipe
    from perftrail.model.measurement import Machine, Outcome
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Engine, Pending, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildJob:
    """Builds subjects on the worker on which it runs."""

    remote_study: RemoteStudy
    files: tuple[PackedFiles, ...] = ()

    def __call__(self, request: BuildRequest) -> OutcomeWithFiles[Built | Failure] | MissingFiles:
        """Build a subject on the worker."""
        return _worker().build(self.remote_study, self.files, request)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelinkJob:
    """Relinks subjects on the worker on which it runs."""

    remote_study: RemoteStudy
    files: tuple[PackedFiles, ...] = ()

    def __call__(
        self, request: RelinkRequest
    ) -> OutcomeWithFiles[Mapping[int, Built | Failure]] | MissingFiles:
        """Relink a subject on the worker."""
        return _worker().relink(self.remote_study, self.files, request)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeJob:
    """Starts a ready benchmark on the worker on which it runs."""

    remote_study: RemoteStudy
    files: tuple[PackedFiles, ...] = ()

    def __call__(self, start: PlannedInvocation) -> OutcomeWithFiles[Outcome] | MissingFiles:
        """Start a benchmark on the worker."""
        return _worker().invoke(self.remote_study, self.files, start)


def missing_files(remote_study: RemoteStudy) -> MissingFiles | None:
    """Return what a worker lacks before it can work on a study; `None` if it has everything."""
    return _worker().missing_files(remote_study)


def _worker() -> StudyWorker:
    state = current_worker_state()
    assert isinstance(state, StudyWorker)
    return state


T = TypeVar("T")

MOST_ATTEMPTS = 5
"""Maximum number of times that a job is sent: each time, another worker that lacks files may receive it."""


class JobSender:
    """Lets workers perform the jobs of one study. `outputs` returns the usable outputs of a subject's build."""

    def __init__(self, remote_study: RemoteStudy, outputs: Callable[[Subject], Sequence[str]]) -> None:
        self._remote_study = remote_study
        self._root = Path(remote_study.root)
        self._outputs = outputs
        self._study: PackedFiles | None = None
        self._first: tuple[PackedFiles, ...] = ()

    def send_missing_files(self, engine: Engine) -> None:
        """Query one worker, and send missing files with the first jobs: other workers probably lack the same files."""
        missing = engine.begin(missing_files, self._remote_study).outcome()
        self._first = (self._packed_study(),) if missing is not None else ()

    def build(self, engine: Engine, request: BuildRequest) -> Pending[Built | Failure]:
        """Let a worker build a subject, and copy the build here if the worker's directory is not visible here."""

        def send(files: tuple[PackedFiles, ...]) -> Pending[OutcomeWithFiles[Built | Failure] | MissingFiles]:
            return engine.begin(
                BuildJob(remote_study=self._remote_study, files=files or self._first), request
            )

        return _SentJob(send, lambda _: (self._packed_study(),), self._receive_build)

    def relink(self, engine: Engine, request: RelinkRequest) -> Pending[Mapping[int, Built | Failure]]:
        """Let a worker relink a subject, and copy its layouts here if the worker's directory is not visible here."""

        def send(
            files: tuple[PackedFiles, ...],
        ) -> Pending[OutcomeWithFiles[Mapping[int, Built | Failure]] | MissingFiles]:
            return engine.begin(
                RelinkJob(remote_study=self._remote_study, files=files or self._first), request
            )

        return _SentJob(send, lambda _: (self._packed_study(),), self._receive_layouts)

    def begin(self, engine: Engine, start: PlannedInvocation) -> Pending[Outcome]:
        """Submit an invocation."""

        def send(files: tuple[PackedFiles, ...]) -> Pending[OutcomeWithFiles[Outcome] | MissingFiles]:
            return engine.begin(InvokeJob(remote_study=self._remote_study, files=files), start)

        return _SentJob(send, lambda missing: self._files_for(missing, start), self._receive)

    def _receive(self, result: OutcomeWithFiles[T]) -> T:
        """Store the logs that arrived with an outcome, and return the outcome."""
        if result.logs:
            unpack_logs(result.logs, self._root, below=LOGS)
        return result.outcome

    def _receive_build(self, result: OutcomeWithFiles[Built | Failure]) -> Built | Failure:
        self._receive_files(result.files, [result.outcome])
        return self._receive(result)

    def _receive_layouts(
        self, result: OutcomeWithFiles[Mapping[int, Built | Failure]]
    ) -> Mapping[int, Built | Failure]:
        self._receive_files(result.files, result.outcome.values())
        return self._receive(result)

    def _receive_files(self, files: Sequence[PackedFiles], outcomes: Iterable[Built | Failure]) -> None:
        """Store the builds that arrived with an outcome."""
        builts = {each.key: each for each in outcomes if isinstance(each, Built)}
        for packed in files:
            built = builts[packed.name]
            unpack_build(packed.packed, self._root / "builds", built, log=built.log)

    def _files_for(self, missing: MissingFiles, start: PlannedInvocation) -> tuple[PackedFiles, ...]:
        prepared = start.ready.prepared
        wanted = []
        if STUDY in missing.names:
            wanted.append(self._packed_study())
        if (name := build_name(prepared)) in missing.names:
            packed = pack_build(
                self._root / "builds",
                prepared.built,
                benchmark_builds=(Path(prepared.out).name,),
                outputs=self._outputs(start.ready.cell.subject),
            )
            wanted.append(PackedFiles(name=name, packed=packed))
        return tuple(wanted)

    def _packed_study(self) -> PackedFiles:
        if self._study is None:
            self._study = PackedFiles(name=STUDY, packed=pack_study(Path(self._remote_study.study.directory)))
        return self._study


class _SentJob(Generic[T]):
    """A job that is sent again, with the files that its worker lacks, until it is done."""

    def __init__(
        self,
        send: Callable[[tuple[PackedFiles, ...]], Pending[OutcomeWithFiles[T] | MissingFiles]],
        files: Callable[[MissingFiles], tuple[PackedFiles, ...]],
        receive: Callable[[OutcomeWithFiles[T]], T],
    ) -> None:
        self._send = send
        self._files_for = files
        self._receive = receive
        self._pending = send(())

    def outcome(self) -> T:
        missing = MissingFiles(names=())
        for _ in range(MOST_ATTEMPTS):
            received = self._pending.outcome()
            if not isinstance(received, MissingFiles):
                return self._receive(received)
            missing = received
            self._pending = self._send(self._files_for(missing))
        raise ClusterError(
            f"workers still lack {', '.join(missing.names)} after {MOST_ATTEMPTS} transfers; "
            "check the workers' logs and disks"
        )


TOKEN = "cluster.id"  # noqa: S105 - it names a directory, and opens nothing
"""File with the identity of a results directory."""

MARKER = "cluster.sign."
"""Prefix of the file by which a command marks its results directory."""


class Workers(Protocol):
    """The workers behind ``--engine``, and the engines that use them."""

    def worker_infos(self) -> tuple[WorkerInfo, ...]:
        """Return the descriptions of all present workers. Raises `ClusterError` if none can be reached any more."""
        ...

    def building(self) -> Engine:
        """Return the engine that builds on any free worker."""
        ...

    def measuring(self, machine: Machine) -> Engine:
        """Return the engine that measures on one machine, one job at a time."""
        ...


class Fleet:
    """The machines of a cluster, by name: all build, and one measures. Implements `builds.RemoteBuildWorkers`."""

    def __init__(self, cluster: Workers) -> None:
        self._cluster = cluster
        self._building = cluster.building()
        machines = {info.machine.id: info.machine for info in cluster.worker_infos()}.values()
        self.machines: tuple[Machine, ...] = tuple(
            sorted(machines, key=lambda each: (each.facts.get("name", ""), each.id))
        )
        self._jobs: JobSender | None = None

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds of all present workers."""
        return max(1, sum(info.builds for info in self._cluster.worker_infos()))

    def set_study(
        self,
        study: Study,
        root: Path,
        *,
        patched: Patched | None,
        outputs: Callable[[Subject], Sequence[str]],
    ) -> None:
        """Set the study of all jobs; call it before any job. `root` is the results directory."""
        token = token_of(root)
        remote_study = RemoteStudy(
            study=study,
            root=str(root),
            token=token,
            marker=write_marker(root, token),
            digest=study_digest(Path(study.directory)),
            version=__version__,
            patched=patched,
        )
        self._jobs = JobSender(remote_study, outputs)
        self._jobs.send_missing_files(self._building)

    def begin(self, key: str, subject: Subject, recipe: Recipe) -> Pending[Built | Failure]:
        """Let a free worker build a subject."""
        request = BuildRequest(key=key, subject=subject, recipe=recipe)
        return self._sender.build(self._building, request)

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        """Let a free worker relink a subject."""
        build = BuildRequest(key=built.key, subject=subject, recipe=recipe)
        request = RelinkRequest(build=build, artefact=built.artefact, layouts=dict(layouts))
        return self._sender.relink(self._building, request)

    def measuring(self, known: Sequence[str]) -> Machine:
        """Return the machine that measures: the last present one of those with samples (`known`), else the first."""
        present = {machine.id: machine for machine in self.machines}
        used = [present[each] for each in known if each in present]
        return used[-1] if used else self.machines[0]

    def runner(
        self, machine: Machine, store: Store, invoker: Invoker, opened: OpenedInputs
    ) -> InvocationRunner:
        """Return the runner of the measuring machine; `invoker` is not used, because it starts benchmarks here."""
        return InvocationRunner(
            store=store,
            engine=LocalEngine(),
            invoker=invoker,
            machine=machine,
            begin=partial(self._sender.begin, self._cluster.measuring(machine)),
            opened=opened,
        )

    @property
    def _sender(self) -> JobSender:
        assert self._jobs is not None, "set_study comes first"
        return self._jobs


@contextmanager
def dask_workers(engine: str) -> Iterator[Workers]:
    """Open the workers of a Dask scheduler. Raises `UsageError` or `ClusterError`."""
    with ExitStack() as stack:
        match parse_address(engine):
            case Scheduler(address=address):
                yield stack.enter_context(connected(address))
            case OwnWorkers(count=count):
                home = stack.enter_context(claimed_directory(WORKERS, below=TEMPORARY_DIRECTORY))
                yield stack.enter_context(own_workers(count, home=home))


ENGINES: Mapping[str, Callable[[str], AbstractContextManager[Workers]]] = {
    "dask": dask_workers,
    "dask+tls": dask_workers,
}
"""Functions that open the workers of ``--engine SCHEME:…``, by scheme."""


@contextmanager
def open_fleet(engine: str) -> Iterator[Fleet]:
    """Open the machines that ``--engine`` names. Raises `UsageError` or `ClusterError`."""
    with ENGINES.get(engine.partition(":")[0], dask_workers)(engine) as workers:
        yield Fleet(workers)


def token_of(root: Path) -> str:
    """Return the identity of the results directory; write it at the first call."""
    path = root / TOKEN
    known = path.read_text(encoding="ascii") if path.exists() else ""
    if not known:  # there is no file, or the disk was full when it was written
        known = uuid.uuid4().hex
        path.write_text(known, encoding="ascii")
    return known


def write_marker(root: Path, token: str) -> str:
    """Write a file with a new name into the results directory, which this process has locked.

    Earlier copies lack it.
    """
    for old in root.glob(f"{MARKER}*"):
        old.unlink(missing_ok=True)
    name = f"{MARKER}{uuid.uuid4().hex}"
    (root / name).write_text(token, encoding="ascii")
    return name
