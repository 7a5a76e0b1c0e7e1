"""`perftrail export`: samples in the format of another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import json_option, only_option, source_options, store_option, study_argument
from perftrail.formats.exports import FORMATS

if TYPE_CHECKING:
    from perftrail.cli.options import SourceOptions


@click.command("export", cls=Command)
@study_argument
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="csv",
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIRECTORY",
    help="File, or directory for several files. [default: standard output]",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Export only this metric. May be repeated."
)
@only_option
@source_options
@store_option
@json_option
def command(
    study: str | None,
    format_name: str,
    output: str | None,
    metrics: tuple[str, ...],
    only: tuple[str, ...],
    sources: SourceOptions,
    store: str | None,
    as_json: bool,
) -> None:
    """Write samples in the format of another tool, without warm-ups.

    csv, jsonl and parquet contain every value of every metric. hyperfine and lnt contain times and memory. bmf,
    github-action-benchmark, otava and asv contain the metrics that perftrail show prints. If a format describes a
    single revision, perftrail writes one file for each revision. perftrail lists the metrics that are missing in the
    files.
    """
    from perftrail.formats.exports import missing_metrics, write
    from perftrail.opening import open_view
    from perftrail.present.export import print_missing_metrics, write_export
    from perftrail.present.shared_sentences import print_source_age
    from perftrail.verbs.export import exported, with_shown_metrics

    with open_view(sources.load(study, to_read=True), store=store) as view:
        every = samples = exported(view, only=only, metrics=metrics)
        if FORMATS[format_name].metrics == "shown" and not metrics:
            samples = with_shown_metrics(every, view)
        print_source_age(view)
        files = write(format_name, samples, view.study)
    written = write_export(format_name, files, output, quiet=as_json)
    shown = {(each.benchmark, each.metric) for each in samples}
    missing = [each.metric for each in every if (each.benchmark, each.metric) not in shown]
    print_missing_metrics(format_name, [*missing, *missing_metrics(format_name, samples)])
    if as_json:
        print_json("export", {"format": format_name, "files": written})
