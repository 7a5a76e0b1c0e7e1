"""A worker's desk: opens a study when the first job of it comes, and does what jobs ask.

A study on a worker's machine: its builders, and the launcher that measures, opened when first needed.

`worker`: one machine works for a scheduler until it is told to stop.

Who uses a machine now: builds beside each other, or one who measures and nobody else of ours.
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
from perftrail.file_tree import alone, claimed_directory, remove_left_over, together
from perftrail.measure.build_workers import LocalBuildWorker, open_builder, sandboxes
from perftrail.measure.invoker import log_name, open_invoker
from perftrail.measure.sandboxes import remove_leftovers
from perftrail.measure.sources import open_sources
from perftrail.model.build import Built, Failure
from perftrail.model.measurement import FailedInvocation
from perftrail.model.wording import quoted
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.sandbox.view import remove_left_over_rooms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.cluster.values import Carried, Lacks, Making, Parcel, Relinking, Site
    from perftrail.measure.invoker import Invoker
    from perftrail.measure.sandboxes import Sandboxes
    from perftrail.measure.subjects import Start
    from perftrail.model.build import Prepared
    from perftrail.model.measurement import Outcome


@contextmanager
def measuring(machine: str) -> Iterator[None]:
    """Have a machine for oneself among all workers of this user that know it by this id.

    Waits for the builds that go on; those that come meanwhile wait for their turn after it.
    """
    home = _home(machine)
    with alone(home / "turn.lock"), alone(home / "use.lock"):
        yield


@contextmanager
def building(machine: str) -> Iterator[None]:
    """Use a machine beside others that build, but not while something is measured."""
    home = _home(machine)
    with alone(home / "turn.lock"):
        use = together(home / "use.lock")
        use.__enter__()
    try:
        yield
    finally:
        use.__exit__(None, None, None)


def _home(machine: str) -> Path:
    """A directory of this machine that this user's processes share and nobody else may enter."""
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
        remove_left_over_rooms(directory / ROOMS)


class Outpost:
    """Makes and starts what jobs of one study ask for. Called from several threads; one of them starts at a time."""

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
        self._enclosing: Sandboxes | None = None
        self._opened: Invoker | None = None
        self._cancels: dict[str, Callable[[], None]] = {}

    def lacks(self, parcels: Sequence[Parcel], prepared: Prepared | None = None) -> Lacks | None:
        """Take in what was sent, and say what of what is needed is not there; nothing when all is."""
        with self._arriving:
            return self._grounds.lacks(parcels, prepared)

    def make(self, making: Making, *, job: str) -> Carried[Built | Failure]:
        """Make a subject. Raises `ClusterError` where what comes of it would be another build than is asked."""
        with self._hand(making, job) as hand:
            return self._grounds.made(hand.make(making.subject, making.recipe), making.recipe)

    def relink(self, relinking: Relinking, *, job: str) -> Carried[Mapping[int, Built | Failure]]:
        """Relink a subject, built here first where it is not. Raises `ClusterError` as `make` does."""
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
        """Give a hand for a job. Raises `ClusterError` where it would make another build than is asked."""
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
        """Wait for a hand that is free; they are made when the first one is wanted, as the study is there then."""
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

    def invoke(self, start: Start, *, job: str) -> Carried[Outcome]:
        """Start something once."""
        if start.key.machine != self._terms.machine.id:
            raise ClusterError(f"what is measured on {start.key.machine} was sent to another machine")
        if self._opened is None:
            self._opened = self._open()
        ready = replace(start.ready, prepared=self._grounds.here(start.ready.prepared))
        self._cancels[job] = self._cancel
        locks = self._grounds.root / "builds" / "locks"
        try:
            # Others who see the same directory may relink the build there: not while it runs.
            with together(locks / f"{ready.prepared.built.key}.lock"):
                outcome = self._opened.invoke(replace(start, ready=ready))
        finally:
            del self._cancels[job]
        return self._grounds.started(outcome, f"{LOGS}/{log_name(start.key)}.")

    def drop(self, job: str) -> None:
        """Kill what a job runs now, if it is one of ours: nobody wants what comes of it."""
        cancel = self._cancels.get(job)
        if cancel is not None:
            cancel()

    def _cancel(self) -> None:
        self._launcher.cancel()
        if self._enclosing is not None:
            self._enclosing.cancel()

    def stop(self) -> None:
        """Kill what runs here, for good."""
        self._stop.set()
        self._launcher.close()
        if self._enclosing is not None:
            self._enclosing.end()
        for hand in tuple(self._hands):
            hand.stop()

    def close(self) -> None:
        """Remove what was only for the while, when nothing runs here any more."""
        self._bench.close()

    def _open(self) -> Invoker:
        """Open who measures, with a scratch directory of its own: others may measure in the same results."""
        study, root = self._grounds.study, self._grounds.root
        (root / LOGS).mkdir(parents=True, exist_ok=True)
        scratch = self._bench.enter_context(claimed_directory(PREFIX, below=self._terms.directory))
        starter = Stoppable(self._launcher, self._stop)
        self._enclosing = sandboxes(study, root, self._launcher, rooms=self._rooms)
        sources = open_sources(study, cache=str(root / "sources"), starter=starter, own=self.site.own)
        return self._bench.enter_context(
            open_invoker(
                study,
                open_builder(study, root, sources, starter, enclosing=self._enclosing),
                self._launcher,
                enclosing=self._enclosing,
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
"""A batch system's signal reaches a worker and its builds at once; the worker takes it in much sooner than this."""


class StudyWorker:
    """Does jobs of any study; implements `engines.attendance.Desk`. Called from several threads.

    While one job measures, no other job of this user's workers on this machine does anything.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._outposts: list[Outpost] = []
        self._opening = Lock()
        self._stopping = Event()

    def greet(self, site: Site) -> Lacks | None:
        """Say what is needed here before anything can be made of a study; nothing where it is there."""
        with self._refusing(site):
            return self._outpost(site).lacks(())

    def make(self, site: Site, parcels: Sequence[Parcel], making: Making) -> Carried[Built | Failure] | Lacks:
        """Make a subject in a clean tree. Raises `ClusterError` where it would be another build here."""
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
    ) -> Carried[Mapping[int, Built | Failure]] | Lacks:
        """Relink a subject. Raises `ClusterError` where the result would be a different build here."""
        with self._refusing(site):
            outpost = self._outpost(site)
            if (lacks := outpost.lacks(parcels)) is not None:
                return lacks
            with building(self._terms.machine.id):
                carried = outpost.relink(relinking, job=present_job())
            if any(isinstance(outcome, Failure) for outcome in carried.outcome.values()):
                self._doubt()
            return carried

    def invoke(self, site: Site, parcels: Sequence[Parcel], start: Start) -> Carried[Outcome] | Lacks:
        """Start something once and give what came of it."""
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
        """Kill what a job runs that nobody waits for any more, as the command was interrupted or has died."""
        for outpost in tuple(self._outposts):
            outpost.drop(job)

    def stop(self) -> None:
        """Kill what runs, for good; whoever waits for it waits in vain, as its outcome means nothing."""
        self._stopping.set()
        with self._opening:
            for outpost in self._outposts:
                outpost.stop()

    def close(self) -> None:
        """Remove what was only for the while, once no job goes on."""
        for outpost in self._outposts:
            outpost.close()

    @contextmanager
    def _refusing(self, site: Site) -> Iterator[None]:
        """Put errors so that they can travel, each with the machine it happened on."""
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
                f"machine {named}: {error}; see to the disk that its worker works on, or name another one there with "
                "--directory, and the same command goes on from what is kept"
            ) from None
        except KeyboardInterrupt:
            self._wait_for_the_end()
            raise ClusterError(f"machine {named}: was told that nobody waits for the job any more") from None

    def _doubt(self) -> None:
        """Wait a moment before a failure is believed: who ends a worker may have ended what it runs as well."""
        self._stopping.wait(SECONDS_OF_DOUBT)
        self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        """Say nothing of a job that was broken off because this worker leaves: another one will do it."""
        while self._stopping.is_set():
            time.sleep(1.0)

    def _outpost(self, site: Site) -> Outpost:
        with self._opening:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            for outpost in self._outposts:
                if outpost.site == site:
                    return outpost
            self._outposts.append(Outpost(site, self._terms))
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
    """Work for a scheduler; returns when a signal says to stop. `on_begin` is told what is offered.

    `machine` is the name that tells this machine from its like: the host's without any; an empty one makes it the
    machine that it is without workers. Raises `UsageError` for a directory that others can change, `ClusterError` when
    the scheduler cannot be reached, or is gone.
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
    """Make a worker's directory where it is not there yet; raise `UsageError` for one that others can change."""
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
