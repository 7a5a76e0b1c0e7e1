"""A command's side of a cluster: its machines, who builds for it, and the bench that measures."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail import __version__
from perftrail.engines.address import OwnWorkers, Scheduler, parse_address
from perftrail.engines.cluster import connected
from perftrail.engines.local import LocalEngine
from perftrail.engines.own_workers import own_workers
from perftrail.file_claim import claimed_directory
from perftrail.workflows.away.beside_study import study_digest
from perftrail.workflows.away.supplying import Supplier
from perftrail.workflows.away.values import Making, Relinking, Site
from perftrail.workflows.bench import Bench
from perftrail.workflows.containment import SHORT_LIVED
from perftrail.workflows.left_over import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from perftrail.engines.cluster import Cluster
    from perftrail.model.build import Built, Failure, Recipe
    from perftrail.model.measurement import Machine
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Pending, Store
    from perftrail.workflows.invoker import Invoker


TOKEN = "cluster.id"  # noqa: S105 - it names a directory, and opens nothing
"""The file in a results directory that holds what it is known by."""

SIGN = "cluster.sign."
"""What a command's sign in its results directory begins with."""


class Fleet:
    """The machines of a cluster, by name: all build, and one measures. Implements `builder.Makers`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._building = cluster.building()
        machines = {offer.machine.id: offer.machine for offer in cluster.offers()}.values()
        self.machines: tuple[Machine, ...] = tuple(
            sorted(machines, key=lambda each: (each.facts.get("name", ""), each.id))
        )
        self._supplier: Supplier | None = None

    @property
    def hands(self) -> int:
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
