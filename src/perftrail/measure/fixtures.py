"""Run the fixtures of benchmarks around their invocations: services with their data, lines, caches and placement.

A fixture belongs to one build, one benchmark, and the values of the parameters on which its data depends. perftrail
keeps it over the invocations of a session, so that builds which alternate do not load their data again. The data of a
fixture whose services failed is discarded.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perftrail.builds.build_log import Log
from perftrail.builds.steps import ShellSteps
from perftrail.file_tree import remove_tree
from perftrail.measure.services import (
    END_SECONDS,
    FixtureFailed,
    RunningService,
    ServiceStart,
    free_port,
    stop_all,
)
from perftrail.model.build import Failure
from perftrail.model.fixture import fixture_texts, has_fixture, services_of, setup_parameters, uses_port
from perftrail.model.notation import parse_numbers
from perftrail.model.placeholders import DATA, PORT, fill, names, split_command
from perftrail.model.plan import run_environment, with_parts
from perftrail.model.process import Command
from perftrail.model.wording import listed
from perftrail.process.tree_usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from perftrail.measure.services import BackgroundStarter
    from perftrail.measure.subjects import Ready
    from perftrail.model.benchmark import Benchmark, Point
    from perftrail.model.plan import Cell
    from perftrail.model.process import Ran
    from perftrail.model.service import Placement, Service
    from perftrail.model.study import Study
    from perftrail.ports import Builder, Starter

MOST_RUNNING = 4
"""Number of fixtures whose services run at the same time: others would use memory that a measurement needs."""

MOST_KEPT = 32
"""Number of fixtures whose data is kept."""

OUTPUT_CAP_BYTES = 16 << 20
"""How many bytes of a service's output are kept."""

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
NODES = Path("/sys/devices/system/node")


def placed(command: Command, placement: Placement) -> Command:
    """Return a command with its placement. Raises `FixtureFailed` for CPUs and NUMA nodes that this machine lacks."""
    available = os.sched_getaffinity(0)
    cpus = placement.cpus
    if placement.numa is not None:
        of_nodes = [cpu for node in placement.numa for cpu in _cpus_of_node(node)]
        cpus = cpus if cpus is not None else tuple(cpu for cpu in of_nodes if cpu in available)
    if cpus is not None and (not cpus or not available.issuperset(cpus)):
        raise FixtureFailed(
            f"cpus: the available CPUs are {listed(map(str, sorted(available)), 'and')}, "
            f"not {listed(map(str, sorted(set(cpus) - available)), 'and') or 'those of the NUMA nodes'}"
        )
    return replace(command, cpus=cpus, nice=placement.nice, numa=placement.numa)


def _cpus_of_node(node: int) -> tuple[int, ...]:
    try:
        text = (NODES / f"node{node}" / "cpulist").read_text().strip()
    except OSError as error:
        known = sorted(path.name.removeprefix("node") for path in NODES.glob("node[0-9]*"))
        nodes = f"the NUMA nodes {listed(known, 'and')}" if known else "no NUMA nodes"
        raise FixtureFailed(f"numa: this machine has {nodes}, not {node}") from error
    return parse_numbers(text) if text else ()


def drop_caches() -> None:
    """Write changed files to disk, and drop the kernel's caches. Raises `FixtureFailed` without the right to."""
    os.sync()
    try:
        DROP_CACHES.write_text("3\n")
    except OSError as error:
        raise FixtureFailed(
            f"drop_caches: {DROP_CACHES} cannot be written: {error.strerror}; run perftrail as root where the kernel "
            "allows it, or remove drop_caches"
        ) from error


def machine_warnings(study: Study, benchmark: Benchmark) -> Mapping[str, str]:
    """Return for keys of a benchmark why this machine cannot do what they ask for."""
    found: dict[str, str] = {}
    if benchmark.drop_caches and not os.access(DROP_CACHES, os.W_OK):
        found["drop_caches"] = f"{DROP_CACHES} cannot be written, so no invocation can succeed here"
    nothing = Command(arguments=("true",), environment={}, directory="/")
    for placement in (
        benchmark.placement,
        *(each.placement for each in services_of(study, benchmark).values()),
    ):
        try:
            placed(nothing, placement)
        except FixtureFailed as failed:
            key, _, reason = str(failed).partition(": ")
            found[key] = reason
    return found


@dataclass(slots=True, kw_only=True)
class _Kept:
    """A fixture that is kept: its directory, its running services, and whether its setup was done.

    `values` are the placeholders of its texts, without ports.
    """

    cell: Cell
    directory: Path
    values: Mapping[str, str]
    services: dict[str, RunningService] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    is_set_up: bool = False
    is_begun: bool = False
    network: int = 0

    def data(self, service: str = "") -> Path:
        """Return the directory of a service's data; without a service, that of the benchmark."""
        return self.directory / (service or DATA)


class Fixtures:
    """The fixtures of a study's benchmarks on this machine. Call `close` at the end of the session.

    `starter` runs shell lines where benchmarks run; `open_starter` opens a starter for one service, which may write to
    a directory. `directory` contains the data, `logs` the outputs. `network` returns a number of the network in which
    commands run: services of another one cannot be reached.
    """

    def __init__(
        self,
        study: Study,
        *,
        builder: Builder,
        starter: Starter,
        open_starter: Callable[[str], AbstractContextManager[BackgroundStarter]],
        directory: Path,
        logs: Path,
        environment: Mapping[str, str],
        network: Callable[[], int] = int,
    ) -> None:
        self._study = study
        self._builder = builder
        self._starter = _CountingStarter(starter)
        self._open_starter = open_starter
        self._directory = directory
        self._logs = logs / "services"
        self._environment = environment
        self._network = network
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._ended_cpu_seconds = 0.0
        self._number = 0

    def cpu_seconds(self) -> float:
        """Return the CPU time of all lines and services so far, which is not other programs' load."""
        running = [each for kept in self._kept.values() for each in kept.services.values()]
        return (
            self._starter.cpu_seconds
            + self._ended_cpu_seconds
            + sum(each.usage.cpu_seconds() if each.is_running else each.final_cpu_seconds for each in running)
        )

    @contextmanager
    def around(
        self, ready: Ready, log: Path, *, drawn: Mapping[str, str] | None = None
    ) -> Iterator[InvocationFixture]:
        """Yield the fixture of one invocation, with its services up and its setup done.

        `log` is the invocation's log: outputs of failed lines and services are copied next to it. `drawn` are
        variables for services that start again for each invocation. Raises `FixtureFailed`.
        """
        benchmark = self._study.benchmarks[ready.cell.benchmark]
        if not has_fixture(benchmark):
            yield InvocationFixture(self, benchmark, None, log)
            return
        kept = self._kept_for(ready, benchmark)
        try:
            self._start_services(kept, drawn or {})
            if not kept.is_set_up:
                kept.is_begun = True
                self.run_lines(kept, "setup", log, seconds=self._study.build.timeout_seconds)
                kept.is_set_up = True
            self._limit_running(kept)
            yield InvocationFixture(self, benchmark, kept, log, point=ready.cell.point)
        except FixtureFailed as failed:
            own = _copied_next_to(log, failed.log) if failed.log else ""
            if not kept.is_set_up or not all(each.is_running for each in kept.services.values()):
                self._abandon(kept)
            raise FixtureFailed(str(failed), log=own) from failed
        finally:
            services = services_of(self._study, benchmark)
            self._stop(kept, [name for name, each in services.items() if each.restart == "each"])

    def run_lines(
        self,
        kept: _Kept,
        key: str,
        log: Path,
        *,
        seconds: float,
        directory: str = "",
        point: Point | None = None,
    ) -> None:
        """Run the lines of a key of the benchmark. Raises `FixtureFailed` with the excerpt of their output.

        `point` is that of the invocation, if the lines belong to one.
        """
        lines: Sequence[str] = getattr(self._study.benchmarks[kept.cell.benchmark], key)
        if lines:
            values = self.values(kept, point=point)
            environment = self._filled(run_environment(self._study, kept.cell), values)
            steps = self._steps(kept, lines, values, environment, seconds=seconds, directory=directory)
            self._run(steps, key, log.with_suffix(f".{key}.out"))

    def _run(self, steps: ShellSteps, named: str, log: Path) -> None:
        """Run shell lines; keep their output only if one fails."""
        written = Log(path=log)
        written.begin()
        if failure := steps.run(self._starter, written):
            raise FixtureFailed(f"{named}: {failure}", log=str(log))
        log.unlink(missing_ok=True)

    def _steps(
        self,
        kept: _Kept,
        lines: Sequence[str],
        values: Mapping[str, str],
        environment: Mapping[str, str],
        *,
        seconds: float,
        directory: str = "",
    ) -> ShellSteps:
        return ShellSteps(
            lines=[fill(with_parts(self._study, kept.cell, line), values, shlex.quote) for line in lines],
            directory=Path(directory or kept.directory),
            environment=environment,
            timeout_seconds=seconds,
        )

    def _filled(self, variables: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of lines and services: perftrail's own variables and those of the study."""
        return {**self._environment, **{name: fill(text, values) for name, text in variables.items()}}

    def values(self, kept: _Kept, service: str = "", *, point: Point | None = None) -> dict[str, str]:
        """Return the placeholders of a benchmark's texts, or of a service's: its own data and port have short names."""
        benchmark = self._study.benchmarks[kept.cell.benchmark]
        found = {**kept.values, **({} if point is None else _parameters(point))}
        for name in benchmark.services:
            found[f"{DATA}.{name}"] = str(kept.data(name))
            if name in kept.ports:
                found[f"{PORT}.{name}"] = str(kept.ports[name])
        own = service or (benchmark.services[0] if len(benchmark.services) == 1 else "")
        if own or not benchmark.services:
            found[DATA] = str(kept.data(own))
        if own in kept.ports:
            found[PORT] = str(kept.ports[own])
        return found

    def running(self, kept: _Kept) -> list[RunningService]:
        """Return the services of a fixture that were started."""
        return list(kept.services.values())

    def close(self) -> None:
        """Run every cleanup, stop every service, and remove the data. Raises `FixtureFailed` if a cleanup failed."""
        failures = []
        with ExitStack() as stack:
            for kept in self._kept.values():
                stack.callback(self._discard, kept)
            for kept in list(self._kept.values()):
                try:
                    self._finish(kept)
                except FixtureFailed as failed:
                    failures.append(f"{kept.cell.benchmark}: {failed}")
        if failures:
            raise FixtureFailed("\n".join(dict.fromkeys(failures)))

    def _kept_for(self, ready: Ready, benchmark: Benchmark) -> _Kept:
        """Return the fixture of a cell, as the most recently used one; create it if necessary."""
        key = self._key(ready, benchmark)
        kept = self._kept.pop(key, None)
        if kept is not None and not all(each.is_running for each in kept.services.values()):
            self._kept[key] = kept
            self._abandon(kept)  # a service ended between two invocations: its data is not reliable
            kept = None
        if kept is None:
            while len(self._kept) >= MOST_KEPT:
                self._finish(next(iter(self._kept.values())))
            kept = self._created(ready, benchmark)
        self._kept[key] = kept
        return kept

    def _key(self, ready: Ready, benchmark: Benchmark) -> tuple[object, ...]:
        cell, built = ready.cell, ready.prepared.built
        point = cell.point.as_dict()
        mentioned = {name for text in fixture_texts(self._study, benchmark) for name in names(text)}
        return (
            cell.benchmark,
            cell.subject.variant,
            built.artefact,
            built.directory,
            ready.prepared.artefact,
            ready.layout,
            tuple(point[name] for name in setup_parameters(self._study, benchmark)),
            cell.subject.revision.id if "revision" in mentioned else "",
        )

    def _created(self, ready: Ready, benchmark: Benchmark) -> _Kept:
        self._number += 1
        directory = self._directory / str(self._number)
        remove_tree(directory)
        directory.mkdir(parents=True)
        values = {
            **self._builder.command_placeholders(ready.prepared),
            "revision": ready.cell.subject.revision.id,
            **_parameters(ready.cell.point),
        }
        kept = _Kept(cell=ready.cell, directory=directory, values=values)
        for name in benchmark.services or ("",):
            kept.data(name).mkdir()
        return kept

    def _start_services(self, kept: _Kept, drawn: Mapping[str, str]) -> None:
        """Start the services that do not run, in the order of the benchmark, each when those before it are ready."""
        benchmark = self._study.benchmarks[kept.cell.benchmark]
        services = services_of(self._study, benchmark)
        if kept.network != self._network():
            self._stop(kept, list(kept.services))
            kept.network = self._network()
        missing = {name: service for name, service in services.items() if name not in kept.services}
        for name, service in missing.items():
            if uses_port(service):
                kept.ports[name] = free_port()
        for name, service in missing.items():
            self._start_service(kept, name, service, drawn if service.restart == "each" else {})

    def _start_service(self, kept: _Kept, name: str, service: Service, drawn: Mapping[str, str]) -> None:
        values = self.values(kept, name)
        environment = self._filled(service.env, values)
        log = self._logs / f"{kept.cell.benchmark}-{name}-{kept.directory.name}.out"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        if name not in kept.created and service.setup:
            seconds = self._study.build.timeout_seconds
            steps = self._steps(kept, service.setup, values, environment, seconds=seconds)
            self._run(steps, f"service {name}: setup", log.with_suffix(".setup.out"))
        kept.created.add(name)
        text = with_parts(self._study, kept.cell, service.command)
        command = Command(
            arguments=("/bin/sh", "-c", fill(text, values, shlex.quote))
            if service.shell
            else tuple(fill(word, values) for word in split_command(text)),
            environment={**drawn, **environment},
            directory=fill(service.directory, values),
            stdout=str(log),
            stderr=str(log),
            output_cap_bytes=OUTPUT_CAP_BYTES,
        )
        readiness = service.readiness
        start = ServiceStart(
            name=name,
            command=placed(command, service.placement),
            readiness=replace(readiness, port=fill(str(readiness.port), values)),
            ready_within_seconds=service.timeout_seconds,
            stop=service.stop,
        )

        def run_line(line: str) -> str:
            seconds = self._study.benchmarks[kept.cell.benchmark].timeout_seconds
            steps = self._steps(kept, (line,), values, environment, seconds=seconds)
            own = log.with_suffix(".line.out")
            try:
                self._run(steps, "command", own)
            except FixtureFailed as failed:
                own.unlink(missing_ok=True)
                return str(failed)
            return ""

        kept.services[name] = RunningService(start, self._open_starter(str(kept.data(name))), run_line)
        kept.services[name].wait_until_ready()

    def _limit_running(self, kept: _Kept) -> None:
        """Stop the services of the least recently used fixtures; their data is kept."""
        others = [each for each in self._kept.values() if each is not kept and each.services]
        for each in others[: max(0, len(others) + 1 - MOST_RUNNING)]:
            self._stop(each, list(each.services))

    def _stop(self, kept: _Kept, names: Sequence[str]) -> None:
        stopped = [kept.services.pop(name) for name in names if name in kept.services]
        try:
            stop_all(stopped)
        finally:
            for each in stopped:
                self._ended_cpu_seconds += each.final_cpu_seconds
                each.log.unlink(missing_ok=True)

    def _discard(self, kept: _Kept) -> None:
        """Stop a fixture's services and remove its data."""
        for key in [key for key, each in self._kept.items() if each is kept]:
            del self._kept[key]
        try:
            self._stop(kept, list(kept.services))
        finally:
            remove_tree(kept.directory)

    def _abandon(self, kept: _Kept) -> None:
        """Clean up after a failure, which the caller reports: its services may not run any more."""
        try:
            with suppress(FixtureFailed):
                self._clean_up(kept)
        finally:
            self._discard(kept)

    def _clean_up(self, kept: _Kept) -> None:
        benchmark = self._study.benchmarks[kept.cell.benchmark]
        log = self._logs / f"{kept.cell.benchmark}-{kept.directory.name}.out"
        if kept.is_begun and benchmark.cleanup:
            kept.is_begun = False
            log.parent.mkdir(parents=True, exist_ok=True)
            self.run_lines(kept, "cleanup", log, seconds=benchmark.timeout_seconds)

    def _finish(self, kept: _Kept) -> None:
        """Run a fixture's cleanup with its services up, stop them, and remove its data."""
        try:
            if kept.is_begun and self._study.benchmarks[kept.cell.benchmark].cleanup:
                self._start_services(kept, {})
                self._clean_up(kept)
        finally:
            self._discard(kept)


class InvocationFixture:
    """The fixture of one invocation, between its start and its end; without one, it does nothing.

    `placeholders` are added to those of the command.
    """

    def __init__(
        self,
        fixtures: Fixtures,
        benchmark: Benchmark,
        kept: _Kept | None,
        log: Path,
        *,
        point: Point | None = None,
    ) -> None:
        self._fixtures = fixtures
        self._benchmark = benchmark
        self._kept = kept
        self._log = log
        self._point = point
        self.placeholders = {} if kept is None else _added(fixtures.values(kept))

    def prepare(self, command: Command) -> None:
        """Run the prepare lines in the command's directory, and drop caches. Raises `FixtureFailed`."""
        if self._kept is not None:
            self._lines(self._kept, "prepare", command)
        if self._benchmark.drop_caches:
            drop_caches()

    @contextmanager
    def usage(self) -> Iterator[Usage | None]:
        """Yield the usage of the services during the block, complete at its end; `None` if they are not measured."""
        if self._kept is None or self._benchmark.measure == "command":
            yield None
            return
        total = Usage()
        with ExitStack() as stack:
            each_usage = [
                stack.enter_context(each.usage.period()) for each in self._fixtures.running(self._kept)
            ]
            yield total
        for each in each_usage:
            total.cpu_seconds += each.cpu_seconds
            total.peak_bytes += each.peak_bytes
            total.cpu_method, total.peak_method = each.cpu_method, each.peak_method

    def conclude(self, command: Command, result: Failure | Mapping[str, float] | None) -> None:
        """Check that the services still run, and run the conclude lines. Raises `FixtureFailed`.

        A service that crashes may end after a command that failed because of it: after a failed `result`, this waits.
        """
        if self._kept is not None:
            until = time.monotonic() + END_SECONDS if isinstance(result, Failure) else 0.0
            for service in self._fixtures.running(self._kept):
                service.check(until=until)
            self._lines(self._kept, "conclude", command)

    def _lines(self, kept: _Kept, key: str, command: Command) -> None:
        seconds = self._benchmark.timeout_seconds
        self._fixtures.run_lines(
            kept, key, self._log, seconds=seconds, directory=command.directory, point=self._point
        )


def _parameters(point: Point) -> dict[str, str]:
    return {name: str(value) for name, value in point.as_dict().items()}


def _added(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name.partition(".")[0] in (DATA, PORT)}


def _copied_next_to(log: Path, output: str) -> str:
    """Copy an output to the logs of an invocation; return the path of the copy, or the output's if there is none."""
    source = Path(output)
    if source.parent == log.parent:
        return output
    copy = log.with_suffix(f".{source.stem}.out")
    with suppress(OSError):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        return str(copy)
    return output


class _CountingStarter:
    """Implements `ports.Starter` and adds up the CPU time of its processes."""

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self.cpu_seconds = 0.0

    def run(self, command: Command) -> Ran:
        """Run a process, and count its CPU time."""
        ran = self._starter.run(command)
        self.cpu_seconds += ran.cpu_seconds
        return ran
