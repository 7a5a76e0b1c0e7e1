"""A command's side of a cluster: its machines, who builds for it, and the bench that measures.

The calls that a worker answers: what is sent is a value, what is done is done at the worker's desk.

What a command does for its workers: hands jobs out, sends along what one lacks, takes in what comes back.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from perftrail._version import __version__
from perftrail.builds.packing import pack_build, unpack_build, unpack_logs
from perftrail.cluster.attendance import present_desk
from perftrail.cluster.dask import OwnWorkers, Scheduler, connected, own_workers, parse_address
from perftrail.cluster.study_copy import LOGS, STUDY, build_parcel, pack_study, study_digest
from perftrail.cluster.values import Carried, Lacks, Making, Parcel, Relinking, Site
from perftrail.cluster.worker import StudyWorker
from perftrail.errors import ClusterError
from perftrail.file_tree import claimed_directory
from perftrail.local_engine import LocalEngine
from perftrail.measure.bench import Bench
from perftrail.measure.sandboxes import SHORT_LIVED, WORKERS
from perftrail.model.build import Built

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from perftrail.cluster.dask import Cluster
    from perftrail.measure.invoker import Invoker
    from perftrail.measure.subjects import Start
    from perftrail.model.build import Failure, Recipe
    from perftrail.model.measurement import Machine, Outcome
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Engine, Pending, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Makes subjects on whichever worker it is called."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, making: Making) -> Carried[Built | Failure] | Lacks:
        """Make one there."""
        return _desk().make(self.site, self.parcels, making)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relink:
    """Relinks subjects on whichever worker it is called."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, relinking: Relinking) -> Carried[Mapping[int, Built | Failure]] | Lacks:
        """Relink one there."""
        return _desk().relink(self.site, self.parcels, relinking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke:
    """Starts what is ready on whichever worker it is called."""

    site: Site
    parcels: tuple[Parcel, ...] = ()

    def __call__(self, start: Start) -> Carried[Outcome] | Lacks:
        """Start once there."""
        return _desk().invoke(self.site, self.parcels, start)


def greet(site: Site) -> Lacks | None:
    """Say what a worker would need before it can do anything for a study; nothing where it has it all."""
    return _desk().greet(site)


def _desk() -> StudyWorker:
    desk = present_desk()
    assert isinstance(desk, StudyWorker)
    return desk


T = TypeVar("T")

MOST_SENDINGS = 5
"""A job is sent so often, as each time another worker may take it that lacks something."""


class Supplier:
    """Has jobs of one study done by workers. `outputs` says what may be used of a subject's build."""

    def __init__(self, site: Site, outputs: Callable[[Subject], Sequence[str]]) -> None:
        self._site = site
        self._root = Path(site.root)
        self._outputs = outputs
        self._study: Parcel | None = None
        self._first: tuple[Parcel, ...] = ()

    def greet(self, engine: Engine) -> None:
        """Ask a worker what it needs, so that the first jobs bring it: the next worker likely needs it too."""
        lacks = engine.begin(greet, self._site).outcome()
        self._first = (self._study_parcel(),) if lacks is not None else ()

    def make(self, engine: Engine, making: Making) -> Pending[Built | Failure]:
        """Have a subject made, and brought here where the worker's directory cannot be seen from here."""

        def send(parcels: tuple[Parcel, ...]) -> Pending[Carried[Built | Failure] | Lacks]:
            return engine.begin(Make(site=self._site, parcels=parcels or self._first), making)

        return _Supplied(send, lambda _: (self._study_parcel(),), self._take_build)

    def relink(self, engine: Engine, relinking: Relinking) -> Pending[Mapping[int, Built | Failure]]:
        """Have a subject relinked, and its layouts brought here where the worker's directory cannot be seen."""

        def send(parcels: tuple[Parcel, ...]) -> Pending[Carried[Mapping[int, Built | Failure]] | Lacks]:
            return engine.begin(Relink(site=self._site, parcels=parcels or self._first), relinking)

        return _Supplied(send, lambda _: (self._study_parcel(),), self._take_layouts)

    def begin(self, engine: Engine, start: Start) -> Pending[Outcome]:
        """Hand a start out."""

        def send(parcels: tuple[Parcel, ...]) -> Pending[Carried[Outcome] | Lacks]:
            return engine.begin(Invoke(site=self._site, parcels=parcels), start)

        return _Supplied(send, lambda lacks: self._parcels(lacks, start), self._take)

    def _take(self, carried: Carried[T]) -> T:
        """Take in the logs that came along with an outcome."""
        if carried.logs:
            unpack_logs(carried.logs, self._root, below=LOGS)
        return carried.outcome

    def _take_build(self, carried: Carried[Built | Failure]) -> Built | Failure:
        self._take_files(carried.files, [carried.outcome])
        return self._take(carried)

    def _take_layouts(self, carried: Carried[Mapping[int, Built | Failure]]) -> Mapping[int, Built | Failure]:
        self._take_files(carried.files, carried.outcome.values())
        return self._take(carried)

    def _take_files(self, files: Sequence[Parcel], outcomes: Iterable[Built | Failure]) -> None:
        """Put the builds that came along where they belong."""
        builts = {each.key: each for each in outcomes if isinstance(each, Built)}
        for parcel in files:
            built = builts[parcel.name]
            unpack_build(parcel.packed, self._root / "builds", built, log=built.log)

    def _parcels(self, lacks: Lacks, start: Start) -> tuple[Parcel, ...]:
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
        send: Callable[[tuple[Parcel, ...]], Pending[Carried[T] | Lacks]],
        parcels: Callable[[Lacks], tuple[Parcel, ...]],
        take: Callable[[Carried[T]], T],
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
"""The file in a results directory that holds what it is known by."""

SIGN = "cluster.sign."
"""What a command's sign in its results directory begins with."""


class Fleet:
    """The machines of a cluster, by name: all build, and one measures. Implements `builder.RemoteBuildWorkers`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._building = cluster.building()
        machines = {offer.machine.id: offer.machine for offer in cluster.offers()}.values()
        self.machines: tuple[Machine, ...] = tuple(
            sorted(machines, key=lambda each: (each.facts.get("name", ""), each.id))
        )
        self._supplier: Supplier | None = None

    @property
    def parallel_builds(self) -> int:
        """How many builds the workers that are there now make at once."""
        return max(1, sum(offer.builds for offer in self._cluster.offers()))

    def settle(
        self,
        study: Study,
        root: Path,
        *,
        own: Patched | None,
        outputs: Callable[[Subject], Sequence[str]],
    ) -> None:
        """Say which study all is done for; comes before anything is begun. `root` is its results directory."""
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
        """Have a subject made by whoever is free."""
        making = Making(key=key, subject=subject, recipe=recipe)
        return self._settled.make(self._building, making)

    def relink(
        self, built: Built, subject: Subject, recipe: Recipe, layouts: Mapping[int, str]
    ) -> Pending[Mapping[int, Built | Failure]]:
        """Have a subject relinked by a free worker."""
        making = Making(key=built.key, subject=subject, recipe=recipe)
        relinking = Relinking(making=making, artefact=built.artefact, layouts=dict(layouts))
        return self._settled.relink(self._building, relinking)

    def measuring(self, known: Sequence[str]) -> Machine:
        """Give the machine that measures, of those whose samples are `known` the last that is there, else the first."""
        there = {machine.id: machine for machine in self.machines}
        before = [there[each] for each in known if each in there]
        return before[-1] if before else self.machines[0]

    def bench(self, machine: Machine, store: Store, invoker: Invoker) -> Bench:
        """Give the bench of the machine that measures; `invoker` is who starts things here, which it does not."""
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
def open_fleet(engine: str) -> Iterator[Fleet]:
    """Open the machines that ``--engine`` names. Raises `UsageError` or `ClusterError`."""
    with ExitStack() as stack:
        match parse_address(engine):
            case Scheduler(address=address):
                cluster = stack.enter_context(connected(address))
            case OwnWorkers(count=count):
                home = stack.enter_context(claimed_directory(WORKERS, below=SHORT_LIVED))
                cluster = stack.enter_context(own_workers(count, home=home))
        yield Fleet(cluster)


def token_of(root: Path) -> str:
    """Give what the results directory is known by, written when it is asked for first."""
    path = root / TOKEN
    known = path.read_text(encoding="ascii") if path.exists() else ""
    if not known:  # nothing is there, or a disk was full when it was to be written
        known = uuid.uuid4().hex
        path.write_text(known, encoding="ascii")
    return known


def leave_sign(root: Path, token: str) -> str:
    """Leave a file of a new name in the results directory, which we hold: a copy made before does not have it."""
    for old in root.glob(f"{SIGN}*"):
        old.unlink(missing_ok=True)
    name = f"{SIGN}{uuid.uuid4().hex}"
    (root / name).write_text(token, encoding="ascii")
    return name
