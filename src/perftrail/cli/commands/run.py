"""`perftrail run`: build and measure everything that the plan still needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    ends,
    engine_option,
    jobs_option,
    json_option,
    keep_going_option,
    only_option,
    repeated_options,
    session_options,
    source_options,
    study_argument,
)

if TYPE_CHECKING:
    from perftrail.cli.options import SessionOptions, SourceOptions


@click.command("run", cls=Command)
@study_argument
@only_option
@click.option("--dry-run", is_flag=True, help="Print the plan and its cost. Build and measure nothing.")
@keep_going_option
@jobs_option
@engine_option
@source_options
@session_options
@json_option
def command(
    study: str | None,
    only: tuple[str, ...],
    dry_run: bool,
    keep_going: bool,
    jobs: int,
    engine: str | None,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Build and measure every subject, in interleaved order, until the results are precise enough.

    An interrupted run resumes and repeats nothing. A failed build is recorded and does not stop the run. Exits with 1
    if nothing could be measured, or if a metric differs that must be equal according to the study.
    """
    from perftrail.cli.commands.check import show_plan
    from perftrail.measure.subjects import retry_stale_builds
    from perftrail.present.answer_details import print_run
    from perftrail.results.selection import select
    from perftrail.verbs.run import Run

    loaded = options.apply_to(sources.load(study))
    if not dry_run:
        loaded = options.with_suites(loaded, lambda session: ends(session.source.history()), jobs=jobs)
    selection = select(loaded, only)
    if dry_run:
        show_plan(
            loaded,
            selection,
            store=options.store,
            as_json=as_json,
            shared_options=repeated_options(study, sources, options),
            planned_command=("run", *(word for each in only for word in ("--only", each))),
        )
        return
    report = options.run(
        loaded,
        lambda session: retry_stale_builds(
            session.subject_builder, lambda: Run(replace(session, keep_going=keep_going), selection).events()
        ),
        jobs=jobs,
        engine=engine,
    )
    if as_json:
        print_json("run", report.as_json())
    else:
        print_run(report, shared_options=repeated_options(study, sources, options))
    if report.disagreements or (report.cells and not report.measured):
        raise click.exceptions.Exit(1)
