"""The command's side of a cluster: its machines, its build workers, and the bench that measures.

Jobs are values that run in the worker's state. The command submits them, sends what a worker lacks, and receives
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
from perftrail.cluster.attendance import present_desk
from perftrail.cluster.dask import OwnWorkers, Scheduler, connected, own_workers, parse_address
from perftrail.cluster.study_copy import LOGS, STUDY, build_parcel, pack_study, study_digest
from perftrail.cluster.values import Lacks, Making, OutcomeWithFiles, Parcel, Relinking, Site
from perftrail.cluster.worker import StudyWorker
from perftrail.errors import ClusterError
from perftrail.file_tree import claimed_directory
from perftrail.local_engine import LocalEngine
from perftrail.measure.bench import Bench
from perftrail.measure.sandboxes import SHORT_LIVED, WORKERS
from perftrail.model.build import Built

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.cluster.dask import Offer
    from perftrail.measure.invoker import Invoker
    from perftrail.measure.subjects import PlannedInvocation
    from perftrail.model.build import Failure, Recipe
    from perftrail.model.measurement import Machine, Outcome
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Engine, Pending, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Builds subjects on the worker on which it runs."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, making: Making) -> OutcomeWithFiles[Built | Failure] | Lacks:
        """Build a subject on the worker."""
        return _desk().make(self.site, self.parcels, making)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relink:
    """Relinks subjects on the worker on which it runs."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, relinking: Relinking) -> OutcomeWithFiles[Mapping[int, Built | Failure]] | Lacks:
        """Relink a subject on the worker."""
        return _desk().relink(self.site, self.parcels, relinking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke:
    """Starts a ready benchmark on the worker on which it runs."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, start: PlannedInvocation) -> OutcomeWithFiles[Outcome] | Lacks:
        """Start a benchmark on the worker."""
        return _desk().invoke(self.site, self.parcels, start)


def greet(site: Site) -> Lacks | None:
    """Return what a worker lacks before it can work on a study; empty if it has everything."""
    return _desk().greet(site)


def _desk() -> StudyWorker:
    desk = present_desk()
    assert isinstance(desk, StudyWorker)
    return desk


T = TypeVar("T")

MOST_SENDINGS = 5
"""Maximum number of times a job is sent, because each time another worker may take it that lacks something."""


class Supplier:
    """Lets workers perform the jobs of one study. `outputs` returns the usable outputs of a subject's build."""

    def __init__(self, site: Site, outputs: Callable[[Subject], Sequence[str]]) -> None:
        self._site = site
        self._root = Path(site.root)
        self._outputs = outputs
        self._study: Parcel | None = None
        self._first: tuple[Parcel, ...] = ()

    def greet(self, engine: Engine) -> None:
        """Ask a worker what it lacks, so that the first jobs bring it: the next worker probably lacks the same."""
        lacks = engine.begin(greet, self._site).outcome()
        self._first = (self._study_parcel(),) if lacks is not None else ()

    def make(self, engine: Engine, making: Making) -> Pending[Built | Failure]:
        """Let a worker build a subject, and copy the build here if the worker's directory is not visible here."""

        def send(parcels: tuple[Parcel, ...]) -> Pending[OutcomeWithFiles[Built | Failure] | Lacks]:
            return engine.begin(Make(site=self._site, parcels=parcels or self._first), making)

        return _Supplied(send, lambda _: (self._study_parcel(),), self._take_build)

    def relink(self, engine: Engine, relinking: Relinking) -> Pending[Mapping[int, Built | Failure]]:
        """Let a worker relink a subject, and copy its layouts here if the worker's directory is not visible here."""

        def send(
            parcels: tuple[Parcel, ...],
        ) -> Pending[OutcomeWithFiles[Mapping[int, Built | Failure]] | Lacks]:
            return engine.begin(Relink(site=self._site, parcels=parcels or self._first), relinking)

        return _Supplied(send, lambda _: (self._study_parcel(),), self._take_layouts)

    def begin(self, engine: Engine, start: PlannedInvocation) -> Pending[Outcome]:
        """Submit an invocation."""

        def send(parcels: tuple[Parcel, ...]) -> Pending[OutcomeWithFiles[Outcome] | Lacks]:
            return engine.begin(Invoke(site=self._site, parcels=parcels), start)

        return _Supplied(send, lambda lacks: self._parcels(lacks, start), self._take)

    def _take(self, carried: OutcomeWithFiles[T]) -> T:
        """Store the logs that came with an outcome."""
        if carried.logs:
            unpack_logs(carried.logs, self._root, below=LOGS)
        return carried.outcome

    def _take_build(self, carried: OutcomeWithFiles[Built | Failure]) -> Built | Failure:
        self._take_files(carried.files, [carried.outcome])
        return self._take(carried)

    def _take_layouts(
        self, carried: OutcomeWithFiles[Mapping[int, Built | Failure]]
    ) -> Mapping[int, Built | Failure]:
        self._take_files(carried.files, carried.outcome.values())
        return self._take(carried)

    def _take_files(self, files: Sequence[Parcel], outcomes: Iterable[Built | Failure]) -> None:
        """Store the builds that came with an outcome."""
        builts = {each.key: each for each in outcomes if isinstance(each, Built)}
        for parcel in files:
            built = builts[parcel.name]
            unpack_build(parcel.packed, self._root / "builds", built, log=built.log)

    def _parcels(self, lacks: Lacks, start: PlannedInvocation) -> tuple[Parcel, ...]:
        prepared = start.ready.prepared
        wanted = []
        if STUDY in lacks.names:
            wanted.append(self._study_parcel())
        if (name := build_parcel(prepared)) in lacks.names:
            packed = pack_build(
                self._root / "builds",
                prepared.built,
                links=(Path(prepared.out).name,),
                outputs=self._outputs(start.ready.cell.subject),
            )
            wanted.append(Parcel(name=name, packed=packed))
        return tuple(wanted)

    def _study_parcel(self) -> Parcel:
        if self._study is None:
            self._study = Parcel(name=STUDY, packed=pack_study(Path(self._site.study.directory)))
        return self._study


class _Supplied(Generic[T]):
    """A job that is sent again, with what its worker lacks, until it is done."""

    def __init__(
        self,
        send: Callable[[tuple[Parcel, ...]], Pending[OutcomeWithFiles[T] | Lacks]],
        parcels: Callable[[Lacks], tuple[Parcel, ...]],
        take: Callable[[OutcomeWithFiles[T]], T],
    ) -> None:
        self._send = send
        self._parcels = parcels
        self._take = take
        self._pending = send(())

    def outcome(self) -> T:
        lacks = Lacks(names=())
        for _ in range(MOST_SENDINGS):
            came = self._pending.outcome()
            if not isinstance(came, Lacks):
                return self._take(came)
            lacks = came
            self._pending = self._send(self._parcels(lacks))
        raise ClusterError(
            f"workers still lack {', '.join(lacks.names)}, which was sent {MOST_SENDINGS} times"
        )


TOKEN = "cluster.id"  # noqa: S105 - it names a directory, and opens nothing
"""File with the identity of a results directory."""

SIGN = "cluster.sign."
"""Prefix of the file by which a command marks its results directory."""


class Workers(Protocol):
    """The workers behind ``--engine``, and the engines that use them."""

    def offers(self) -> tuple[Offer, ...]:
        """Return the descriptions of all present workers. Raises `ClusterError` if none can be reached any more."""
        ...

    def building(self) -> Engine:
        """Return the engine that builds on any free worker."""
        ...

    def measuring(self, machine: Machine) -> Engine:
        """Return the engine that measures on one machine, one job at a time."""
        ...


class Fleet:
    """The machines of a cluster, by name: all build, and one measures. Implements `builder.RemoteBuildWorkers`."""

    def __init__(self, cluster: Workers) -> None:
        self._cluster = cluster
        self._building = cluster.building()
        machines = {offer.machine.id: offer.machine for offer in cluster.offers()}.values()
        self.machines: tuple[Machine, ...] = tuple(
            sorted(machines, key=lambda each: (each.facts.get("name", ""), each.id))
        )
        self._supplier: Supplier | None = None

    @property
    def parallel_builds(self) -> int:
        """Number of parallel builds of all present workers."""
        return max(1, sum(offer.builds for offer in self._cluster.offers()))

    def settle(
        self,
        study: Study,
        root: Path,
        *,
        own: Patched | None,
        outputs: Callable[[Subject], Sequence[str]],
    ) -> None:
        """Set the study of all jobs; call it before any job. `root` is the results directory."""
        token = token_of(root)
        site = Site(
            study=study,
            root=str(root),
            token=token,
            sign=leave_sign(root, token),
            digest=study_digest(Path(study.directory)),
            version=__version__,
            own=own,
        )
        self._supplier = Supplier(site, outputs)
        self._supplier.greet(self._building)

    def begin(self, key: str, subject: Subject, recipe: Recipe) -> Pending[Built | Failure]:
        """Let a free worker build a subject."""
        making = Making(key=key, subject=subject, recipe=recipe)
        return self._settled.make(self._building, making)

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        """Let a free worker relink a subject."""
        making = Making(key=built.key, subject=subject, recipe=recipe)
        relinking = Relinking(making=making, artefact=built.artefact, layouts=dict(layouts))
        return self._settled.relink(self._building, relinking)

    def measuring(self, known: Sequence[str]) -> Machine:
        """Return the machine that measures: the last present one of those with samples (`known`), else the first."""
        there = {machine.id: machine for machine in self.machines}
        before = [there[each] for each in known if each in there]
        return before[-1] if before else self.machines[0]

    def bench(self, machine: Machine, store: Store, invoker: Invoker) -> Bench:
        """Return the bench of the measuring machine; `invoker` is not used, because it starts benchmarks here."""
        return Bench(
            store=store,
            engine=LocalEngine(),
            invoker=invoker,
            machine=machine,
            begin=partial(self._settled.begin, self._cluster.measuring(machine)),
        )

    @property
    def _settled(self) -> Supplier:
        assert self._supplier is not None, "settle comes first"
        return self._supplier


@contextmanager
def dask_workers(engine: str) -> Iterator[Workers]:
    """Open the workers of a Dask scheduler. Raises `UsageError` or `ClusterError`."""
    with ExitStack() as stack:
        match parse_address(engine):
            case Scheduler(address=address):
                yield stack.enter_context(connected(address))
            case OwnWorkers(count=count):
                home = stack.enter_context(claimed_directory(WORKERS, below=SHORT_LIVED))
                yield stack.enter_context(own_workers(count, home=home))


ENGINES: Mapping[str, Callable[[str], AbstractContextManager[Workers]]] = {
    "dask": dask_workers,
    "dask+tls": dask_workers,
}
"""What opens the workers of ``--engine SCHEME:...``, by its scheme."""


@contextmanager
def open_fleet(engine: str) -> Iterator[Fleet]:
    """Open the machines that ``--engine`` names. Raises `UsageError` or `ClusterError`."""
    with ENGINES.get(engine.partition(":")[0], dask_workers)(engine) as workers:
        yield Fleet(workers)


def token_of(root: Path) -> str:
    """Return the identity of the results directory; write it at the first call."""
    path = root / TOKEN
    known = path.read_text(encoding="ascii") if path.exists() else ""
    if not known:  # nothing is there, or a disk was full when it was to be written
        known = uuid.uuid4().hex
        path.write_text(known, encoding="ascii")
    return known


def leave_sign(root: Path, token: str) -> str:
    """Write a file with a new name into the results directory, which this process has locked.

    Earlier copies lack it.
    """
    for old in root.glob(f"{SIGN}*"):
        old.unlink(missing_ok=True)
    name = f"{SIGN}{uuid.uuid4().hex}"
    (root / name).write_text(token, encoding="ascii")
    return name
