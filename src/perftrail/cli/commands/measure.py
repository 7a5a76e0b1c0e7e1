"""`perftrail measure`: measure one or several commands without a study file; nothing is stored.

All options are checked before the first run.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.command_words import WordsCommand, command_words
from perftrail.cli.commands.doctor import print_at_first_run
from perftrail.cli.interrupts import INTERRUPTED
from perftrail.cli.json_output import print_json
from perftrail.cli.options import FRACTION, json_option
from perftrail.errors import UsageError
from perftrail.file_tree import expanded, write_file
from perftrail.measure.trial import SHELL, CommandLine, scan, trial_entries, values_of
from perftrail.model.notation import parse_duration, parse_numbers, parse_size
from perftrail.model.sandbox import Sandbox
from perftrail.model.trial import (
    BUDGET_SECONDS,
    LEAST_RUNS,
    MOST_RUNS,
    PRECISION,
    THRESHOLD,
    RunSettings,
    StoppingRule,
    Trial,
)
from perftrail.model.wording import counted, quoted
from perftrail.present import trial_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.measure.trial import TrialRunner
    from perftrail.stats.trial import TrialResult

    Export = Callable[[TrialResult], str]

KNOWN_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "none", "default")
_SHELL = ("--shell", "-S")


class MeasureCommand(WordsCommand):
    """A command that reads the words after ``--`` as one command, and ``--shell`` with or without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Complete each bare ``--shell`` before ``--``."""
        at = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*_with_shell_values(args[:at]), *args[at:]])


def _with_shell_values(args: list[str]) -> list[str]:
    """Return the arguments with a value for each bare ``--shell``: the next word if it is a shell, else ``default``."""
    completed: list[str] = []
    for arg in args:
        if completed and completed[-1] in _SHELL:
            name = arg.split()[0] if arg.split() else ""
            known = Path(name).name in KNOWN_SHELLS
            completed[-1] = f"--shell={arg if known else 'default'}"
            if known:
                continue
        completed.append(arg)
    if completed and completed[-1] in _SHELL:
        completed[-1] = "--shell=default"
    return completed


@click.command("measure", cls=MeasureCommand)
@click.argument("commands", nargs=-1, metavar="['COMMAND'…]")
@click.option(
    "-n",
    "--command-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name in the results: one -n for all commands, or one for each.",
)
@click.option("-w", "--warmup", type=int, metavar="N", help="Discard the first N runs. [default: detected]")
@click.option("-r", "--runs", type=int, metavar="N", help="Exact number of runs of each command.")
@click.option("-m", "--min-runs", type=int, metavar="N", help="Minimum number of runs. [default: 10]")
@click.option("-M", "--max-runs", type=int, metavar="N", help="Maximum number of runs. [default: 150]")
@click.option(
    "--precision",
    type=FRACTION,
    help="One command: relative half width of the interval at which measuring stops. [default: 1%]",
)
@click.option(
    "--threshold",
    type=FRACTION,
    help="Several commands: smallest difference that counts. [default: 1%]",
)
@click.option("--budget", metavar="DURATION", help="Maximum measuring time of each command. [default: 60s]")
@click.option("--reference", metavar="CMD", help="Compare all commands with this one. [default: the first]")
@click.option("--reference-name", metavar="NAME", help="Name of the reference.")
@click.option(
    "-L",
    "--parameter-list",
    "lists",
    nargs=2,
    multiple=True,
    metavar="NAME A,B,…",
    help="Replace {NAME} by each value. Several lists are combined.",
)
@click.option(
    "-P",
    "--parameter-scan",
    "scans",
    nargs=3,
    multiple=True,
    metavar="NAME MIN MAX",
    help="Replace {NAME} by each number from MIN to MAX.",
)
@click.option(
    "-D", "--parameter-step-size", "steps", multiple=True, metavar="STEP", help="Step of -P. [default: 1]"
)
@click.option("-s", "--setup", multiple=True, metavar="CMD", help="Run before a command's first run.")
@click.option("-p", "--prepare", multiple=True, metavar="CMD", help="Run before each run, not measured.")
@click.option("--conclude", multiple=True, metavar="CMD", help="Run after each run, not measured.")
@click.option("-c", "--cleanup", multiple=True, metavar="CMD", help="Run after a command's last run.")
@click.option("-i", "--ignore-failure", "tolerant", is_flag=True, help="Measure commands even if they fail.")
@click.option(
    "-S",
    "--shell",
    metavar="[SHELL]",
    help="Run commands in this shell, by default /bin/sh, and also measure the shell's own time. [default: no shell]",
)
@click.option("-N", "no_shell", is_flag=True, help="Run commands without a shell (the default).")
@click.option("--input", "stdin", metavar="FILE", help="Standard input: null or a file. [default: null]")
@click.option(
    "--output", metavar="WHERE", help="Standard output: null, inherit (to stderr) or a file. [default: null]"
)
@click.option("--show-output", is_flag=True, help="The same as --output inherit.")
@click.option("--timeout", metavar="DURATION", help="Kill a run and its children after this time.")
@click.option("--memory-limit", metavar="SIZE", help="Kill a run that needs more memory, for example 2GiB.")
@click.option("--cpus", metavar="LIST", help="Bind runs to these CPUs, for example 0 or 0,2-3.")
@click.option(
    "--sandbox",
    is_flag=True,
    help="Run in a sandbox (bubblewrap): no network, no home directory; only $TMPDIR is writable.",
)
@click.option(
    "--readable",
    multiple=True,
    metavar="PATH",
    help="Path below the home directory, /run or /tmp that is readable in the sandbox. May be repeated.",
)
@click.option(
    "--seed", type=int, default=0, metavar="N", help="Seed of the random environment sizes. [default: 0]"
)
@click.option(
    "--export-json", metavar="FILE", help="Also write JSON in hyperfine's format. - is standard output."
)
@click.option("--export-csv", metavar="FILE", help="Also write CSV in hyperfine's format.")
@click.option("--export-markdown", metavar="FILE", help="Also write a Markdown table.")
@json_option
def command(*, as_json: bool, **options: object) -> None:
    """Measure one command, or compare several, without a study file.

    \b
    perftrail measure -- sort words.txt           one command, after --
    perftrail measure './old 5' './new 5'         several commands, each in quotes
    perftrail measure -L n 1,2,4 './run -t {n}'   one command with several values

    perftrail interleaves the runs, detects warm-ups, and stops when the comparison is settled or the interval is narrow
    enough. Exits with 0 if everything was measured, and with 1 if a command failed.
    """  # noqa: D301 - click wants the control character itself
    from perftrail.measure.trial import CommandFailed, open_trial

    parsed = Options(**options)  # type: ignore[arg-type] # click passes values of the declared types
    exports = exports_of(parsed)
    trial = trial_of(parsed, words=command_words() or ())
    print_at_first_run()
    interrupted = False
    with open_trial(trial) as measure:
        try:
            _follow(measure, silent=trial.run_settings.output is not None)
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}{_hint(parsed.commands)}") from failure
        except KeyboardInterrupt:
            interrupted = True
    result = measure.result()
    write_exports(exports, result)
    if as_json:
        from perftrail.present.trial_files import as_json as trial_json

        print_json("measure", trial_json(result))
    elif "-" not in exports:
        from perftrail.present.trial import print_trial_result

        print_trial_result(result)
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _hint(commands: tuple[str, ...]) -> str:
    """Return a hint for a failure if several arguments look like the words of one command."""
    if len(commands) < 2 or any(len(each.split()) != 1 for each in commands):
        return ""
    return f"\nEach argument is one COMMAND; for a single command write: perftrail measure -- {shlex.join(commands)}"


def _follow(measure: TrialRunner, *, silent: bool) -> None:
    """Measure until the end, with a progress line on a terminal."""
    from rich.text import Text

    from perftrail.present.console import errors
    from perftrail.present.trial import progress_words

    console = errors()
    with contextlib.closing(measure.events()) as events:
        if silent or not console.is_terminal:
            for _ in events:
                pass
            return
        with console.status("") as status:
            for event in events:
                status.update(Text(progress_words(event, measure.trial), overflow="ellipsis", no_wrap=True))


NO_SHELL = "none"
DEFAULT_SHELL = "default"
LARGEST_COUNT = 100_000
NO_BUDGET_SECONDS = 10.0 * 365 * 86400
"""A budget without effect, for a fixed number of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line, as click parsed them."""

    commands: tuple[str, ...]
    names: tuple[str, ...]
    warmup: int | None
    runs: int | None
    min_runs: int | None
    max_runs: int | None
    precision: float | None
    threshold: float | None
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
    """Return the requested trial; raises `UsageError`."""
    entered = trial_entries(
        CommandLine(
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
        stopping_rule=_stopping_rule(options),
        run_settings=_run_settings(options),
        shell=entered.shell,
        seed=options.seed,
    )


def exports_of(options: Options) -> Mapping[str, Export]:
    """Return the format of each export file, before the first run. Raises `UsageError` for an unwritable file."""
    formats: tuple[tuple[str | None, Export], ...] = (
        (options.export_json, trial_files.to_json),
        (options.export_csv, trial_files.to_csv),
        (options.export_markdown, trial_files.to_markdown),
    )
    exports: dict[str, Export] = {}
    for file, export in formats:
        if file is None:
            continue
        if file in exports:
            raise UsageError(f"{file}: two exports cannot go into one file; choose another file")
        if file != "-" and (Path(file).is_dir() or not Path(file).absolute().parent.is_dir()):
            raise UsageError(
                f"{file}: cannot be written, because it is a directory or its directory does not exist"
            )
        exports[file] = export
    return exports


def write_exports(exports: Mapping[str, Export], result: TrialResult) -> None:
    """Write every export; raises `UsageError` if that fails."""
    for file, export in exports.items():
        if file == "-":
            click.echo(export(result), nl=False)
            continue
        try:
            write_file(Path(file), export(result))
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error.strerror}") from error


def _parameters(options: Options) -> dict[str, tuple[str, ...]]:
    if options.steps and len(options.steps) != len(options.scans):
        raise UsageError(
            f"-D is used {counted(len(options.steps), 'time')} and -P {counted(len(options.scans), 'time')}; "
            "use one -D for each -P, or none"
        )
    steps = options.steps or (None,) * len(options.scans)
    parameters = [(name, values_of(text)) for name, text in options.lists]
    parameters += [
        (name, scan(name, first, last, step=step))
        for (name, first, last), step in zip(options.scans, steps, strict=True)
    ]
    names = [name for name, _ in parameters]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"parameter {quoted(name)} is set twice; use one -L or -P for each parameter")
    return dict(parameters)


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
        raise UsageError("--shell: empty; name a shell, or write --shell alone for /bin/sh")
    return words


def _check_numbers(options: Options) -> None:
    """Raise `UsageError` for impossible numbers of runs."""
    for option, count, least in (
        ("--runs", options.runs, 1),
        ("--min-runs", options.min_runs, 1),
        ("--max-runs", options.max_runs, 1),
        ("--warmup", options.warmup, 0),
    ):
        if count is not None and not least <= count <= LARGEST_COUNT:
            raise UsageError(f"{option} {count}: must be a number from {least} to {LARGEST_COUNT}")


def _stopping_rule(options: Options) -> StoppingRule:
    _check_numbers(options)
    least, most = options.min_runs or LEAST_RUNS, options.max_runs or MOST_RUNS
    if options.runs is not None:
        if options.min_runs is not None or options.max_runs is not None:
            raise UsageError("--runs sets the exact number of runs; omit --min-runs and --max-runs")
        least = most = options.runs
    elif options.max_runs is None:
        most = max(least, most)
    elif options.min_runs is None:
        least = min(least, most)
    elif least > most:
        raise UsageError(f"--min-runs {least} is more than --max-runs {most}")
    budget = BUDGET_SECONDS if options.runs is None else NO_BUDGET_SECONDS
    if options.budget is not None:
        budget = _duration("--budget", options.budget)
    return StoppingRule(
        least=least,
        most=most,
        guaranteed_runs=least if options.min_runs and options.budget is None else 1,
        budget_seconds=budget,
        precision=PRECISION if options.precision is None else options.precision,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        warmups=options.warmup,
    )


def _run_settings(options: Options) -> RunSettings:
    return RunSettings(
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
        raise UsageError("--readable has no effect without --sandbox; omit it, or add --sandbox")
    for path in options.readable:
        if not path.startswith(("/", "~/")) or not expanded(path).exists():
            raise UsageError(f"--readable {quoted(path)}: must be an existing path that begins with / or ~/")
    return Sandbox(readable=options.readable) if options.sandbox else None


def _input(file: str | None) -> str | None:
    if file is None or file == "null":
        return None
    if not Path(file).is_file():
        raise UsageError(f"--input {quoted(file)}: no such file; null means no input")
    return file


def _output(target: str | None) -> str | None:
    if target in (None, "null"):
        return None
    if target == "pipe":
        raise UsageError(
            "--output pipe: reading a pipe would take CPU time from the program; write to a file instead, for example "
            "--output /tmp/out"
        )
    if target != "inherit":
        return target
    # The path names this process, not the launcher. Each run would truncate a regular file.
    if stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode):
        raise UsageError("--output inherit: standard error is a file; name that file instead: --output FILE")
    return f"/proc/{os.getpid()}/fd/{sys.stderr.fileno()}"


def _duration(option: str, text: str) -> float:
    """Parse a duration; a number without a unit is in seconds, as in other tools."""
    try:
        seconds = float(text) if text.replace(".", "", 1).isdecimal() else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option} {quoted(text)}: {error}") from error
    if not 0.0 < seconds < NO_BUDGET_SECONDS:
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
        raise UsageError(f"--memory-limit {quoted(text)}: must be at least 1 MiB, or no program starts")
    return size


def _cpus(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "none":
        return None
    try:
        numbers = parse_numbers(text)
    except ValueError as error:
        raise UsageError(f"--cpus {quoted(text)}: write numbers and ranges, for example 0,2-3") from error
    allowed = os.sched_getaffinity(0)
    if not allowed.issuperset(numbers):
        raise UsageError(
            f"--cpus {quoted(text)}: the available CPUs are {', '.join(map(str, sorted(allowed)))}"
        )
    return numbers
