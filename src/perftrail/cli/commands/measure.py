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

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import FRACTION, json_option
from perftrail.errors import UsageError
from perftrail.measure.trial import SHELL, CommandLine, scan, trial_entries, values_of
from perftrail.model.study import Sandbox
from perftrail.model.trial import (
    BUDGET_SECONDS,
    LEAST_RUNS,
    MOST_RUNS,
    PRECISION,
    THRESHOLD,
    Pace,
    Surroundings,
    Trial,
)
from perftrail.model.wording import parse_duration, parse_size, quoted
from perftrail.present import trial_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.measure.trial import TrialRunner
    from perftrail.stats.trial import Findings

    Export = Callable[[Findings], str]

INTERRUPTED = 130
KNOWN_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "none", "default")
_SHELL = ("--shell", "-S")
WORDS = "perftrail.words"


class MeasureCommand(Command):
    """Reads the words after ``--`` as one command, and ``--shell`` with or without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the words after ``--``, which click would mix with the others."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, _with_shell_values(args))


def _with_shell_values(args: list[str]) -> list[str]:
    """Give a bare ``--shell`` its value: the next word if it names a shell, else the default shell."""
    whole: list[str] = []
    for arg in args:
        if whole and whole[-1] in _SHELL:
            name = arg.split()[0] if arg.split() else ""
            known = Path(name).name in KNOWN_SHELLS
            whole[-1] = f"--shell={arg if known else 'default'}"
            if known:
                continue
        whole.append(arg)
    return [*whole[:-1], "--shell=default"] if whole and whole[-1] in _SHELL else whole


@click.command("measure", cls=MeasureCommand)
@click.argument("commands", nargs=-1, metavar="['COMMAND'…] [-- WORD…]")
@click.option(
    "-n",
    "--command-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name of the commands: one, or one for each.",
)
@click.option("-w", "--warmup", type=int, metavar="N", help="Discard the first N runs. [default: detected]")
@click.option("-r", "--runs", type=int, metavar="N", help="Exactly N runs of each command.")
@click.option("-m", "--min-runs", type=int, metavar="N", help="At least N runs. [default: 10]")
@click.option("-M", "--max-runs", type=int, metavar="N", help="At most N runs. [default: 150]")
@click.option(
    "--precision",
    type=FRACTION,
    help="One command: stop at this relative width of the interval. [default: 1%]",
)
@click.option(
    "--threshold",
    type=FRACTION,
    help="Several commands: a smaller change is the same. [default: 1%]",
)
@click.option("--budget", metavar="DURATION", help="Stop each command after this time. [default: 60s]")
@click.option("--reference", metavar="CMD", help="Compare with this command. [default: the first]")
@click.option("--reference-name", metavar="NAME", help="Name of the reference.")
@click.option(
    "-L",
    "--parameter-list",
    "lists",
    nargs=2,
    multiple=True,
    metavar="NAME A,B,…",
    help="Replace {NAME} by each value. Several lists: all combinations.",
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
@click.option("-i", "--ignore-failure", "tolerant", is_flag=True, help="Also measure commands that fail.")
@click.option(
    "-S",
    "--shell",
    metavar="[SHELL]",
    help="Use a shell; its own time is measured and shown. [default: none]",
)
@click.option("-N", "no_shell", is_flag=True, help="Use no shell. This is the default.")
@click.option("--input", "stdin", metavar="FILE", help="Standard input: null or a file. [default: null]")
@click.option(
    "--output", metavar="WHERE", help="Standard output: null, inherit (to stderr) or a file. [default: null]"
)
@click.option("--show-output", is_flag=True, help="The same as --output inherit.")
@click.option("--timeout", metavar="DURATION", help="Kill a run and its children after this time.")
@click.option("--memory-limit", metavar="SIZE", help="Kill a run that needs more memory, for example 2GiB.")
@click.option("--cpus", metavar="LIST", help="Bind runs to these CPUs, for example 0 or 0,2-3.")
@click.option("--sandbox", is_flag=True, help="No network, no home; only $TMPDIR is writable (bubblewrap).")
@click.option(
    "--readable",
    multiple=True,
    metavar="PATH",
    help="Make a path below home, /run or /tmp readable in the sandbox.",
)
@click.option(
    "--seed", type=int, default=0, metavar="N", help="Seed of the random environment sizes. [default: 0]"
)
@click.option("--export-json", metavar="FILE", help="Also write hyperfine's JSON. - is standard output.")
@click.option("--export-csv", metavar="FILE", help="Also write hyperfine's CSV.")
@click.option("--export-markdown", metavar="FILE", help="Also write a Markdown table.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, *, as_json: bool, **options: object) -> None:
    """Measure one command, or compare several, without a study file.

    \b
    perftrail measure -- sort words.txt           one command, word by word
    perftrail measure './old 5' './new 5'         several, each one text
    perftrail measure -L n 1,2,4 './run -t {n}'   one at several values

    No shell is used unless asked for. Runs are interleaved, warm-ups are found, and measuring stops when the
    answer is settled or precise enough. Exits 0 when everything was measured, 1 when a command failed.
    """  # noqa: D301 - click wants the control character itself
    from perftrail.measure.trial import CommandFailed, open_trial

    given = Options(**options)  # type: ignore[arg-type] # click gives each the type that is declared there
    exports = exports_of(given)
    trial = trial_of(given, words=ctx.meta.get(WORDS, ()))
    interrupted = False
    with open_trial(trial) as measure:
        try:
            _follow(measure, silent=trial.surroundings.output is not None)
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}{_hint(given.commands)}") from failure
        except KeyboardInterrupt:
            interrupted = True
    found = measure.findings()
    write_exports(exports, found)
    if as_json:
        from perftrail.present.trial_files import as_json as contract

        print_json("measure", contract(found))
    elif "-" not in exports:
        from perftrail.present.trial import print_findings

        print_findings(found)
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _hint(commands: tuple[str, ...]) -> str:
    """Return a hint for a failure if the words of one command were given as several commands."""
    if len(commands) < 2 or any(len(each.split()) != 1 for each in commands):
        return ""
    return f"\nEach COMMAND is one text; for one command write: perftrail measure -- {shlex.join(commands)}"


def _follow(measure: TrialRunner, *, silent: bool) -> None:
    """Measure to the end, with a progress line on a terminal."""
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
MOST_ASKED = 100_000
NEVER_SECONDS = 10.0 * 365 * 86400
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
        pace=_pace(options),
        surroundings=_surroundings(options),
        shell=entered.shell,
        seed=options.seed,
    )


def exports_of(options: Options) -> Mapping[str, Export]:
    """Return the format of each export file; raises `UsageError` for one that cannot be written, before all runs."""
    wanted: tuple[tuple[str | None, Export], ...] = (
        (options.export_json, trial_files.to_json),
        (options.export_csv, trial_files.to_csv),
        (options.export_markdown, trial_files.to_markdown),
    )
    exports: dict[str, Export] = {}
    for file, export in wanted:
        if file is None:
            continue
        if file in exports:
            raise UsageError(f"{file}: two exports go into one file; name another")
        if file != "-" and (Path(file).is_dir() or not Path(file).absolute().parent.is_dir()):
            raise UsageError(f"{file}: cannot be written: it is a directory, or its directory does not exist")
        exports[file] = export
    return exports


def write_exports(exports: Mapping[str, Export], found: Findings) -> None:
    """Write every export; raises `UsageError` if that fails."""
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
    """Raise `UsageError` for impossible numbers of runs."""
    counts = (("--runs", options.runs), ("--min-runs", options.min_runs), ("--max-runs", options.max_runs))
    for option, count in (*counts, ("--warmup", None if options.warmup is None else options.warmup + 1)):
        if count is not None and not 1 <= count <= MOST_ASKED:
            least = 0 if option == "--warmup" else 1
            raise UsageError(f"{option}: must be a number from {least} to {MOST_ASKED}")


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
        precision=PRECISION if options.precision is None else options.precision,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
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
        raise UsageError(f"--input {quoted(named)}: no such file; null means no input")
    return named


def _output(named: str | None) -> str | None:
    if named in (None, "null"):
        return None
    if named == "pipe":
        raise UsageError(
            "--output pipe: reading a pipe takes CPU time from the program; write to a file instead:"
            " --output /tmp/out"
        )
    if named != "inherit":
        return named
    # Ours, not the launcher's; an ordinary file would be emptied by each run, so it must be named as one.
    if stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode):
        raise UsageError("--output inherit: stderr is a file; name it instead, as in --output FILE")
    return f"/proc/{os.getpid()}/fd/{sys.stderr.fileno()}"


def _duration(option: str, text: str) -> float:
    """Parse a duration; a bare number is seconds, as in other tools."""
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
