"""Rules for `[benchmark]`: commands, parameters and exclusions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from perftrail.model.placeholders import LAYOUT, MACHINE, OUT, split_command
from perftrail.model.target import TargetError, known_value
from perftrail.model.wording import listed, nearest, quoted, suggestion
from perftrail.studyfile.rules.inputs import check_inputs
from perftrail.studyfile.rules.texts import check_environment, check_placeholders, check_relink
from perftrail.studyfile.rules.variants import always_known, every_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftrail.model.benchmark import Benchmark, Value
    from perftrail.model.study import Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath

MOST_POINTS = 100_000
RESERVED = (*MACHINE, OUT, LAYOUT, "variant")
_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>&1", "2>", "&>"})


def check_benchmarks(study: Study, complaints: Complaints) -> None:
    """Complain about benchmarks that cannot be run."""
    if not complaints.stands(("benchmark",)):
        complaints.add_unreadable(
            ("benchmark",), "missing; commands to run, with their parameters and metrics"
        )
    elif not study.benchmarks and complaints.clean(("benchmark",)):
        complaints.add(("benchmark",), "there must be at least one; write [benchmark.NAME] with its command")
    for name, benchmark in study.benchmarks.items():
        path = ("benchmark", name)
        _check_parameters(benchmark, path, complaints)
        _check_lines(study, benchmark, path, complaints)
        _check_exclusions(study, benchmark, path, complaints)
        check_inputs(study, benchmark, path, complaints)


def _check_lines(study: Study, benchmark: Benchmark, path: KeyPath, complaints: Complaints) -> None:
    known = (*benchmark.parameters, *always_known(study), OUT)
    in_parts = (*known, *every_part(study))
    parameters = (*path, "parameters")
    words = _words(benchmark, (*path, "command"), complaints)
    check_placeholders(words, (*path, "command"), complaints, known=in_parts, parameters=parameters)
    check_placeholders(benchmark.build, (*path, "build"), complaints, known=in_parts, parameters=parameters)
    check_relink(benchmark.relink, (*path, "relink"), complaints, known=in_parts, parameters=parameters)
    check_environment(benchmark.env, (*path, "env"), complaints, known=known, parameters=parameters)
    if benchmark.stdin is not None:
        stdin = (benchmark.stdin,)
        check_placeholders(stdin, (*path, "stdin"), complaints, known=known, parameters=parameters)
        if not benchmark.stdin.strip():
            complaints.add((*path, "stdin"), "names no file")


def _words(benchmark: Benchmark, path: KeyPath, complaints: Complaints) -> tuple[str, ...]:
    command = benchmark.command
    if not command.strip():
        complaints.add(path, "names no program to run")
    if benchmark.shell or not command.strip():
        return (command,)
    for word in sorted(_SHELL_WORDS.intersection(command.split())):
        complaints.add(
            path, f"{quoted(word)} means something to a shell only; write shell = true, or quote it"
        )
    try:
        return split_command(command)
    except ValueError as error:
        complaints.add(path, f"{quoted(command)} {error}")
        return (command,)


def _check_parameters(benchmark: Benchmark, path: KeyPath, complaints: Complaints) -> None:
    for name, values in benchmark.parameters.items():
        at = (*path, "parameters", name)
        if name in RESERVED:
            complaints.add(at, f"{quoted(name)} stands for something else already; choose another name")
        if not values:
            complaints.add(at, "has no values; write at least one")
        for wrong in _repeated(values):
            complaints.add(at, wrong)
    count = math.prod(len(values) for values in benchmark.parameters.values())
    if count > MOST_POINTS:
        complaints.add((*path, "parameters"), f"span more than {MOST_POINTS} points; use fewer values")


def _repeated(values: tuple[Value, ...]) -> tuple[str, ...]:
    seen: set[Value] = set()
    twice: dict[str, None] = {}
    for value in values:
        if value in seen or str(value) in seen:
            twice[f"{_written(value)} is there twice"] = None
        seen |= {value, str(value)}
    return tuple(twice)


def _written(value: Value) -> str:
    return quoted(value) if isinstance(value, str) else str(value)


def _check_exclusions(study: Study, benchmark: Benchmark, path: KeyPath, complaints: Complaints) -> None:
    for number, rule in enumerate(benchmark.exclude):
        at: KeyPath = (*path, "exclude", number)
        if not rule and complaints.clean(at):
            complaints.add((*path, "exclude"), f"item {number + 1} is empty and would leave out every point")
        for name, value in rule.items():
            _check_exclusion(study, benchmark, path, complaints, at=(*at, name), value=value)
    trusted = complaints.clean((*path, "parameters"), (*path, "exclude"), ("variants",))
    if trusted and not _any_point(study, benchmark):
        complaints.add((*path, "exclude"), "leaves out every point in every variant; nothing is left to run")


def _check_exclusion(
    study: Study,
    benchmark: Benchmark,
    path: KeyPath,
    complaints: Complaints,
    *,
    at: KeyPath,
    value: Value,
) -> None:
    name = str(at[-1])
    if name == "variant":
        if value not in study.variants:
            wrong = f"no variant {_written(value)}{suggestion(str(value), study.variants)}"
            complaints.add(at, wrong, about=("variants", str(value)))
    elif name not in benchmark.parameters:
        known = (*benchmark.parameters, "variant")
        near = nearest(name, known)
        hint = f"did you mean {quoted(near)}?" if near else f"there are {listed(known, 'and')}"
        complaints.add(at, f'no parameter "{name}"; {hint}', about=(*path, "parameters", name))
    else:
        try:
            if known_value(benchmark, name, value) != value:
                wrong = f"{_written(value)} is text in one place and a number in the other"
                complaints.add(at, wrong, about=(*path, "parameters", name))
        except TargetError as error:
            complaints.add(at, str(error), about=(*path, "parameters", name))


def _any_point(study: Study, benchmark: Benchmark) -> bool:
    rules: tuple[Mapping[str, Value], ...] = benchmark.exclude
    return not rules or any(benchmark.points(variant) for variant in study.variants)
