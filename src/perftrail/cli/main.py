"""The command `perftrail`: import only the requested command, and print every error."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from typing import TYPE_CHECKING

import click

from perftrail._version import __version__
from perftrail.cli.interrupts import INTERRUPTED, MESSAGE
from perftrail.errors import MACHINE_ERRORS, PerftrailError
from perftrail.model.wording import quoted, suggestion
from perftrail.present.github_job import commands_stopped
from perftrail.present.output_settings import as_started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

GROUPS = {
    "Start": {
        "init": "Write a first study of a program.",
        "check": "Validate a study; show what it would measure, and the time.",
        "doctor": "Show what disturbs measurements on this machine; fix it temporarily.",
    },
    "Measure": {
        "measure": "Measure one command, or compare several, without a study file.",
        "run": "Build and measure everything that the plan still needs.",
        "find": "Find the revision that changed a metric.",
        "compare": "Compare two revisions in interleaved pairs; a gate for CI.",
        "watch": "Measure each new revision of a branch; notify of changes.",
    },
    "Understand": {
        "show": "Show medians and changes, or the steps of a search.",
        "report": "Write a page with the answer, its charts and its evidence.",
        "publish": "Add the report and the history to a static site, with a badge.",
        "serve": "Show studies in a browser, also while they are measured.",
        "explain": "Show what differs between a revision and its parent.",
        "mcp": "Serve studies to AI agents, over the Model Context Protocol.",
        "backport": "Apply a change to an old revision; measure its gain and costs.",
        "revert": "Revert a change on the newest revision; measure how much comes back.",
    },
    "Data": {
        "export": "Write samples in the format of another tool.",
        "import": "Create a study from other tools' results.",
        "store": "Count, copy, back up or delete samples.",
    },
    "More": {
        "build": "Build one revision, or run its recipe by hand.",
        "bisect-step": "Judge the checked-out revision, for git bisect run.",
        "worker": "Build and measure for clients of a cluster.",
        "completion": "Complete commands and options in bash, zsh or fish.",
    },
}
"""Every command in its group, with its line in --help. So --help imports no command."""

FIRST = (
    ("perftrail measure './bench parse'", "measure a command; with two commands, compare them"),
    ("perftrail find v1.2 HEAD -- ./bench parse", "find the commit that changed its speed, in a check-out"),
    ("perftrail init", "write a study file for the program in this directory"),
)
"""The commands to start with, which `perftrail` alone prints."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

THREADS = "OMP_NUM_THREADS"
"""Number of threads of numpy's libraries."""


class LazyGroup(click.Group):
    """A group that imports a command's module on request."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the commands to start with if there are no arguments, which is wrong usage for a script."""
        if not args and not ctx.resilient_parsing:
            _print_first_commands()
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which users need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; `None` for an unknown name."""
        if cmd_name not in COMMANDS and ctx.resilient_parsing:
            return None
        if cmd_name not in COMMANDS:
            ctx.fail(f"unknown command {quoted(cmd_name)}{suggestion(cmd_name, COMMANDS)}")
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        module = importlib.import_module(f"perftrail.cli.commands.{name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with this text without importing them, and the options."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the list of commands without importing them."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="perftrail")
def cli() -> None:
    """Find which change made a program faster or slower, how it scales, and how certain the answer is.

    STUDY is a directory or a perftrail.toml. Default: the nearest perftrail.toml, searching upwards.

    Exit codes: 0 answered, 1 not answered, 2 wrong usage or invalid study file, 3 a gate failed, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    keep_to_one_thread()
    with commands_stopped():
        code = _run(None if arguments is None else list(arguments))
    sys.exit(code)


def _run(words: list[str] | None) -> int:
    """Run the command line, print its error, and return its exit code."""
    try:
        code = cli.main(args=words, prog_name="perftrail", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _interrupted()
    except click.ClickException as error:
        error.show()
        return 2
    except PerftrailError as error:
        from perftrail.model.wording import escaped

        text = escaped(str(error), longest=None, allowed="\n")
        click.echo(as_started(text, COMMANDS), err=True)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in MACHINE_ERRORS:
            raise
        return _machine_failed(error)
    return code if isinstance(code, int) else 0


def _print_first_commands() -> None:
    formatter = click.HelpFormatter()
    formatter.write_text(
        "perftrail finds which change made a program faster or slower, and how certain that is."
    )
    with formatter.section("Start with"):
        formatter.write_dl([(as_started(line), meaning) for line, meaning in FIRST], col_max=50)
    formatter.write_paragraph()
    formatter.write_text(f"{as_started('perftrail --help')} lists all commands.")
    click.echo(formatter.getvalue(), nl=False, err=True)


def keep_to_one_thread() -> None:
    """Limit numpy to one thread, unless the user has set a number; call this before its import.

    The arrays are small: more threads would only wait for each other, on the measured processors. Only the C library's
    environment changes, not Python's, which builds and benchmarks inherit.
    """
    if THREADS not in os.environ:
        os.putenv(THREADS, "1")


def _machine_failed(error: OSError) -> int:
    from perftrail.model.wording import escaped

    where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
    remedy = MACHINE_ERRORS[error.errno or 0]
    text = f"{where}{error.strerror}; {remedy}, then repeat the command: everything that was stored is kept"
    click.echo(escaped(text, longest=None), err=True)
    return 1


def _interrupted() -> int:
    click.echo(MESSAGE, err=True)
    return INTERRUPTED
