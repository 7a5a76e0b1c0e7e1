"""A worker: open a study with its first job, and perform the jobs.

A worker's builders and the launcher that measures are opened on demand. Locks on the machine let parallel builds
exclude a measurement, and a measurement exclude everything else.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import TYPE_CHECKING

from perftrail._version import __version__
from perftrail.builds.workers import CleanBuilder, Stoppable
from perftrail.cluster.attendance import attend, present_job
from perftrail.cluster.dask import Offer
from perftrail.cluster.study_copy import LOGS, Grounds
from perftrail.cluster.values import Terms
from perftrail.errors import ClusterError, MachineBusy, PerftrailError, UsageError
from perftrail.file_tree import claimed_directory, exclusive_lock, remove_left_over, shared_lock
from perftrail.measure.build_workers import LocalBuildWorker, open_builder, sandboxes
from perftrail.measure.invoker import log_name, open_invoker
from perftrail.measure.sandboxes import remove_leftovers
from perftrail.measure.sources import open_sources
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import FailedInvocation
from perftrail.model.wording import quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.sandbox.view import remove_left_over_directories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.cluster.values import Lacks, Making, OutcomeWithFiles, Parcel, Relinking, Site
    from perftrail.measure.invoker import Invoker
    from perftrail.measure.sandboxes import Sandboxes
    from perftrail.measure.subjects import PlannedInvocation
    from perftrail.model.build import Prepared
    from perftrail.model.measurement import Outcome


@contextmanager
def measuring(machine: str) -> Iterator[None]:
    """Lock the machine for a measurement, among all workers of this user that know it by this id.

    It waits for running builds; later ones wait for the measurement.
    """
    home = _home(machine)
    with exclusive_lock(home / "turn.lock"), exclusive_lock(home / "use.lock"):
        yield


@contextmanager
def building(machine: str) -> Iterator[None]:
    """Share the machine with other builds, but not with a measurement."""
    home = _home(machine)
    with exclusive_lock(home / "turn.lock"):
        use = shared_lock(home / "use.lock")
        use.__enter__()
    try:
        yield
    finally:
        use.__exit__(None, None, None)


def _home(machine: str) -> Path:
    """Return a directory that this user's processes share and nobody else can enter."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = (Path(own) if own and Path(own).is_dir() else cache) / "perftrail" / "machines" / machine
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return home


PREFIX = "perftrail-bench-"
ROOMS = "rooms"


def remove_left_over_of_workers(directory: Path) -> None:
    """Remove what killed workers left in a worker's directory."""
    remove_left_over(PREFIX, below=directory)
    if (directory / ROOMS).is_dir():
        remove_left_over_directories(directory / ROOMS)


class JobRunner:
    """Builds and starts the jobs of one study. Several threads call it; one of them starts benchmarks at a time."""

    def __init__(self, site: Site, terms: Terms) -> None:
        self.site = site
        self._terms = terms
        self._grounds = Grounds(site, terms.directory, apart=terms.apart)
        self._arriving = Lock()
        self._rooms = terms.directory / ROOMS
        self._hands: list[LocalBuildWorker] = []
        self._idle: SimpleQueue[LocalBuildWorker] = SimpleQueue()
        self._bench = ExitStack()
        self._stop = Event()
        self._launcher = Launcher()
        self._isolation: Sandboxes | None = None
        self._opened: Invoker | None = None
        self._cancels: dict[str, Callable[[], None]] = {}

    def lacks(self, parcels: Sequence[Parcel], prepared: Prepared | None = None) -> Lacks | None:
        """Store what was sent, and return what is still missing."""
        with self._arriving:
            return self._grounds.lacks(parcels, prepared)

    def make(self, making: Making, *, job: str) -> OutcomeWithFiles[Built | Failure]:
        """Build a subject. Raises `ClusterError` if the result would be another build than requested."""
        with self._hand(making, job) as hand:
            return self._grounds.made(hand.build(making.subject, making.recipe), making.recipe)

    def relink(self, relinking: Relinking, *, job: str) -> OutcomeWithFiles[Mapping[int, Built | Failure]]:
        """Relink a subject; build it first if necessary. Raises `ClusterError` as `make` does."""
        making = relinking.making
        with self._hand(making, job) as hand:
            outcomes = hand.relink(
                making.subject, making.recipe, tuple(relinking.layouts), artefact=relinking.artefact
            )
            for layout, outcome in outcomes.items():
                if isinstance(outcome, Built) and outcome.key != relinking.layouts[layout]:
                    raise _another(making)
            return self._grounds.relinked(outcomes, making.recipe)

    @contextmanager
    def _hand(self, making: Making, job: str) -> Iterator[LocalBuildWorker]:
        """Yield a build worker for a job. Raises `ClusterError` if it would build something else than requested."""
        hand = self._free_hand()
        self._cancels[job] = hand.cancel
        try:
            if hand.builder.key(making.subject, making.recipe) != making.key:
                raise _another(making)
            yield hand
        finally:
            del self._cancels[job]
            hand.let_go()
            self._idle.put(hand)

    def _free_hand(self) -> LocalBuildWorker:
        """Wait for a free build worker; they are created at the first job, when the study has arrived."""
        with self._arriving:
            while len(self._hands) < self._terms.builds:
                self._hands.append(
                    LocalBuildWorker(
                        self._grounds.study,
                        self._grounds.root,
                        own=self.site.own,
                        cpus=max(1, len(os.sched_getaffinity(0)) // self._terms.builds),
                        kind=CleanBuilder,
                        rooms=self._rooms,
                    )
                )
                self._idle.put(self._hands[-1])
        return self._idle.get()

    def invoke(self, start: PlannedInvocation, *, job: str) -> OutcomeWithFiles[Outcome]:
        """Start a benchmark once."""
        if start.key.machine != self._terms.machine.id:
            raise ClusterError(f"what is measured on {start.key.machine} was sent to another machine")
        if self._opened is None:
            self._opened = self._open()
        ready = replace(start.ready, prepared=self._grounds.here(start.ready.prepared))
        self._cancels[job] = self._cancel
        locks = self._grounds.root / "builds" / "locks"
        try:
            # Others who see the same directory may relink the build there: not while it runs.
            with shared_lock(locks / f"{ready.prepared.built.key}.lock"):
                outcome = self._opened.invoke(replace(start, ready=ready))
        finally:
            del self._cancels[job]
        return self._grounds.started(outcome, f"{LOGS}/{log_name(start.key)}.")

    def drop(self, job: str) -> None:
        """Kill the processes of a job if it runs here, because nobody wants its outcome."""
        cancel = self._cancels.get(job)
        if cancel is not None:
            cancel()

    def _cancel(self) -> None:
        self._launcher.cancel()
        if self._isolation is not None:
            self._isolation.cancel()

    def stop(self) -> None:
        """Kill everything here, for good."""
        self._stop.set()
        self._launcher.close()
        if self._isolation is not None:
            self._isolation.end()
        for hand in tuple(self._hands):
            hand.stop()

    def close(self) -> None:
        """Remove temporary files, when nothing runs here any more."""
        self._bench.close()

    def _open(self) -> Invoker:
        """Open the invoker, with its own scratch directory: others may measure in the same results directory."""
        study, root = self._grounds.study, self._grounds.root
        (root / LOGS).mkdir(parents=True, exist_ok=True)
        scratch = self._bench.enter_context(claimed_directory(PREFIX, below=self._terms.directory))
        starter = Stoppable(self._launcher, self._stop)
        self._isolation = sandboxes(study, root, self._launcher, rooms=self._rooms)
        sources = open_sources(study, cache=str(root / "sources"), starter=starter, own=self.site.own)
        return self._bench.enter_context(
            open_invoker(
                study,
                open_builder(study, root, sources, starter, isolation=self._isolation),
                self._launcher,
                isolation=self._isolation,
                place=scratch,
                logs=root / LOGS,
            )
        )


def _another(making: Making) -> ClusterError:
    return ClusterError(
        f"{making.subject} would be another build than where perftrail was started: its tools, its source "
        "or the study's files differ; install the same compilers and tools on every machine"
    )


SECONDS_OF_DOUBT = 0.3
"""A batch system signals a worker and its builds at once; the worker notices well within this time."""


class StudyWorker:
    """Performs jobs of any study; implements `engines.attendance.Desk`. Several threads call it.

    While one job measures, no other job of this user's workers on this machine runs.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._outposts: list[JobRunner] = []
        self._opening = Lock()
        self._stopping = Event()

    def greet(self, site: Site) -> Lacks | None:
        """Return what is missing before a study can be built here."""
        with self._refusing(site):
            return self._outpost(site).lacks(())

    def make(
        self, site: Site, parcels: Sequence[Parcel], making: Making
    ) -> OutcomeWithFiles[Built | Failure] | Lacks:
        """Build a subject in a clean tree. Raises `ClusterError` if the result would be another build here."""
        with self._refusing(site):
            outpost = self._outpost(site)
            if (lacks := outpost.lacks(parcels)) is not None:
                return lacks
            with building(self._terms.machine.id):
                carried = outpost.make(making, job=present_job())
            if isinstance(carried.outcome, Failure):
                self._doubt()
            return carried

    def relink(
        self, site: Site, parcels: Sequence[Parcel], relinking: Relinking
    ) -> OutcomeWithFiles[Mapping[int, Built | Failure]] | Lacks:
        """Relink a subject. Raises `ClusterError` if the result would be a different build here."""
        with self._refusing(site):
            outpost = self._outpost(site)
            if (lacks := outpost.lacks(parcels)) is not None:
                return lacks
            with building(self._terms.machine.id):
                carried = outpost.relink(relinking, job=present_job())
            if any(isinstance(outcome, Failure) for outcome in carried.outcome.values()):
                self._doubt()
            return carried

    def invoke(
        self, site: Site, parcels: Sequence[Parcel], start: PlannedInvocation
    ) -> OutcomeWithFiles[Outcome] | Lacks:
        """Start a benchmark once and return the outcome."""
        with self._refusing(site):
            outpost = self._outpost(site)
            with measuring(self._terms.machine.id):
                # Whoever builds may remove a build to make room: what is there is known only while nobody does.
                if (lacks := outpost.lacks(parcels, start.ready.prepared)) is not None:
                    return lacks
                carried = outpost.invoke(start, job=present_job())
            if isinstance(carried.outcome, FailedInvocation):
                self._doubt()
            return carried

    def drop(self, job: str) -> None:
        """Kill the processes of a job for which nobody waits, because the command was interrupted or died."""
        for outpost in tuple(self._outposts):
            outpost.drop(job)

    def stop(self) -> None:
        """Kill everything, for good; outcomes of running jobs are meaningless."""
        self._stopping.set()
        with self._opening:
            for outpost in self._outposts:
                outpost.stop()

    def close(self) -> None:
        """Remove temporary files, when no job runs any more."""
        for outpost in self._outposts:
            outpost.close()

    @contextmanager
    def _refusing(self, site: Site) -> Iterator[None]:
        """Raise errors in a form that can be sent, with the machine's name."""
        named = quoted(self._terms.machine.facts.get("name", self._terms.machine.id))
        if site.version != self._terms.version:
            raise ClusterError(
                f"machine {named} has perftrail {self._terms.version}, and the command is {site.version}; install the "
                "same version everywhere"
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
                f"machine {named}: {error}; check the disk of its worker, or give the worker another one with "
                "--directory; the same command resumes"
            ) from None
        except KeyboardInterrupt:
            self._wait_for_the_end()
            raise ClusterError(f"machine {named}: the job was cancelled") from None

    def _doubt(self) -> None:
        """Wait a moment before a failure counts: a signal to this worker may also have ended its processes."""
        self._stopping.wait(SECONDS_OF_DOUBT)
        self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        """Return no outcome for a job that was interrupted because this worker leaves: another one performs it."""
        while self._stopping.is_set():
            time.sleep(1.0)

    def _outpost(self, site: Site) -> JobRunner:
        with self._opening:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            for outpost in self._outposts:
                if outpost.site == site:
                    return outpost
            self._outposts.append(JobRunner(site, self._terms))
            return self._outposts[-1]


def work(
    address: str,
    *,
    builds: int,
    machine: str | None,
    directory: str | None,
    apart: bool,
    on_begin: Callable[[Offer], None],
) -> None:
    """Work for a scheduler; return when a signal asks to stop. `on_begin` is called with the worker's description.

    `machine` is the name that distinguishes this machine from equal ones, by default the host's; with an empty name
    it counts as the machine without a worker. Raises `UsageError` for a directory that others can change,
    `ClusterError` if the scheduler cannot be reached or is lost.
    """
    remove_leftovers()
    own = Path(directory) if directory else _cache() / "perftrail" / "worker"
    _refuse_unfit(own)
    remove_left_over_of_workers(own)
    name = socket.gethostname() if machine is None else machine
    here = read_machine(name=name)
    terms = Terms(machine=here, builds=builds, directory=own.absolute(), apart=apart, version=__version__)
    offer = Offer(machine=here, builds=builds, version=__version__)
    on_begin(offer)
    desk = StudyWorker(terms)
    try:
        attend(address, offer, desk, directory=terms.directory)
    finally:
        desk.close()


def _refuse_unfit(own: Path) -> None:
    """Create a worker's directory if necessary; raise `UsageError` for one that others can change."""
    named = f"--directory {quoted(str(own))}"
    try:
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = own.stat()
    except OSError as error:
        raise UsageError(f"{named}: cannot be made: {error.strerror}; name another one") from error
    if state.st_uid != os.geteuid() or state.st_mode & stat.S_IWOTH:
        raise UsageError(
            f"{named}: others may write there, and could change what is run; name a new one, below it perhaps"
        )


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
