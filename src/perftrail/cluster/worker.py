"""A worker: open a study with its first job, and perform the jobs.

A worker's builders and the launcher that measures are opened on demand. Locks on the machine let parallel builds
exclude a measurement, and a measurement exclude everything else.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Timer
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.builds.toolchain import local_tools
from perftrail.builds.workers import CleanBuilder, Stoppable
from perftrail.cluster.dask import WorkerInfo
from perftrail.cluster.dask_worker import current_job, run_worker
from perftrail.cluster.study_copy import LOGS, STUDIES, StudyCopy
from perftrail.cluster.values import WorkerOptions
from perftrail.errors import ClusterError, MachineBusy, PerftrailError, UsageError
from perftrail.file_tree import claimed_directory, exclusive_lock, remove_left_over, shared_lock, user_cache
from perftrail.measure.build_inputs import programs_of
from perftrail.measure.build_workers import LocalBuildWorker, open_builder, sandboxes
from perftrail.measure.invocation import open_invoker
from perftrail.measure.sandboxes import remove_leftovers
from perftrail.measure.services import FixtureFailed
from perftrail.measure.sources import open_sources
from perftrail.measure.stored_outputs import log_name
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import FailedInvocation, tool_name
from perftrail.model.wording import quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.sandbox.view import remove_left_over_directories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.builds.toolchain import Toolchain
    from perftrail.cluster.values import (
        BuildRequest,
        MissingFiles,
        OutcomeWithFiles,
        PackedFiles,
        RelinkRequest,
        RemoteStudy,
    )
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.sandboxes import Sandboxes
    from perftrail.measure.subjects import PlannedInvocation
    from perftrail.model.build import Prepared
    from perftrail.model.measurement import Outcome


@contextmanager
def measuring(machine: str) -> Iterator[None]:
    """Lock the machine for a measurement, among all workers of this user that know it by this id.

    It waits for running builds; later ones wait for the measurement.
    """
    home = _lock_directory(machine)
    with exclusive_lock(home / "turn.lock"), exclusive_lock(home / "use.lock"):
        yield


@contextmanager
def building(machine: str) -> Iterator[None]:
    """Share the machine with other builds, but not with a measurement."""
    home = _lock_directory(machine)
    with exclusive_lock(home / "turn.lock"):
        use = shared_lock(home / "use.lock")
        use.__enter__()
    try:
        yield
    finally:
        use.__exit__(None, None, None)


def _lock_directory(machine: str) -> Path:
    """Return a directory that only this user's processes can enter."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    home = (Path(own) / "perftrail" if own and Path(own).is_dir() else user_cache()) / "machines" / machine
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return home


IDLE_SECONDS = 60.0
"""Time after the last invocation of a study until its services end."""

PREFIX = "perftrail-bench-"
SANDBOXES = "sandboxes"


def remove_leftovers_of_workers(directory: Path) -> None:
    """Remove the temporary files of killed workers in a worker's directory."""
    remove_left_over(PREFIX, below=directory)
    if (directory / SANDBOXES).is_dir():
        remove_left_over_directories(directory / SANDBOXES)


class JobRunner:
    """Builds and starts the jobs of one study. Several threads call it; one of them starts benchmarks at a time."""

    def __init__(self, remote_study: RemoteStudy, options: WorkerOptions) -> None:
        self.remote_study = remote_study
        self._options = options
        self._copy = StudyCopy(remote_study, options.directory, apart=options.apart)
        self._transfer = Lock()
        self._sandbox_directory = options.directory / SANDBOXES
        self._workers: list[LocalBuildWorker] = []
        self._idle: SimpleQueue[LocalBuildWorker] = SimpleQueue()
        self._open_resources = ExitStack()
        self._stop = Event()
        self._launcher = Launcher()
        self._isolation: Sandboxes | None = None
        self._invoker: Invoker | None = None
        self._tools: tuple[str, Toolchain] | None = None
        self._measuring = Lock()
        self._idle_end: Timer | None = None
        self._cancels: dict[str, Callable[[], None]] = {}

    def missing_files(
        self, files: Sequence[PackedFiles], prepared: Prepared | None = None
    ) -> MissingFiles | None:
        """Store the sent files, and return the names of those still missing; `None` if there are none."""
        with self._transfer:
            return self._copy.missing_files(files, prepared)

    def build(self, request: BuildRequest, *, job: str) -> OutcomeWithFiles[Built | Failure]:
        """Build a subject. Raises `ClusterError` if the result would be another build than requested."""
        with self._reserved_worker(request, job) as worker:
            return self._copy.build_outcome(worker.build(request.subject, request.recipe), request.recipe)

    def relink(self, request: RelinkRequest, *, job: str) -> OutcomeWithFiles[Mapping[int, Built | Failure]]:
        """Relink a subject; build it first if necessary. Raises `ClusterError` as `build` does."""
        build = request.build
        with self._reserved_worker(build, job) as worker:
            outcomes = worker.relink(
                build.subject, build.recipe, tuple(request.layouts), artefact=request.artefact
            )
            for layout, outcome in outcomes.items():
                if isinstance(outcome, Built) and outcome.key != request.layouts[layout]:
                    raise _different_build(build)
            return self._copy.relink_outcome(outcomes, build.recipe)

    @contextmanager
    def _reserved_worker(self, request: BuildRequest, job: str) -> Iterator[LocalBuildWorker]:
        """Yield a build worker for a job. Raises `ClusterError` if it would build something else than requested."""
        worker = self._free_worker()
        self._cancels[job] = worker.cancel
        try:
            if worker.builder.key(request.subject, request.recipe) != request.key:
                raise _different_build(request)
            yield worker
        finally:
            del self._cancels[job]
            worker.release_builds()
            self._idle.put(worker)

    def _free_worker(self) -> LocalBuildWorker:
        """Wait for a free build worker; they are created at the first job, when the study has arrived."""
        with self._transfer:
            while len(self._workers) < self._options.builds:
                self._workers.append(
                    LocalBuildWorker(
                        self._copy.study,
                        self._copy.root,
                        patched=self.remote_study.patched,
                        cpus=max(1, len(os.sched_getaffinity(0)) // self._options.builds),
                        kind=CleanBuilder,
                        sandbox_directory=self._sandbox_directory,
                    )
                )
                self._idle.put(self._workers[-1])
        return self._idle.get()

    def invoke(self, start: PlannedInvocation, *, job: str, command: str) -> OutcomeWithFiles[Outcome]:
        """Start a benchmark once for a `command`. Raises `ClusterError` if its programs are others here."""
        if start.key.machine != self._options.machine.id:
            raise ClusterError(f"an invocation for machine {start.key.machine} was sent to another machine")
        if self._invoker is None:
            self._invoker = self._open_invoker()
        with self._measuring:
            self._check_programs(start, command)
        ready = replace(start.ready, prepared=self._copy.on_this_machine(start.ready.prepared))
        self._cancels[job] = self._cancel_invocation
        locks = self._copy.root / "builds" / "locks"
        try:
            # Processes that share the directory may relink the build, but not while it runs.
            with self._measuring, shared_lock(locks / f"{ready.prepared.built.key}.lock"):
                outcome = self._invoker.invoke(replace(start, ready=ready))
                self._end_fixtures_later()
        finally:
            del self._cancels[job]
        return self._copy.invocation_outcome(outcome, f"{LOGS}/{log_name(start.key)}.")

    def _check_programs(self, start: PlannedInvocation, command: str) -> None:
        """Compare the programs of `PATH` here with those of the samples' key; identify them once for each command."""
        study = self._copy.study
        if self._tools is None or self._tools[0] != command:
            starter = Stoppable(self._launcher, self._stop)
            self._tools = (command, local_tools(starter, study=Path(study.directory)))
        origin = start.ready.runnable.origin
        here = programs_of(study, start.ready.cell, self._tools[1])
        check_programs(start.ready.cell.benchmark, () if origin is None else origin.tools, here)

    def _end_fixtures_later(self) -> None:
        """End services when the study was not measured for a while: a worker does not see the end of a command."""
        if self._idle_end is not None:
            self._idle_end.cancel()
        self._idle_end = Timer(IDLE_SECONDS, self._end_fixtures)
        self._idle_end.daemon = True
        self._idle_end.start()

    def _end_fixtures(self) -> None:
        with self._measuring, suppress(FixtureFailed):  # no command waits for the message
            if self._invoker is not None:
                self._invoker.end_fixtures()

    def cancel(self, job: str) -> None:
        """Kill the processes of a job if it runs here, because no client waits for its outcome."""
        cancel = self._cancels.get(job)
        if cancel is not None:
            cancel()

    def _cancel_invocation(self) -> None:
        self._launcher.cancel()
        if self._isolation is not None:
            self._isolation.cancel()

    def stop(self) -> None:
        """Kill everything here, for good."""
        self._stop.set()
        self._launcher.close()
        if self._isolation is not None:
            self._isolation.end()
        for worker in tuple(self._workers):
            worker.stop()

    def close(self) -> None:
        """Remove temporary files, when nothing runs here any more."""
        if self._idle_end is not None:
            self._idle_end.cancel()
        with suppress(FixtureFailed):  # as above
            self._open_resources.close()

    def _open_invoker(self) -> Invoker:
        """Open the invoker, with its own scratch directory: others may measure in the same results directory."""
        study, root = self._copy.study, self._copy.root
        (root / LOGS).mkdir(parents=True, exist_ok=True)
        scratch = self._open_resources.enter_context(claimed_directory(PREFIX, below=self._options.directory))
        starter = Stoppable(self._launcher, self._stop)
        self._isolation = sandboxes(study, root, self._launcher, sandbox_directory=self._sandbox_directory)
        sources = open_sources(
            study, cache=str(root / "sources"), starter=starter, patched=self.remote_study.patched
        )
        return self._open_resources.enter_context(
            open_invoker(
                study,
                open_builder(study, root, sources, starter, isolation=self._isolation),
                self._launcher,
                isolation=self._isolation,
                root=scratch,
                logs=root / LOGS,
            )
        )


def check_programs(benchmark: str, expected: Sequence[str], here: Sequence[str]) -> None:
    """Raise `ClusterError` if a program has one identity in the command and another one here.

    Programs that the command's machine does not have are no part of the samples' key.
    """
    known = {tool_name(each): each for each in expected}
    for each in here:
        name = tool_name(each)
        if known.get(name, each) != each:
            raise ClusterError(
                f"{benchmark}: {name} here is not the command's program: {quoted(each)} instead of "
                f"{quoted(known[name])}; install the same programs, at the same paths, on every machine"
            )


def _different_build(request: BuildRequest) -> ClusterError:
    return ClusterError(
        f"{request.subject}: the build here would differ from the command's: the tools, the source or the study's "
        "files differ; install the same compilers and tools, at the same paths, on every machine"
    )


STOP_SIGNAL_SECONDS = 0.3
"""A batch system signals a worker and its builds at once; the worker notices well within this time."""


class StudyWorker:
    """Performs jobs of any study; implements `dask_worker.WorkerState`. Several threads call it.

    While one job measures, no other job of this user's workers on this machine runs.
    """

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._runners: list[JobRunner] = []
        self._opening = Lock()
        self._stopping = Event()

    def missing_files(self, remote_study: RemoteStudy) -> MissingFiles | None:
        """Return the files that are missing before a study can be built here; `None` if there are none."""
        with self._translated_errors(remote_study):
            return self._runner(remote_study).missing_files(())

    def build(
        self, remote_study: RemoteStudy, files: Sequence[PackedFiles], request: BuildRequest
    ) -> OutcomeWithFiles[Built | Failure] | MissingFiles:
        """Build a subject in a clean tree. Raises `ClusterError` if the result would be another build here."""
        with self._translated_errors(remote_study):
            runner = self._runner(remote_study)
            if (missing := runner.missing_files(files)) is not None:
                return missing
            with building(self._options.machine.id):
                result = runner.build(request, job=current_job())
            if isinstance(result.outcome, Failure):
                self._wait_for_stop_signal()
            return result

    def relink(
        self, remote_study: RemoteStudy, files: Sequence[PackedFiles], request: RelinkRequest
    ) -> OutcomeWithFiles[Mapping[int, Built | Failure]] | MissingFiles:
        """Relink a subject. Raises `ClusterError` if the result would be a different build here."""
        with self._translated_errors(remote_study):
            runner = self._runner(remote_study)
            if (missing := runner.missing_files(files)) is not None:
                return missing
            with building(self._options.machine.id):
                result = runner.relink(request, job=current_job())
            if any(isinstance(outcome, Failure) for outcome in result.outcome.values()):
                self._wait_for_stop_signal()
            return result

    def invoke(
        self, remote_study: RemoteStudy, files: Sequence[PackedFiles], start: PlannedInvocation
    ) -> OutcomeWithFiles[Outcome] | MissingFiles:
        """Start a benchmark once and return the outcome."""
        with self._translated_errors(remote_study):
            runner = self._runner(remote_study)
            with measuring(self._options.machine.id):
                # Builds of other jobs may remove a build to free disk space, so check only without running builds.
                if (missing := runner.missing_files(files, start.ready.prepared)) is not None:
                    return missing
                result = runner.invoke(start, job=current_job(), command=remote_study.marker)
            if isinstance(result.outcome, FailedInvocation):
                self._wait_for_stop_signal()
            return result

    def cancel(self, job: str) -> None:
        """Kill the processes of a job for whose outcome no command waits any more."""
        for runner in tuple(self._runners):
            runner.cancel(job)

    def stop(self) -> None:
        """Kill everything, for good; outcomes of running jobs are meaningless."""
        self._stopping.set()
        with self._opening:
            for runner in self._runners:
                runner.stop()

    def close(self) -> None:
        """Remove temporary files, when no job runs any more."""
        for runner in self._runners:
            runner.close()

    @contextmanager
    def _translated_errors(self, remote_study: RemoteStudy) -> Iterator[None]:
        """Raise errors in a form that can be sent, with the machine's name."""
        named = quoted(self._options.machine.facts.get("name", self._options.machine.id))
        if remote_study.version != self._options.version:
            raise ClusterError(
                f"machine {named} has perftrail {self._options.version}, but the command has "
                f"{remote_study.version}; install the same version everywhere"
            )
        try:
            yield
        except MachineBusy as error:
            raise MachineBusy(f"machine {named}: {error}") from None
        except PerftrailError as error:
            self._wait_for_the_end()
            raise ClusterError(f"machine {named}: {error}") from None
        except OSError as error:
            self._wait_for_the_end()
            raise ClusterError(
                f"machine {named}: {error}; check the disk of its worker, or start the worker with another "
                "--directory; then repeat the command, which resumes"
            ) from None
        except KeyboardInterrupt:
            self._wait_for_the_end()
            raise ClusterError(f"machine {named}: the job was cancelled") from None

    def _wait_for_stop_signal(self) -> None:
        """Wait a moment before a failure counts: a signal to this worker may also have ended its processes."""
        self._stopping.wait(STOP_SIGNAL_SECONDS)
        self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        """Return no outcome for a job that was interrupted by this worker's end: another worker performs it."""
        while self._stopping.is_set():
            time.sleep(1.0)

    def _runner(self, remote_study: RemoteStudy) -> JobRunner:
        with self._opening:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            for runner in self._runners:
                if runner.remote_study == remote_study:
                    return runner
            self._runners.append(JobRunner(remote_study, self._options))
            return self._runners[-1]


def work(
    address: str,
    *,
    builds: int,
    machine: str | None,
    directory: str | None,
    apart: bool,
    on_begin: Callable[[WorkerInfo], None],
) -> None:
    """Work for a scheduler; return when a signal asks to stop. `on_begin` is called with the worker's description.

    `machine` is the name that distinguishes this machine from equal ones, by default the host's; with an empty name
    it counts as the machine without a worker. Raises `UsageError` for a directory that others can change,
    `ClusterError` if the scheduler cannot be reached or is lost.
    """
    remove_leftovers()
    own = Path(directory) if directory else user_cache() / "worker"
    _prepare_directory(own)
    _refuse_links(own)
    remove_leftovers_of_workers(own)
    name = socket.gethostname() if machine is None else machine
    here = read_machine(name=name)
    options = WorkerOptions(
        machine=here, builds=builds, directory=own.absolute(), apart=apart, version=__version__
    )
    info = WorkerInfo(machine=here, builds=builds, version=__version__)
    on_begin(info)
    state = StudyWorker(options)
    try:
        run_worker(address, info, state, directory=options.directory)
    finally:
        state.close()


def _prepare_directory(own: Path) -> None:
    """Create a worker's directory if necessary; raise `UsageError` for one that others can change."""
    named = f"--directory {quoted(str(own))}"
    try:
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = own.stat()
    except OSError as error:
        raise UsageError(f"{named}: cannot be created: {error.strerror}; name another directory") from error
    if state.st_uid != os.geteuid() or state.st_mode & stat.S_IWOTH:
        raise UsageError(
            f"{named}: other users can write there, and could change the programs that run; "
            "name a new directory, for example below it"
        )


def _refuse_links(own: Path) -> None:
    """Raise `UsageError` for a worker's directory with entries that a worker does not create, for example of a clone.

    A link there would let it write and delete elsewhere.
    """
    for entry in (own, *own.glob("*"), *own.glob(f"{STUDIES}/*"), *own.glob(f"{STUDIES}/*/*")):
        with suppress(FileNotFoundError):  # another worker removed it
            mode = entry.lstat().st_mode
            if not stat.S_ISDIR(mode) and not (stat.S_ISREG(mode) and entry != own):
                raise UsageError(
                    f"{quoted(str(entry))}: is a link or a special file, which a worker does not create; name another "
                    "--directory"
                )
