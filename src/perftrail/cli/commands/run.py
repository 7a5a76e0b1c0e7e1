"""`perftrail run`: make and measure what the plan still lacks."""

from __future__ import annotations

import json

import click

from perftrail.cli.options import (
    json_option,
    load_study,
    only_option,
    store_option,
    study_argument,
    writing_options,
)


@click.command("run")
@study_argument
@only_option
@click.option("--dry-run", is_flag=True, help="Show the plan and what it costs; make and measure nothing.")
@writing_options
@store_option
@json_option
def command(
    study: str | None,
    only: tuple[str, ...],
    dry_run: bool,
    retry_failed: bool,
    no_wait: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Make every subject and measure it, in interleaved order, until the figures are precise enough.

    Resumes by itself: what was made or measured is not done again. A failed build is recorded and never
    stops a run. Exits 0 when every planned point has an outcome, 1 when nothing at all could be measured.
    """
    from perftrail.cli.answers import print_run
    from perftrail.cli.commands.check import show_plan
    from perftrail.cli.console import Watcher
    from perftrail.workflows.opening import open_session
    from perftrail.workflows.run import Run
    from perftrail.workflows.selection import select

    loaded = load_study(study)
    selection = select(loaded, only)
    if dry_run:
        show_plan(loaded, selection, store=store, as_json=as_json, named=study)
        return
    with (
        Watcher() as watcher,
        open_session(
            loaded,
            store=store,
            wait=not no_wait,
            on_wait=watcher.waiting,
            on_noise=watcher.noisy,
            retry_failed=retry_failed,
        ) as session,
    ):
        report = watcher.follow(Run(session, selection).events())
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=1))
    else:
        print_run(report, named=study)
    if report.cells and not report.measured:
        raise click.exceptions.Exit(1)
