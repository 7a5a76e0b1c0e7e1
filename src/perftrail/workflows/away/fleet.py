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
from perftrail.workflows.away.grounds import TOKEN
from perftrail.workflows.away.supplying import Supplier
from perftrail.workflows.away.values import Making, Site
from perftrail.workflows.bench import Bench
from perftrail.workflows.containment import SHORT_LIVED
from perftrail.workflows.left_over import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftrail.engines.cluster import Cluster
    from perftrail.model.build import Built, Failure, Recipe
    from perftrail.model.measurement import Machine
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.model.subject import Subject
    from perftrail.ports import Pending, Store
    from perftrail.workflows.invoker import Invoker


class Fleet:
    """The machines of a cluster, by name: all build, and one measures. Implements `builder.Makers`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._building = cluster.building()
        offers = cluster.offers()
        machines = {offer.machine.id: offer.machine for offer in offers}.values()
        self.machines: tuple[Machine, ...] = tuple(
            sorted(machines, key=lambda each: (each.facts.get("name", ""), each.id))
        )
        self.hands = sum(offer.builds for offer in offers)
        self._supplier: Supplier | None = None

    def settle(
        self,
        study: Study,
        root: Path,
        *,
        own: Patched | None,
        outputs: Callable[[Subject], Sequence[str]],
    ) -> None:
        """Say which study all is done for; comes before anything is begun. `root` is its results directory."""
        site = Site(
            study=study,
            root=str(root),
            token=_token(root),
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


def _token(root: Path) -> str:
    """Give what the results directory is known by, written when it is asked for first."""
    path = root / TOKEN
    if not path.exists():
        path.write_text(uuid.uuid4().hex, encoding="ascii")
    return path.read_text(encoding="ascii")
