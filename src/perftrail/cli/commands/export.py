"""`perftrail export`: samples in the format of another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option, only_option, store_option, study_argument, walking_options
from perftrail.formats.exports import FORMATS

if TYPE_CHECKING:
    from perftrail.cli.options import Walking


@click.command("export", cls=Command)
@study_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="csv",
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIRECTORY",
    help="File, or directory if there are several files. [default: standard output]",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Export only this metric. May be repeated."
)
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
    """Write samples in the format of another tool, without warm-ups.

    csv, jsonl and parquet contain every value of every metric. hyperfine and lnt contain times and memory. bmf,
    github-action-benchmark, otava and asv contain the metrics that perftrail show prints. Formats for a single
    revision become one file for each revision.
    """
    from perftrail.formats.exports import write
    from perftrail.opening import open_view
    from perftrail.present.exported import deliver
    from perftrail.present.speech import print_source_age
    from perftrail.verbs.export import exported, leading

    with open_view(walking.load(study, to_read=True), store=store) as view:
        samples = exported(view, only=only, metrics=metrics)
        if FORMATS[form].holds == "shown" and not metrics:
            samples = leading(samples, view)
        print_source_age(view)
        files = write(form, samples, view.study)
    written = deliver(form, files, output, quiet=as_json)
    if as_json:
        print_json("export", {"format": form, "files": written})
