"""`perftrail check`: validate a study and print its plan."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    ends,
    jobs_option,
    json_option,
    only_option,
    repeated_options,
    session_options,
    source_options,
    study_argument,
    study_path,
)
from perftrail.errors import SourceError, StudyError, UsageError
from perftrail.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.model.study import Study
    from perftrail.results.selection import Selection
    from perftrail.verbs.attempt import AttemptReport


@click.command("check", cls=Command)
@study_argument
@only_option
@click.option(
    "--try",
    "attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also build N revisions, spread evenly over the range; start each benchmark once, and once relinked if the "
    "recipe relinks. Report failures.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of study files, for editors.")
@jobs_option
@source_options
@session_options
@json_option
def command(
    study: str | None,
    only: tuple[str, ...],
    attempts: int | None,
    schema: bool,
    jobs: int,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Validate a study and print its plan: builds, points, invocations, stored samples and time.

    perftrail prints all mistakes of the study file at once, as FILE:LINE: key.path: message. With --try, it also
    builds and starts some revisions; run and find reuse these builds. It then exits with 1 if no revision works.
    """
    if schema:
        from perftrail import studyfile

        click.echo(json.dumps(studyfile.schema(), indent=2))
        return
    if attempts is None and (options.retry_failed or not options.wait or jobs > 1):
        raise UsageError(
            "--retry-failed, --no-wait and --jobs need --try N; without --try, perftrail builds nothing"
        )
    try:
        report = _checked(study, only, attempts, jobs, sources=sources, options=options, as_json=as_json)
    except (StudyError, SourceError) as error:
        from perftrail.opening import every_mistake
        from perftrail.present.console import Watcher

        with (
            Watcher() as watcher,
            watcher.doing("looking up ranges and revisions of the study in its history"),
        ):
            every = every_mistake(error, study_path(study), store=options.store)
        raise every from error
    if report is not None and not report.useful:
        raise click.exceptions.Exit(1)


def _checked(
    study: str | None,
    only: tuple[str, ...],
    attempts: int | None,
    jobs: int,
    *,
    sources: SourceOptions,
    options: SessionOptions,
    as_json: bool,
) -> AttemptReport | None:
    """Print the plan of a study; with `attempts`, try this number of revisions and return the report."""
    from perftrail.results.selection import select

    loaded = options.apply_to(sources.load(study))
    selection = select(loaded, only)
    shared_options = repeated_options(study, sources, options)
    if attempts is None:
        show_plan(loaded, selection, store=options.store, as_json=as_json, shared_options=shared_options)
        return None
    loaded = options.with_suites(loaded, lambda session: ends(session.source.history()), jobs=jobs)
    from perftrail.present.plan import print_attempt
    from perftrail.verbs.attempt import Attempt, without_quiet_wait

    report = options.run(
        without_quiet_wait(loaded),
        lambda session: Attempt(session, selection, count=attempts).events(),
        jobs=jobs,
    )
    if as_json:
        print_json("check --try", report.as_json())
    else:
        print_attempt(loaded, report, shared_options=shared_options)
    return report


def show_plan(
    study: Study,
    selection: Selection,
    *,
    store: str | None,
    as_json: bool,
    shared_options: Sequence[str],
    planned_command: Sequence[str] = (),
) -> None:
    """Compute a study's plan and print it; `planned_command` is the command whose plan it is, if not `check`."""
    from perftrail.opening import open_build_view
    from perftrail.present.console import Watcher
    from perftrail.present.outdated import added_metric_notes
    from perftrail.present.shared_sentences import print_source_age
    from perftrail.results.measured import MeasuredHere
    from perftrail.verbs.check import study_plan

    if study.searched_source.kind == "samples":
        from perftrail.present.export import print_imported
        from perftrail.verbs.import_ import imported_content

        content = imported_content(study)
        if as_json:
            print_json("check", content.as_json())
        else:
            print_imported(content)
        return
    with ExitStack() as stack:
        with Watcher() as watcher:
            with watcher.doing(f"reading the history of {study.searched_source.location}"):
                view = stack.enter_context(open_build_view(study, store=store))
                count = len(view.source.history())
            with watcher.doing(f"looking up builds and samples of {counted(count, 'revision')}"):
                plan = study_plan(view, selection)
                added = added_metric_notes(MeasuredHere(view))
        print_source_age(view)
        for note in added:
            click.echo(note, err=True)
    if as_json:
        print_json("check", plan.as_json())
        return
    from perftrail.present.plan import print_plan

    print_plan(study, plan, shared_options=shared_options, planned_command=planned_command)
