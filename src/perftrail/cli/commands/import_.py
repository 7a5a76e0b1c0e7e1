"""`perftrail import`: a study from samples of other tools."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option
from perftrail.present.output_settings import next_line


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(exists=True))
@click.option(
    "-o",
    "--output",
    metavar="DIRECTORY",
    default="imported",
    show_default=True,
    help="Directory of the study. The files are added to an existing study.",
)
@click.option(
    "--format", "format_name", metavar="NAME", help="Format of the files. [default: detected for each file]"
)
@click.option("--title", metavar="TEXT", help="Title of the study: the question that it answers.")
@json_option
def command(
    files: tuple[str, ...], output: str, format_name: str | None, title: str | None, as_json: bool
) -> None:
    """Create a study from results of other tools: hyperfine, pyperf, Google Benchmark, JMH, CSV and others.

    FILE is a result file, or a directory of result files. perftrail copies the files into DIRECTORY/samples and writes
    DIRECTORY/perftrail.toml; show, report and export then work as for any study. The revisions are the ones that the
    files name. If they name none, each file is a revision, in the order of time.
    """
    from perftrail.verbs.import_ import import_files

    imported = import_files([Path(name) for name in files], Path(output), format=format_name, title=title)
    if as_json:
        print_json("import", imported.as_json())
        return
    for line in imported.words():
        click.echo(line)
    click.echo(next_line(f"perftrail show {shlex.quote(output)}    print medians and changes"))
