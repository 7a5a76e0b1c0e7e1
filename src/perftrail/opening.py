"""Opening a study: the one place where the edges are chosen and put together."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.errors import ClusterError, UsageError
from perftrail.local_engine import LocalEngine
from perftrail.measure.bench import Bench
from perftrail.measure.build_workers import crew, open_builder, sandboxes
from perftrail.measure.invoker import open_invoker
from perftrail.measure.sandboxes import remove_leftovers
from perftrail.measure.session import Session, View
from perftrail.measure.sources import open_sources
from perftrail.measure.subjects import Workshop
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.machine.settings import put_back_left_over
from perftrail.store import hold, on_server, open_shared, open_store, server_of, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from perftrail.builds.workers import Crew, Makers
    from perftrail.cluster.fleet import Fleet
    from perftrail.measure.invoker import Invoker
    from perftrail.measure.noise import Noise
    from perftrail.measure.sources import Sources
    from perftrail.model.build import Workplace
    from perftrail.model.measurement import Machine
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.ports import Builder, Store
    from perftrail.store import Access, Away, Back, Holder

RESULTS = ".perftrail"
"""The directory beside a study file that holds all it made, unless `--store` names another."""

DATABASE = "results.db"
SOURCES = "sources"

NO_DASK = "{} needs Dask: pip install 'perftrail[cluster]'"


def results_directory(study: Study, store: str | None) -> Path:
    """Where a study's builds and logs live: an absolute path, for what is started works in directories of its own.

    They are beside the study where `store` is a server's address: it keeps what was measured, and no files.
    """
    own = Path(store) if store and server_of(store) is None else Path(study.directory) / RESULTS
    return own.absolute()


def results_database(study: Study, store: str | None) -> str:
    """Where what was measured lives: a file's path, or a server's address."""
    return server_of(store) or str(results_directory(study, store) / DATABASE)


@contextmanager
def open_view(study: Study, *, store: str | None) -> Iterator[View]:
    """Open a study to look at it: holds nothing, changes no results.

    One of samples is as its files are now.
    """
    if study.walked.kind == "samples":
        from perftrail.results.samples.view import samples_view  # noqa: PLC0415 - only such a study needs it

        yield samples_view(study)
        return
    root = results_directory(study, store)
    with ExitStack() as stack:
        machine = read_machine()
        opened: AbstractContextManager[Store] = open_store(
            results_database(study, store), access="read", machine=machine.id
        )
        results = stack.enter_context(opened)
        starter = stack.enter_context(Launcher())
        enclosing = sandboxes(study, root, starter)
        sources = open_sources(study, cache=str(root / SOURCES), starter=starter)
        builder = open_builder(study, root, sources, starter, enclosing=enclosing)
        yield View(
            study=study,
            machine=_measured_by(results, machine),
            source=sources.walked,
            store=results,
            workshop=_workshop(study, sources, builder, results),
            pins=sources.pins,
            asked=sources.asked,
        )


def _measured_by(store: Store, here: Machine) -> Machine:
    """Give the machine whose results are looked at: this one, or where a cluster did the work, the last of its."""
    known = store.machines()
    named = [each for each in known.values() if "name" in each.facts]
    return named[-1] if named and here.id not in known else here


@contextmanager
def open_results(study: Study, *, store: str | None, access: Access = "read") -> Iterator[Store]:
    """Open what is stored of a study and nothing else: no source, no builder, no launcher.

    To write without holding the store, as only what is said of it may be: a note takes one short transaction.
    """
    _refuse_samples(study)
    with open_store(results_database(study, store), access=access) as results:
        yield results


def writer(study: Study, *, store: str | None) -> Holder | None:
    """Say who measures a study now, and since when; `None` when nobody does."""
    return writing(str(results_directory(study, store) / DATABASE))


@contextmanager
def open_session(  # noqa: PLR0913 - each is a choice of the command line, named where it is given
    study: Study,
    *,
    store: str | None,
    wait: bool = True,
    on_wait: Callable[[Holder | Away | Back], None] = lambda _: None,
    on_noise: Callable[[Noise], None] = lambda _: None,
    retry_failed: bool = False,
    own: Patched | None = None,
    jobs: int = 1,
    engine: str | None = None,
) -> Iterator[Session]:
    """Open a study for making and measuring: holds the store, starts the launcher, ends both on leaving.

    When another perftrail holds the store, `on_wait` is told who; then wait for it or raise `StoreHeld`. It is told
    too when the server that keeps the results goes away and is waited for, and when it is back.
    `on_noise` is told when measuring waits for the machine to become quiet. `own` is a patched revision that
    the source is to know beside its own. So many `jobs` are built at once, or as many as the machines of an `engine`
    offer: then all is built and measured there. Raises `ClusterError` when they cannot be had.
    """
    _refuse_samples(study)
    root = results_directory(study, store)
    put_back_left_over()
    remove_leftovers()
    with ExitStack() as stack:
        fleet = _fleet(stack, engine, jobs=jobs)
        machine = read_machine() if fleet is None else fleet.measuring(_known_machines(study, store))
        results = stack.enter_context(
            _held(root, results_database(study, store), machine, wait=wait, on_wait=on_wait)
        )
        place = _Place(study=study, root=root, machine=machine, results=results, fleet=fleet)
        hands = fleet or stack.enter_context(crew(study, root, jobs=jobs, own=own))
        yield _session(stack, place, hands, on_noise=on_noise, retry_failed=retry_failed, own=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a session is at work: its results, which it holds, who measures, and the other machines if there are."""

    study: Study
    root: Path
    machine: Machine
    results: Store
    fleet: Fleet | None

    def bench(self, invoker: Invoker) -> Bench:
        """Give what starts things; `invoker` is who starts them here."""
        if self.fleet is not None:
            return self.fleet.bench(self.machine, self.results, invoker)
        return Bench(store=self.results, engine=LocalEngine(), invoker=invoker, machine=self.machine)


def _session(
    stack: ExitStack,
    place: _Place,
    hands: Crew | Makers | None,
    *,
    on_noise: Callable[[Noise], None],
    retry_failed: bool,
    own: Patched | None,
) -> Session:
    """Put the edges together."""
    study, root, fleet = place.study, place.root, place.fleet
    starter = stack.enter_context(Launcher())
    if (enclosing := sandboxes(study, root, starter)) is not None:
        enclosing.prepare()
    sources = open_sources(study, cache=str(root / SOURCES), starter=starter, own=own, asking="anew")
    builder = open_builder(study, root, sources, starter, enclosing=enclosing, crew=hands)
    workshop = _workshop(study, sources, builder, place.results, retry_failed=retry_failed)
    logs = root / "logs"
    invoker = stack.enter_context(
        open_invoker(study, builder, starter, enclosing=enclosing, place=root, logs=logs, on_noise=on_noise)
    )
    if fleet is not None:
        fleet.settle(study, root, own=own, outputs=lambda each: workshop.makings.recipe(each).outputs)
    return Session(
        study=study,
        machine=place.machine,
        source=sources.walked,
        store=place.results,
        workshop=workshop,
        pins=sources.pins,
        bench=place.bench(invoker),
        at_once=1 if fleet is None else fleet.hands,
    )


def _known_machines(study: Study, store: str | None) -> tuple[str, ...]:
    """Name the machines that measured a study so far, the one that came last at the end."""
    with open_results(study, store=store) as results:
        return tuple(results.machines())


def _fleet(stack: ExitStack, engine: str | None, *, jobs: int) -> Fleet | None:
    """Open the machines of an engine, `None` where everything is done here."""
    if engine is None:
        return None
    if jobs != 1:
        raise UsageError(
            "--jobs and --engine: the workers say how many builds at once: perftrail worker --builds N"
        )
    try:
        # Dask takes a second to import, and is not needed where one machine does everything.
        from perftrail.cluster.fleet import open_fleet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"dask", "distributed"}:
            raise
        raise ClusterError(NO_DASK.format("--engine")) from error
    return stack.enter_context(open_fleet(engine))


def _refuse_samples(study: Study) -> None:
    if study.walked.kind == "samples":
        raise UsageError(
            f"{study.file}: its samples were taken by other tools, so nothing of it can be built or measured; "
            "perftrail show, report and export tell what they say"
        )


@contextmanager
def _held(
    root: Path,
    database: str,
    machine: Machine,
    *,
    wait: bool,
    on_wait: Callable[[Holder | Away | Back], None],
) -> Iterator[Store]:
    """Hold a study's results, and open them to write on this machine.

    The directory's own lock guards builds and logs, wherever what is measured goes to.
    """
    root.mkdir(parents=True, exist_ok=True)
    with hold(str(root / DATABASE), wait=wait, on_wait=on_wait), ExitStack() as stack:
        results = stack.enter_context(
            open_shared(database, machine=machine.id, wait=wait, on_wait=on_wait)
            if on_server(database)
            else open_store(database, access="write", machine=machine.id)
        )
        results.add_machine(machine)
        yield results


@contextmanager
def shell_prefix(study: Study, place: Workplace, *, store: str | None) -> Iterator[tuple[str, ...]]:
    """Give the words that start a shell in a sandbox where a recipe is laid out; none of a study without one.

    All that is laid out can be changed in there.
    """
    if not study.sandbox.always:
        yield ()
        return
    with Launcher() as starter:
        enclosing = sandboxes(study, results_directory(study, store), starter)
        assert enclosing is not None
        with enclosing.prefix("build", [str(Path(place.log).parent)]) as words:
            yield (*words[:-1], "--chdir", str(Path(place.directory).resolve()), words[-1])


def _workshop(
    study: Study, sources: Sources, builder: Builder, results: Store, *, retry_failed: bool = False
) -> Workshop:
    return Workshop(
        study,
        sources.main,
        builder,
        results,
        retry_failed=retry_failed,
        pins=sources.pins,
        others=sources.others,
    )
