"""`perftrail init`: write a first study of a program."""

from __future__ import annotations

from pathlib import Path

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option
from perftrail.model.wording import escaped


@click.command("init", cls=Command)
@click.argument("directory", default=".", type=click.Path())
@click.option("-o", "--output", metavar="DIRECTORY|FILE", help="Directory or .toml file of the study.")
@click.option(
    "--build",
    "system",
    metavar="SYSTEM",
    help="Build system to use if DIRECTORY has several, for example cmake.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing study.")
@json_option
def command(directory: str, output: str | None, system: str | None, force: bool, as_json: bool) -> None:
    """Write a commented first study of the program in DIRECTORY, by default the current one.

    perftrail detects git or Fossil, and make, autotools, cmake, meson, cargo, go, npm or pyproject. It chooses a range
    of the history, a recipe and a benchmark command. It does not run the program or its build.
    """
    from perftrail.present.console import Watcher
    from perftrail.present.plan import print_first_study
    from perftrail.verbs.init.start import write_first_study

    with Watcher() as watcher, watcher.doing(f"reading the history and the files of {escaped(directory)}"):
        first = write_first_study(
            Path(directory), output=Path(output or directory), system=system, force=force
        )
    if as_json:
        print_json("init", first.as_json())
    else:
        print_first_study(first)
