"""What a command does for its workers: hands jobs out, sends along what one lacks, takes in what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from perftrail.builds.packing import pack_build, unpack_build, unpack_logs
from perftrail.errors import ClusterError
from perftrail.model.build import Built
from perftrail.workflows.away.beside_study import pack_study
from perftrail.workflows.away.grounds import LOGS, STUDY, build_parcel
from perftrail.workflows.away.jobs import Invoke, Make, Relink, greet
from perftrail.workflows.away.values import Carried, Lacks, Parcel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from perftrail.model.build import Failure
    from perftrail.model.measurement import Outcome
    from perftrail.model.subject import Subject
    from perftrail.ports import Engine, Pending
    from perftrail.workflows.away.values import Making, Relinking, Site
    from perftrail.workflows.workshop import Start

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
