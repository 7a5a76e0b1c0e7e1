"""`perftrail run`: make and measure what the plan still lacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.options import (
    again,
    engine_option,
    jobs_option,
    json_option,
    only_option,
    study_argument,
    walking_options,
    writing_options,
)

if TYPE_CHECKING:
    from perftrail.cli.options import Walking, Writing


@click.command("run")
@study_argument
@only_option
@click.option("--dry-run", is_flag=True, help="Show the plan and what it costs; make and measure nothing.")
@jobs_option
@engine_option
@walking_options
@writing_options
@json_option
def command(
    study: str | None,
    only: tuple[str, ...],
    dry_run: bool,
    jobs: int,
    engine: str | None,
    walking: Walking,
    writing: Writing,
    as_json: bool,
) -> None:
    """Make every subject and measure it, in interleaved order, until the figures are precise enough.

    Resumes by itself: what was made or measured is not done again. A failed build is recorded and never
    stops a run. Exits 0 when every planned point has an outcome, 1 when nothing at all could be measured or
    a metric that is declared as the same differs.
    """
    from perftrail.cli.commands.check import show_plan
    from perftrail.measure.subjects import afresh
    from perftrail.present.finding import print_run
    from perftrail.results.selection import select
    from perftrail.verbs.run import Run

    loaded = writing.contained(walking.load(study))
    selection = select(loaded, only)
    if dry_run:
        show_plan(
            loaded, selection, store=writing.store, as_json=as_json, repeat=again(study, walking, writing)
        )
        return
    report = writing.follow(
        loaded,
        lambda session: afresh(session.workshop, lambda: Run(session, selection).events()),
        jobs=jobs,
        engine=engine,
    )
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=1))
    else:
        print_run(report, repeat=again(study, walking, writing))
    if report.disagreements or (report.cells and not report.measured):
        raise click.exceptions.Exit(1)
