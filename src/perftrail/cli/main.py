"""The command `perftrail`: finds the asked command, imports only that, and speaks every error."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from typing import TYPE_CHECKING

import click

from perftrail import __version__
from perftrail.errors import PerftrailError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "init": "Write a first study of a program.",
    "check": "Validate a study and show what it would take.",
    "build": "Make one revision, or go through its recipe by hand.",
    "run": "Make and measure what the plan still lacks.",
    "find": "Find which revision changed a metric.",
    "measure": "Measure one command, or compare several; no study file.",
    "compare": "Compare two revisions in turns; a gate for CI.",
    "watch": "Measure new revisions as they come, and tell of changes.",
    "backport": "Carry a change onto an old revision; measure what it gains and costs.",
    "explain": "Say what differs between a revision and the one before it.",
    "show": "Show what was measured, or how a search went.",
    "report": "Write a page with the answer, its figures and where they come from.",
    "serve": "Show studies in a browser, while they are measured too.",
    "export": "Write what was measured in the format of another tool.",
    "import": "Make a study of what other tools measured.",
    "store": "Look after what was measured: how much, copies, backups.",
    "worker": "Build and measure for others, as a machine of a cluster.",
    "doctor": "Say what on this machine spoils measurements, and fix it for a while.",
}
"""Every command with the line that --help shows for it, so that --help imports none of them."""

INTERRUPTED = 130

THREADS = "OMP_NUM_THREADS"
"""How many threads the libraries below numpy start."""


class LazyGroup(click.Group):
    """A group that imports a command's module when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of a user's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Import one command, `None` when there is no such."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        module = importlib.import_module(f"perftrail.cli.commands.{name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="perftrail")
def cli() -> None:
    """Find which change made a program faster or slower, how it scales, and how sure that is.

    A study is named by its directory or its perftrail.toml; without one, the nearest upwards is meant.

    Exit codes: 0 an answer was reached, 1 it could not be, 2 wrong usage or study file, 3 a gate tripped,
    130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    keep_to_one_thread()
    try:
        code = cli.main(args=None if arguments is None else list(arguments), standalone_mode=False)
    except click.exceptions.Abort:
        code = _interrupted()
    except KeyboardInterrupt:
        code = _interrupted()
    except click.ClickException as error:
        error.show()
        code = 2
    except PerftrailError as error:
        click.echo(str(error), err=True)
        code = error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def keep_to_one_thread() -> None:
    """Let numpy reckon on one thread, unless the user says otherwise; call this before it is imported.

    Its arrays here are small: more threads only wait for each other, on the processors that are measured. The
    C library's environment is changed and Python's is not, from which that of builds and benchmarks is made.
    """
    if THREADS not in os.environ:
        os.putenv(THREADS, "1")


def _interrupted() -> int:
    click.echo("interrupted; what was measured is kept, and the same command goes on from there", err=True)
    return INTERRUPTED
