"""`perftrail check`: validate a study and print its plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perftrail.cli.help import Command
from perftrail.cli.json_output import print_json
from perftrail.cli.options import (
    jobs_option,
    json_option,
    only_option,
    repeated_options,
    session_options,
    source_options,
    study_argument,
)
from perftrail.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftrail.cli.options import SessionOptions, SourceOptions
    from perftrail.model.study import Study
    from perftrail.results.selection import Selection


@click.command("check", cls=Command)
@study_argument
@only_option
@click.option(
    "--try",
    "attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also build N revisions, spread evenly over the range; start and relink each once. Report failures.",
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
    from perftrail.results.selection import select

    if schema:
        from perftrail import studyfile

        click.echo(json.dumps(studyfile.schema(), indent=2))
        return
    if attempts is None and (options.retry_failed or not options.wait or jobs > 1):
        raise UsageError(
            "--retry-failed, --no-wait and --jobs need --try N; without --try, perftrail builds nothing"
        )
    loaded = options.apply_to(sources.load(study))
    selection = select(loaded, only)
    if attempts is None:
        show_plan(
            loaded,
            selection,
            store=options.store,
            as_json=as_json,
            repeat=repeated_options(study, sources, options),
        )
        return
    from perftrail.present.plan import print_attempt
    from perftrail.verbs.check import Attempt, without_quiet_wait

    report = options.run(
        without_quiet_wait(loaded),
        lambda session: Attempt(session, selection, count=attempts).events(),
        jobs=jobs,
    )
    if as_json:
        print_json("check --try", report.as_json())
    else:
        print_attempt(loaded, report, repeat=repeated_options(study, sources, options))
    if not report.useful:
        raise click.exceptions.Exit(1)


def show_plan(
    study: Study, selection: Selection, *, store: str | None, as_json: bool, repeat: Sequence[str]
) -> None:
    """Compute a study's plan and print it."""
    from perftrail.opening import open_build_view
    from perftrail.present.shared_sentences import print_source_age
    from perftrail.verbs.check import study_plan

    if study.searched_source.kind == "samples":
        from perftrail.present.exported import print_imported
        from perftrail.verbs.import_ import imported_content

        content = imported_content(study)
        if as_json:
            print_json("check", content.as_json())
        else:
            print_imported(content)
        return
    with open_build_view(study, store=store) as view:
        plan = study_plan(view, selection)
        print_source_age(view)
    if as_json:
        print_json("check", plan.as_json())
        return
    from perftrail.present.plan import print_plan

    print_plan(study, plan, repeat=repeat)
