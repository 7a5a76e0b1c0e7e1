"""`perftrail measure`: one command or several, no study file, nothing stored."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import json_option

if TYPE_CHECKING:
    from perftrail.measure.trial import Measure

INTERRUPTED = 130
KNOWN_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "none", "default")
_SHELL = ("--shell", "-S")
WORDS = "perftrail.words"


class MeasureCommand(click.Command):
    """Takes what follows ``--`` as the words of one command, and ``--shell`` with or without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the words after ``--`` aside before click forgets that there was one."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, _with_shell_values(args))


def _with_shell_values(args: list[str]) -> list[str]:
    """Give a bare ``--shell`` its value: the next word when that names a shell, else the default shell."""
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
    help="Call commands so: one name, or one for each.",
)
@click.option("-w", "--warmup", type=int, metavar="N", help="Leave out N first runs.  [found]")
@click.option("-r", "--runs", type=int, metavar="N", help="Exactly N runs of each command.")
@click.option("-m", "--min-runs", type=int, metavar="N", help="At least N runs.  [10]")
@click.option("-M", "--max-runs", type=int, metavar="N", help="At most N runs.  [150]")
@click.option(
    "--precision",
    type=float,
    metavar="PERCENT",
    help="One command: stop when the interval is within so many percent.  [1]",
)
@click.option(
    "--smallest",
    type=float,
    metavar="PERCENT",
    help="Several: a change below this counts as the same.  [1]",
)
@click.option("--budget", metavar="TIME", help="Stop after this long for each command.  [60s]")
@click.option("--reference", metavar="CMD", help="Compare with this command instead of the first.")
@click.option("--reference-name", metavar="NAME", help="Call the reference so.")
@click.option(
    "-L",
    "--parameter-list",
    "lists",
    nargs=2,
    multiple=True,
    metavar="NAME A,B,…",
    help="Put each value for {NAME}; several lists: every combination.",
)
@click.option(
    "-P",
    "--parameter-scan",
    "scans",
    nargs=3,
    multiple=True,
    metavar="NAME MIN MAX",
    help="Put each number from MIN to MAX for {NAME}.",
)
@click.option(
    "-D", "--parameter-step-size", "steps", multiple=True, metavar="STEP", help="The step of -P.  [1]"
)
@click.option("-s", "--setup", multiple=True, metavar="CMD", help="Once before a command's first run.")
@click.option("-p", "--prepare", multiple=True, metavar="CMD", help="Before each run, not measured.")
@click.option("--conclude", multiple=True, metavar="CMD", help="After each run, not measured.")
@click.option("-c", "--cleanup", multiple=True, metavar="CMD", help="Once after all runs.")
@click.option("-i", "--ignore-failure", "tolerant", is_flag=True, help="Measure commands that fail too.")
@click.option(
    "-S",
    "--shell",
    metavar="[SHELL]",
    help="Run through a shell; its own time is measured and shown.  [none]",
)
@click.option("-N", "no_shell", is_flag=True, help="No shell, which is the default here.")
@click.option("--input", "stdin", metavar="FILE", help="What commands read: null or a file.  [null]")
@click.option("--output", metavar="WHERE", help="Where it goes: null, inherit (our stderr), FILE.  [null]")
@click.option("--show-output", is_flag=True, help="The same as --output inherit.")
@click.option("--timeout", metavar="TIME", help="Kill a run and all it started after this long.")
@click.option("--memory-limit", metavar="SIZE", help="Kill a run that wants more, as 2GiB.")
@click.option("--cpus", metavar="LIST", help="Bind runs to these CPUs, as 0 or 0,2-3.")
@click.option(
    "--sandbox", is_flag=True, help="No network, no home; only $TMPDIR can be changed (bubblewrap)."
)
@click.option(
    "--readable", multiple=True, metavar="PATH", help="Show it in there: of the home, /run or /tmp."
)
@click.option("--seed", type=int, default=0, metavar="N", help="Of the random sizes of the environment.  [0]")
@click.option("--export-json", metavar="FILE", help="Also write hyperfine's JSON; - is stdout.")
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
    from perftrail.cli.trial_options import Options, exports_of, trial_of, write_exports
    from perftrail.measure.trial import CommandFailed, open_measure

    given = Options(**options)  # type: ignore[arg-type] # click gives each the type that is declared there
    exports = exports_of(given)
    trial = trial_of(given, words=ctx.meta.get(WORDS, ()))
    interrupted = False
    with open_measure(trial) as measure:
        try:
            _follow(measure, silent=trial.surroundings.output is not None)
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}{_hint(given.commands)}") from failure
        except KeyboardInterrupt:
            interrupted = True
    found = measure.findings()
    write_exports(exports, found)
    if as_json:
        from perftrail.present.trial_json import as_json as contract

        click.echo(json.dumps(contract(found), indent=1))
    elif "-" not in exports:
        from perftrail.present.trial import print_findings

        print_findings(found)
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _hint(commands: tuple[str, ...]) -> str:
    """What to say beside a failure when somebody seems to have given one command's words as several commands."""
    if len(commands) < 2 or any(len(each.split()) != 1 for each in commands):
        return ""
    return f"\nEach COMMAND is one text; for one command write: perftrail measure -- {shlex.join(commands)}"


def _follow(measure: Measure, *, silent: bool) -> None:
    """Measure to the end, with a line on a terminal's stderr that says how far it is."""
    from rich.console import Console
    from rich.text import Text

    from perftrail.present.trial import progress_words

    console = Console(stderr=True, highlight=False)
    with contextlib.closing(measure.events()) as events:
        if silent or not console.is_terminal:
            for _ in events:
                pass
            return
        with console.status("") as status:
            for event in events:
                status.update(Text(progress_words(event, measure.trial), overflow="ellipsis", no_wrap=True))
