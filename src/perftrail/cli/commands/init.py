"""`perftrail init`: write a first study of a program."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option
from perftrail.errors import UsageError
from perftrail.model.wording import escaped
from perftrail.present.output_settings import next_line

if TYPE_CHECKING:
    from perftrail.verbs.init.draft import StudyDraft
    from perftrail.verbs.init.start import ExaminedProgram, FirstStudy


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
@click.pass_context
def command(
    context: click.Context,
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

    In a terminal and without options, it asks up to three questions; Enter accepts the detected answer.
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
    from perftrail.present.plan import print_first_study

    if _may_ask(context):
        print_first_study(_ask(Path(directory)))
        return
    from perftrail.present.console import Watcher
    from perftrail.verbs.init.start import write_first_study

    with Watcher() as watcher, watcher.doing(_reading(directory)):
        first = write_first_study(
            Path(directory), output=Path(output or directory), system=system, force=force
        )
    if as_json:
        print_json("init", first.as_json())
    else:
        print_first_study(first)


def _reading(directory: str | Path) -> str:
    return f"reading the history and the files of {escaped(str(directory))}"


def _may_ask(context: click.Context) -> bool:
    """Return whether a person can answer: in a terminal, not in CI, and without options."""
    given = [
        name
        for name in context.params.keys() | {"color"}
        if name != "directory" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    return not given and not os.environ.get("CI") and sys.stdin.isatty() and sys.stdout.isatty()


def _ask(directory: Path) -> FirstStudy:
    """Ask for what `init` cannot know for certain, and write the study."""
    from perftrail.present.console import Watcher
    from perftrail.process.launcher import Launcher
    from perftrail.verbs.init.start import examine, new_file, write_draft

    file = new_file(directory, force=False)
    with Watcher() as watcher, watcher.doing(_reading(directory)), Launcher() as starter:
        examined = examine(directory, starter, study=directory)
    return write_draft(_answered(examined, directory), file)


def _answered(examined: ExaminedProgram, directory: Path) -> StudyDraft:
    """Return the draft of a study with the answers to the questions about it."""
    from perftrail.verbs.init.start import draft_of, with_command, with_older_end

    draft = draft_of(examined, system=None)
    if draft.build is None:
        return draft
    click.echo("Enter accepts the answer in brackets.")
    systems = dict.fromkeys(build.system for build in (draft.build, *draft.others))
    if len(systems) > 1:
        chosen = click.prompt("Build system", type=click.Choice(list(systems)), default=draft.build.system)
        draft = draft_of(examined, system=chosen)
    if draft.source.kind == "git" and draft.source.range:
        old = draft.source.range.partition("..")[0]

        def parsed(text: str) -> StudyDraft:
            try:
                return draft if text == old else with_older_end(draft, text, directory)
            except UsageError as error:
                raise click.BadParameter(escaped(str(error))) from error

        question = "Oldest revision to search, for example a release that was fast"
        draft = click.prompt(question, value_proc=parsed, default=old)
    assert draft.build is not None
    if draft.build.suite is not None:
        return draft
    detected = draft.build.benchmark
    if detected.placeholder:
        click.echo("No benchmark was found: the command in brackets only shows that the program starts.")
    text = click.prompt("Command to measure, for example ./bench parse", default=escaped(detected.command))
    if text == escaped(detected.command):
        return draft
    return with_command(draft, text, prefix=examined.tree.prefix)


def _translate(configuration: Path, *, output: str | None, force: bool, as_json: bool) -> None:
    """Write a study from asv's configuration, and print what it has."""
    from perftrail.verbs.init.asv import asv_lines, write_asv_study

    study = write_asv_study(configuration, output=None if output is None else Path(output), force=force)
    if as_json:
        print_json("init", study.as_json())
        return
    for name, text in asv_lines(study):
        click.echo(f"{name:<12} {escaped(text)}")
    click.echo(next_line(f"perftrail check {escaped(shlex.quote(str(study.file)))}"))


def _keep_last(
    directory: Path, *, output: str | None, system: str | None, force: bool, as_json: bool
) -> None:
    """Write the study of the last command line as a study file, and print its name."""
    from perftrail.verbs.command_study import keep_command_study

    for option, given in (("--output", output), ("--build", system), ("--json", as_json)):
        if given:
            raise UsageError(f"--last writes the study of the last command line as it is; omit {option}")
    file = keep_command_study(directory, force=force)
    click.echo(f"wrote {escaped(str(file), longest=None)}")
    click.echo(next_line("perftrail check"))
