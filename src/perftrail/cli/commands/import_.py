"""`perftrail import`: a study of what other tools measured."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from perftrail.cli.options import json_option


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(exists=True))
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    default="imported",
    show_default=True,
    help="Where the study goes; files are added to one that is there.",
)
@click.option(
    "--format", "form", metavar="NAME", help="Which tool's format; without it, each file is recognised."
)
@click.option("--title", metavar="TEXT", help="The study's question.")
@json_option
def command(files: tuple[str, ...], output: str, form: str | None, title: str | None, as_json: bool) -> None:
    """Make a study of what other tools measured: hyperfine, pyperf, Google Benchmark, JMH and others, CSV, JSON lines.

    FILE is a result file, or a directory whose result files are meant. They are copied into DIR/samples, and
    DIR/perftrail.toml says that they are the study's samples: show, report and export work on it as on any other.
    The revisions are those that the files name, or the files, in the order of time.
    """
    from perftrail.verbs.import_ import import_files

    begun = import_files([Path(name) for name in files], Path(output), format=form, title=title)
    if as_json:
        click.echo(json.dumps(begun.as_json(), indent=1))
        return
    for line in begun.words():
        click.echo(line)
    click.echo(f"perftrail show {shlex.quote(output)} prints them, with what changed")
