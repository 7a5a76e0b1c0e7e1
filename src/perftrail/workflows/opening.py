"""Opening a study: the one place where the edges are chosen and put together."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.engines.local import LocalEngine
from perftrail.errors import UsageError
from perftrail.launcher import Launcher
from perftrail.machine import Watch, read_machine
from perftrail.machine.holding import put_back_left_over
from perftrail.store import hold, open_store
from perftrail.workflows.bench import Bench
from perftrail.workflows.hands import crew, open_builder, sandboxes
from perftrail.workflows.invoker import Invoker
from perftrail.workflows.left_over import remove_left_over
from perftrail.workflows.pinning import open_sources
from perftrail.workflows.quiet import Lookout
from perftrail.workflows.session import Session, View
from perftrail.workflows.workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from perftrail.builder import Crew
    from perftrail.model.build import Workplace
    from perftrail.model.measurement import Machine
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.ports import Builder, Enclosing, Starter, Store
    from perftrail.store import Holder
    from perftrail.workflows.containment import Sandboxes
    from perftrail.workflows.pinning import Sources
    from perftrail.workflows.quiet import Noise

RESULTS = ".perftrail"
"""The directory beside a study file that holds all it made, unless `--store` names another."""

DATABASE = "results.db"
SOURCES = "sources"


def results_directory(study: Study, store: str | None) -> Path:
    """Where a study's results live: an absolute path, for what is started works in directories of its own."""
    return (Path(store) if store else Path(study.directory) / RESULTS).absolute()


@contextmanager
def open_view(study: Study, *, store: str | None) -> Iterator[View]:
    """Open a study to look at it: holds nothing, changes no results.

    One of samples is as its files are now.
    """
    if study.walked.kind == "samples":
        from perftrail.workflows.importing.view import samples_view  # noqa: PLC0415 - only such a study needs it

        yield samples_view(study)
        return
    root = results_directory(study, store)
    with ExitStack() as stack:
        opened: AbstractContextManager[Store] = open_store(str(root / DATABASE), access="read")
        results = stack.enter_context(opened)
        starter = stack.enter_context(Launcher())
        enclosing = sandboxes(study, root, starter)
        sources = open_sources(study, cache=str(root / SOURCES), starter=starter)
        _, workshop = _make_workshop(study, root, sources, starter, results, enclosing=enclosing)
        yield View(
            study=study,
            machine=read_machine(),
            source=sources.walked,
            store=results,
            workshop=workshop,
            pins=sources.pins,
            asked=sources.asked,
        )


@contextmanager
def open_session(
    study: Study,
    *,
    store: str | None,
    wait: bool = True,
    on_wait: Callable[[Holder], None] = lambda _: None,
    on_noise: Callable[[Noise], None] = lambda _: None,
    retry_failed: bool = False,
    own: Patched | None = None,
    jobs: int = 1,
) -> Iterator[Session]:
    """Open a study for making and measuring: holds the store, starts the launcher, ends both on leaving.

    When another perftrail holds the store, `on_wait` is told who; then wait for it or raise `StoreHeld`.
    `on_noise` is told when measuring waits for the machine to become quiet. `own` is a patched revision that
    the source is to know beside its own. So many `jobs` are built at once.
    """
    _refuse_samples(study)
    root = results_directory(study, store)
    put_back_left_over()
    remove_left_over()
    machine = read_machine()
    with ExitStack() as stack:
        results = stack.enter_context(_held(root, machine, wait=wait, on_wait=on_wait))
        starter = stack.enter_context(Launcher())
        if (enclosing := sandboxes(study, root, starter)) is not None:
            enclosing.prepare()
        hands = stack.enter_context(crew(study, root, jobs=jobs, own=own))
        sources = open_sources(study, cache=str(root / SOURCES), starter=starter, own=own, asking="anew")
        builder, workshop = _make_workshop(
            study, root, sources, starter, results, retry_failed=retry_failed, enclosing=enclosing, crew=hands
        )
        watch = stack.enter_context(Watch(helpers=lambda: _helpers(starter, enclosing)))
        invoker = Invoker(
            study,
            starter=stack.enter_context(_measuring(root, starter, enclosing)),
            builder=builder,
            lookout=_lookout(study, watch, on_noise),
            scratch=root / "scratch",
            logs=root / "logs",
        )
        yield Session(
            study=study,
            machine=machine,
            source=sources.walked,
            store=results,
            workshop=workshop,
            pins=sources.pins,
            bench=Bench(store=results, engine=LocalEngine(), invoker=invoker, machine=machine),
        )


def _refuse_samples(study: Study) -> None:
    if study.walked.kind == "samples":
        raise UsageError(
            f"{study.file}: its samples were taken by other tools, so nothing of it can be built or measured; "
            "perftrail show, report and export tell what they say"
        )


@contextmanager
def _held(root: Path, machine: Machine, *, wait: bool, on_wait: Callable[[Holder], None]) -> Iterator[Store]:
    """Hold a study's results, and open them to write on this machine."""
    root.mkdir(parents=True, exist_ok=True)
    database = str(root / DATABASE)
    with (
        hold(database, wait=wait, on_wait=on_wait),
        open_store(database, access="write", machine=machine.id) as results,
    ):
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


def _lookout(study: Study, watch: Watch, on_noise: Callable[[Noise], None]) -> Lookout:
    measure = study.measure
    return Lookout(watch, measure.quiet, threshold=measure.quiet_threshold, on_wait=on_noise)


def _helpers(starter: Launcher, enclosing: Sandboxes | None) -> tuple[int, ...]:
    return (starter.start().server_pid, *(() if enclosing is None else enclosing.servers()))


def _measuring(root: Path, starter: Launcher, enclosing: Enclosing | None) -> AbstractContextManager[Starter]:
    """Give who starts what is measured: in one sandbox for all of it, if in one."""
    if enclosing is None:
        return nullcontext(starter)
    own = [root / "scratch", root / "counts"]
    for directory in own:
        directory.mkdir(exist_ok=True)
    return enclosing.around("run", [str(directory) for directory in own])


def _make_workshop(
    study: Study,
    root: Path,
    sources: Sources,
    starter: Starter,
    results: Store,
    *,
    retry_failed: bool = False,
    enclosing: Enclosing | None,
    crew: Crew | None = None,
) -> tuple[Builder, Workshop]:
    builder = open_builder(study, root, sources, starter, enclosing=enclosing, crew=crew)
    workshop = Workshop(
        study,
        sources.main,
        builder,
        results,
        retry_failed=retry_failed,
        pins=sources.pins,
        others=sources.others,
    )
    return builder, workshop
