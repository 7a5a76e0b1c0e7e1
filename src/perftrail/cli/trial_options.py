"""The options of `measure`, made into a trial: what makes no sense is told before anything runs."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.errors import UsageError
from perftrail.measure.entries import SHELL, Asked, enter, scan, values_of
from perftrail.model.quantity import parse_duration, parse_size
from perftrail.model.study import Sandbox
from perftrail.model.trial import (
    BUDGET_SECONDS,
    LEAST_RUNS,
    MOST_RUNS,
    PRECISION,
    SMALLEST,
    Pace,
    Surroundings,
    Trial,
)
from perftrail.model.wording import quoted
from perftrail.present import trial_hyperfine, trial_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.stats.trial import Findings

    Export = Callable[[Findings], str]

NO_SHELL = "none"
DEFAULT_SHELL = "default"
MOST_ASKED = 100_000
MOST_PERCENT = 50.0
NEVER_SECONDS = 10.0 * 365 * 86400
"""A budget that nobody reaches: a number of runs was asked for, and takes what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line gave, each as click read it."""

    commands: tuple[str, ...]
    names: tuple[str, ...]
    warmup: int | None
    runs: int | None
    min_runs: int | None
    max_runs: int | None
    precision: float | None
    smallest: float | None
    budget: str | None
    reference: str | None
    reference_name: str | None
    lists: tuple[tuple[str, str], ...]
    scans: tuple[tuple[str, str, str], ...]
    steps: tuple[str, ...]
    setup: tuple[str, ...]
    prepare: tuple[str, ...]
    conclude: tuple[str, ...]
    cleanup: tuple[str, ...]
    tolerant: bool
    shell: str | None
    no_shell: bool
    stdin: str | None
    output: str | None
    show_output: bool
    timeout: str | None
    memory_limit: str | None
    cpus: str | None
    seed: int
    sandbox: bool
    readable: tuple[str, ...]
    export_json: str | None
    export_csv: str | None
    export_markdown: str | None


def trial_of(options: Options, *, words: tuple[str, ...]) -> Trial:
    """Make the trial that was asked for; raises `UsageError`."""
    entered = enter(
        Asked(
            commands=options.commands,
            words=words,
            reference=options.reference,
            reference_name=options.reference_name,
            names=options.names,
            parameters=_parameters(options),
            shell=_shell(options),
            setup=options.setup,
            prepare=options.prepare,
            conclude=options.conclude,
            cleanup=options.cleanup,
        )
    )
    return Trial(
        entries=entered.entries,
        groups=entered.groups,
        pace=_pace(options),
        surroundings=_surroundings(options),
        shell=entered.shell,
        seed=options.seed,
    )


def exports_of(options: Options) -> Mapping[str, Export]:
    """What to write into which file; raises `UsageError` for one that cannot be written, before all runs."""
    wanted: tuple[tuple[str | None, Export], ...] = (
        (options.export_json, trial_hyperfine.to_json),
        (options.export_csv, trial_hyperfine.to_csv),
        (options.export_markdown, trial_markdown.to_markdown),
    )
    exports: dict[str, Export] = {}
    for file, export in wanted:
        if file is None:
            continue
        if file in exports:
            raise UsageError(f"{file}: two exports go into one file; name another")
        if file != "-" and (Path(file).is_dir() or not Path(file).absolute().parent.is_dir()):
            raise UsageError(f"{file}: cannot be written: it is a directory, or lies in none that exists")
        exports[file] = export
    return exports


def write_exports(exports: Mapping[str, Export], found: Findings) -> None:
    """Write every export; raises `UsageError` for a file that may not be written."""
    for file, export in exports.items():
        if file == "-":
            click.echo(export(found), nl=False)
            continue
        try:
            Path(file).write_text(export(found), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _parameters(options: Options) -> dict[str, tuple[str, ...]]:
    if options.steps and len(options.steps) != len(options.scans):
        raise UsageError(f"-D: {len(options.steps)} steps for {len(options.scans)} -P; give one for each")
    steps = options.steps or (None,) * len(options.scans)
    found = [(name, values_of(text)) for name, text in options.lists]
    found += [
        (name, scan(name, first, last, step=step))
        for (name, first, last), step in zip(options.scans, steps, strict=True)
    ]
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"parameter {quoted(name)} is given twice")
    return dict(found)


def _shell(options: Options) -> tuple[str, ...]:
    if options.shell is None or options.no_shell or options.shell == NO_SHELL:
        return ()
    if options.shell == DEFAULT_SHELL:
        return (SHELL,)
    try:
        words = tuple(shlex.split(options.shell))
    except ValueError as error:
        raise UsageError(f"--shell {quoted(options.shell)}: {str(error).lower()}") from error
    if not words:
        raise UsageError("--shell: names no shell; --shell alone takes /bin/sh")
    return words


def _check_numbers(options: Options) -> None:
    """Refuse numbers that no pace can have."""
    counts = (("--runs", options.runs), ("--min-runs", options.min_runs), ("--max-runs", options.max_runs))
    for option, count in (*counts, ("--warmup", None if options.warmup is None else options.warmup + 1)):
        if count is not None and not 1 <= count <= MOST_ASKED:
            least = 0 if option == "--warmup" else 1
            raise UsageError(f"{option}: must be a number from {least} to {MOST_ASKED}")
    for option, percent in (("--precision", options.precision), ("--smallest", options.smallest)):
        if percent is not None and not 0.0 < percent <= MOST_PERCENT:
            raise UsageError(f"{option} {percent:g}: must be percent, above 0 and at most {MOST_PERCENT:g}")


def _pace(options: Options) -> Pace:
    _check_numbers(options)
    least, most = options.min_runs or LEAST_RUNS, options.max_runs or MOST_RUNS
    if options.runs is not None:
        if options.min_runs is not None or options.max_runs is not None:
            raise UsageError("--runs says how many exactly; leave out --min-runs and --max-runs")
        least = most = options.runs
    elif options.max_runs is None:
        most = max(least, most)
    elif options.min_runs is None:
        least = min(least, most)
    elif least > most:
        raise UsageError(f"--min-runs {least} is more than --max-runs {most}")
    budget = BUDGET_SECONDS if options.runs is None else NEVER_SECONDS
    if options.budget is not None:
        budget = _duration("--budget", options.budget)
    return Pace(
        least=least,
        most=most,
        sure=least if options.min_runs and options.budget is None else 1,
        budget_seconds=budget,
        precision=PRECISION if options.precision is None else options.precision / 100.0,
        smallest=SMALLEST if options.smallest is None else options.smallest / 100.0,
        warmups=options.warmup,
    )


def _surroundings(options: Options) -> Surroundings:
    return Surroundings(
        environment=dict(os.environ),
        directory=str(Path.cwd()),
        stdin=_input(options.stdin),
        output=_output("inherit" if options.show_output else options.output),
        timeout_seconds=None if options.timeout is None else _duration("--timeout", options.timeout),
        memory_limit_bytes=_size(options.memory_limit),
        cpus=_cpus(options.cpus),
        tolerant=options.tolerant,
        sandbox=_sandbox(options),
    )


def _sandbox(options: Options) -> Sandbox | None:
    if options.readable and not options.sandbox:
        raise UsageError(
            "--readable: without --sandbox everything can be read; leave it out, or add --sandbox"
        )
    for path in options.readable:
        if not path.startswith(("/", "~/")) or not Path(path).expanduser().exists():
            raise UsageError(f"--readable {quoted(path)}: must be /PATH or ~/PATH of what is there")
    return Sandbox(readable=options.readable) if options.sandbox else None


def _input(named: str | None) -> str | None:
    if named in (None, "null"):
        return None
    assert named is not None
    if not Path(named).is_file():
        raise UsageError(f"--input {quoted(named)}: no such file; null stands for no input")
    return named


def _output(named: str | None) -> str | None:
    if named in (None, "null"):
        return None
    if named == "pipe":
        raise UsageError(
            "--output pipe: whoever empties a pipe competes with the program; a file does what it is for, as in"
            " --output /tmp/out"
        )
    if named != "inherit":
        return named
    # Ours, not the launcher's; an ordinary file would be emptied by each run, so it must be named as one.
    if stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode):
        raise UsageError("--output inherit: stderr is a file; name it instead, as in --output FILE")
    return f"/proc/{os.getpid()}/fd/{sys.stderr.fileno()}"


def _duration(option: str, text: str) -> float:
    """Read a duration; a bare number is seconds, as in other tools."""
    try:
        seconds = float(text) if text.replace(".", "", 1).isdecimal() else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option} {quoted(text)}: {error}") from error
    if not 0.0 < seconds < NEVER_SECONDS:
        raise UsageError(f"{option} {quoted(text)}: must be above 0 and below ten years")
    return seconds


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        size = int(text) if text.isdecimal() else parse_size(text)
    except ValueError as error:
        raise UsageError(f"--memory-limit {quoted(text)}: {error}") from error
    if size < 1 << 20:
        raise UsageError(f"--memory-limit {quoted(text)}: no program starts in less than 1 MiB")
    return size


def _cpus(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "none":
        return None
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"--cpus {quoted(text)}: write numbers and ranges, as in 0,2-3")
        numbers += range(int(first), int(last or first) + 1)
    allowed = os.sched_getaffinity(0)
    if not numbers or not allowed.issuperset(numbers):
        raise UsageError(f"--cpus {quoted(text)}: there are {', '.join(map(str, sorted(allowed)))}")
    return tuple(dict.fromkeys(numbers))
