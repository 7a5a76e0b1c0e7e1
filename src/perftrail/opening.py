"""Open a study: connect its source, store, builder, launcher and machines into a view or a session."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.toolchain import local_tools
from perftrail.errors import ClusterError, LauncherError, SourceError, StoreError, StudyError, UsageError
from perftrail.file_tree import real_path
from perftrail.local_engine import LocalEngine
from perftrail.measure.build_inputs import BuildInputs
from perftrail.measure.build_workers import open_build_workers, open_builder, sandboxes
from perftrail.measure.invocation import open_invoker
from perftrail.measure.invocation_runner import InvocationRunner
from perftrail.measure.sandboxes import remove_leftovers
from perftrail.measure.session import BuildView, Session, View
from perftrail.measure.sources import NO_ERAS, eras_of, open_sources, unknown_names
from perftrail.measure.subjects import SubjectBuilder
from perftrail.model.source import MAIN, NO_PINS
from perftrail.model.wording import counted
from perftrail.process.launcher import Launcher
from perftrail.process.machine import read_machine
from perftrail.process.machine.settings import restore_abandoned_settings
from perftrail.results_directory import DATABASE, RESULTS, claiming, create, is_ours, target_of, verify
from perftrail.sources.directory import ListedSource
from perftrail.store import current_writer as stored_writer
from perftrail.store import lock_for_writing, on_server, open_shared, open_store, parse_server
from perftrail.studyfile import load_readable, mistake
from perftrail.suites import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from perftrail.builds.toolchain import Toolchain
    from perftrail.builds.workers import BuildWorkers, RemoteBuildWorkers
    from perftrail.cluster.fleet import Fleet
    from perftrail.errors import PerftrailError
    from perftrail.measure.invocation import Invoker
    from perftrail.measure.noise_policy import Noise
    from perftrail.measure.opened_inputs import OpenedInputs
    from perftrail.measure.sources import Sources
    from perftrail.model.build import ManualBuild
    from perftrail.model.measurement import Machine
    from perftrail.model.patch import Patched
    from perftrail.model.study import Study
    from perftrail.ports import Builder, Store
    from perftrail.store import Access, Holder, ServerBack, ServerUnreachable

SOURCES = "sources"

NO_SOURCE = "perftrail cannot read the source, so it knows no range of it; omit the range"

NO_DASK = "{} needs Dask: pip install 'perftrail[cluster]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMachines:
    """The machines of an engine, and the number of their parallel builds.

    `measuring` is the name of the machine that measures; empty for this one.
    """

    machines: int
    builds: int
    measuring: str


def results_directory(study: Study, store: str | None) -> Path:
    """Return the directory of a study's builds and logs: an absolute path, because processes run in other directories.

    It is in the study's directory if `store` is a server's address, or a database file in any directory: both store
    samples, but no files. If `store` is the database of a results directory, it is that directory. Raises `StoreError`
    for a directory that perftrail did not create for this user.
    """
    if store and parse_server(store) is None:
        named = target_of(Path(store).absolute())
        if not named.is_file():
            return verify(named)
        if is_ours(named.parent):
            return verify(named.parent)
    return verify(Path(study.directory).absolute() / RESULTS)


def results_database(study: Study, store: str | None) -> str:
    """Return the location of the samples: a file's path, or a server's address."""
    if store and Path(store).is_file():
        return str(Path(store).absolute())
    return parse_server(store) or str(results_directory(study, store) / DATABASE)


@contextmanager
def open_view(study: Study, *, store: str | None) -> Iterator[View]:
    """Open a study for reading: without a lock, a build or a change to the results.

    Only the store is necessary. If the source cannot be read, the view has the store's own history. The view of a
    study of samples has the present content of its files. Raises `SourceError` if there is no history at all.
    """
    if study.searched_source.kind == "samples":
        from perftrail.results.samples import samples_view  # noqa: PLC0415 - only such a study needs it

        yield samples_view(study)
        return
    root = results_directory(study, store)
    with ExitStack() as stack:
        here = read_machine()
        opened: AbstractContextManager[Store] = open_store(
            results_database(study, store), access="read", machine=here.id
        )
        results = stack.enter_context(opened)
        study = with_listed_benchmarks(study, results)
        stack.enter_context(claiming(root))
        starter = Launcher()
        stack.callback(starter.close)
        machine = _measured_by(results, here)
        tools = (
            local_tools(starter, study=Path(study.directory).absolute()) if machine.id == here.id else None
        )
        notes = () if machine.id == here.id else (_other_machine_note(machine),)
        try:
            sources = open_sources(study, cache=str(root / SOURCES), starter=starter)
            sources.searched_source.history()
        except (SourceError, LauncherError) as error:
            yield _stored_view(study, results, machine, tools, notes=notes, error=error)
            return
        eras = eras_of(study, sources.main, searched=sources.searched_source)
        yield View(
            study=study,
            machine=machine,
            source=sources.searched_source,
            store=results,
            pins=sources.pins,
            last_updated=sources.last_updated,
            inputs=BuildInputs(study, eras, sources.pins, sources.others, tools),
            notes=notes,
        )


def with_listed_benchmarks(study: Study, results: Store) -> Study:
    """Return a study with the benchmarks of its suites that stored lists have."""
    return expanded(study, results.listings()) if study.suites else study


def _stored_view(
    study: Study,
    store: Store,
    machine: Machine,
    tools: Toolchain | None,
    *,
    notes: Sequence[str],
    error: PerftrailError,
) -> View:
    """Return a view with the store's own history, because the source cannot be read."""
    history = store.history()
    if not history:
        raise error
    plain = not study.build.when and not study.searched_source.skip and len(study.every_source) == 1
    return View(
        study=study,
        machine=machine,
        source=ListedSource(history, no_range=NO_SOURCE),
        store=store,
        inputs=BuildInputs(study, NO_ERAS, NO_PINS, {}, tools) if plain else None,
        notes=(
            *notes,
            f"This is the history of the stored samples, because perftrail cannot read the source: {error}",
        ),
    )


@contextmanager
def open_build_view(study: Study, *, store: str | None) -> Iterator[BuildView]:
    """Open a study for reading, with the builder of a session."""
    _refuse_samples(study)
    root = results_directory(study, store)
    with ExitStack() as stack:
        here = read_machine()
        opened: AbstractContextManager[Store] = open_store(
            results_database(study, store), access="read", machine=here.id
        )
        results = stack.enter_context(opened)
        study = with_listed_benchmarks(study, results)
        stack.enter_context(claiming(root))
        starter = stack.enter_context(Launcher())
        isolation = sandboxes(study, root, starter)
        sources = open_sources(study, cache=str(root / SOURCES), starter=starter)
        builder = open_builder(study, root, sources, starter, isolation=isolation)
        machine = _measured_by(results, here)
        subject_builder = _subject_builder(
            study, sources, builder, results, starter, machine=machine.id, logs=root / "logs"
        )
        with _errors_with_line(study):
            yield BuildView(
                study=study,
                machine=machine,
                source=sources.searched_source,
                store=results,
                subject_builder=subject_builder,
                inputs=subject_builder.build_inputs,
                pins=sources.pins,
                last_updated=sources.last_updated,
            )


def every_mistake(
    error: StudyError | SourceError, path: str, *, store: str | None
) -> StudyError | SourceError:
    """Return the mistakes of an error, together with the ranges and revisions that the histories lack.

    `error` ended the reading of the study file `path`, or of its history, before these were looked up. perftrail
    fetches no history for a file with other mistakes: they are reported at once.
    """
    study, in_file = load_readable(path)
    if study is None:
        return error
    root = results_directory(study, store)
    with ExitStack() as stack:
        stack.enter_context(claiming(root))
        starter = stack.enter_context(Launcher())
        lacking = unknown_names(
            study,
            cache=str(root / SOURCES),
            starter=starter,
            wrong={each.key for each in in_file},
        )
    keys = {(each.line, each.key) for each in in_file}
    found = [*in_file, *(each for each in lacking if (each.line, each.key) not in keys)]
    keys |= {(each.line, each.key) for each in found}
    others = error.mistakes if isinstance(error, StudyError) else ()
    found += [each for each in others if (each.line, each.key) not in keys]
    return StudyError(found) if found else error


def _measured_by(store: Store, here: Machine) -> Machine:
    """Return the machine whose samples are read: this one if it has samples, else the last one that has.

    Named machines come first: they are workers of a cluster, which measured for this machine.
    """
    sampled = store.sampled_machines()
    if here.id in sampled or not sampled:
        return here
    known = [each for id_, each in store.machines().items() if id_ in sampled]
    named = [each for each in known if "name" in each.facts]
    return (named or known)[-1]


def _other_machine_note(machine: Machine) -> str:
    """Return the sentence about samples of another machine."""
    facts = machine.facts
    parts = [facts.get("name", ""), facts.get("cpu", ""), _cpus(facts.get("logical_cpus", ""))]
    about = ", ".join(part for part in parts if part)
    return (
        f"These samples are from another machine ({about or machine.id}), because this one has none. "
        "Measure here with: perftrail run"
    )


def _cpus(count: str) -> str:
    return counted(int(count), "CPU") if count.isdecimal() else ""


@contextmanager
def open_results(study: Study, *, store: str | None, access: Access = "read") -> Iterator[Store]:
    """Open only the store of a study, without source, builder or launcher.

    Only notes may be written without the store's lock, because a note is one short transaction.
    """
    _refuse_samples(study)
    with open_store(results_database(study, store), access=access) as results:
        yield results


def current_writer(study: Study, *, store: str | None) -> Holder | None:
    """Return the process that measures a study now, and its start time; `None` without one."""
    return stored_writer(str(results_directory(study, store) / DATABASE))


@contextmanager
def open_session(  # noqa: PLR0913 - each is an option of the command line
    study: Study,
    *,
    store: str | None,
    wait: bool = True,
    on_wait: Callable[[Holder | ServerUnreachable | ServerBack], None] = lambda _: None,
    on_noise: Callable[[Noise], None] = lambda _: None,
    on_fleet: Callable[[EngineMachines], None] = lambda _: None,
    retry_failed: bool = False,
    patched: Patched | None = None,
    jobs: int = 1,
    engine: str | None = None,
) -> Iterator[Session]:
    """Open a study to build and measure: lock the store, start the launcher, and end both on exit.

    If another perftrail has the lock, `on_wait` receives its holder; then wait for it, or raise `StoreLocked`.
    `on_wait` is also called when the results' server is unreachable, and when it is back. `on_noise` is
    called when perftrail waits for a quiet machine, `on_fleet` when the machines of an engine are known.
    `patched` is a revision to add to the source. `jobs` is the number of parallel builds; with an `engine`, its
    machines set that number and do all builds and invocations. Raises `ClusterError` if these machines are not
    available.
    """
    _refuse_samples(study)
    root = results_directory(study, store)
    restore_abandoned_settings()
    remove_leftovers()
    with ExitStack() as stack:
        fleet = _fleet(stack, engine, jobs=jobs)
        here = read_machine()
        machine = here if fleet is None else fleet.measuring(_known_machines(study, store))
        if fleet is not None:
            on_fleet(
                EngineMachines(
                    machines=len(fleet.machines),
                    builds=fleet.parallel_builds,
                    measuring="" if machine.id == here.id else machine.facts.get("name", machine.id),
                )
            )
        results = stack.enter_context(
            _locked_results(root, results_database(study, store), machine, wait=wait, on_wait=on_wait)
        )
        study = with_listed_benchmarks(study, results)
        resources = _Resources(study=study, root=root, machine=machine, results=results, fleet=fleet)
        workers = fleet or stack.enter_context(open_build_workers(study, root, jobs=jobs, patched=patched))
        with _errors_with_line(study):
            yield _session(
                stack, resources, workers, on_noise=on_noise, retry_failed=retry_failed, patched=patched
            )


@contextmanager
def _errors_with_line(study: Study) -> Iterator[None]:
    """Turn an error that a key of the study causes into a `StudyError` with its line."""
    try:
        yield
    except SourceError as error:
        if not error.key:
            raise
        table = ("source",) if study.along == MAIN else ("sources", study.along)
        message = str(error).removeprefix(f"{study.searched_source.location}: ")
        raise StudyError([mistake(study.file, (*table, *error.key), message)]) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resources:
    """Resources of a session: its locked results, its measuring machine, and the machines of its engine."""

    study: Study
    root: Path
    machine: Machine
    results: Store
    fleet: Fleet | None

    def runner(self, invoker: Invoker, opened: OpenedInputs) -> InvocationRunner:
        """Return the invocation runner of the session; `invoker` starts benchmarks on this machine."""
        if self.fleet is not None:
            return self.fleet.runner(self.machine, self.results, invoker, opened)
        return InvocationRunner(
            store=self.results, engine=LocalEngine(), invoker=invoker, machine=self.machine, opened=opened
        )


def _session(
    stack: ExitStack,
    resources: _Resources,
    workers: BuildWorkers | RemoteBuildWorkers | None,
    *,
    on_noise: Callable[[Noise], None],
    retry_failed: bool,
    patched: Patched | None,
) -> Session:
    """Connect the parts of a session."""
    study, root, fleet = resources.study, resources.root, resources.fleet
    starter = stack.enter_context(Launcher())
    if (isolation := sandboxes(study, root, starter)) is not None:
        isolation.prepare()
    sources = open_sources(
        study, cache=str(root / SOURCES), starter=starter, patched=patched, cache_use="fresh"
    )
    builder = open_builder(study, root, sources, starter, isolation=isolation, workers=workers)
    logs = root / "logs"
    subject_builder = _subject_builder(
        study,
        sources,
        builder,
        resources.results,
        starter,
        retry_failed=retry_failed,
        machine=resources.machine.id,
        logs=logs,
    )
    invoker = stack.enter_context(
        open_invoker(study, builder, starter, isolation=isolation, root=root, logs=logs, on_noise=on_noise)
    )
    if fleet is not None:
        fleet.set_study(
            study,
            root,
            patched=patched,
            outputs=lambda each: subject_builder.build_inputs.recipe(each).outputs,
        )
    return Session(
        study=study,
        machine=resources.machine,
        source=sources.searched_source,
        store=resources.results,
        subject_builder=subject_builder,
        inputs=subject_builder.build_inputs,
        pins=sources.pins,
        runner=resources.runner(invoker, subject_builder.opened),
        at_once=1 if fleet is None else fleet.parallel_builds,
    )


def _known_machines(study: Study, store: str | None) -> tuple[str, ...]:
    """Return the ids of all machines that measured a study, the latest last."""
    with open_results(study, store=store) as results:
        return tuple(results.machines())


def _fleet(stack: ExitStack, engine: str | None, *, jobs: int) -> Fleet | None:
    """Connect to the machines of an engine; return `None` without an engine."""
    if engine is None:
        return None
    if jobs != 1:
        raise UsageError(
            "--jobs cannot be used with --engine; set the parallel builds of each worker: perftrail worker --builds N"
        )
    try:
        # Dask takes a second to import, and one machine alone does not need it.
        from perftrail.cluster.fleet import open_fleet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"dask", "distributed"}:
            raise
        raise ClusterError(NO_DASK.format("--engine")) from error
    return stack.enter_context(open_fleet(engine))


def _refuse_samples(study: Study) -> None:
    if study.searched_source.kind == "samples":
        raise UsageError(
            f"{study.file}: its samples are imported from other tools, so perftrail cannot build or measure it; "
            "read them with perftrail show, report or export"
        )


@contextmanager
def _locked_results(
    root: Path,
    database: str,
    machine: Machine,
    *,
    wait: bool,
    on_wait: Callable[[Holder | ServerUnreachable | ServerBack], None],
) -> Iterator[Store]:
    """Lock a study's results, and open them for writing on this machine.

    The directory's own lock protects builds and logs, wherever the samples are stored.
    """
    create(root)
    with (
        lock_for_writing(str(root / DATABASE), wait=wait, on_wait=on_wait),
        _refusing_removal(root / f"{DATABASE}.lock"),
        ExitStack() as stack,
    ):
        results = stack.enter_context(
            open_shared(database, machine=machine.id, wait=wait, on_wait=on_wait)
            if on_server(database)
            else open_store(database, access="write", machine=machine.id)
        )
        results.add_machine(machine)
        yield results


@contextmanager
def _refusing_removal(lock: Path) -> Iterator[None]:
    """Raise `StoreError` if the results directory was removed in the block, instead of any error that this caused."""
    removed = StoreError(
        f"{lock.parent}: was removed while perftrail used it, with its samples and builds; repeat the command"
    )
    try:
        yield
    except OSError as error:
        if not lock.exists():
            raise removed from error
        raise
    if not lock.exists():
        raise removed


@contextmanager
def shell_prefix(study: Study, prepared: ManualBuild, *, store: str | None) -> Iterator[tuple[str, ...]]:
    """Yield the words that start a shell in a sandbox with a prepared tree; empty without a sandbox.

    The whole tree is writable in the sandbox.
    """
    if not study.sandbox.always:
        yield ()
        return
    with Launcher() as starter:
        isolation = sandboxes(study, results_directory(study, store), starter)
        assert isolation is not None
        with isolation.prefix("build", [str(Path(prepared.log).parent)]) as words:
            yield (*words[:-1], "--chdir", str(real_path(prepared.directory)), words[-1])


def _subject_builder(
    study: Study,
    sources: Sources,
    builder: Builder,
    results: Store,
    starter: Launcher,
    *,
    machine: str,
    logs: Path,
    retry_failed: bool = False,
) -> SubjectBuilder:
    return SubjectBuilder(
        study,
        sources.main,
        builder,
        results,
        retry_failed=retry_failed,
        machine=machine,
        logs=logs,
        pins=sources.pins,
        others=sources.others,
        tools=local_tools(starter, study=Path(study.directory).absolute()),
    )
