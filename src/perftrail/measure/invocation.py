"""Run one invocation: a clean directory, an exact environment, one process, its metrics.

`Invoker` starts benchmarks and reads their metrics. `open_invoker` opens the launcher, the sandbox if the study uses
one, and the noise observer.
"""

from __future__ import annotations

import shlex
import tempfile
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.environment import declared_environment
from perftrail.builds.observing import OPENING_CALLS, Scope, observer, observing_words, read_opened
from perftrail.file_tree import emptied, remove_tree
from perftrail.formats.printed import has_items, read_metrics
from perftrail.measure.build_paths import BuildPaths, LinkedBuild
from perftrail.measure.events import now
from perftrail.measure.failed_invocation import last_line_of, log_text, why_failed
from perftrail.measure.fixtures import Fixtures, placed
from perftrail.measure.instructions import DETERMINISTIC, InstructionCounter, Method
from perftrail.measure.noise_policy import NoiseObserver
from perftrail.measure.process_metrics import allocation_metrics, process_methods, process_metrics
from perftrail.measure.resident import ResidentProcesses
from perftrail.measure.services import FixtureFailed
from perftrail.measure.stored_outputs import EqualOutputs, log_name
from perftrail.model.build import Failure, content_key
from perftrail.model.fixture import has_fixture
from perftrail.model.measurement import FailedInvocation, Measurement, drawn_environment, seed_of
from perftrail.model.metrics import COUNTED
from perftrail.model.placeholders import fill, split_command
from perftrail.model.plan import command_line, run_environment
from perftrail.model.process import (
    Command,
    Exited,
    NotStarted,
    Ran,
    TimedOut,
    describe_end,
)
from perftrail.model.suite import SuiteBenchmark
from perftrail.process.launcher import Launcher
from perftrail.process.machine.load import Watch
from perftrail.process.sandbox.contained import SandboxedStarter
from perftrail.suites.shell import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.measure.fixtures import InvocationFixture
    from perftrail.measure.noise_policy import Noise
    from perftrail.measure.resident import Answer, ResidentProcess
    from perftrail.measure.sandboxes import Sandboxes
    from perftrail.measure.services import BackgroundStarter
    from perftrail.measure.subjects import PlannedInvocation, Ready
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.measurement import DrawnEnvironment, Outcome, Phase
    from perftrail.model.metrics import Counter
    from perftrail.model.reads import BuildReads
    from perftrail.model.study import Study
    from perftrail.ports import Builder, Starter


OUTPUT_CAP_BYTES = 16 << 20
"""How many bytes of a benchmark's output are kept, and searched for metrics."""

OWN_FILES = Path(__file__).parents[1]
"""perftrail's own files: it preloads libraries that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrecordedRun:
    """The result of a run that is not recorded as a sample: the process, and its metrics or why there are none.

    `log` is the path of its output.
    """

    ran: Ran
    result: Mapping[str, float] | Failure
    log: str


class Invoker:
    """Starts a study's benchmarks, and reads the results.

    With `paths`, each invocation sees its build at a path that depends on its draw. `resident` are the processes of
    suites.
    """

    def __init__(  # noqa: PLR0913 - each is another resource of an invocation
        self,
        study: Study,
        *,
        starter: Starter,
        builder: Builder,
        observer: NoiseObserver,
        scratch: Path,
        logs: Path,
        fixtures: Fixtures,
        paths: BuildPaths | None = None,
        resident: ResidentProcesses | None = None,
    ) -> None:
        self.study = study
        self._resident = resident
        self._observer = observer
        self.starter = starter
        self._builder = builder
        self._scratch = scratch
        self._logs = logs
        self._paths = paths
        self._fixtures = fixtures
        self._counts = scratch.with_name("counts")
        self._instructions = InstructionCounter(starter, self._counts / "instructions")
        self._equal_outputs = EqualOutputs()

    def invoke(self, planned: PlannedInvocation) -> Outcome:
        """Start the benchmark once and return the outcome; a failed invocation is an outcome too.

        Without a drawn seed, all subjects use the same seed at the same ordinal, so that pairs stay
        comparable. Raises `MachineBusy` where the study refuses to measure in noise.
        """
        log = self._logs / f"{log_name(planned.key)}.out"
        _remove_output(log)
        outcome = self._outcome_of(planned, log)
        self._share(log)
        return outcome

    def _outcome_of(self, planned: PlannedInvocation, log: Path) -> Outcome:
        if counter := self.study.benchmarks[planned.ready.cell.benchmark].counted_alone:
            return self._count(planned, counter, log)
        seed = planned.draw.seed or invocation_seed(self.study, planned.key.phase, planned.key.ordinal)
        planned = replace(planned, draw=replace(planned.draw, seed=seed, layout=planned.ready.layout))
        benchmark = self.study.benchmarks[planned.ready.cell.benchmark]
        if isinstance(benchmark, SuiteBenchmark) and benchmark.server and self._resident is not None:
            return self._request(planned, benchmark, self._resident, log)
        drawn = drawn_environment(seed)
        if self._paths is None:
            return self._invoke(planned, drawn, None, log)
        placeholders = self._builder.command_placeholders(planned.ready.prepared)
        with self._paths.linked(planned.ready.prepared, drawn.path, placeholders) as linked:
            return self._invoke(planned, drawn, linked, log)

    def end_fixtures(self) -> None:
        """Clean up after all benchmarks and end their services; the next invocation starts them again."""
        self._fixtures.close()

    def _invoke(
        self, planned: PlannedInvocation, drawn: DrawnEnvironment, linked: LinkedBuild | None, log: Path
    ) -> Outcome:
        began, started = time.monotonic(), now()
        own_methods: dict[str, str] = {}
        benchmark = self.study.benchmarks[planned.ready.cell.benchmark]
        build = linked.placeholders["build"] if linked else planned.ready.prepared.built.directory
        try:
            with self._fixtures.around(planned.ready, log, drawn=drawn.environment) as fixture:
                command = self._command(planned.ready, log, fixture=fixture, linked=linked)
                command = replace(command, environment={**drawn.environment, **command.environment})
                fixture.prepare(command)
                with fixture.usage() as usage:
                    observed = self._observer.observe(lambda: self.starter.run(command))
                ran = observed.ran
                failure = why_failed(ran, benchmark, log, command=command, build=build)
                read = failure or _read(benchmark, log, methods=own_methods)
                fixture.conclude(command, read)
        except FixtureFailed as failed:
            return _failed_fixture(planned, failed, started=started, seconds=time.monotonic() - began)
        if isinstance(read, Failure):
            read = replace(read, message=linked.with_original_paths(read.message)) if linked else read
        else:
            read = {**observed.values, **process_metrics(ran, usage), **read}
        methods = {**process_methods(ran, usage), **observed.methods, **own_methods}
        seconds = time.monotonic() - began if has_fixture(benchmark) else ran.tree_ended_at - ran.prepared_at
        return _outcome(
            planned,
            ran,
            log,
            read,
            started=observed.started,
            seconds=seconds,
            methods=methods,
            noise=observed.flags,
        )

    def _request(
        self, planned: PlannedInvocation, benchmark: SuiteBenchmark, resident: ResidentProcesses, log: Path
    ) -> Outcome:
        """Measure once in the resident process of the build, and start that process if necessary.

        The recorded seed is that of the process.
        """
        began = time.monotonic()
        process = self._resident_process(planned, benchmark, resident)
        if isinstance(process, Failure):
            ran = Ran.uncounted(Exited(code=1), began=began, now=time.monotonic())
            return _outcome(planned, ran, log, process, started=now(), seconds=ran.wall_seconds, methods={})
        planned = replace(planned, draw=replace(planned.draw, seed=process.seed))
        if planned.key.phase == "sample":
            process.measured.add(planned.ready.runnable.key)
        request, timeout = benchmark.requests[planned.ready.cell.point], benchmark.timeout_seconds
        answers: list[Answer] = []

        def ask() -> Ran:
            answers.append(process.ask(request, timeout_seconds=timeout))
            return answers[0].ran

        observed = self._observer.observe(ask)
        log.write_text(answers[0].output, encoding="utf-8", errors="replace")
        failure = _why_unanswered(answers[0], log, timeout_seconds=timeout)
        if failure is not None and failure.stage != "metric":
            resident.end(_resident_key(planned.ready, benchmark))
        methods: dict[str, str] = {}
        read = failure or _read(benchmark, log, methods=methods)
        values = read if isinstance(read, Failure) else {**observed.values, **read}
        return _outcome(
            planned,
            observed.ran,
            log,
            values,
            started=observed.started,
            seconds=time.monotonic() - began,  # with the start of the process
            methods={**observed.methods, **methods},
            noise=observed.flags,
        )

    def _resident_process(
        self,
        planned: PlannedInvocation,
        benchmark: SuiteBenchmark,
        resident: ResidentProcesses,
    ) -> ResidentProcess | Failure:
        """Return a process that has not measured the benchmark yet, or why none could be started."""
        ready = planned.ready
        key = _resident_key(ready, benchmark)
        known = resident.find(key, ready.runnable.key)
        if known is not None:
            return known
        drawn = drawn_environment(planned.draw.seed)
        output = self._logs / "resident" / f"{key}.out"
        output.parent.mkdir(parents=True, exist_ok=True)

        @contextmanager
        def command_in(work: Path) -> Iterator[Command]:
            with ExitStack() as stack:
                linked = None
                if self._paths is not None:
                    paths = BuildPaths(work.with_name("paths"))
                    placeholders = self._builder.command_placeholders(ready.prepared)
                    linked = stack.enter_context(paths.linked(ready.prepared, drawn.path, placeholders))
                fixture = stack.enter_context(self._fixtures.around(ready, output))
                command = self._command(
                    ready,
                    output,
                    fixture=fixture,
                    linked=linked,
                    text=benchmark.server,
                    directory=work,
                )
                yield replace(
                    command,
                    environment={**drawn.environment, **command.environment},
                    timeout_seconds=None,
                    orphans="kill",
                )

        started = resident.start(
            key, planned.draw.seed, command_in, timeout_seconds=benchmark.timeout_seconds
        )
        if isinstance(started, str):
            return Failure(stage="start", message=f"{started}{last_line_of(output)}", log=str(output))
        return started

    def _count(self, planned: PlannedInvocation, counter: Counter, log: Path) -> Outcome:
        """Start once to count only this. Other metrics of such an invocation are not valid.

        Nothing is drawn, so that two counts of one binary are equal.
        """
        planned = replace(planned, draw=replace(planned.draw, seed=0, layout=planned.ready.layout))
        began, started = time.monotonic(), now()
        benchmark = self.study.benchmarks[planned.ready.cell.benchmark]
        build = planned.ready.prepared.built.directory
        try:
            with self._fixtures.around(planned.ready, log) as fixture:
                command = self._command(planned.ready, log, fixture=fixture)
                fixture.prepare(command)
                ran, values, method = self._counted(command, counter)
                failure = why_failed(ran, benchmark, log, command=command, build=build)
                fixture.conclude(command, failure)
        except FixtureFailed as failed:
            return _failed_fixture(planned, failed, started=started, seconds=time.monotonic() - began)
        if failure is None and not values:
            failure = Failure(stage="metric", message=f"{method} counted no {counter}", log=str(log))
        seconds = ran.tree_ended_at - ran.prepared_at
        return _outcome(
            planned,
            ran,
            log,
            failure or values,
            started=started,
            seconds=seconds,
            methods=dict.fromkeys(COUNTED[counter], method),
        )

    def _counted(self, command: Command, counter: Counter) -> tuple[Ran, dict[str, float], str]:
        """Start once; return the result, its counts, and the method. There are no counts if counting failed."""
        if counter == "allocations":
            environment = {**DETERMINISTIC, **command.environment}
            ran = self.starter.run(replace(command, environment=environment, aslr=False))
            return ran, {} if ran.allocations is None else allocation_metrics(ran.allocations), "preload"
        counted = self._instructions.count(command)
        values = {} if counted.instructions is None else {"instructions": counted.instructions}
        return counted.ran, values, counted.method

    def temporary_directory(self) -> tempfile.TemporaryDirectory[str]:
        """Return a new directory that profilers and the tools that read their files may write to, in a sandbox too."""
        self._counts.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="profile-", dir=self._counts)

    def counting_method(self) -> Method:
        """Return how this machine counts instructions; raises `NoAnswer` if no counter works on it."""
        return self._instructions.method

    def count_instructions(
        self, ready: Ready, name: str, change: Callable[[Command], Command]
    ) -> UnrecordedRun:
        """Start a changed command once outside any measurement, to count `instructions`."""
        found: list[float | None] = []

        def start(command: Command) -> Ran:
            counted = self._instructions.count(command)
            found.append(counted.instructions)
            return counted.ran

        observed = self.observe(ready, name, change, start)
        if isinstance(observed.result, Failure):
            return observed
        values = {"instructions": found[0]} if found and found[0] is not None else {}
        return replace(observed, result=values)

    def observed_log(self, ready: Ready, name: str) -> Path:
        """Return the file with the output of a command of `observe`, also while it runs."""
        return self._logs / "observed" / ready.runnable.key / f"{name}.out"

    def observe(
        self,
        ready: Ready,
        name: str,
        change: Callable[[Command], Command],
        start: Callable[[Command], Ran] | None = None,
        *,
        text: str | None = None,
    ) -> UnrecordedRun:
        """Start a changed command once, outside any measurement; only its log is kept, under this name.

        `start` runs the command in another way than alone. `text` replaces the command line.
        """
        log = self.observed_log(ready, name)
        _remove_output(log)
        began = time.monotonic()
        benchmark = self.study.benchmarks[ready.cell.benchmark]
        try:
            with self._fixtures.around(ready, log) as fixture:
                command = change(self._command(ready, log, fixture=fixture, text=text))
                fixture.prepare(command)
                with fixture.usage() as usage:
                    ran = (start or self.starter.run)(command)
                build = ready.prepared.built.directory
                result = why_failed(ran, benchmark, log, command=command, build=build) or read_metrics(
                    benchmark.metrics, log_text(log), log=str(log)
                )
                fixture.conclude(command, result)
        except FixtureFailed as failed:
            failure = Failure(stage="fixture", message=str(failed), log=failed.log)
            ended = NotStarted(errno=0, message=str(failed), stage="fixture")
            ran = Ran.uncounted(ended, began=began, now=time.monotonic())
            return UnrecordedRun(ran=ran, result=failure, log=failed.log)
        if not isinstance(result, Failure):
            result = {**process_metrics(ran, usage), **result}
        self._share(log)
        return UnrecordedRun(ran=ran, result=result, log=str(log))

    def opened_files(self, ready: Ready) -> BuildReads | Failure:
        """Start a cell once under strace; return the files outside of its build that it opens, or why it failed."""
        program = observer()
        assert program is not None
        directories: list[Path] = []
        since = time.time_ns()
        with self.temporary_directory() as scratch:
            trace = Path(scratch, "trace")

            def traced(command: Command) -> Command:
                directories.append(Path(command.directory))
                words = observing_words(program, trace, calls=OPENING_CALLS)
                return replace(command, arguments=(*words, *command.arguments))

            result = self.observe(ready, "opened-files", traced).result
            if isinstance(result, Failure):
                return result
            prepared = ready.prepared
            own = (self._logs.parent, Path(prepared.built.directory), Path(prepared.out), OWN_FILES)
            scope = Scope(study=Path(self.study.directory), ignored=own, since_ns=since)
            return read_opened(trace, directory=directories[0], scope=scope, traced="the benchmark")

    def _command(
        self,
        ready: Ready,
        log: Path,
        *,
        fixture: InvocationFixture,
        linked: LinkedBuild | None = None,
        text: str | None = None,
        directory: Path | None = None,
    ) -> Command:
        """Return the command of a cell; `text` replaces its command line, and `directory` its working directory."""
        cell = ready.cell
        benchmark = self.study.benchmarks[cell.benchmark]
        values = {
            **(linked.placeholders if linked else self._builder.command_placeholders(ready.prepared)),
            "revision": cell.subject.revision.id,
            **{name: str(value) for name, value in cell.point.as_dict().items()},
            **fixture.placeholders,
        }
        environment = declared_environment()
        environment |= {name: fill(text, values) for name, text in run_environment(self.study, cell).items()}
        if self._resident is not None:
            environment[RUNNERS] = str(self._resident.runners)
        prefix = self.study.variants[cell.subject.variant].run.prefix
        line = command_line(self.study, cell) if text is None else text
        if directory is None:
            directory = emptied(self._scratch)  # always the same path
            if benchmark.directory is not None:
                directory = Path(values["build"], benchmark.directory)
        command = Command(
            arguments=(*(fill(word, values) for word in prefix), *_words(line, benchmark, values)),
            environment=environment,
            directory=str(directory),
            stdin=fill(benchmark.stdin, values) if benchmark.stdin else None,
            stdout=str(log),
            stderr=str(log.with_suffix(".err")),
            output_cap_bytes=OUTPUT_CAP_BYTES,
            timeout_seconds=benchmark.timeout_seconds,
            memory_limit_bytes=benchmark.memory_limit_bytes,
            counters="hardware" in benchmark.counters,
            lock_counter="preload" if "locks" in benchmark.counters else "off",
            allocation_counter="preload" if benchmark.counted_alone == "allocations" else "off",
        )
        return placed(command, benchmark.placement)

    def _share(self, log: Path) -> None:
        for file in (log, log.with_suffix(".err")):
            self._equal_outputs.share(file)


def _remove_output(log: Path) -> None:
    """Make place for an output: writing into an older file would change those that share its space."""
    log.parent.mkdir(parents=True, exist_ok=True)
    for file in (log, log.with_suffix(".err")):
        file.unlink(missing_ok=True)


def _resident_key(ready: Ready, benchmark: SuiteBenchmark) -> str:
    """Return the key of the resident process of a build, which all benchmarks of a suite share."""
    prepared = ready.prepared
    return content_key(benchmark.server, ready.cell.subject.variant, prepared.built.directory, prepared.out)


def _why_unanswered(answer: Answer, log: Path, *, timeout_seconds: float) -> Failure | None:
    """Return why a request has no result, or `None`. After any stage but ``metric``, the process is of no more use."""
    if isinstance(answer.ran.ended, TimedOut):
        message = describe_end(answer.ran.ended, timeout_seconds=timeout_seconds)
        return Failure(stage="timeout", message=message, log=str(log))
    if not answer.failure:
        return None
    alive = answer.ran.ended == Exited(code=0) and not answer.failure.startswith("the resident process ended")
    return Failure(stage="metric" if alive else "crash", message=answer.failure, log=str(log))


def _read(benchmark: Benchmark, log: Path, *, methods: dict[str, str]) -> dict[str, float] | Failure:
    """Return the metrics of an output; a suite's empty output means that this revision lacks the benchmark."""
    output = log_text(log)
    read = read_metrics(benchmark.metrics, output, log=str(log), methods=methods)
    if (
        isinstance(read, Failure)
        and isinstance(benchmark, SuiteBenchmark)
        and not has_items(benchmark.metrics, output)
    ):
        message = f"the suite {benchmark.suite} of this revision has no such benchmark"
        return Failure(stage="absent", message=message, log=str(log))
    return read


def _outcome(
    planned: PlannedInvocation,
    ran: Ran,
    log: Path,
    result: Failure | Mapping[str, float],
    *,
    started: str,
    seconds: float,
    methods: Mapping[str, str],
    noise: tuple[str, ...] = (),
) -> Outcome:
    """Return the outcome of an invocation: its values with their flags, or its failure. `seconds` is its whole cost."""
    if isinstance(result, Failure):
        return FailedInvocation(
            key=planned.key, started=started, seconds=seconds, failure=result, draw=planned.draw
        )
    _drop_empty(log)
    return Measurement(
        key=planned.key,
        started=started,
        seconds=seconds,
        values=result,
        methods=methods,
        flags=(*_flags(ran), *noise),
        log=str(log) if log.exists() else "",
        draw=planned.draw,
    )


def _failed_fixture(
    planned: PlannedInvocation, failed: FixtureFailed, *, started: str, seconds: float
) -> FailedInvocation:
    """Return the outcome of an invocation whose fixture failed."""
    failure = Failure(stage="fixture", message=str(failed), log=failed.log)
    return FailedInvocation(
        key=planned.key, started=started, seconds=seconds, failure=failure, draw=planned.draw
    )


def invocation_seed(study: Study, phase: Phase, ordinal: int) -> int:
    """Return the seed of all subjects' invocations at an ordinal, if none was drawn."""
    return seed_of("invocation", study.measure.seed, phase, ordinal)


def _words(text: str, benchmark: Benchmark, values: Mapping[str, str]) -> tuple[str, ...]:
    if benchmark.shell:
        return ("/bin/sh", "-c", fill(text, values, shlex.quote))
    return tuple(fill(word, values) for word in split_command(text))


def _flags(ran: Ran) -> tuple[str, ...]:
    """Return flags that limit what the values mean."""
    flags = []
    if ran.stdout_truncated or ran.stderr_truncated:
        flags.append("output-cut")
    if ran.orphans.killed:
        flags.append("orphans-killed")
    return tuple(flags)


def _drop_empty(log: Path) -> None:
    for file in (log, log.with_suffix(".err")):
        if file.exists() and file.stat().st_size == 0:
            file.unlink()


@contextmanager
def open_invoker(
    study: Study,
    builder: Builder,
    starter: Launcher,
    *,
    isolation: Sandboxes | None,
    root: Path,
    logs: Path,
    on_noise: Callable[[Noise], None] = lambda _: None,
) -> Iterator[Invoker]:
    """Open the invoker of a study's benchmarks, with directories below `root`; end its processes on exit."""
    measure = study.measure
    links = root / "paths"
    paths = BuildPaths(links) if measure.vary_path else None
    for each in (FIXTURES, "counts"):
        remove_tree(root / each)  # left over by a killed perftrail
    runners = _runners(root) if study.suites else None
    shown = [links, *([runners] if runners else [])]
    with (
        _cleared_at_the_end(paths),
        _resident_processes(root, runners, isolation) as resident,
        _measuring(root, shown, starter, isolation) as started,
        _open_fixtures(study, builder, started, isolation=isolation, root=root, logs=logs) as fixtures,
        Watch(
            own_processes=lambda: _own_processes(starter, isolation), own_cpu=fixtures.cpu_seconds
        ) as watch,
    ):
        yield Invoker(
            study,
            starter=started,
            builder=builder,
            observer=NoiseObserver(watch, measure.quiet, threshold=measure.quiet_threshold, on_wait=on_noise),
            scratch=root / "scratch",
            logs=logs,
            fixtures=fixtures,
            paths=paths,
            resident=resident,
        )


FIXTURES = "fixtures"
"""Directory of the data of fixtures, below the directory of an invoker."""


@contextmanager
def _open_fixtures(
    study: Study, builder: Builder, started: Starter, *, isolation: Sandboxes | None, root: Path, logs: Path
) -> Iterator[Fixtures]:
    """Yield the fixtures of a study's benchmarks; clean them up on exit."""
    client = started if isinstance(started, SandboxedStarter) else None

    def open_starter(directory: str) -> AbstractContextManager[BackgroundStarter]:
        if isolation is None:
            return Launcher()
        return isolation.sandboxed("run", [directory], network_from=client)

    def network() -> int:
        """Return the number of the command's sandbox: another one has another network."""
        return 0 if client is None else client.start().pid

    fixtures = Fixtures(
        study,
        builder=builder,
        starter=started,
        open_starter=open_starter,
        directory=root / FIXTURES,
        logs=logs,
        environment=declared_environment(),
        network=network,
    )
    try:
        yield fixtures
    except BaseException:
        with suppress(FixtureFailed):  # the first error is reported
            fixtures.close()
        raise
    fixtures.close()


def _runners(root: Path) -> Path:
    """Copy the programs that run suites to the results, where sandboxes show them."""
    directory = root / "runners"
    directory.mkdir(parents=True, exist_ok=True)
    for each in resources.files("perftrail.suites").joinpath("runners").iterdir():
        if each.is_file():
            (directory / each.name).write_bytes(each.read_bytes())
    return directory


@contextmanager
def _resident_processes(
    root: Path, runners: Path | None, isolation: Sandboxes | None
) -> Iterator[ResidentProcesses | None]:
    """Yield the resident processes of suites, none yet, and end them on exit; `None` for a study without suites."""
    if runners is None:
        yield None
        return

    def open_starter(place: Path) -> AbstractContextManager[Starter]:
        if isolation is None:
            return Launcher()
        return isolation.sandboxed("run", [str(place)], shown=[str(runners)])

    resident = ResidentProcesses(root / "resident", open_starter, runners=runners)
    try:
        yield resident
    finally:
        resident.close()


@contextmanager
def _cleared_at_the_end(paths: BuildPaths | None) -> Iterator[None]:
    """Remove links also if a signal interrupted their removal after an invocation."""
    try:
        yield
    finally:
        if paths is not None:
            paths.clear()


def _own_processes(starter: Launcher, isolation: Sandboxes | None) -> tuple[int, ...]:
    return (starter.start().server_pid, *(() if isolation is None else isolation.servers()))


def _measuring(
    root: Path, shown: Sequence[Path], starter: Launcher, isolation: Sandboxes | None
) -> AbstractContextManager[Starter]:
    """Yield the starter of measured processes, in one sandbox if the study uses one; `shown` is readable there."""
    if isolation is None:
        return nullcontext(starter)
    own = [root / "scratch", root / "counts", root / FIXTURES]
    for directory in (*own, *shown):
        directory.mkdir(exist_ok=True)
    return isolation.sandboxed(
        "run", [str(directory) for directory in own], shown=[str(directory) for directory in shown]
    )
