"""Rules for fixtures: the lines around a benchmark's invocations, `[service]`, and where processes run."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from perftrail.model.fixture import (
    benchmark_lines,
    fixture_placeholders,
    services_of,
    uses_port,
)
from perftrail.model.placeholders import DATA, OUT, PORT, names, split_command
from perftrail.model.service import stop_signal
from perftrail.model.wording import listed, quoted, suggestion
from perftrail.studyfile.rules.builds import always_known, every_part
from perftrail.studyfile.rules.texts import LAST_PORT, check_environment, check_placeholders

if TYPE_CHECKING:
    from perftrail.model.benchmark import Benchmark
    from perftrail.model.service import Service
    from perftrail.model.study import Study
    from perftrail.studyfile.key_lines import KeyPath
    from perftrail.studyfile.problems import Problems


def check_fixtures(study: Study, problems: Problems) -> None:
    """Report services and lines that cannot run."""
    for name, benchmark in study.benchmarks.items():
        _check_benchmark(study, benchmark, ("benchmark", name), problems)
    for name, service in study.services.items():
        users = [each for each in study.benchmarks.values() if name in each.services]
        _check_service(study, name, service, users, problems)


def _check_benchmark(study: Study, benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    if not problems.readable(path, depth=1):
        return
    _check_services(study, benchmark, path, problems)
    if benchmark.measure == "server":
        if not benchmark.services:
            problems.add((*path, "measure"), '"server" needs services, whose processes it measures')
        for counter in benchmark.counters:
            problems.add(
                (*path, "counters"), f'{quoted(counter)} is counted in the command; remove measure = "server"'
            )
    own = set(fixture_placeholders(benchmark))
    for name in sorted(own.intersection(benchmark.parameters)):
        problems.add(
            (*path, "parameters", name), f"{quoted(name)} is in use for a service; choose another name"
        )
    known = (*benchmark.parameters, *always_known(study), OUT, *every_part(study), *own)
    lines = {
        "setup": benchmark.setup,
        "prepare": benchmark.prepare,
        "conclude": benchmark.conclude,
        "cleanup": benchmark.cleanup,
    }
    for key, texts in lines.items():
        check_placeholders(texts, (*path, key), problems, known=known, parameters=(*path, "parameters"))
        for index, line in enumerate(texts):
            if not line.strip():
                problems.add((*path, key), "is empty; write a shell line", item=index)
    without_port = [name for name, service in services_of(study, benchmark).items() if not uses_port(service)]
    texts = (benchmark.command, benchmark.stdin or "", *benchmark_lines(benchmark), *benchmark.env.values())
    named = {name for text in texts for name in names(text)}
    for name in without_port:
        if f"{PORT}.{name}" in named or (PORT in named and len(benchmark.services) == 1):
            problems.add(
                (*path, "services"),
                f"{{{PORT}}} is chosen for a service that uses it, but service.{name} does not contain {{{PORT}}}",
            )


def _check_services(study: Study, benchmark: Benchmark, path: KeyPath, problems: Problems) -> None:
    for index, name in enumerate(benchmark.services):
        if name not in study.services:
            remedy = suggestion(name, study.services) or f"; write [service.{name}] with its command"
            problems.add(
                (*path, "services"), f"no service {quoted(name)}{remedy}", about=("service", name), item=index
            )
        elif name in benchmark.services[:index]:
            problems.add((*path, "services"), f"{quoted(name)} occurs twice; remove one of them", item=index)


def _check_service(
    study: Study, name: str, service: Service, users: list[Benchmark], problems: Problems
) -> None:
    path: KeyPath = ("service", name)
    if not problems.readable(path, depth=1):
        return
    shared = [
        each
        for each in (users[0].parameters if users else ())
        if all(each in user.parameters for user in users)
    ]
    others = {f"{kind}.{other}" for user in users for other in user.services for kind in (DATA, PORT)}
    known = (*shared, *always_known(study), OUT, *every_part(study), DATA, PORT, *sorted(others))
    if not service.command.strip():
        problems.add((*path, "command"), "names no program to run")
    elif not service.shell:
        try:
            split_command(service.command)
        except ValueError as error:
            problems.add((*path, "command"), f"{quoted(service.command)} {error}")
    for key, texts in {
        "command": (service.command,),
        "setup": service.setup,
        "stop": (service.stop,),
        "directory": (service.directory,),
    }.items():
        check_placeholders(texts, (*path, key), problems, known=known)
    check_environment(service.env, (*path, "env"), problems, known=known)
    try:
        stop_signal(service.stop)
    except ValueError as error:
        problems.add((*path, "stop"), f"{quoted(service.stop)} {error}")
    _check_readiness(service, (*path, "ready"), problems, known=known)


def _check_readiness(service: Service, path: KeyPath, problems: Problems, *, known: tuple[str, ...]) -> None:
    ready = service.ready
    if len(ready.chosen) > 1:
        problems.add(path, f"has {listed(ready.chosen, 'and')}; write only one of them")
    if not ready.chosen and not uses_port(service):
        problems.add(
            path,
            'missing: how to notice that the service is ready; write ready = { line = "…" }, { port = … } or '
            '{ command = "…" }',
        )
    if ready.line and (wrong := _expression_wrong(ready.line)):
        problems.add((*path, "line"), wrong)
    check_placeholders((ready.command,), (*path, "command"), problems, known=known)
    if ready.port != "":
        check_placeholders((str(ready.port),), (*path, "port"), problems, known=known)
        if not names(str(ready.port)) and not _is_port(str(ready.port)):
            problems.add(
                (*path, "port"),
                f"{quoted(str(ready.port))} is not a port; write 1 to {LAST_PORT}, or {{port}}",
            )


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text[:6]) <= LAST_PORT


def _expression_wrong(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{quoted(pattern)} is not a regular expression: {error}"
    return None
