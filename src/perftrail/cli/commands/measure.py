"""`perftrail measure`: one command or several, no study file, nothing stored."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import json_option
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftrail.analysis.findings import Findings
    from perftrail.model.trial import Pace, Surroundings, Trial

INTERRUPTED = 130
KNOWN_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "none", "default")
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
        if whole and whole[-1] == "--shell":
            name = arg.split()[0] if arg.split() else ""
            known = Path(name).name in KNOWN_SHELLS
            whole[-1] = f"--shell={arg if known else 'default'}"
            if known:
                continue
        whole.append(arg)
    return [*whole[:-1], "--shell=default"] if whole and whole[-1] == "--shell" else whole


@click.command("measure", cls=MeasureCommand)
@click.argument("commands", nargs=-1, metavar="['COMMAND'…] [-- WORD…]")
@click.option("-n", "--command-name", "names", multiple=True, metavar="NAME", help="Call a command so; for each.")
@click.option("-w", "--warmup", type=click.IntRange(0, 10_000), metavar="N", help="Leave out N first runs.  [found]")
@click.option("-r", "--runs", type=click.IntRange(1, 100_000), metavar="N", help="Exactly N runs of each command.")
@click.option("-m", "--min-runs", type=click.IntRange(1, 100_000), metavar="N", help="At least N runs.  [10]")
@click.option("-M", "--max-runs", type=click.IntRange(1, 100_000), metavar="N", help="At most N runs.  [150]")
@click.option("--precision", type=click.FloatRange(0, min_open=True), metavar="PERCENT",
              help="One command: stop when the interval is within so many percent.  [1]")
@click.option("--smallest", type=click.FloatRange(0, 50, min_open=True), metavar="PERCENT",
              help="Several: a change below this counts as the same.  [1]")
@click.option("--budget", metavar="TIME", help="Stop after this long for each command.  [60s]")
@click.option("--reference", metavar="COMMAND", help="Compare with this command instead of the first.")
@click.option("--reference-name", metavar="NAME", help="Call the reference so.")
@click.option("-L", "--parameter-list", "lists", nargs=2, multiple=True, metavar="NAME A,B,…",
              help="Put each value for {NAME}; several lists: every combination.")
@click.option("-P", "--parameter-scan", "scans", nargs=3, multiple=True, metavar="NAME MIN MAX",
              help="Put each number from MIN to MAX for {NAME}.")
@click.option("-D", "--parameter-step-size", "steps", multiple=True, metavar="STEP", help="The step of -P.  [1]")
@click.option("-s", "--setup", multiple=True, metavar="COMMAND", help="Once before a command's first run.")
@click.option("-p", "--prepare", multiple=True, metavar="COMMAND", help="Before each run, not measured.")
@click.option("--conclude", multiple=True, metavar="COMMAND", help="After each run, not measured.")
@click.option("-c", "--cleanup", multiple=True, metavar="COMMAND", help="Once after all runs.")
@click.option("-i", "--ignore-failure", "tolerant", is_flag=True, help="Measure commands that fail too.")
@click.option("-S", "--shell", metavar="[SHELL]",
              help="Run through a shell; its own time is measured and shown.  [none]")
@click.option("-N", "no_shell", is_flag=True, help="No shell, which is the default here.")
@click.option("--input", "stdin", metavar="FILE", help="What commands read: null or a file.  [null]")
@click.option("--output", metavar="WHERE", help="Where their output goes: null, inherit (stderr) or a file.  [null]")
@click.option("--show-output", is_flag=True, help="The same as --output inherit.")
@click.option("--timeout", metavar="TIME", help="Kill a run and all it started after this long.")
@click.option("--memory-limit", metavar="SIZE", help="Kill a run that wants more, as 2GiB.")
@click.option("--cpus", metavar="LIST", help="Bind runs to these CPUs, as 0 or 0,2-3.")
@click.option("--seed", type=int, default=0, metavar="N", help="Of the random sizes of the environment.  [0]")
@click.option("--export-json", metavar="FILE", help="Also write hyperfine's JSON; - is stdout.")
@click.option("--export-csv", metavar="FILE", help="Also write hyperfine's CSV.")
@click.option("--export-markdown", metavar="FILE", help="Also write a Markdown table.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, *, as_json: bool, **options: object) -> None:
    """Measure one command, or compare several, without a study file.

    \b
    perftrail measure -- sort words.txt          one command, word by word
    perftrail measure './old 5' './new 5'        several, each one text
    perftrail measure -L n 1,2,4 './run -t {n}'  one at several values

    No shell is used unless asked for. Runs are interleaved, warm-ups are found, and measuring stops when the
    answer is precise enough or settled. Exits 0 when everything was measured, 1 when a command failed.
    """
    from perftrail.launcher import Launcher
    from perftrail.workflows.measure import Measure

    exports = _exports(options)
    trial = _trial(options, words=ctx.meta.get(WORDS, ()))
    interrupted = False
    with Launcher() as starter:
        measure = Measure(trial, starter)
        try:
            _follow(measure, quiet=trial.surroundings.output is not None)
        except KeyboardInterrupt:
            interrupted = True
    found = measure.findings()
    for file, text in exports.items():
        _write(file, text(found))
    if as_json:
        from perftrail.report.contract import as_json as contract

        click.echo(json.dumps(contract(found), indent=1))
    elif "-" not in exports:
        from perftrail.cli.trials import print_findings

        print_findings(found)
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)
