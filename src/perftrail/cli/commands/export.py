"""`perftrail export`: what was measured, in the format of another tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import json_option, only_option, store_option, study_argument, walking_options
from perftrail.formats.exports import FORMATS

if TYPE_CHECKING:
    from perftrail.cli.options import Walking


@click.command("export")
@study_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="csv",
    show_default=True,
    help="Whose format.",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="A file, or a directory where there are several; without it, one file is printed.",
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric; may be repeated.")
@only_option
@walking_options
@store_option
@json_option
def command(
    study: str | None,
    form: str,
    output: str | None,
    metrics: tuple[str, ...],
    only: tuple[str, ...],
    walking: Walking,
    store: str | None,
    as_json: bool,
) -> None:
    """Write what was measured so that another tool reads it; warm-ups are left out.

    csv, jsonl and parquet hold every value of every metric. hyperfine and lnt hold the values of times and memory; bmf,
    github-action-benchmark, otava and asv hold the metrics that perftrail show prints, asv with their values. What is
    for one revision only becomes a file for each.
    """
    from perftrail.formats.exports import write
    from perftrail.opening import open_view
    from perftrail.present.exported import deliver
    from perftrail.present.speech import say_how_old
    from perftrail.verbs.export import exported, leading

    with open_view(walking.load(study, to_read=True), store=store) as view:
        samples = exported(view, only=only, metrics=metrics)
        if FORMATS[form].holds == "shown" and not metrics:
            samples = leading(samples, view)
        say_how_old(view)
        files = write(form, samples, view.study)
    written = deliver(form, files, output, told=as_json)
    if as_json:
        click.echo(json.dumps({"format": form, "files": written}, indent=1))
