"""`perftrail init`: write a first study of a program."""

from __future__ import annotations

import json
from pathlib import Path

import click

from perftrail.cli.options import json_option


@click.command("init")
@click.argument("directory", default=".", type=click.Path())
@click.option("--output", metavar="PATH", help="Where the study goes: a directory or a .toml file.")
@click.option("--build", "system", metavar="SYSTEM", help="Which build system, where several are found.")
@click.option("--force", is_flag=True, help="Write over a study that is there.")
@json_option
def command(directory: str, output: str | None, system: str | None, force: bool, as_json: bool) -> None:
    """Write a commented first study of the program in DIRECTORY, the current one without it.

    Finds git or Fossil, and make, autotools, cmake, meson, cargo, go, npm or pyproject; chooses a stretch
    of history, a recipe and something to run. Runs nothing of what it finds.
    """
    from perftrail.present.plan import print_begun
    from perftrail.verbs.init.start import begin

    begun = begin(Path(directory), output=Path(output or directory), system=system, force=force)
    if as_json:
        click.echo(json.dumps(begun.as_json(), indent=1))
    else:
        print_begun(begun)
