"""`perftrail completion`: complete commands and options in the shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from perftrail.cli.help import Command
from perftrail.errors import UsageError
from perftrail.file_tree import user_home
from perftrail.model.wording import escaped, listed

SHELLS = ("bash", "zsh", "fish")

VARIABLE = "_PERFTRAIL_COMPLETE"
"""The environment variable with which a script asks perftrail for completions."""

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
"""A file of the package bash-completion, without which bash reads no script of a directory."""


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option(
    "--install", is_flag=True, help="Write the script where SHELL reads it, instead of printing it."
)
@click.pass_context
def command(context: click.Context, shell: str | None, install: bool) -> None:
    """Print the script that completes commands and options in SHELL, by default the shell of $SHELL.

    With --install, perftrail writes it into your directory of completions, and prints what else the shell needs. Repeat
    this after an update of perftrail only if completion stops working: the script asks the installed perftrail.
    """
    from click.shell_completion import get_completion_class

    shell = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell) if shell in SHELLS else None
    if kind is None:
        raise UsageError(
            f"completion — $SHELL is not {listed(SHELLS, 'or')}; name one: perftrail completion bash"
        )
    script = kind(context.find_root().command, {}, "perftrail", VARIABLE).source()
    if install:
        _install(shell, script)
    else:
        click.echo(script)


def _install(shell: str, script: str) -> None:
    """Write the script, and print where, and what the shell needs to read it."""
    from perftrail.verbs.init.start import write_text

    file = script_file(shell)
    write_text(file, f"{script}\n")
    click.echo(f"wrote {escaped(str(file), longest=None)}")
    if shell == "zsh":
        click.echo("Next: add these lines to ~/.zshrc, unless it has them, and start a new shell:")
        click.echo(f"    fpath=({escaped(shlex.quote(str(file.parent)), longest=None)} $fpath)")
        click.echo("    autoload -U compinit && compinit")
    elif shell == "bash" and not BASH_COMPLETION.exists():
        click.echo("Next: install the package bash-completion, which reads this file, and start a new shell")
    else:
        click.echo("Next: start a new shell")


def script_file(shell: str) -> Path:
    """Return the file of the script among the user's completions of a shell."""
    data, configuration = (
        _directory("XDG_DATA_HOME", ".local/share"),
        _directory("XDG_CONFIG_HOME", ".config"),
    )
    if shell == "fish":
        return configuration / "fish" / "completions" / "perftrail.fish"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_perftrail"
    chosen = os.environ.get("BASH_COMPLETION_USER_DIR", "").partition(":")[0]
    return (Path(chosen) if chosen else data / "bash-completion") / "completions" / "perftrail"


def _directory(variable: str, default: str) -> Path:
    """Return a directory of the XDG base directory specification."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else user_home() / default
