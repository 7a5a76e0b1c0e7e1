"""`perftrail init`: write a first study of a program."""

from __future__ import annotations

from pathlib import Path

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option
from perftrail.errors import UsageError
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
@click.option(
    "--from",
    "configuration",
    metavar="FILE",
    type=click.Path(),
    help="Translate the configuration of asv, asv.conf.json, into a study.",
)
@click.option(
    "--last",
    is_flag=True,
    help="Write the study of the last command line in this repository, instead of a new one.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing study.")
@json_option
def command(
    directory: str,
    output: str | None,
    system: str | None,
    configuration: str | None,
    last: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a commented first study of the program in DIRECTORY, by default the current one.

    perftrail detects git or Fossil, and make, autotools, cmake, meson, cargo, go, maven, npm or pyproject. It chooses
    a range of the history, a recipe, and a benchmark suite or command. It does not run the program or its build.
    """
    if configuration is not None:
        for option, given in (("--build", system), ("--last", last), ("DIRECTORY", directory != ".")):
            if given:
                raise UsageError(f"--from takes everything from {configuration}; omit {option}")
        _translate(Path(configuration), output=output, force=force, as_json=as_json)
        return
    if last:
        _keep_last(Path(directory), output=output, system=system, force=force, as_json=as_json)
        return
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


def _translate(configuration: Path, *, output: str | None, force: bool, as_json: bool) -> None:
    """Write a study from asv's configuration, and print what it has."""
    from perftrail.verbs.init.asv import asv_lines, write_asv_study

    study = write_asv_study(configuration, output=None if output is None else Path(output), force=force)
    if as_json:
        print_json("init", study.as_json())
        return
    for name, text in asv_lines(study):
        click.echo(f"{name:<12} {escaped(text)}")
    click.echo(f"Next: perftrail check {escaped(str(study.file))}")


def _keep_last(
    directory: Path, *, output: str | None, system: str | None, force: bool, as_json: bool
) -> None:
    """Write the study of the last command line as a study file, and print its name."""
    from perftrail.verbs.command_study import keep_command_study

    for option, given in (("--output", output), ("--build", system), ("--json", as_json)):
        if given:
            raise UsageError(f"--last writes the study of the last command line as it is; omit {option}")
    file = keep_command_study(directory, force=force)
    click.echo(f"wrote {escaped(str(file))}")
    click.echo("Next: perftrail check")
